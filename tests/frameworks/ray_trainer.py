"""A driver with two workers, named as verl names them. Each step asks the workers, a task of its own, and the head."""

import argparse
import time

import ray

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int)
parser.add_argument("--fault")
args = parser.parse_args()


@ray.remote(num_cpus=0, num_gpus=1, max_restarts=0)
class WorkerDict:
    def __init__(self):
        self.kept = []

    def update_actor(self, step):
        if args.fault == "leak" and step > 2:
            self.kept.append(bytearray(b"x" * (1 << 29)))
        return step


@ray.remote(num_cpus=1)
def reward(step):
    return step / 10


ray.init()
workers = [WorkerDict.remote() for _ in range(2)]
for step in range(args.steps):
    ray.get([worker.update_actor.remote(step) for worker in workers])
    print(f"step {step} reward {ray.get(reward.remote(step))} of {len(ray.nodes())} nodes", flush=True)
    time.sleep(0.2)

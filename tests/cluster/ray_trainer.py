"""A small trainer that takes the place of open-instruct's: its learners and engines are Ray actors, and there is no model.

FAULT in its environment makes it
  forward   hand all of its own environment to the learners and to the engines, as trainers do;
  kill      lose its learners in the second step;
  hang      wait in the second step for ever.
"""
import argparse
import json
import os
import pathlib
import signal
import time

import ray
from ray.util.placement_group import placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

FAULT = os.environ.get("FAULT", "")
STEPS = 8


@ray.remote(num_cpus=0, num_gpus=1, max_restarts=0)
class PolicyTrainer:
    def step(self, number, rollouts):
        if number == 1 and FAULT == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if number == 1 and FAULT == "hang":
            time.sleep(1000)
        time.sleep(0.5)
        return sum(rollouts)


@ray.remote(num_cpus=0, num_gpus=1, max_restarts=0)
class LLMRayActor:
    def generate(self, prompt):
        return prompt + 1


def environment(role):
    return json.loads(pathlib.Path(os.environ[f"{role}_ENV"]).read_text())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--num_learners_per_node", type=int, nargs="+")
    parser.add_argument("--vllm_num_engines", type=int)
    arguments, _ = parser.parse_known_args()
    learner_env, engine_env = environment("LEARNER"), environment("ENGINE")
    if FAULT == "forward":
        os.environ.update(learner_env)
        learner_env = engine_env = dict(os.environ)
    learner_env["FAULT"] = FAULT

    ray.init()
    print("Ray has", ray.cluster_resources()["GPU"], "GPUs")
    one_each = placement_group([{"GPU": count} for count in arguments.num_learners_per_node], strategy="STRICT_SPREAD")
    learners = [PolicyTrainer.options(runtime_env={"env_vars": learner_env},
                                      scheduling_strategy=PlacementGroupSchedulingStrategy(one_each, bundle)).remote()
                for bundle in range(len(arguments.num_learners_per_node))]
    ray.get(one_each.ready())
    engines = [LLMRayActor.options(runtime_env={"env_vars": engine_env}).remote() for _ in range(arguments.vllm_num_engines)]
    for step in range(STEPS):
        rollouts = ray.get([engine.generate.remote(step) for engine in engines])
        print("step", step, "loss", ray.get([learner.step.remote(step, rollouts) for learner in learners]))


if __name__ == "__main__":
    main()

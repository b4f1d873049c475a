"""gloo_sync.py ROLE HOST PORT FAULT STEPS: each step sends the weights, until a side does something else."""

import sys
import time

import torch
import torch.distributed as dist

role, host, port, fault, steps = sys.argv[1:]
rank = 0 if role == "learner" else 1
dist.init_process_group("gloo", init_method=f"tcp://{host}:{port}", rank=rank, world_size=2)
weights = torch.zeros(1 << 18)


def generate():
    while True:  # a request without an end
        time.sleep(1)


for step in range(int(steps)):
    if step == 5 and (role, fault) == ("engine", "engine-never-enters"):
        generate()
    if step == 5 and (role, fault) == ("learner", "learner-never-enters"):
        generate()
    if step == 5 and (role, fault) == ("engine", "other-size"):
        weights = torch.zeros(1 << 17)
    if step == 5 and (role, fault) == ("engine", "ends-early"):
        sys.exit(0)
    dist.broadcast(weights, src=0)
    dist.barrier()
    print("step", step, flush=True)
    time.sleep(0.3)

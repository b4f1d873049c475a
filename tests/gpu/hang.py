"""Steps of all-reduces over NCCL, of which one rank is at fault in the fifth: sleeps, spins, stopped, other-collective, other-size, dies."""
import os
import signal
import sys
import time

import torch
import torch.distributed as dist

fault, bad = sys.argv[1], int(sys.argv[2])
rank, local_rank = int(os.environ["RANK"]), int(os.environ["LOCAL_RANK"])


def load_batch():
    if fault == "sleeps":
        time.sleep(3600)
    while fault == "spins":
        pass
    if fault == "stopped":
        os.kill(os.getpid(), signal.SIGSTOP)
    if fault == "dies":
        os._exit(0)


def step(number):
    faulty = rank == bad and number == 5
    if faulty:
        load_batch()
    tensor = torch.ones(1 << (10 if faulty and fault == "other-size" else 20), device="cuda")
    if faulty and fault == "other-collective":
        dist.broadcast(tensor, 0)
    else:
        dist.all_reduce(tensor)
    torch.cuda.synchronize()


device = torch.device("cuda", local_rank % torch.cuda.device_count())  # two ranks may share a GPU
torch.cuda.set_device(device)
dist.init_process_group("nccl", device_id=device)
for number in range(1, 10):
    step(number)
    print("step", number, flush=True)
    time.sleep(0.3)
dist.destroy_process_group()

"""A learner and an engine of tests/gpu/colocated.yaml, which share a GPU: `learn FOLDER RANK`, `serve FOLDER INDEX SHARE`.

The learners sum over NCCL, and each hands its weights to the engine on its GPU as a CUDA IPC handle: the engine sees the very
memory, and what it writes there the learner finds.
"""
import os
import pathlib
import pickle
import sys
import time

import torch
from torch.multiprocessing import reductions


def wait_for(path):
    while not path.exists():
        time.sleep(0.05)
    return path


def write(path, data):
    new = path.with_name(path.name + ".new")
    new.write_bytes(data)
    new.rename(path)


def uuid():
    return str(torch.cuda.get_device_properties(torch.cuda.current_device()).uuid)


def learn(folder, rank):
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    torch.distributed.init_process_group("nccl")
    weights = torch.full((1 << 20,), float(rank + 1), device="cuda")
    torch.distributed.all_reduce(weights)
    print("sum", weights[0].item(), flush=True)
    torch.cuda.synchronize()
    write(folder / f"weights.{rank}", pickle.dumps((uuid(), reductions.reduce_tensor(weights))))
    wait_for(folder / f"seen.{rank}")
    print("the engine has written", weights[0].item(), flush=True)
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


def serve(folder, index, share):
    total = torch.cuda.get_device_properties(0).total_memory
    cache = torch.empty(int(total * share / 2), dtype=torch.uint8, device="cuda")  # its KV cache, say
    print("holds its share,", len(cache) >> 20, "MiB", flush=True)
    owner, (rebuild, arguments) = pickle.loads(wait_for(folder / f"weights.{index}").read_bytes())
    assert owner == uuid(), f"the learner is on {owner}, this engine on {uuid()}"
    # The learner sees the GPUs of all learners, and the engine its own alone (rebuild_cuda_tensor's seventh argument).
    weights = rebuild(*arguments[:6], torch.cuda.current_device(), *arguments[7:])
    print("weights", weights[0].item(), "on", owner, flush=True)
    weights.fill_(42)
    torch.cuda.synchronize()
    write(folder / f"seen.{index}", b"")


FOLDER = pathlib.Path(sys.argv[2])
if sys.argv[1] == "learn":
    learn(FOLDER, int(sys.argv[3]))
else:
    serve(FOLDER, int(sys.argv[3]), float(sys.argv[4]))

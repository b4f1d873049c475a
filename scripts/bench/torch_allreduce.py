"""The check that people run today before a job: torchrun with one verified all-reduce in PyTorch, timed for two sizes.

    torchrun --nproc-per-node 2 scripts/bench/torch_allreduce.py"""
import os
import sys

import torch
import torch.distributed as dist

SIZES = (22118400, 128 << 20)
WARM_UP, TIMED = 20, 200


def measure(size, device):
    """Returns the microseconds of one all-reduce of `size` bytes."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    pattern = torch.arange(size // 4, device=device) % 251
    tensor = (pattern + rank).float()
    dist.all_reduce(tensor)
    if not torch.equal(tensor, (pattern * ranks + ranks * (ranks - 1) // 2).float()):
        sys.exit(f"rank {rank}: an element of {size} bytes is wrong")
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    tensor.zero_()
    for _ in range(WARM_UP):
        dist.all_reduce(tensor)
    begin.record()
    for _ in range(TIMED):
        dist.all_reduce(tensor)
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) * 1e3 / TIMED


def main():
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", device_id=device)
    for size in SIZES:
        microseconds = measure(size, device)
        if dist.get_rank() == 0:
            ranks = dist.get_world_size()
            busbw = 2 * (ranks - 1) / ranks * size / microseconds / 1e3
            print(f"{size} {microseconds:.1f} {busbw:.1f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

"""Steps of all-reduces over NCCL, in which one rank is at fault in the fifth: hang.py FAULT RANK TENSOR_PARALLEL GROUP.

FAULT: sleeps, spins, stopped, other-collective, other-size, dies. With TENSOR_PARALLEL above 1, a step is an all-reduce in a group of so many
neighbours, and then one in the group of those with the same place among theirs; GROUP says at which of them the fault is: tensor or data."""
import os
import signal
import sys
import time

import torch
import torch.distributed as dist

fault, bad, tensor_parallel, faulty_group = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
rank, local_rank, world = (int(os.environ[name]) for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE"))


def load_batch():
    if fault == "sleeps":
        time.sleep(3600)
    while fault == "spins":
        pass
    if fault == "stopped":
        os.kill(os.getpid(), signal.SIGSTOP)
    if fault == "dies":
        os._exit(0)


def reduce(group, faulty):
    if faulty:
        load_batch()
    tensor = torch.ones(1 << (10 if faulty and fault == "other-size" else 20), device="cuda")
    if faulty and fault == "other-collective":
        dist.broadcast(tensor, dist.get_global_rank(group, 0), group=group)
    else:
        dist.all_reduce(tensor, group=group)
    torch.cuda.synchronize()


def make_groups():
    """This rank's, by name."""
    if tensor_parallel == 1:
        return {"data": dist.group.WORLD}
    of_ranks = {"tensor": [range(first, first + tensor_parallel) for first in range(0, world, tensor_parallel)],
                "data": [range(first, world, tensor_parallel) for first in range(tensor_parallel)]}
    made = {name: [(ranks, dist.new_group(list(ranks))) for ranks in groups] for name, groups in of_ranks.items()}
    return {name: next(group for ranks, group in groups if rank in ranks) for name, groups in made.items()}


if ranks_per_host := int(os.environ.get("RANKS_PER_HOST", "0")):
    # NCCL refuses a GPU to two ranks of one host, and CUDA a list with a GPU in it twice.
    os.environ["NCCL_HOSTID"] = f"host-{local_rank // ranks_per_host}"
    os.environ["CUDA_VISIBLE_DEVICES"] = str(local_rank % ranks_per_host)
device = torch.device("cuda", local_rank % torch.cuda.device_count())
torch.cuda.set_device(device)
dist.init_process_group("nccl", device_id=device)
mine = make_groups()
for number in range(1, 10):
    for name, group in mine.items():
        reduce(group, rank == bad and number == 5 and name == faulty_group)
    print("step", number, flush=True)
    time.sleep(0.3)
dist.destroy_process_group()

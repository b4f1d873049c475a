"""The process group that a learner and its engines share, for learner.py and engine.py."""
import argparse
import datetime
import importlib.util
import inspect
import os
import sys

DEBIAN_PYTHON = "/usr/bin/python3"

# Where the first `python3` on PATH has no PyTorch (pyenv's, say), Debian's own may have it (python3-torch).
if importlib.util.find_spec("torch") is None:
    if os.path.realpath(sys.executable) == os.path.realpath(DEBIAN_PYTHON) or not os.path.exists(DEBIAN_PYTHON):
        sys.exit(f"{sys.executable} has no PyTorch: name one that has with --set vars.python=PATH")
    os.execv(DEBIAN_PYTHON, [DEBIAN_PYTHON, *sys.argv])

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

SYNC, END = 1, 0  # what the learner announces before each round


def parser(description):
    options = argparse.ArgumentParser(description=description)
    options.add_argument("--init", required=True, help="tcp://HOST:PORT on the learner's node")
    options.add_argument("--backend", choices=["nccl", "gloo"], required=True)
    options.add_argument("--rank", type=int, required=True)
    options.add_argument("--world-size", type=int, required=True)
    options.add_argument("--timeout", type=float, default=120, help="seconds")
    return options


class SyncGroup:
    """One rank of the group: rank 0 is the learner, every other an engine."""

    def __init__(self, options):
        self.rank, self.size = options.rank, options.world_size
        self.device = self._device(options.backend)
        arguments = {"timeout": datetime.timedelta(seconds=options.timeout)}
        if self.device.type == "cuda" and "device_id" in inspect.signature(dist.init_process_group).parameters:
            arguments["device_id"] = self.device  # since PyTorch 2.3: connects now, not in the first collective
        try:
            dist.init_process_group(options.backend, init_method=options.init, rank=self.rank,
                                    world_size=self.size, **arguments)
        except Exception as error:
            sys.exit(f"rank {self.rank} of {self.size} could not join {options.init} over {options.backend}: {error}")
        print(f"rank {self.rank} of {self.size} over {options.backend} on {self.describe()}", flush=True)

    @staticmethod
    def _device(backend):
        if backend == "gloo":
            torch.set_num_threads(1)
            return torch.device("cpu")
        if not torch.cuda.is_available():
            sys.exit(f"PyTorch {torch.__version__} sees no GPU here: --set weight_sync.backend=gloo needs none")
        device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)))
        torch.cuda.set_device(device)
        return device

    def describe(self):
        if self.device.type == "cpu":
            return f"the CPU, PyTorch {torch.__version__}"
        nccl = ".".join(map(str, torch.cuda.nccl.version()))
        return f"{torch.cuda.get_device_name(self.device)}, PyTorch {torch.__version__}, built for NCCL {nccl}"

    def broadcast(self, tensor):
        dist.broadcast(tensor, src=0)

    def announce(self, *values):
        """Numbers from the learner to all; an engine passes how many it expects as zeros."""
        tensor = torch.tensor(values, dtype=torch.int64, device=self.device)
        self.broadcast(tensor)
        return tensor.tolist()

    def total(self, value):
        """The sum over all ranks; returns when every rank has come here."""
        tensor = torch.tensor([value], dtype=torch.int64, device=self.device)
        dist.all_reduce(tensor)
        return int(tensor.item())

    def wait_for_device(self):
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def close(self):
        dist.destroy_process_group()


def empty_tensors(count, kib, device):
    return [torch.empty(kib * 1024 // 4, dtype=torch.int32, device=device) for _ in range(count)]


def checksums(tensors):
    """One number a tensor, to which the place of each element counts: a swap is seen as well as a wrong value."""
    result = []
    for tensor in tensors:
        places = torch.arange(1, tensor.numel() + 1, dtype=torch.int64, device=tensor.device)
        result.append((tensor * places).sum())
    return torch.stack(result)

"""Ranks over Gloo of which one is at fault, for the tests and the trials: real processes, real collectives."""
import json
import os
import pathlib
import signal
import socket
import subprocess
import tempfile
import textwrap
import time

SOURCE = pathlib.Path(os.environ.get("NLAUNCH_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
NLAUNCH = pathlib.Path(os.environ.get("NLAUNCH_BUILD", SOURCE / "build")) / "bin" / "nlaunch"
PYTHON = "/usr/bin/python3"  # Debian's, which has Debian's PyTorch
FAULTS = ("sleeps", "spins", "stopped", "dies", "other collective", "other size")

PROGRAM = textwrap.dedent("""\
    import datetime, os, signal, sys, time
    import torch
    import torch.distributed as dist

    fault, faulty_group, bad, steps, size, wrong_size, tensor_parallel = *sys.argv[1:3], *map(int, sys.argv[3:])
    rank = int(os.environ["RANK"])

    def load_batch():
        if fault == "sleeps":
            time.sleep(3600)
        while fault == "spins":
            pass
        if fault == "stopped":
            os.kill(os.getpid(), signal.SIGSTOP)
        if fault == "dies":
            os._exit(0)

    def evaluate(tensor, group):
        dist.all_gather([torch.empty_like(tensor) for _ in range(dist.get_world_size(group))], tensor, group=group)

    def reduce(group, faulty):
        if faulty:
            print("fault", flush=True)
            load_batch()
        tensor = torch.ones(wrong_size if faulty and fault == "other size" else size)
        if faulty and fault == "other collective":
            evaluate(tensor, group)
        dist.all_reduce(tensor, group=group)

    def make_groups():
        if tensor_parallel == 1:
            return {"data": None}
        world = dist.get_world_size()
        of_ranks = {"tensor": [range(first, first + tensor_parallel) for first in range(0, world, tensor_parallel)],
                    "data": [range(first, world, tensor_parallel) for first in range(tensor_parallel)]}
        made = {name: [(ranks, dist.new_group(list(ranks))) for ranks in groups] for name, groups in of_ranks.items()}
        return {name: next(group for ranks, group in groups if rank in ranks) for name, groups in made.items()}

    def step(number):
        for name, group in mine.items():
            reduce(group, rank == bad and number == steps and name == faulty_group)

    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=900))
    mine = make_groups()
    for number in range(steps + 5):
        step(number)
        print("step", number, flush=True)
""")


def has_torch():
    return subprocess.run([PYTHON, "-c", "import torch.distributed"], capture_output=True, check=False).returncode == 0


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def states(pid):
    """Of all threads."""
    found = set()
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        found.add((task / "stat").read_text().rsplit(")", 1)[1].split()[0])
    return found


class Ranks:
    """Ranks, one of which is at fault. They are killed at the end. With tensor_parallel above 1, a step has a collective in a group of so
    many neighbours, and then one in the group of those with the same place among theirs; the fault is at the one that `group` names."""

    def __init__(self, fault, bad, world=3, steps=3, size=1000, wrong_size=100, wrap=False, env=None, tensor_parallel=1, group="data"):
        self.fault, self.bad, self.world = fault, bad, world
        self.arguments = [fault, group, bad, steps, size, wrong_size, tensor_parallel]
        self.env = env or {}
        self.wrap = wrap  # in a shell, as many people start things
        self.home = tempfile.TemporaryDirectory(prefix="nlaunch-hang-")
        self.folder = pathlib.Path(self.home.name)
        self.ended = {}

    def __enter__(self):
        (self.folder / "train.py").write_text(PROGRAM)
        port = free_port()
        self.processes = [self.start(rank, port) for rank in range(self.world)]
        self.began = time.monotonic()
        return self

    def start(self, rank, port):
        # Tools are found where the collector finds them, not the ranks.
        env = {"PATH": "/nowhere", "HOME": str(self.folder), "RANK": str(rank), "LOCAL_RANK": str(rank),
               "WORLD_SIZE": str(self.world), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
               "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1", "SECRET_TOKEN": "hush-hush-hush", "PLAIN": "hush-hush-hush", **self.env}
        command = [PYTHON, str(self.folder / "train.py"), *map(str, self.arguments)]
        if self.wrap:
            command = ["/bin/bash", "-c", '"$@"; exit $?', "bash", *command]
        with open(self.log(rank), "wb") as log:
            return subprocess.Popen(command, env=env, stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                                    cwd=self.folder, start_new_session=True)

    def log(self, rank):
        return self.folder / f"learner.{rank}.log"

    def look(self):
        """Notes who has ended, as a supervisor would."""
        for rank, process in enumerate(self.processes):
            if rank not in self.ended and process.poll() is not None:
                code = process.returncode
                how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"exited with code {code}"
                self.ended[rank] = (how, time.monotonic() - self.began)

    def wait_for_the_fault(self, limit=60):
        """Until the faulty rank is there, and the others have had time to come to where they wait."""
        end = time.monotonic() + limit
        while "fault" not in self.log(self.bad).read_text(errors="replace"):
            self.look()
            if time.monotonic() > end or len(self.ended) == self.world:
                raise AssertionError("the fault did not come: " + self.log(self.bad).read_text(errors="replace"))
            time.sleep(0.01)
        settled = time.monotonic() + 1.0
        while time.monotonic() < settled:
            self.look()
            time.sleep(0.01)

    def spec(self, **more):
        subjects = []
        for rank, process in enumerate(self.processes):
            how, at = self.ended.get(rank, ("", 0))
            subjects.append({"name": f"learner.{rank}", "rank": rank, "pid": 0 if how else process.pid, "ended": how,
                             "ended_at": at, "log": str(self.log(rank))})
        return {"folder": str(self.folder / "evidence"), "host": "node0", "deadline_s": 30, "processes": subjects,
                "secrets": ["SECRET_TOKEN"], **more}

    def collect(self, path=None, **more):
        """What `nlaunch collect` says. `path`: where it finds tools."""
        env = {"PATH": path or os.environ["PATH"], "HOME": str(self.folder)}
        ran = subprocess.run([NLAUNCH, "collect", "-"], input=json.dumps(self.spec(**more)), env=env, text=True,
                             capture_output=True, timeout=60, check=False)
        if ran.returncode != 0:
            raise AssertionError(ran.stderr)
        return json.loads(ran.stdout)

    def verdict(self):
        ran = subprocess.run([NLAUNCH, "evidence", self.folder / "evidence", "--json"], text=True, capture_output=True,
                             timeout=60, check=False)
        if ran.returncode != 0:
            raise AssertionError(ran.stderr)
        return json.loads(ran.stdout)

    def file(self, rank, name):
        return self.folder / "evidence" / "node0" / f"learner.{rank}" / name

    def __exit__(self, *_):
        for process in self.processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        self.home.cleanup()

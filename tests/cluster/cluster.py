"""The test cluster for tests: `with Cluster(nodes=4, gpus=4) as cluster: cluster.run("srun", "-N4", "hostname")`."""
import os
import pathlib
import subprocess
import tempfile
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
SITE = HERE / "site.yaml"
CANNOT = 77  # up.sh: this machine cannot do it


def wait_until(true, seconds, what):
    """The first value of true() that is one; RuntimeError with `what` where none comes in time."""
    deadline = time.monotonic() + seconds
    while not (value := true()):
        if time.monotonic() > deadline:
            raise RuntimeError(f"{what}: not within {seconds} s")
        time.sleep(0.02)
    return value


class Cluster:
    """A cluster of its own in a folder of its own; nodes have the numbers 0 to nodes - 1.

    `conf` are lines for slurm.conf, `topology` those of topology.conf. With `hosts`, each node is a host of its own. Where this machine cannot have a cluster,
    `up` raises SkipTest with the reason. However the process that brought it up ends, the cluster goes.
    """

    def __init__(self, nodes=4, gpus=4, hosts=False, conf="", topology=""):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="nlaunch-cluster-"))
        self.arguments = (["--hosts"] if hosts else []) + [str(nodes), str(gpus)]
        self.conf = conf
        self.topology = topology
        self.env = {name: value for name, value in os.environ.items() if not name.startswith("SLURM_")}
        self.env.update(NLAUNCH_CLUSTER=str(self.folder), SLURM_CONF=str(self.folder / "slurm.conf"))
        self._alive = None

    def __enter__(self):
        self.up()
        return self

    def __exit__(self, *_):
        self.down()

    def up(self):
        closed, self._alive = os.pipe()
        subprocess.run(["setsid", "--fork", "bash", "-c", 'read -r; exec "$0"', HERE / "down.sh"], stdin=closed,
                       env=self.env, check=True)
        os.close(closed)
        with tempfile.TemporaryDirectory() as folder:
            files = {"NLAUNCH_CLUSTER_CONF": self.conf, "NLAUNCH_CLUSTER_TOPOLOGY": self.topology}
            env = {name: f"{folder}/{name}" for name, text in files.items() if text}
            for name, path in env.items():
                pathlib.Path(path).write_text(files[name])
            done = self.run(HERE / "up.sh", *self.arguments, timeout=120, env=env)
        if done.returncode != 0:
            self.down()
            raise (unittest.SkipTest if done.returncode == CANNOT else RuntimeError)(done.stderr.strip())

    def down(self):
        self._script("down.sh")
        os.close(self._alive)
        if self.folder.exists():  # it never came up
            self.folder.rmdir()

    def run(self, *command, timeout=60, env=None, **options):
        """Runs a command on the login side to its end; the result has returncode, stdout and stderr as text."""
        return subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=timeout,
                              env={**self.env, **(env or {})}, stdin=subprocess.DEVNULL, **options)

    def start(self, *command, **options):
        """Starts a command on the login side; the caller waits for it."""
        return subprocess.Popen([*map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.env,
                                stdin=subprocess.DEVNULL, **options)

    def end_all_jobs(self):
        """Cancels all jobs, and returns once nothing of them runs or writes."""
        self.run("scancel", "--user=root")
        deadline = time.monotonic() + 40
        while left := self.run("squeue", "-ho", "%i %T").stdout:
            if time.monotonic() > deadline:
                raise RuntimeError(f"jobs that do not end: {left.strip()}")
            time.sleep(0.1)

    def kill_node(self, node):
        """Kills all that runs on a node at once, slurmd first of all; Slurm notices by its SlurmdTimeout."""
        self._script("node.sh", "kill", node)

    def revive_node(self, node):
        """Starts a node anew and returns once Slurm has it back."""
        self._script("node.sh", "revive", node)

    def cut_off(self, node):
        """Takes from a node, which is a host, its way to the other nodes; the login side still reaches it."""
        self._script("node.sh", "cut", node)

    def connect(self, node):
        """Gives a node that was cut off its way to the others back."""
        self._script("node.sh", "connect", node)

    def processes(self, node=None):
        """The names of the processes that jobs have on a node, or on all, by pid."""
        lines = self._script("node.sh", "processes", *([] if node is None else [node])).splitlines()
        return {int(pid): name for pid, name in (line.split(maxsplit=1) for line in lines)}

    def state(self, node):
        """What sinfo calls the state of a node: idle, allocated, down*, ..."""
        return self.run("sinfo", "-hN", "-p", "main", "-n", f"node{node}", "-o", "%T").stdout.strip()

    def _script(self, name, *arguments):
        done = self.run(HERE / name, *arguments, timeout=120)
        if done.returncode != 0:
            raise RuntimeError(done.stderr.strip())
        return done.stdout

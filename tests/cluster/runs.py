"""What tests of runs over nodes share: an experiment, and ways to start it, to look at it and to see what it leaves."""
import json
import os
import pathlib
import shutil
import tempfile
import time
import unittest

from cluster import SITE, Cluster

SOURCE = pathlib.Path(os.environ["NLAUNCH_SOURCE"])
NLAUNCH = pathlib.Path(os.environ["NLAUNCH_BUILD"]) / "bin" / "nlaunch"
NODES = 4
WHEN = r"(\d+\.\ds|\d+ms)"

# Each learner says who it is, waits for all others at the port of rank 0's node, and goes on as it is told.
LEARNER = """
import os, socket, sys, time, signal
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
address = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
print("rank", rank, "of", size, "on", os.environ["SLURMD_NODENAME"], "local", os.environ["LOCAL_RANK"])
if rank == 0:
    server = socket.create_server(("", address[1]), backlog=size)
    others = [server.accept()[0] for _ in range(size - 1)]
    for other in others: other.sendall(b"go")
else:
    for _ in range(200):
        try:
            connection = socket.create_connection(address, timeout=5); break
        except OSError: time.sleep(0.05)
    assert connection.recv(2) == b"go"
print("all are here")
time.sleep(float(sys.argv[1]))
if rank == int(sys.argv[2]): sys.exit(3)
"""
EXPERIMENT = """
version: 1
name: fleet
nodes: 4
weight_sync: {backend: gloo}
vars: {seconds: "0.2", fail_rank: "-1"}
roles:
  learner:
    kind: learner
    per_node: 1
    rendezvous: torch
    command: [/usr/bin/python3, FOLDER/learner.py, "${vars.seconds}", "${vars.fail_rank}"]
    stop: {grace: 3s}
  engine:
    kind: engine
    count: 4
    ports: [http]
    command: [/usr/bin/python3, -m, http.server, --directory, FOLDER/empty, "${self.ports.http}"]
    ready: {http: "http://${self.host}:${self.ports.http}/", timeout: 20s}
    stop: {grace: 3s}
start: [[engine], [learner]]
"""

# Says who it is, and counts its steps.
COUNTER = """
import os, sys, time
print("learner", os.getpid(), flush=True)
for step in range(int(sys.argv[1])):
    print("step", step, flush=True)
    time.sleep(0.1)
"""
# A run that goes on as long as one engine of three is left.
OUTLIVING = """
version: 1
name: fleet
pools:
  train: {nodes: 1}
  serve: {nodes: 3}
weight_sync: {backend: none}
vars: {steps: "60"}
roles:
  learner: {kind: learner, pool: train, command: [/usr/bin/python3, FOLDER/counter.py, "${vars.steps}"], stop: {grace: 3s}}
  engine:
    kind: engine
    pool: serve
    per_node: 1
    ports: [http]
    command: [/usr/bin/python3, -m, http.server, --directory, FOLDER/empty, "${self.ports.http}"]
    ready: {http: "http://${self.host}:${self.ports.http}/", timeout: 20s}
    tolerate: {min: 1}
    stop: {grace: 3s}
start: [[engine], [learner]]
"""


class LooksAtRuns(unittest.TestCase):
    """`run_folder` is its own."""

    def wait_until(self, true, seconds=20):
        deadline = time.monotonic() + seconds
        while not true():
            self.assertLess(time.monotonic(), deadline, "it did not come to that")
            time.sleep(0.02)

    def events(self, name):
        try:
            lines = (self.run_folder / "events.jsonl").read_text().splitlines()
        except OSError:
            return []
        return [event for event in map(json.loads, lines) if event["event"] == name]


class Runs(LooksAtRuns):
    """What the tests of this file share; each class has a cluster of its own."""

    nodes = NODES
    hosts = False
    conf = "SlurmdTimeout=5\nMessageTimeout=3\n"

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(nodes=cls.nodes, gpus=4, hosts=cls.hosts, conf=cls.conf)
        cls.cluster.up()
        cls.addClassCleanup(cls.cluster.down)

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="nlaunch-fleet-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        (self.folder / "learner.py").write_text(LEARNER)
        (self.folder / "empty").mkdir()
        (self.folder / "fleet.yaml").write_text(EXPERIMENT.replace("FOLDER", str(self.folder)))

    def command(self, *arguments):
        return ["salloc", "-Q", f"-N{self.nodes}", NLAUNCH, "run", self.folder / "fleet.yaml", "--site", SITE, "--no-preflight",
                "--runs-dir", self.folder / "runs", *arguments]

    def run_it(self, *arguments):
        return self.cluster.run(*self.command(*arguments))

    def start(self, *arguments):
        """Starts a run that goes on for long, and returns once all learners are there."""
        process = self.cluster.start(*self.command("--set", "vars.seconds=100", *arguments))
        self.addCleanup(process.communicate)
        self.addCleanup(self.cluster.end_all_jobs)  # a test that fails leaves the nodes to the next one
        self.wait_until(lambda: len(self.events("process-started")) == 2 * self.nodes)
        self.wait_for_learners()
        return process

    def wait_for_learners(self):
        self.wait_until(lambda: all("all are here" in self.log(f"learner.{rank}") for rank in range(self.nodes)))

    @property
    def run_folder(self):
        return (self.folder / "runs" / "fleet" / "latest").resolve()

    def log(self, process):
        try:
            return (self.run_folder / "attempt-0" / "logs" / f"{process}.log").read_text()
        except OSError:
            return ""

    def summary(self):
        return json.loads((self.run_folder / "summary.json").read_text())

    def agents(self):
        """The pids of the tasks of the step, by node: those whose parent is a slurmstepd."""
        found = {}
        for pid in self.cluster.processes():
            try:
                words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
                environment = pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
                parent = int(pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
                stepd = pathlib.Path(f"/proc/{parent}/comm").read_text().startswith("slurmstepd")
            except (OSError, ValueError):
                continue
            if words[1:2] == [b"agent"] and stepd:
                found[next(e for e in environment if e.startswith(b"SLURMD_NODENAME=")).split(b"=")[1].decode()] = (pid, parent)
        return found

    def nothing_is_left(self, seconds=8):
        """On no node that lives."""
        def left():
            out = []
            for entry in pathlib.Path("/proc").iterdir():
                if not entry.name.isdigit():
                    continue
                try:
                    line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                except OSError:
                    continue
                if str(self.folder) in line and "salloc" not in line:
                    out.append(f"{entry.name} {line}")
            return out
        deadline = time.monotonic() + seconds
        while left() and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertEqual(left(), [])

    def end_of(self, process, seconds=30):
        out, err = process.communicate(timeout=seconds)
        return process.returncode, out, err

    def is_lost(self, process, sentence):
        """The run ends as one does that somebody has killed a part of, and says so."""
        code, _, err = self.end_of(process)
        self.assertEqual(code, 137, err)
        self.assertRegex(err, f"\\n{sentence}")
        self.nothing_is_left()

    def submit(self, *arguments, **options):
        """From the login node. What the job itself said is printed where the test fails."""
        done = self.cluster.run(*self.command(*arguments)[3:], **options)
        if done.returncode:
            for log in self.folder.glob("runs/fleet/slurm-*.log"):
                print(log.read_text())
        return done

    def nlaunch(self, *arguments):
        return self.cluster.run(NLAUNCH, *arguments, "--runs-dir", self.folder / "runs")

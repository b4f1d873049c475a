#!/usr/bin/env python3
"""Breaks one thing at a random moment of a run on four nodes of the test cluster: a process, an agent, the slurmd and
slurmstepds of a node, srun, the job (scancel), or the nlaunch that is the batch script. Learners wait for each other over TCP, so
all of them fail when one does. Half of the processes ignore TERM, and each has a child in a separate session that ignores it too.
Two seconds after the grace period, no process of the run may be alive on any node, and summary.json must name the culprit.

Prints a table for docs/measurements.md and every trial that went wrong, in which case it exits with 1 and keeps the directory of that
run. Usage, as root: scripts/bench/cluster_faults.py [--trials 100] [--within 2] [--seed N] [--only FAULT]"""
import argparse
import json
import os
import pathlib
import random
import re
import shutil
import signal
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/cluster"))
from cluster import SITE, Cluster, wait_until  # noqa: E402

NODES = 4
GRACE = 2.0
LIMIT = GRACE + 2.0
AFTER = r"after (\d+\.\ds|\d+ms)"

WORKER = """
import os, select, signal, socket, sys, time
index = int(os.environ["NLAUNCH_INDEX"])
if index % 2: signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(300)
if sys.argv[1] == "engine":
    server = socket.create_server(("", int(sys.argv[2])))
    while True: server.accept()
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
address = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
if rank == 0:
    server = socket.create_server(("", address[1]), backlog=size)
    peers = [server.accept()[0] for _ in range(size - 1)]
else:
    while True:
        try: peers = [socket.create_connection(address, timeout=300)]; break
        except OSError: time.sleep(0.05)
print("all are here", flush=True)
select.select(peers, [], [])
sys.exit("a peer is gone")
"""
EXPERIMENT = f"""version: 1
name: faults
nodes: {NODES}
weight_sync: {{backend: gloo}}
roles:
  learner:
    kind: learner
    per_node: 2
    rendezvous: torch
    command: [/usr/bin/python3, FOLDER/worker.py, learner]
    stop: {{grace: {GRACE:.0f}s}}
  engine:
    kind: engine
    per_node: 1
    ports: [http]
    command: [/usr/bin/python3, FOLDER/worker.py, engine, "${{self.ports.http}}"]
    ready: {{tcp: "${{self.host}}:${{self.ports.http}}", timeout: 30s}}
    stop: {{grace: {GRACE:.0f}s}}
"""


def parent_of(pid):
    return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])


def children(pid):
    return [int(child) for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def name_of(pid):
    return pathlib.Path(f"/proc/{pid}/comm").read_text().strip()


def kill(*pids):
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:  # one of a pair can exit with the other
            pass


class Trial:
    """One run as a job. `expected` is the required content of summary.json, as (outcomes, pattern of the sentence)."""

    def __init__(self, cluster, options, dice):
        self.cluster, self.nlaunch, self.dice = cluster, options.nlaunch, dice
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="nlaunch-faults-"))
        (self.folder / "worker.py").write_text(WORKER)
        (self.folder / "faults.yaml").write_text(EXPERIMENT.replace("FOLDER", str(self.folder)))
        self.dead_node = None
        self.delay = dice.uniform(0, options.within)

    # --- its processes ---

    def processes(self):
        """Returns all processes of this run on any node, by pid. All, including forked ones, have its directory in their arguments."""
        found = {}
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
            except OSError:
                continue
            if any(str(self.folder) in word for word in words):
                found[int(entry.name)] = words
        return found

    def agents(self):
        """Returns (guardian, supervisor) of the agents by node."""
        found = {}
        for pid, words in self.processes().items():
            try:
                if words[1:2] != ["agent"] or not name_of(parent_of(pid)).startswith("slurmstepd"):
                    continue
                environment = pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
                supervisor = children(pid)
            except OSError:
                continue
            node = next(e for e in environment if e.startswith(b"SLURMD_NODENAME=node"))[20:]
            if supervisor:
                found[int(node)] = (pid, supervisor[0])
        return found

    def run_folder(self):
        return next((self.folder / "runs/faults").glob("2*"))

    def events(self, name):
        try:
            lines = (self.run_folder() / "events.jsonl").read_text().splitlines()
        except OSError:
            return []
        return [event for event in map(json.loads, lines) if event["event"] == name]

    # --- the faults: each returns what summary.json must say ---

    def rank(self):
        wait_until(lambda: self.events("process-started"), 20, "the first process started")
        time.sleep(self.delay)
        victim = self.dice.choice(self.events("process-started"))
        node = next(p["host"] for p in self.placed() if p["name"] == victim["process"])
        kill(victim["pid"])
        return {"failed"}, rf"{re.escape(victim['process'])}( \(rank \d+\))? on {node} was killed by SIGKILL {AFTER}"

    def placed(self):
        plan = json.loads((self.run_folder() / "plan.json").read_text())
        return [{"name": f"{p['role']}.{p['index']}", "host": f"node{p['node']}"} for p in plan["processes"]]

    def agent(self):
        time.sleep(self.delay)
        node = self.dice.randrange(NODES)
        pids = wait_until(lambda: self.agents().get(node), 20, f"the agent of node{node}")
        kill(self.dice.choice(pids))
        return {"node-lost", "not-started"}, rf"node node{node}( was lost {AFTER})?: "

    def node(self):
        time.sleep(self.delay)
        node = self.dead_node = self.dice.randrange(NODES)
        wait_until(lambda: self.agents().get(node), 20, f"the agent of node{node}")
        slurmd = int((self.cluster.folder / f"node{node}/slurmd.pid").read_text())
        init = parent_of(slurmd)
        kill(slurmd, *(pid for pid in children(init) if name_of(pid).startswith("slurmstepd")))
        return {"node-lost", "not-started"}, rf"node node{node}( was lost {AFTER})?: "

    def srun(self):
        time.sleep(self.delay)
        kill(*(pid for pid, words in self.processes().items() if words[0].endswith("srun")))
        return {"aborted", "not-started"}, r"srun was killed by SIGKILL"

    def scancel(self):
        time.sleep(self.delay)
        self.cluster.run("scancel", self.job)
        return {"terminated", "interrupted"}, rf"stopped by SIGTERM ({AFTER}|before anything was started)"

    def nlaunch_itself(self):
        time.sleep(self.delay)
        guardian = self.events("run")[0]["pid"]
        if self.dice.random() < 0.5:
            kill(guardian)
            return {"killed"}, rf"nlaunch was killed ({AFTER}|before anything was started)"
        kill(*children(guardian))
        return {"killed"}, r"nlaunch's supervisor was killed by SIGKILL; the guardian ended the run"

    FAULTS = {"a rank killed": rank, "an agent killed": agent, "slurmd and slurmstepds of a node killed": node,
              "srun killed": srun, "scancel": scancel, "nlaunch, the batch script, killed": nlaunch_itself}

    # --- from submission to completion ---

    def go(self, fault):
        """Returns the seconds until nothing was left, and the problem, if any."""
        done = self.cluster.run(self.nlaunch, "run", self.folder / "faults.yaml", "--site", SITE, "--no-preflight", "--detach",
                                "--runs-dir", self.folder / "runs")
        if done.returncode != 0:
            raise RuntimeError(done.stderr)
        self.job = json.loads((self.run_folder() / "job.json").read_text())["jobs"][0]
        wait_until(self.agents, 30, "the first agent")
        outcomes, sentence = self.FAULTS[fault](self)
        begin, late = time.monotonic(), []
        while (left := self.processes()) and time.monotonic() < begin + 30:
            if not late and time.monotonic() > begin + LIMIT:
                late = [f"{pid} {' '.join(words[:3])}" for pid, words in left.items()]
            time.sleep(0.02)
        took = time.monotonic() - begin
        wrong = [f"gone after {took:.1f} s only: {'; '.join(late)}"] if late else []
        try:
            summary = json.loads((self.run_folder() / "summary.json").read_text())
        except OSError:
            return took, [*wrong, "no summary.json"], False
        right = summary["outcome"] in outcomes and re.match(sentence, summary["sentence"]) is not None
        if not right:
            wrong.append(f"said: {summary['outcome']}: {summary['sentence']}; expected: {' or '.join(outcomes)}: {sentence}")
        return took, wrong, right

    def tidy(self, keep):
        """Leaves the cluster to the next trial, or discards it unless all of its nodes are up."""
        kill(*self.processes())
        if self.dead_node is not None:
            self.cluster.down()
        else:
            self.cluster.run("scancel", "--user=root")
            wait_until(lambda: self.cluster.run("squeue", "-ho", "%i").stdout == "", 90, "the end of the job")
        if not keep:
            shutil.rmtree(self.folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nlaunch", default=str(ROOT / "build/bin/nlaunch"))
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--within", type=float, default=2, help="seconds after its first agent is there")
    parser.add_argument("--only", choices=Trial.FAULTS)
    options = parser.parse_args()
    dice = random.Random(options.seed)
    faults = [options.only] if options.only else list(Trial.FAULTS)
    results = {fault: [] for fault in faults}
    bad = 0
    trial = None
    for number in range(options.trials):
        if trial is None or trial.dead_node is not None:
            cluster = Cluster(NODES, 4, conf="KillWait=30\n")
            cluster.up()
        fault = faults[number % len(faults)]
        trial = Trial(cluster, options, dice)
        took, wrong, right = trial.go(fault)
        trial.tidy(keep=bool(wrong))
        results[fault].append((took, right))
        bad += bool(wrong)
        for what in wrong:
            print(f"{number}: {fault} after {trial.delay:.2f} s: {what} ({trial.folder})", file=sys.stderr, flush=True)
    if trial.dead_node is None:
        cluster.down()
    print(f"{options.trials} trials (seed {options.seed}), a grace of {GRACE:.0f} s:\n")
    print("| what was broken | trials | culprit right | nothing left after, at most |")
    print("|---|---|---|---|")
    for fault, rows in results.items():
        if rows:
            print(f"| {fault} | {len(rows)} | {sum(right for _, right in rows)} | {max(took for took, _ in rows):.2f} s |")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())

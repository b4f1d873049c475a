#!/usr/bin/env python3
"""A run on eight nodes of the test cluster that loses engines, with one fault every ten steps, while a trainer counts its steps and sends a
request to an engine in each. Each fault is one of these, at random:

  engine-killed   SIGKILL to an engine
  engine-hung     SIGSTOP to an engine, which stops answering (alive)
  engine-idle     an engine answers but generates nothing (throughput)
  agent-killed    SIGKILL to the agent of a node
  leader-killed   SIGKILL to nlaunch's supervisor: its guardian becomes the nlaunch that takes over the run, and all processes stay
  node-off        all processes of a node are killed at the same time, and its network is cut
  node-cut        a node is disconnected from the other nodes, and connected again once another node has replaced it
  spare-bad       a spare node is switched off, and then another node: a different spare has to replace it
  preempted       a job of a higher-priority partition takes a borrowed node for a second

Slurm removes a node that is switched off from the job, so the number of node-off and spare-bad faults is limited by the spares. The
replacement is a spare or the same node; for a borrowed node it is the node of its next job.

Requirements: the trainer stays the same process and no step is missing. The record names what was hit. A fault is detected within 1 s (a
death), within failures x every or `within` (a hang; one more check each), within 31 s (a node that stops responding: its connection times
out), or within 10 s (a preemption, part of which is Slurm's time). The engine starts again within 2 s after that, on a borrowed node after the
node has joined. Effective training time over wall time (ETTR) is 95 % or more. Nothing is left at the end.

Prints a table for docs/measurements.md and each fault that missed a requirement, in which case it exits with 1.
Usage, as root: scripts/bench/survive.py [--faults 200] [--seed N] [--only FAULT]"""
import argparse
import collections
import json
import os
import pathlib
import random
import re
import shutil
import signal
import statistics
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/cluster"))
from cluster import SITE, Cluster, wait_until  # noqa: E402

NODES = 8
OWN = 7  # nodes of the run's own job
ENGINES = 4  # node 0 has the trainer, one engine is on a borrowed node, three nodes are spares
STEP = 0.5  # seconds
STEPS_EACH = 10
LOAD = 1.0
EVERY, FAILURES, WITHIN = 0.5, 3, 2.0
SHARE = 2.0
SILENT = 30.0  # TCP_USER_TIMEOUT of nlaunch's connections
SPARES = OWN - ENGINES
NEEDS = {"node-off": 1, "spare-bad": 2}  # spares
CONF = """SlurmdTimeout=5
MessageTimeout=3
PreemptType=preempt/partition_prio
PreemptMode=CANCEL
PartitionName=low Nodes=ALL PriorityTier=1 PreemptMode=CANCEL
PartitionName=urgent Nodes=ALL PriorityTier=10 PreemptMode=CANCEL
"""

ENGINE = f"""
import http.server, pathlib, sys, threading, time
port, index, folder = int(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3])
time.sleep({LOAD})
class Server(http.server.BaseHTTPRequestHandler):
    tokens = 0
    def do_GET(self):
        idle = folder / f"idle-{{index}}"
        if self.path == "/generate" and not idle.exists(): Server.tokens += 1
        self.send_response(200)
        self.end_headers()
        busy = 1 if idle.exists() else 0
        self.wfile.write(f"tokens {{Server.tokens}}\\nrunning {{busy}}\\n".encode())
    def log_message(self, *words): pass
(folder / f"idle-{{index}}").unlink(missing_ok=True)
http.server.ThreadingHTTPServer(("", port), Server).serve_forever()
"""
TRAINER = f"""
import os, pathlib, sys, time, urllib.request
addresses, enough = map(pathlib.Path, sys.argv[1:3])
print("trainer", os.getpid(), flush=True)
step = 0
while not enough.exists():
    begin = time.monotonic()
    while True:
        engines = addresses.read_text().split()
        engine = engines[step % len(engines)] if engines else None
        try:
            if engine: urllib.request.urlopen(f"http://{{engine}}/generate", timeout=0.3).read(); break
        except OSError: pass
        step_of_another = engines[(step + 1) % len(engines)] if engines else None
        try:
            if step_of_another: urllib.request.urlopen(f"http://{{step_of_another}}/generate", timeout=0.3).read(); break
        except OSError: pass
    time.sleep(max(0, {STEP} - (time.monotonic() - begin)))
    print("step", step, flush=True)
    step += 1
"""
EXPERIMENT = f"""version: 1
name: survive
pools:
  train: {{nodes: 1}}
  serve: {{nodes: {ENGINES - 1}}}
  lent: {{elastic: {{max: 1}}, slurm: {{partition: low, gpus-per-node: 1}}}}
weight_sync: {{backend: none}}
roles:
  trainer:
    kind: learner
    pool: train
    command: [/usr/bin/python3, FOLDER/trainer.py, "${{role.engine.addrs_file}}", FOLDER/enough]
    stop: {{grace: 2s}}
  engine:
    kind: engine
    pool: [serve, lent]
    per_node: 1
    ports: [http]
    command: [/usr/bin/python3, FOLDER/engine.py, "${{self.ports.http}}", "${{self.index}}", FOLDER]
    ready: {{http: "http://${{self.host}}:${{self.ports.http}}/health", timeout: 30s}}
    alive: {{http: "http://${{self.host}}:${{self.ports.http}}/health", every: {EVERY}s, timeout: {EVERY}s, failures: {FAILURES}}}
    throughput: {{metrics: "http://${{self.host}}:${{self.ports.http}}/metrics", counter: tokens, while: running, every: {EVERY}s, within: {WITHIN}s}}
    restart: {{policy: on-failure, max: 1000, backoff: 100ms}}
    tolerate: {{min: 1}}
    stop: {{grace: 1s}}
start: [[engine], [trainer]]
leader_grace: 30s
"""


class Run:
    def __init__(self, cluster, nlaunch, seed):
        self.cluster, self.nlaunch, self.dice = cluster, nlaunch, random.Random(seed)
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="nlaunch-survive-"))
        for name, text in (("engine.py", ENGINE), ("trainer.py", TRAINER), ("survive.yaml", EXPERIMENT)):
            (self.folder / name).write_text(text.replace("FOLDER", str(self.folder)))
        self.off = set()  # node numbers

    def begin(self):
        (self.folder / "job.sh").write_text(f"#!/bin/bash\nexec {self.nlaunch} run {self.folder}/survive.yaml --site {SITE} --no-preflight "
                                            f"--runs-dir {self.folder}/runs --quiet\n")
        self.process = self.cluster.start("sbatch", "--wait", "--parsable", "--no-kill", "--exclusive", f"-N{OWN}", f"-wnode[0-{OWN - 1}]", "-o", self.folder / "output",
                                          self.folder / "job.sh")
        wait_until(lambda: self.step() >= 2, 60, "the first steps")

    @property
    def run(self):
        return self.folder / "runs" / "survive" / "latest"

    def lines(self):
        try:
            text = (self.run / "attempt-0" / "logs" / "trainer.0.log").read_text()
            return text[:text.rfind("\n") + 1].splitlines()  # only complete lines
        except OSError:
            return []

    def step(self):
        lines = self.lines()
        return int(lines[-1].split()[1]) if len(lines) > 1 and lines[-1].startswith("step ") else -1

    def events(self):
        return [json.loads(line) for line in (self.run / "events.jsonl").read_text().splitlines() if line.endswith("}")]

    def engines(self):
        """Returns by name where each engine is now, for those that are ready."""
        where, ready = {}, set()
        for event in self.events():
            name = event.get("process", "")
            if not name.startswith("engine"):
                continue
            if event["event"] == "process-started":
                where[name] = event["host"]
                ready.discard(name)
            elif event["event"] == "process-ready":
                ready.add(name)
            elif event["event"] in ("process-ended", "process-lost", "process-unresponsive"):
                ready.discard(name)
        return {name: host for name, host in where.items() if name in ready}

    def pids_with(self, *words):
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    arguments = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
                except OSError:
                    continue
                if all(word in arguments for word in words):
                    found.append(int(entry.name))
        return found

    def pid_of(self, own):
        """Returns the pid of the nlaunch that leads this run and has the pid `own` on its host."""
        for pid in self.pids_with("--runs-dir", str(self.folder / "runs")) + self.pids_with("resume", str(self.run.resolve())):
            status = pathlib.Path(f"/proc/{pid}/status").read_text()
            if int(re.search(r"^NSpid:.*?(\d+)$", status, re.M)[1]) == own:
                return pid
        raise RuntimeError(f"no nlaunch has pid {own}")

    def agent_of(self, host):
        for pid in self.cluster.processes():
            try:
                arguments = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
                environment = pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
                parent = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1]
                if arguments[1:2] == [b"agent"] and f"SLURMD_NODENAME={host}".encode() in environment and \
                        pathlib.Path(f"/proc/{parent}/comm").read_text().startswith("slurmstepd"):
                    return pid
            except (OSError, IndexError):
                continue
        raise RuntimeError(f"no agent on {host}")

    def hit(self, kind, name, host):
        number = int(host.removeprefix("node"))
        if kind.startswith("engine"):
            pids = self.pids_with(str(self.folder / "engine.py"), name.removeprefix("engine."))
            if kind == "engine-idle":
                (self.folder / f"idle-{name.removeprefix('engine.')}").touch()
            for pid in pids if kind != "engine-idle" else ():
                os.kill(pid, signal.SIGKILL if kind == "engine-killed" else signal.SIGSTOP)
        elif kind == "agent-killed":
            os.kill(self.agent_of(host), signal.SIGKILL)
        elif kind == "preempted":
            self.urgent = self.cluster.start("srun", "-Q", "-purgent", f"-w{host}", "--exclusive", "sleep", "1")
        elif kind == "node-cut":
            self.cluster.cut_off(number)
        else:
            self.off.add(number)
            self.cluster.kill_node(number)

    def switch_a_spare_off(self, used):
        spare = self.dice.choice([node for node in range(1, OWN) if node not in self.off and f"node{node}" not in used])
        self.off.add(spare)
        self.cluster.kill_node(spare)

    def spares(self):
        return SPARES - len(self.off)

    def leader_killed(self):
        """Kills nlaunch but no process. Returns the missed requirements, and the seconds until another nlaunch led the run and until it knew all engines to be ready."""
        before, at_step = self.events(), self.step()
        pids = {event["process"]: event["pid"] for event in before if event["event"] == "process-started"}
        begin = time.clock_gettime(time.CLOCK_MONOTONIC)
        os.kill(self.pid_of([event for event in before if event["event"] == "attempt-started"][-1]["supervisor"]), signal.SIGKILL)

        def led():
            new = self.events()[len(before):]
            over = [event["mono_ms"] / 1000 for event in new if event["event"] == "taken-over"]
            started = [event["mono_ms"] / 1000 for event in new if event["event"] == "process-started"]
            ready = [event["mono_ms"] / 1000 for event in new if event["event"] == "process-ready"]
            return len(ready) >= ENGINES and len(started) == len(pids) and (over[0], max(started), max(ready), new)
        over, started, ready, new = wait_until(led, 60, "another nlaunch")
        after = {event["process"]: event["pid"] for event in new if event["event"] == "process-started"}
        wrong = [] if after == pids else [f"the processes were {pids} and are {after}"]
        wait_until(lambda: self.step() >= at_step + STEPS_EACH, STEPS_EACH * STEP * 10, "ten steps")
        return wrong, over - begin, started - over, ready - started

    def fault(self, kind):
        """Injects one fault. Returns the missed requirements, and the seconds until it was detected, until the engine started after that, and until it was ready."""
        at_step = self.step()
        engines = wait_until(lambda: (now := self.engines()) and len(now) == ENGINES and now, 60, "all engines")
        if kind == "leader-killed":
            return self.leader_killed()
        lent = f"node{OWN}"
        of_a_node = kind in NEEDS or kind == "node-cut"
        name, host = self.dice.choice(sorted((name, host) for name, host in engines.items() if (host == lent if kind == "preempted" else not of_a_node or host != lent)))
        if kind == "spare-bad":
            self.switch_a_spare_off(set(engines.values()))
        before, number = len(self.events()), int(host.removeprefix("node"))
        begin = time.clock_gettime(time.CLOCK_MONOTONIC)
        self.hit(kind, name, host)
        alone = kind == "node-cut" and self.spares() == 0  # the node replaces itself
        limit = {"engine-hung": 2 * EVERY * (FAILURES + 1), "engine-idle": WITHIN + 2 * EVERY, "node-off": SILENT, "node-cut": SILENT,
                 "spare-bad": SILENT, "preempted": 9}.get(kind, 0) + 1

        if alone:
            wait_until(lambda: any(event["event"] == "node-lost" for event in self.events()[before:]), limit + 10, f"the loss of {host}")
            self.cluster.connect(number)

        def again():
            new = self.events()[before:]
            started = next((event["mono_ms"] / 1000 for event in new if event["event"] == "process-started" and event["process"] == name), None)
            ready = next((event["mono_ms"] / 1000 for event in new if event["event"] == "process-ready" and event["process"] == name), None)
            return (started, ready, new) if started and ready else None
        started, ready, new = wait_until(again, limit + 60, f"{kind} of {name} on {host}")
        wrong = []
        culprit = {"engine-killed": ("process-ended", "process", name), "engine-hung": ("process-unresponsive", "process", name),
                   "engine-idle": ("process-unresponsive", "process", name)}.get(kind, ("node-lost", "host", host))
        named = [event for event in new if event["event"] == culprit[0]]
        if not named or named[0][culprit[1]] != culprit[2] or (kind == "engine-killed" and named[0]["how"] != "was killed by SIGKILL"):
            wrong.append(f"the record says {[{key: event.get(key) for key in ('event', 'process', 'host', 'how', 'why')} for event in named]}, and not {culprit}")
        detected = named[0]["mono_ms"] / 1000 if named else begin
        if detected - begin > limit:
            wrong.append(f"detected after {detected - begin:.1f} s")
        since = detected
        if host == lent or kind == "spare-bad" or alone:  # Slurm takes part of the time, or a spare does not answer
            since = [event["mono_ms"] / 1000 for event in new if event["event"] == "node-back" and event["mono_ms"] / 1000 <= started + 0.1][-1:] or [detected]
            since = since[0]
        if started - since > SHARE:
            wrong.append(f"started {started - since:.1f} s after {'it was detected' if since == detected else 'its node had come'}")
        if kind == "node-cut" and not alone:
            self.cluster.connect(number)
        if kind == "preempted":
            self.urgent.communicate()
        wait_until(lambda: self.step() >= at_step + STEPS_EACH, STEPS_EACH * STEP * 10, "ten steps")
        return wrong, detected - begin, started - detected, ready - started

    def end(self):
        (self.folder / "enough").touch()
        self.process.communicate(timeout=60)
        wrong = []
        if self.process.returncode != 0:
            wrong.append(f"the run ended with {self.process.returncode}: {(self.folder / 'output').read_text()[-500:]}")
        lines = self.lines()
        steps = [int(line.split()[1]) for line in lines[1:]]
        if steps != list(range(len(steps))):
            wrong.append("a step is missing")
        starts = [event for event in self.events() if event["event"] == "process-started" and event["process"] == "trainer.0"]
        if {f"trainer {event['pid']}" for event in starts} != {lines[0]}:
            wrong.append("the trainer was started again")
        deadline = time.monotonic() + 10
        while (left := self.left()) and time.monotonic() < deadline:
            time.sleep(0.1)
        if left:
            wrong.append(f"left behind: {left}")
        ended = next(event["mono_ms"] for event in reversed(self.events()) if event["event"] == "process-ended" and event["process"] == "trainer.0")
        wall = (ended - starts[0]["mono_ms"]) / 1000
        return wrong, len(steps), len(steps) * STEP / wall

    def left(self):
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            try:
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace") if entry.name.isdigit() else ""
            except OSError:
                continue
            if str(self.folder) in line and "sbatch" not in line:
                found.append(line[:120])
        return found


def main():
    kinds = ["engine-killed", "engine-hung", "engine-idle", "agent-killed", "leader-killed", "node-off", "node-cut", "spare-bad", "preempted"]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--faults", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=kinds)
    parser.add_argument("--nlaunch", type=pathlib.Path, default=ROOT / "build/bin/nlaunch")
    options = parser.parse_args()
    dice = random.Random(options.seed)
    times, wrong = collections.defaultdict(list), []
    right = 0
    with Cluster(nodes=NODES, gpus=1, hosts=True, conf=CONF) as cluster:
        run = Run(cluster, options.nlaunch, options.seed)
        try:
            run.begin()
            for number in range(options.faults):
                possible = [kind for kind in kinds if NEEDS.get(kind, 0) <= run.spares()]
                kind = options.only or dice.choice(possible)
                faults, *seconds = run.fault(kind)
                times[kind].append(seconds)
                right += not faults
                wrong += [f"fault {number}, {kind}: {text}" for text in faults]
            ended, steps, ettr = run.end()
            wrong += ended
        except RuntimeError as error:
            wrong.append(str(error))
            print("\n".join(wrong), f"folder: {run.folder}", sep="\n")
            cluster.end_all_jobs()
            return 1
        finally:
            cluster.end_all_jobs()
    print("Median (largest):\n\n| fault | times | detected | started after that | ready after that |\n|---|---|---|---|---|")
    for kind, seconds in sorted(times.items()):
        columns = [f"{statistics.median(one):.1f} s ({max(one):.1f} s)" for one in zip(*seconds)]
        print(f"| {kind} | {len(seconds)} | {' | '.join(columns)} |")
    print(f"\n{right} of {options.faults} faults as they should be; {steps} steps, ETTR {ettr:.1%}")
    if ettr < 0.95:
        wrong.append(f"ETTR is {ettr:.1%}")
    print("\n".join(wrong))
    if wrong:
        print(f"folder: {run.folder}")
        return 1
    shutil.rmtree(run.folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())

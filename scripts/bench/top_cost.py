#!/usr/bin/env python3
"""Cost of `nlaunch top` on a run of 1,024 nodes: its share of a core, and what it reads, over a minute in a terminal of 120 x 40.
`top_cost.py [NODES] [SECONDS]`; needs tmux. The run directory is made up: all events of the start of eight processes a node, then ten lines a
second in each log that is on the screen, a training step every second, and 20 events a second."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

NLAUNCH = pathlib.Path(__file__).resolve().parents[2] / "build/bin/nlaunch"
RUN = "20260131-120000-4711"
EXPERIMENT = """
version: 1
name: wide
nodes: NODES
weight_sync: {backend: none}
roles:
  learner: {kind: learner, per_node: 2, gpus: 1, rendezvous: torch, command: [python, train.py]}
  engine: {kind: engine, per_node: 6, gpus: 1, command: [vllm, serve], ready: {log: up}}
start: [[engine], [learner]]
watch: {progress: 'step (\\d+)', metrics: {reward: 'reward (\\S+)'}}
"""


class Directory:
    def __init__(self, folder, nodes):
        (folder / "wide.yaml").write_text(EXPERIMENT.replace("NODES", str(nodes)))
        plan = subprocess.run([NLAUNCH, "plan", folder / "wide.yaml", "--site", "isambard", "--set", "site.node.gpus=8", "--json"],
                              capture_output=True, text=True, check=True).stdout
        self.run = folder / "runs" / "wide" / RUN
        self.logs = self.run / "attempt-0" / "logs"
        self.logs.mkdir(parents=True)
        (self.run / "plan.json").write_text(plan)
        (self.run.parent / "latest").symlink_to(RUN)
        self.began = time.time()
        self.events = (self.run / "events.jsonl").open("a")
        self.steps = (self.run / "attempt-0" / "steps.jsonl").open("a")
        self.note("run", format="nlaunch events", version=1, id=RUN, name="wide", site="isambard", host="nid000000", job="1", nodes=nodes, pid=1, start_ticks=0)
        self.note("attempt", number=0)
        self.note("attempt-started", attempt=0, guardian=1, supervisor=2)
        self.names = []
        for role, each in (("engine", 6), ("learner", 2)):
            for index in range(nodes * each):
                name = f"{role}.{index}"
                self.names.append(name)
                self.note("process-started", process=name, pid=1000 + index, restarts=0, host=f"nid{index // each:06}")
                if role == "engine":
                    self.note("process-ready", process=name, after_ms=1000)
                (self.logs / f"{name}.log").write_text("the line of a log\n" * 200)
        self.shown = [(self.logs / f"{name}.log").open("a") for name in ["learner.0", *self.names[:40]]]

    def note(self, event, to=None, **fields):
        now = time.time()
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now * 1000) % 1000:03}Z"
        (to or self.events).write(json.dumps({"mono_ms": int((now - self.began) * 1000), "time": stamp, "event": event, **fields}) + "\n")

    def go_on(self, seconds):
        for tenth in range(int(seconds * 10)):
            until = time.time() + 0.1
            for log in self.shown:
                log.write(f"step {tenth // 10} reward {tenth / 1000} " + "x" * 60 + "\n")
                log.flush()
            for i in range(2):
                self.note("process-fresh", process=self.names[(2 * tenth + i) % len(self.names)])
            if tenth % 10 == 0:
                self.note("step", self.steps, step=tenth // 10)
            self.events.flush()
            self.steps.flush()
            time.sleep(max(0, until - time.time()))


def usage(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    read = next(int(line.split()[1]) for line in pathlib.Path(f"/proc/{pid}/io").read_text().splitlines() if line.startswith("rchar:"))
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), read


def main():
    given = [int(word) for word in sys.argv[1:3]]
    nodes, seconds = given + [1024, 60][len(given):]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        directory = Directory(folder, nodes)
        directory.events.flush()
        tmux = ["tmux", "-S", folder / "tmux", "-f", "/dev/null"]
        began = time.monotonic()
        subprocess.run([*tmux, "new-session", "-d", "-x", "120", "-y", "40", f"exec {NLAUNCH} top wide --runs-dir {folder / 'runs'}"], check=True)
        try:
            while "q quit" not in subprocess.run([*tmux, "capture-pane", "-p"], capture_output=True, text=True, check=True).stdout:
                time.sleep(0.05)
            first = time.monotonic() - began
            pid = int(subprocess.run([*tmux, "display-message", "-p", "#{pane_pid}"], capture_output=True, text=True, check=True).stdout)
            start = usage(pid)
            directory.go_on(seconds)
            end = usage(pid)
        finally:
            subprocess.run([*tmux, "kill-server"], check=False)
    print(f"{nodes} nodes, {len(directory.names)} processes: first screen after {first:.1f} s, {start[0]:.2f} s of processor and {start[1] / 1e6:.1f} MB read; then "
          f"{100 * (end[0] - start[0]) / seconds:.2f} % of a core, {(end[1] - start[1]) / seconds / 1e6:.3f} MB/s")


if __name__ == "__main__":
    main()

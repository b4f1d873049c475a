#!/usr/bin/env python3
"""Time from `nlaunch run --no-preflight --here` in an allocation of the test cluster until its last process has started, compared with the
same srun of /bin/true, with the options and environment that nlaunch used. The two take turns, with a pause in between.

Prints a table for docs/measurements.md. Usage, as root: scripts/bench/cluster_launch.py [--nodes 4] [--per-node 4] [--rounds 20]"""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/cluster"))
from cluster import SITE, Cluster  # noqa: E402

EXPERIMENT = """version: 1
name: launch
nodes: {nodes}
weight_sync: {{backend: gloo}}
roles:
  worker: {{kind: learner, per_node: {per_node}, command: [/bin/true]}}
"""
# Records how it was called, then runs the real srun.
SPY = """#!/usr/bin/env python3
import json, os, sys
json.dump({{"command": sys.argv[1:], "environment": dict(os.environ)}}, open("{seen}", "w"))
os.execv("{srun}", ["srun", *sys.argv[1:]])
"""
PAUSE = 0.5  # seconds, so that Slurm finishes the previous step


class Launches:
    """Runs in an allocation."""

    def __init__(self, options, folder):
        self.folder = folder
        (folder / "launch.yaml").write_text(EXPERIMENT.format(nodes=options.nodes, per_node=options.per_node))
        self.command = [options.nlaunch, "run", folder / "launch.yaml", "--site", SITE, "--no-preflight", "--here", "--quiet",
                        "--runs-dir", folder / "runs"]

    def srun(self):
        """Returns nlaunch's srun command with /bin/true instead of the agent."""
        (self.folder / "bin").mkdir()
        spy, seen = self.folder / "bin/srun", self.folder / "seen.json"
        spy.write_text(SPY.format(seen=seen, srun=shutil.which("srun")))
        spy.chmod(0o755)
        subprocess.run(self.command, env={**os.environ, "PATH": f"{spy.parent}:{os.environ['PATH']}"}, check=True)
        call = json.loads(seen.read_text())
        options = [word for word in call["command"] if word.startswith("--")]
        return ["srun", *options[:options.index("--step")], "/bin/true"], call["environment"]

    def to_last_start(self):
        time.sleep(PAUSE)
        begin = time.monotonic()
        subprocess.run(self.command, check=True)
        whole = time.monotonic() - begin
        lines = (self.folder / "runs/launch/latest/events.jsonl").read_text().splitlines()
        started = [event["mono_ms"] for event in map(json.loads, lines) if event["event"] == "process-started"]
        return max(started) / 1e3 - begin, whole

    @staticmethod
    def seconds(command, environment):
        time.sleep(PAUSE)
        begin = time.monotonic()
        subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return time.monotonic() - begin

    def measure(self, rounds):
        """Returns rows of (last process started, nlaunch exited, srun exited). A first round warms the caches and does not count."""
        srun, environment = self.srun()
        rows = [(*self.to_last_start(), self.seconds(srun, environment)) for _ in range(rounds + 1)]
        return [statistics.median(column) for column in zip(*rows[1:])]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nlaunch", default=str(ROOT / "build/bin/nlaunch"))
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--per-node", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    if "SLURM_JOB_ID" not in os.environ:
        with Cluster(options.nodes, 4) as cluster:
            done = cluster.run("salloc", "-Q", f"-N{options.nodes}", "--exclusive", "--gpus-per-node=4", sys.executable, __file__,
                               *sys.argv[1:], timeout=600)
        sys.stderr.write(done.stderr)
        print(done.stdout, end="")
        return done.returncode
    with tempfile.TemporaryDirectory() as folder:
        started, ended, srun = Launches(options, pathlib.Path(folder)).measure(options.rounds)
    print(f"{options.nodes} nodes with {options.per_node} processes each, medians of {options.rounds}, milliseconds:\n")
    print("| srun of /bin/true | nlaunch: last process started | / srun | nlaunch: all of it | / srun |")
    print("|---|---|---|---|---|")
    print(f"| {srun * 1e3:.0f} | {started * 1e3:.0f} | {started / srun:.2f} | {ended * 1e3:.0f} | {ended / srun:.2f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())

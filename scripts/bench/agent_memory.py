#!/usr/bin/env python3
"""Memory of the agent of a node with 16 processes that write lines all the time: the largest resident memory (RSS) of each of its two
processes, and the largest share (PSS) of both together, on two nodes of the test cluster.

Prints a table for docs/measurements.md. Usage, as root: scripts/bench/agent_memory.py [--processes 16] [--seconds 5]"""
import argparse
import pathlib
import re
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/cluster"))
from cluster import SITE, Cluster  # noqa: E402

EXPERIMENT = """version: 1
name: memory
nodes: 2
weight_sync: {{backend: gloo}}
roles:
  worker:
    kind: learner
    per_node: {processes}
    command: [bash, -c, "while ((SECONDS < {seconds})); do echo $RANDOM $RANDOM; sleep 0.01; done"]
"""


def agents(folder):
    """Returns the pids of the agents by node, both processes of each."""
    found = {}
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
            if words[1:2] != [b"agent"] or str(folder).encode() not in words[3]:
                continue
            node = re.search(rb"\0SLURMD_NODENAME=(\w+)", (entry / "environ").read_bytes())[1].decode()
            found.setdefault(node, []).append(int(entry.name))
        except (OSError, IndexError, TypeError):
            continue
    return found


def kib(pid, file, field):
    return int(re.search(rf"^{field}:\s+(\d+) kB", pathlib.Path(f"/proc/{pid}/{file}").read_text(), re.M)[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nlaunch", default=str(ROOT / "build/bin/nlaunch"))
    parser.add_argument("--processes", type=int, default=16)
    parser.add_argument("--seconds", type=int, default=5)
    options = parser.parse_args()
    peak, share = {}, {}
    with Cluster(2, 4) as cluster, tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "memory.yaml").write_text(EXPERIMENT.format(processes=options.processes, seconds=options.seconds))
        run = cluster.start("salloc", "-Q", "-N2", options.nlaunch, "run", folder / "memory.yaml", "--site", SITE,
                            "--no-preflight", "--here", "--quiet", "--runs-dir", folder / "runs")
        while run.poll() is None:
            for node, pids in agents(folder).items():
                try:
                    peak.update({(node, pid): kib(pid, "status", "VmHWM") for pid in pids})
                    share[node] = max(share.get(node, 0), sum(kib(pid, "smaps_rollup", "Pss") for pid in pids))
                except (OSError, TypeError):  # a process has just exited
                    pass
            time.sleep(0.05)
        said = run.communicate()[1]
        if run.returncode != 0:
            sys.exit(said)
    print(f"{options.processes} processes on each of 2 nodes for {options.seconds} s, MiB:\n")
    print("| node | largest RSS of its supervisor and its guardian | largest PSS of both |")
    print("|---|---|---|")
    for node in sorted(share):
        largest = sorted((size for (where, _), size in peak.items() if where == node), reverse=True)[:2]
        print(f"| {node} | {' and '.join(f'{size / 1024:.1f}' for size in largest)} | {share[node] / 1024:.1f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Runs the roles of configs/quickstart.yaml, with a learner and an engine on each node, on 32 nodes of the test cluster. It must exit
with 0. Usage, as root: scripts/bench/cluster_quickstart.py [--nodes 32]"""
import argparse
import json
import pathlib
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/cluster"))
from cluster import SITE, Cluster  # noqa: E402


def experiment():
    """Returns the experiment with its roles on every node. All processes share this machine's few cores, so they get more time than usual."""
    text = (ROOT / "configs/quickstart.yaml").read_text()
    for before, after in (("per_node: 2", "per_node: 1"), ("timeout: 30s", "timeout: 5m"),
                          (" quickstart/", f" {ROOT}/configs/quickstart/")):
        text = text.replace(before, after)
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nlaunch", default=str(ROOT / "build/bin/nlaunch"))
    parser.add_argument("--nodes", type=int, default=32)
    options = parser.parse_args()
    nodes = options.nodes
    begin = time.monotonic()
    with Cluster(nodes, 4) as cluster, tempfile.TemporaryDirectory() as folder:
        up = time.monotonic() - begin
        begin = time.monotonic()
        (pathlib.Path(folder) / "quickstart.yaml").write_text(experiment())
        done = cluster.run("salloc", "-Q", f"-N{nodes}", options.nlaunch, "run", f"{folder}/quickstart.yaml", "--site", SITE,
                           "--nodes", nodes, "--no-preflight", "--here", "--runs-dir", f"{folder}/runs", timeout=900)
        took = time.monotonic() - begin
        run = next(pathlib.Path(folder).glob("runs/quickstart/2*"), None)
        if done.returncode != 0 or run is None:
            sys.exit(f"ended with {done.returncode}:\n{done.stderr}")
        summary = json.loads((run / "summary.json").read_text())
    started = max(process["started_ms"] for process in summary["processes"]) / 1e3
    hosts = len({process["host"] for process in summary["processes"]})
    print("| nodes | processes | on nodes | cluster up, s | all started after, s | the whole run, s | exit code |")
    print("|---|---|---|---|---|---|---|")
    print(f"| {nodes} | {len(summary['processes'])} | {hosts} | {up:.1f} | {started:.1f} | {took:.1f} | {done.returncode} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())

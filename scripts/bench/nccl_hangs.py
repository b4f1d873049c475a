#!/usr/bin/env python3
"""Runs over NCCL in which one rank hangs, and how often nlaunch names the right rank, on a machine with GPUs and PyTorch.

Of more ranks than GPUs, NCCL takes each set that fits onto the GPUs for a host of its own, joined to the others by TCP. Prints a table for
docs/measurements.md; exits with 1 if a verdict was wrong and sure.
Usage: scripts/bench/nccl_hangs.py [TRIALS] [SEED] [--ranks N] [--tensor-parallel N] [--jobs N] [--keep FOLDER]"""
import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
FAULTS = ("sleeps", "spins", "stopped", "dies", "other-size", "other-collective")


def trial(nlaunch, runs, options, gpus, fault, rank, group):
    values = {"vars.fault": fault, "vars.rank": rank, "vars.tensor_parallel": options.tensor_parallel, "vars.group": group,
              "roles.learner.per_node": options.ranks}
    env = dict(os.environ)
    if options.ranks > gpus:
        values["roles.learner.env.RANKS_PER_HOST"] = gpus
        env["CUDA_VISIBLE_DEVICES"] = ",".join(str(rank % gpus) for rank in range(options.ranks))
    command = [nlaunch, "run", ROOT / "tests/gpu/hang.yaml", "--site", ROOT / "tests/gpu/h200.yaml", "--site-dir", ROOT / "site-profiles",
               "--runs-dir", runs, "--no-preflight", "--no-lint", "--share", "--quiet"]
    command += [word for name, value in values.items() for word in ("--set", f"{name}={value}")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False, stdin=subprocess.DEVNULL, env=env)
    summary = runs / "hang/latest/summary.json"
    if not summary.exists():
        return "no run", done.stderr.strip()
    summary = json.loads(summary.read_text())
    stalls = [finding for finding in summary["watch"]["findings"] if finding["kind"] == "stalled"]
    if not stalls:
        return "no stall", summary["sentence"]
    verdict = stalls[-1]["verdict"]
    named = [culprit["process"] for culprit in verdict["culprits"]]
    right = f"learner.{rank}"
    if verdict["sure"]:
        return "right" if named == [right] else "WRONG", verdict["sentence"]
    return "unsure, among the candidates" if right in named else "unsure, not among them", verdict["sentence"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trials", nargs="?", type=int, default=20)
    parser.add_argument("seed", nargs="?", type=int, default=1)
    parser.add_argument("--ranks", type=int, help="as many as GPUs, or a multiple of that")
    parser.add_argument("--tensor-parallel", type=int, default=1, metavar="N", help="ranks of a tensor-parallel group; the others are data parallel")
    parser.add_argument("--jobs", type=int, default=1, help="trials at once, which share the GPUs")
    parser.add_argument("--keep", type=pathlib.Path, metavar="FOLDER", help="where the run of a trial stays whose verdict was not both right and sure")
    options = parser.parse_args()
    gpus = len(subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=True).stdout.splitlines())
    options.ranks = options.ranks or gpus
    dice = random.Random(options.seed)
    nlaunch = next(path for path in (ROOT / "dist/bin/nlaunch", ROOT / "build/bin/nlaunch") if path.exists())
    groups = ("tensor", "data") if options.tensor_parallel > 1 else ("data",)
    trials = [(FAULTS[number % len(FAULTS)], dice.randrange(options.ranks), dice.choice(groups)) for number in range(options.trials)]
    results = collections.Counter()

    def one(number, fault, rank, group):
        with tempfile.TemporaryDirectory() as runs:
            result, sentence = trial(nlaunch, pathlib.Path(runs), options, gpus, fault, rank, group)
            if options.keep and result != "right":
                shutil.copytree(runs, options.keep / f"{number + 1}-{fault}-{rank}-{group}", symlinks=True)
        print(f"{number + 1:3} {fault:10} rank {rank} in its {group} group: {result}: {sentence}", flush=True)
        results[fault, result] += 1

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(one, range(len(trials)), *zip(*trials)))
    for (fault, result), count in sorted(results.items()):
        print(f"{fault:10} {result:30} {count}")
    sys.exit(any(result == "WRONG" for _, result in results))


if __name__ == "__main__":
    main()

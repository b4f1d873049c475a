#!/usr/bin/env python3
"""Runs over NCCL in which one rank hangs, and how often nlaunch names the right rank: `nccl_hangs.py [TRIALS] [SEED]` on a machine with GPUs and PyTorch."""
import json
import pathlib
import random
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
FAULTS = ("sleeps", "spins", "stopped", "dies", "other-size")


def trial(nlaunch, runs, fault, rank, gpus):
    command = [nlaunch, "run", ROOT / "tests/gpu/hang.yaml", "--site", ROOT / "tests/gpu/h200.yaml", "--site-dir", ROOT / "site-profiles",
               "--runs-dir", runs, "--no-preflight", "--quiet", "--set", f"vars.fault={fault}", "--set", f"vars.rank={rank}",
               "--set", f"roles.learner.per_node={gpus}"]
    subprocess.run(command, capture_output=True, timeout=150, check=False, stdin=subprocess.DEVNULL)
    summary = json.loads((runs / "hang/latest/summary.json").read_text())
    stalls = [finding for finding in summary["watch"]["findings"] if finding["kind"] == "stalled"]
    if not stalls:
        return f"no stall ({summary['sentence']})"
    verdict = stalls[-1]["verdict"]
    named = [culprit["process"] for culprit in verdict["culprits"]]
    right = f"learner.{rank}"
    if verdict["sure"]:
        return "right" if named == [right] else f"WRONG: {named}"
    return "unsure, among the candidates" if right in named else "unsure, not among them"


def main():
    trials, seed = (int(word) for word in (sys.argv[1:] + ["20", "1"])[:2])
    dice = random.Random(seed)
    nlaunch = next(path for path in (ROOT / "dist/bin/nlaunch", ROOT / "build/bin/nlaunch") if path.exists())
    gpus = len(subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=True).stdout.splitlines())
    results = {}
    with tempfile.TemporaryDirectory() as runs:
        for number in range(trials):
            fault, rank = FAULTS[number % len(FAULTS)], dice.randrange(gpus)
            result = trial(nlaunch, pathlib.Path(runs), fault, rank, gpus)
            results.setdefault((fault, result), []).append(rank)
            print(f"{number + 1:3} {fault:10} rank {rank}: {result}", flush=True)
    for (fault, result), ranks in sorted(results.items()):
        print(f"{fault:10} {result:30} {len(ranks)}")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Compares the all-reduce and the broadcast of `nlaunch bench` with nccl-tests, in turns, with the same libnccl, on a machine with GPUs.
Prints a table for docs/measurements.md. NCCL_TESTS is the directory with all_reduce_perf and broadcast_perf (github.com/NVIDIA/nccl-tests).
Usage: scripts/bench/nccl_tests.py NCCL_TESTS LIBNCCL [--gpus 2] [--rounds 3]"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
SIZES = [131072 * 8**step for step in range(6)]  # 128 KiB to 4 GiB
OPS = {"all_reduce": "all_reduce_perf", "broadcast": "broadcast_perf"}


def times_in_a_step(size):
    return 100 if size < 1 << 20 else 20


def experiment(gpus):
    lines = ["version: 1", "name: nccl-tests", "roles:",
             f"  gpu: {{kind: learner, per_node: {gpus}, gpus: 1, rendezvous: torch, command: ['true']}}",
             "bench:", "  steps: 5", "  warm_up: 1", "  workloads:"]
    for op in OPS:
        for size in SIZES:
            step = f"{{op: {op}, size: {size}B, type: f32, count: {times_in_a_step(size)}}}"
            lines.append(f"    {op}-{size}: {{group: world, step: [{step}]}}")
    return "\n".join(lines) + "\n"


def nlaunch_bench(path, library, folder):
    program = next(p for p in (ROOT / "dist/bin/nlaunch", ROOT / "build/bin/nlaunch") if p.exists())
    command = [program, "bench", path, "--site", ROOT / "tests/gpu/h200.yaml", "--site-dir", ROOT / "site-profiles", "--runs-dir", folder,
               "--repeats", "1", "--json", "--quiet", "--env", f"VLLM_NCCL_SO_PATH={library}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    out = {}
    for line in json.loads(done.stdout)["lines"]:
        op, size = line["workload"].rsplit("-", 1)
        out[op, int(size)] = line["median"] / times_in_a_step(int(size))
    return out


def nccl_tests(folder, library, gpus):
    out = {}
    env = {**os.environ, "LD_LIBRARY_PATH": str(pathlib.Path(library).parent), "NCCL_NVLS_ENABLE": "0"}
    for op, name in OPS.items():
        command = [str(pathlib.Path(folder) / name), "-b", str(SIZES[0]), "-e", str(SIZES[-1]), "-f", "8", "-t", str(gpus), "-g", "1", "-c", "0",
                   "-n", "100"]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=env)
        for line in done.stdout.splitlines():
            words = line.split()
            if len(words) > 6 and words[0].isdigit():
                out[op, int(words[0])] = float(words[5]) * 1e-6  # out of place, µs
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("nccl_tests")
    parser.add_argument("libnccl")
    parser.add_argument("--gpus", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    ours, theirs = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "experiment.yaml"
        path.write_text(experiment(args.gpus), encoding="utf-8")
        for _ in range(args.rounds):
            for times, measured in ((ours, nlaunch_bench(path, args.libnccl, folder)), (theirs, nccl_tests(args.nccl_tests, args.libnccl, args.gpus))):
                for key, seconds in measured.items():
                    times.setdefault(key, []).append(seconds)
    print("| operation | bytes | nlaunch bench, µs | nccl-tests, µs | ratio |\n|---|---|---|---|---|")
    for op in OPS:
        for size in SIZES:
            a, b = statistics.median(ours[op, size]) * 1e6, statistics.median(theirs[op, size]) * 1e6
            print(f"| {op} | {size} | {a:.2f} | {b:.2f} | {a / b:.3f} |")


if __name__ == "__main__":
    main()

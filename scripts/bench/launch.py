#!/usr/bin/env python3
"""How long it takes to start /bin/true N times and wait until all have exited: nlaunch, mpirun, and a bash loop.

The three take turns in every round, so that load on the machine affects all of them equally. Prints a table for
docs/measurements.md. Usage: scripts/bench/launch.py [--rounds 20] [--processes 8,64]"""
import argparse
import math
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXPERIMENT = """version: 1
name: launch-{count}
weight_sync: {{backend: gloo}}
roles:
  worker: {{kind: learner, count: {count}, command: [/bin/true]}}
"""
HANG = 20  # seconds
LOOP = "for ((i = 0; i < {count}; i++)); do /bin/true & done; wait"


def commands(nlaunch, folder, count):
    experiment = folder / f"launch-{count}.yaml"
    experiment.write_text(EXPERIMENT.format(count=count))
    result = {
        "nlaunch": [nlaunch, "run", str(experiment), "--site", "local", "--no-preflight", "--quiet",
                    "--runs-dir", str(folder / "runs")],
        "bash loop": ["bash", "-c", LOOP.format(count=count)],
    }
    if shutil.which("mpirun"):
        result["mpirun"] = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(count), "/bin/true"]
    return result


def seconds(command):
    """Returns the time of one run, or infinity if it hangs, as OpenMPI's mpirun does on a busy machine."""
    start = time.perf_counter()
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=HANG)
    except subprocess.TimeoutExpired:
        print(f"{command[0]} did not end within {HANG} s", file=sys.stderr)
        return math.inf
    took = time.perf_counter() - start
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}")
    return took


def measure(nlaunch, folder, count, rounds):
    """Returns the median seconds of each launcher. A first round warms the caches and does not count."""
    turns = commands(nlaunch, folder, count)
    times = {name: [] for name in turns}
    for number in range(rounds + 1):
        for name, command in turns.items():
            took = seconds(command)
            if number > 0:
                times[name].append(took)
    return {name: statistics.median(values) for name, values in times.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nlaunch", default=str(ROOT / "build/bin/nlaunch"))
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--processes", default="8,64")
    options = parser.parse_args()
    print(f"Medians of {options.rounds}, milliseconds:\n")
    print("| processes | nlaunch | bash loop | mpirun | nlaunch / loop | mpirun / nlaunch |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for count in map(int, options.processes.split(",")):
            median = measure(options.nlaunch, pathlib.Path(folder), count, options.rounds)
            own, loop, mpi = median["nlaunch"], median["bash loop"], median.get("mpirun")
            cells = ("not installed", "")
            if mpi is not None:
                cells = (f"{mpi * 1e3:.1f}", f"{mpi / own:.1f}") if math.isfinite(mpi) else ("hangs", "")
            print(f"| {count} | {own * 1e3:.1f} | {loop * 1e3:.1f} | {cells[0]} | {own / loop:.2f} | {cells[1]} |")


if __name__ == "__main__":
    main()

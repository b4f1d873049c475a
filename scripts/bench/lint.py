#!/usr/bin/env python3
"""How long `nlaunch lint` takes for a plan of 64 roles and for a script of 2,000 lines, compared with only planning and with ShellCheck on
the same input. All take turns in every round. Prints a table for docs/measurements.md. Usage: scripts/bench/lint.py [--rounds 20]"""
import argparse
import pathlib
import shutil
import statistics
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
NLAUNCH = ROOT / "build" / "bin" / "nlaunch"
ROLES = 64
LINES = 2000


def experiment():
    roles = "".join(f"  r{i}: {{kind: service, command: [python, serve.py], env: {{NCCL_DEBUG: INFO, A{i}: \"{i}\"}}}}\n" for i in range(ROLES))
    return f"version: 1\nname: bench\nnodes: 2\nroles:\n{roles}"


def script():
    """Returns the test cases, repeated, so that every rule has work to do."""
    cases = sorted((ROOT / "tests" / "lint" / "cases").glob("*.sbatch"))
    lines = [line for path in cases for line in path.read_text().splitlines()]
    return "\n".join((lines * (LINES // len(lines) + 1))[:LINES]) + "\n"


def seconds(command):
    start = time.monotonic()
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False, cwd=ROOT)
    return time.monotonic() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        exp, job = pathlib.Path(folder) / "exp.yaml", pathlib.Path(folder) / "job.sbatch"
        exp.write_text(experiment())
        job.write_text(script())
        site = ["--site", "isambard"]
        commands = {f"nlaunch lint, a plan of {ROLES} roles": [NLAUNCH, "lint", exp, *site],
                    "nlaunch plan of the same": [NLAUNCH, "plan", exp, *site],
                    f"nlaunch lint, a script of {LINES} lines": [NLAUNCH, "lint", job],
                    "nlaunch --version": [NLAUNCH, "--version"]}
        if shutil.which("shellcheck"):
            commands["shellcheck of the same script"] = ["shellcheck", job]
        times = {name: [] for name in commands}
        for _ in range(rounds):
            for name, command in commands.items():
                times[name].append(seconds([str(word) for word in command]))
    print("| | median | worst |\n|---|---|---|")
    for name, taken in times.items():
        print(f"| {name} | {statistics.median(taken) * 1000:.1f} ms | {max(taken) * 1000:.1f} ms |")


if __name__ == "__main__":
    main()

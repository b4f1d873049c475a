#!/usr/bin/env python3
"""How fast nlaunch writes the output of 64 processes to their log files, with the prefixed stream on.

Two kinds of writers: `dd`, which writes lines in blocks of 8 KiB, and `grep --line-buffered`, which makes a system call
for every line. The baseline is the same writers, each with its own `cat` into a file. The two take turns, a first turn does
not count, and each starts after the files of the previous turn were removed: in a virtual machine, a page that was never used
before costs several times the copy into it. Checks that every log is identical to what was written, byte by byte.
Prints a table for docs/measurements.md."""
import argparse
import filecmp
import pathlib
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXPERIMENT = """version: 1
name: output-{name}
weight_sync: {{backend: gloo}}
roles:
  writer: {{kind: learner, count: {count}, command: [{command}]}}
"""
WRITERS = {"blocks of 8 KiB": ["dd", "if={data}", "bs=8k", "status=none"],
           "lines, unbuffered": ["grep", "--line-buffered", "", "{data}"]}


def write_lines(path, size):
    """Returns lines of 20 to 180 characters, as in real logs."""
    source = random.Random(1)
    with open(path, "wb") as data:
        while data.tell() < size:
            data.write(b"%012d " % data.tell() + b"x" * source.randint(7, 167) + b"\n")


def run(command, **options):
    start = time.perf_counter()
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, **options)
    if done.returncode != 0:
        sys.exit(f"{command[0]} ended with {done.returncode}:\n{done.stderr}")
    return time.perf_counter() - start


def with_nlaunch(nlaunch, folder, name, writer, count):
    experiment = folder / "output.yaml"
    words = ", ".join(f'"{word}"' for word in writer)
    experiment.write_text(EXPERIMENT.format(name=name, count=count, command=words))
    with open("/dev/null", "wb") as stream:
        took = run([nlaunch, "run", str(experiment), "--site", "local", "--no-preflight", "--runs-dir",
                    str(folder / "runs")], stdout=stream)
    logs = (folder / "runs" / f"output-{name}" / "latest" / "attempt-0" / "logs").resolve()
    return took, sorted(logs.glob("writer.*.log"))


def with_cat(folder, writer, count):
    folder.mkdir()
    words = " ".join(f"'{word}'" for word in writer)
    script = f"for ((i = 0; i < {count}; i++)); do {words} | cat > '{folder}'/$i.log & done; wait"
    return run(["bash", "-c", script])


def exact(logs, data, count):
    return len(logs) == count and all(filecmp.cmp(log, data, shallow=False) for log in logs)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nlaunch", default=str(ROOT / "build/bin/nlaunch"))
    parser.add_argument("--writers", type=int, default=64)
    parser.add_argument("--mib", type=int, default=8, help="that each writes")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    print(f"{options.writers} writers of {options.mib} MiB each, the best of {options.rounds}, MB/s:\n")
    print("| writers | nlaunch | cat | nlaunch / cat | logs exact |")
    print("|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        data = folder / "data"
        write_lines(data, options.mib << 20)
        total = data.stat().st_size * options.writers / 1e6
        for number, (kind, words) in enumerate(WRITERS.items()):
            writer = [word.format(data=data) for word in words]
            own, other, same = [], [], True
            for _ in range(1 + options.rounds):
                took, logs = with_nlaunch(options.nlaunch, folder, str(number), writer, options.writers)
                own.append(took)
                same = same and exact(logs, data, options.writers)
                shutil.rmtree(folder / "runs")
                other.append(with_cat(folder / "cat", writer, options.writers))
                shutil.rmtree(folder / "cat")
            best, cat = total / min(own[1:]), total / min(other[1:])
            print(f"| {kind} | {best:.0f} | {cat:.0f} | {best / cat:.2f} | {'yes' if same else 'NO'} |")
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"\nThe largest process of all: {peak:.0f} MiB.")


if __name__ == "__main__":
    main()

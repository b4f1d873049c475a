#!/usr/bin/env python3
"""Cost of watching: processor time of nlaunch's supervisor with 16 processes that each print 1,000 lines a second, with and without `watch:`, in turns.
`watch_cost.py [ROUNDS] [SECONDS]`"""
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

NLAUNCH = pathlib.Path(__file__).resolve().parents[2] / "build/bin/nlaunch"
PROGRAM = """
import sys, time
end = time.monotonic() + float(sys.argv[1])
step = 0
while time.monotonic() < end:
    began = time.monotonic()
    sys.stdout.write("".join(f"[trainer] token {i} loss 2.3471 grad norm 0.8812 throughput 10231 tokens/s gpu memory 61.2 GiB\\n" for i in range(99)))
    step += 1
    print(f"step {step} done", flush=True)
    time.sleep(max(0, began + 0.1 - time.monotonic()))
"""
EXPERIMENT = """
version: 1
name: cost
weight_sync: {backend: gloo}
roles:
  learner: {kind: learner, count: 16, command: [python3, PROGRAM, "SECONDS"]}
"""
WATCH = "watch: {progress: 'step (\\d+)', stall: 10m}\n"


def supervisor_of(runs):
    while True:
        for file in runs.glob("cost/*/events.jsonl"):
            for line in file.read_text().splitlines():
                event = json.loads(line)
                if event["event"] == "attempt-started":
                    return event["supervisor"]
        time.sleep(0.02)


def processor_seconds(folder, watch, seconds):
    (folder / "program.py").write_text(PROGRAM)
    (folder / "cost.yaml").write_text(EXPERIMENT.replace("PROGRAM", str(folder / "program.py")).replace("SECONDS", str(seconds)) + (WATCH if watch else ""))
    runs = pathlib.Path(tempfile.mkdtemp(dir=folder))
    run = subprocess.Popen([NLAUNCH, "run", folder / "cost.yaml", "--site", "local", "--no-preflight", "--quiet", "--runs-dir", runs], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    pid, used = supervisor_of(runs), 0.0
    while run.poll() is None:
        try:
            fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
            used = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        except OSError:
            pass
        time.sleep(0.1)
    return used


def main():
    rounds, seconds = (int(word) for word in (sys.argv[1:] + ["3", "20"])[:2])
    used = {True: [], False: []}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(rounds):
            for watch in (False, True):
                used[watch].append(processor_seconds(pathlib.Path(folder), watch, seconds))
    without, with_watch = (statistics.median(used[watch]) for watch in (False, True))
    print(f"of one core: {100 * without / seconds:.2f} % without watch, {100 * with_watch / seconds:.2f} % with; watching {100 * (with_watch - without) / seconds:.2f} %")


if __name__ == "__main__":
    main()

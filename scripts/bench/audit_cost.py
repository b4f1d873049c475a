#!/usr/bin/env python3
"""Cost of the audit: processor time of nlaunch's supervisor with 8 processes that have imported torch with a preloaded libnccl, for one nlaunch or for
several in turns. `audit_cost.py VENV SECONDS NLAUNCH...`; the venv has torch and its NCCL wheel."""
import glob
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

EXPERIMENT = """
version: 1
name: cost
weight_sync: {backend: gloo}
roles:
  learner: {kind: learner, count: 8, preload: [nccl], command: [PYTHON, -c, "import torch, time; time.sleep(SECONDS)"]}
"""


def supervisor_of(runs):
    while True:
        for file in runs.glob("cost/*/events.jsonl"):
            for line in file.read_text().splitlines():
                event = json.loads(line)
                if event["event"] == "attempt-started":
                    return event["supervisor"]
        time.sleep(0.02)


def processor_seconds(nlaunch, folder):
    runs = pathlib.Path(tempfile.mkdtemp(dir=folder))
    run = subprocess.Popen([nlaunch, "run", folder / "cost.yaml", "--site", folder / "site.yaml", "--no-preflight", "--quiet", "--runs-dir", runs],
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
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
    venv, seconds, *programs = sys.argv[1:]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        shutil.copy(glob.glob(f"{venv}/lib/python*/site-packages/nvidia/nccl/lib/libnccl.so.2")[0], folder)
        (folder / "cost.yaml").write_text(EXPERIMENT.replace("PYTHON", f"{venv}/bin/python").replace("SECONDS", seconds))
        (folder / "site.yaml").write_text(f"version: 1\nname: box\nscheduler: {{kind: local}}\nlibraries: {{nccl: {{path: {folder}/libnccl.so.2}}}}\n")
        for program in programs:
            began = time.monotonic()
            used = processor_seconds(program, folder)
            print(f"{program}: {used:.2f} s of processor time in a run of {time.monotonic() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""configs/weight-sync-outlive.yaml on two GPUs: a vLLM server is killed while a learner sends it weights over NCCL, restarts, and is used again.

Requirements: the learner stays the same process and finishes successfully; each fault is reported as what it was; the restarted server shows that
it has current weights (fresh), and generates what they predict. Prints how long each part took, for docs/measurements.md; exits with 1 if a
requirement was not met.

Needs no network and no build, only dist/ (or build/), configs/, site-profiles/ and the environment of scripts/gpu-frameworks.sh --unpack.
Usage: scripts/bench/outlive_vllm.py [--faults 2] [--steps 10] [--venv VENV] [OPTION OF nlaunch run...]"""
import argparse
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
# The whole server, the process that computes, and a server that hangs.
FAULTS = {"server": signal.SIGKILL, "VLLM::EngineCore": signal.SIGKILL, "server hangs": signal.SIGSTOP}


def wait_until(true, seconds, what):
    deadline = time.monotonic() + seconds
    while not (found := true()):
        if time.monotonic() > deadline:
            raise SystemExit(f"no {what} within {seconds:.0f} s")
        time.sleep(0.05)
    return found


class Run:
    def __init__(self, options, more):
        nlaunch = next(path for path in (ROOT / "dist/bin/nlaunch", ROOT / "build/bin/nlaunch") if path.exists())
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="nlaunch-outlive-"))
        environment = {**os.environ, "VIRTUAL_ENV": str(options.venv), "PATH": f"{options.venv}/bin:{os.environ['PATH']}"}
        self.process = subprocess.Popen(
            [nlaunch, "run", ROOT / "configs/weight-sync-outlive.yaml", "--runs-dir", self.folder, "--set", "roles.engine.count=1",
             "--set", f"vars.syncs={(options.faults + 1) * options.steps}", *more], env=environment, stdout=open(self.folder / "output", "w"), stderr=subprocess.STDOUT)

    @property
    def run(self):
        return self.folder / "weight-sync-outlive" / "latest"

    def events(self, name=None, process=None):
        try:
            lines = (self.run / "events.jsonl").read_text().splitlines()
        except OSError:
            return []
        events = [json.loads(line) for line in lines if line.endswith("}")]
        return [event for event in events if (name is None or event["event"] == name) and (process is None or event.get("process") == process)]

    def log(self):
        try:
            return (self.run / "attempt-0/logs/learner.0.log").read_text()
        except OSError:
            return ""

    def steps(self):
        return sum(line.startswith("step ") and "weight sync took" in line for line in self.log().splitlines())

    def goes_on(self):
        if self.process.poll() is not None:
            raise SystemExit(f"the run has ended:\n{(self.folder / 'output').read_text()[-3000:]}")
        return True


def resident(pid):
    """MiB of a process that are in memory."""
    lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS:"))


def child_named(pid, name):
    for entry in pathlib.Path("/proc").iterdir():
        try:
            title = (entry / "cmdline").read_bytes().split(b"\0")[0].decode() if entry.name.isdigit() else ""
            parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1]) if title.startswith(name) else 0
        except (OSError, ValueError):
            continue
        if parent == pid:
            return int(entry.name)
    raise SystemExit(f"{pid} has no child {name}")


def hit(run, fault):
    pid = run.events("process-started", "engine.0")[-1]["pid"]
    os.kill(child_named(pid, fault) if fault.startswith("VLLM") else pid, FAULTS[fault])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--faults", type=int, default=2)
    parser.add_argument("--steps", type=int, default=10, help="before each, and after the last")
    parser.add_argument("--venv", type=pathlib.Path, default=pathlib.Path(os.environ.get("FRAMEWORKS_VENV", pathlib.Path.home() / "nlaunch-frameworks/venv")))
    options, more = parser.parse_known_args()
    run = Run(options, more)
    wrong = []
    try:
        wait_until(lambda: run.goes_on() and run.steps() >= 1, 400, "first step")
        learner = run.events("process-started", "learner.0")[0]
        print(f"the first start: engine ready after {run.events('process-ready', 'engine.0')[0]['after_ms'] / 1000:.1f} s;"
              f" nlaunch has {resident(run.process.pid):.1f} MiB\n")
        print("| fault | detected after | started after that | ready after that | fresh after that | next step, after the fault | memory of nlaunch |")
        print("|---|---|---|---|---|---|---|", flush=True)
        for number in range(options.faults):
            fault = list(FAULTS)[number % len(FAULTS)]
            wait_until(lambda at=(number + 1) * options.steps: run.goes_on() and run.steps() >= at, 120, f"step {(number + 1) * options.steps}")
            before, steps = len(run.events()), run.steps()
            begin = time.clock_gettime(time.CLOCK_MONOTONIC)
            hit(run, fault)

            def when(name, since=before):
                found = [event for event in run.events()[since:] if event["event"] == name and event.get("process") == "engine.0"]
                return found[0]["mono_ms"] / 1000 if found else None
            wait_until(lambda: run.goes_on() and when("process-fresh"), 400, "server that is fresh again")
            wait_until(lambda at=steps: run.goes_on() and run.steps() > at, 60, "step after that")
            after = time.clock_gettime(time.CLOCK_MONOTONIC)
            detected = min(time for time in map(when, ("process-ended", "process-unresponsive", "child-ended")) if time)
            seconds = (detected - begin, when("process-started") - detected, when("process-ready") - when("process-started"),
                       when("process-fresh") - when("process-ready"), after - begin)
            print(f"| {fault} | {' | '.join(f'{one:.1f} s' for one in seconds)} | {resident(run.process.pid):.1f} MiB |", flush=True)
        wait_until(lambda: run.process.poll() is not None, 120, "end")
        summary = json.loads((run.run / "summary.json").read_text())
        if (summary["outcome"], summary["exit_code"]) != ("finished", 0):
            wrong.append(f"it ended as {summary['outcome']}: {summary['sentence']}")
        if run.events("process-started", "learner.0") != [learner]:
            wrong.append("the learner was started again")
        if "all checks passed" not in run.log():
            wrong.append("a server generated what older weights say")
    finally:
        if run.process.poll() is None:
            run.process.send_signal(signal.SIGINT)
            run.process.wait(60)
    print(*(wrong or ["all held"]), sep="\n")
    if wrong:
        print(f"folder: {run.folder}", (run.folder / "output").read_text()[-2000:], sep="\n")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())

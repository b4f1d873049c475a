#!/usr/bin/env python3
"""What nlaunch shows on terminals of 80, 120 and 200 columns: each screen in tmux, compared with its golden file.

No line is wider than the terminal. NLAUNCH_UPDATE_GOLDEN=1 writes the golden files.
"""
import fcntl
import json
import os
import pathlib
import pty
import re
import select
import shlex
import shutil
import subprocess
import sys
import termios
import time
import unittest

from harness import NLAUNCH, SOURCE, CliTest

GOLDEN = pathlib.Path(os.environ.get("NLAUNCH_GOLDEN", SOURCE / "tests" / "golden")) / "screens"
WIDTHS = (80, 120, 200)
NOW = time.time()
BEGAN = NOW - 50 * 3600 - 1800  # "2d02h" for the next half an hour
RUN = "20260131-120000-4711"
SCRIPT = """\
#!/bin/bash
#SBATCH --nodes=2 --time=4:00:00
#SBATCH --gpus-per-node=4
export NCCL_DEBUG=ERROR
export NCCL_SOCKET_IFNAME=hsn
export LD_PRELOAD=$HOME/nccl/lib/libnccl.so.2
srun python train.py
"""
MISTAKES = """\
version: 1
name: grpo
roles:
  learner:
    kind: learner
    gpu: 1
    command: [python, train.py]
    stop: {grace: 60}
  engine:
    kind: engines
    command: [vllm, serve, "${vars.model}"]
"""
# name: the words behind nlaunch
SCREENS = {
    "help": "--help",
    "help-run": "run --help",
    "plan": "plan configs/grpo.yaml --site isambard",
    "explain": "env configs/grpo.yaml --site isambard --role learner --explain FI_CXI_RX_MATCH_MODE",
    "mistakes": "plan $FOLDER/mistakes.yaml --site isambard",
    "lint": "lint $FOLDER/job.sbatch",
    "sites": "sites",
    "ps": "ps --runs-dir $FOLDER/runs",
    "ps-run": "ps grpo-olmo3-7b --runs-dir $FOLDER/runs",
    "logs": "logs grpo-olmo3-7b -n 2 --runs-dir $FOLDER/runs",
    "report": "report grpo-olmo3-7b --runs-dir $FOLDER/runs",
    "top": "top grpo-olmo3-7b --once --runs-dir $FOLDER/runs",
}


def stamp(after):
    seconds = BEGAN + after
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{int(seconds * 1000) % 1000:03}Z"


class RecordedRun:
    """The files of a run of configs/grpo.yaml on two nodes that failed in its twentieth step."""

    def __init__(self, folder, plan):
        self.folder, self.events = folder, []
        logs = folder / "attempt-0" / "logs"
        logs.mkdir(parents=True)
        (folder / "plan.json").write_text(plan)
        self.note(0, "run", format="nlaunch events", version=1, id=RUN, name="grpo-olmo3-7b", site="isambard", host="nid001", job="4711", nodes=2,
                  pid=1, start_ticks=0)
        self.note(0.1, "attempt", number=0)
        self.note(70, "preflight", verdict="pass", level="standard")
        self.note(71, "attempt-started", attempt=0, guardian=1, supervisor=2)
        nodes = {f"engine.{i}": f"nid00{1 + i // 3}" for i in range(6)} | {"learner.0": "nid001", "learner.1": "nid002"}
        for i, (name, node) in enumerate(nodes.items()):
            start = 200 if name.startswith("learner") else 72
            self.note(start, "process-started", process=name, pid=100 + i, restarts=0, host=node)
            if start == 72:
                self.note(190 + i, "process-ready", process=name, after_ms=118000)
        for name in nodes:
            text = "INFO:     10.0.0.1:40000 - \"POST /v1/completions HTTP/1.1\" 200 OK\n" * 5
            if name.startswith("learner"):
                text = "".join(f"step {n} weight sync took 1.{n:02}s; policy loss 0.0{n} on a long line of the trainer's own log\n" for n in range(20))
            (logs / f"{name}.log").write_text(text)
        with (logs / "learner.1.log").open("a") as log:
            log.write("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 94.50 GiB\n")
        self.note(1400, "process-ended", process="learner.1", pid=107, how="exited with code 1")
        self.note(1400, "run-ending", outcome="failed", what="learner.1 on nid002 exited with code 1 after 20m00s")
        for i, name in enumerate(nodes):
            if name != "learner.1":
                self.note(1405 + i, "process-ended", process=name, pid=100 + i, how="was killed by SIGTERM")
        self.note(1420, "attempt-ended", outcome="failed", exit_code=1, what="learner.1 on nid002 exited with code 1 after 20m00s")
        self.note(1421, "end", outcome="failed", exit_code=1)
        self.write(folder / "events.jsonl", sorted(self.events, key=lambda event: event["mono_ms"]))
        self.write(folder / "attempt-0" / "steps.jsonl", [
            {"mono_ms": int((230 + 58 * n) * 1000), "time": stamp(230 + 58 * n), "event": "step", "step": n} for n in range(20)])
        (folder / "summary.json").write_text(json.dumps({
            "format": "nlaunch summary", "version": 1, "run": RUN, "name": "grpo-olmo3-7b", "site": "isambard", "exit_code": 1, "outcome": "failed",
            "sentence": "learner.1 (rank 1) on nid002 exited with code 1 after 20m00s", "first": "learner.1",
            "preflight": {"verdict": "pass", "level": "standard"}}))

    def note(self, after, event, **fields):
        self.events.append({"mono_ms": int(after * 1000), "time": stamp(after), "event": event, **fields})

    @staticmethod
    def write(path, objects):
        path.write_text("".join(json.dumps(one) + "\n" for one in objects))


@unittest.skipUnless(shutil.which("tmux"), "tmux is not installed")
class Screens(CliTest):
    def tmux(self, *words):
        done = subprocess.run(["tmux", "-S", self.folder / "tmux", "-f", "/dev/null", *map(str, words)], capture_output=True, text=True, timeout=30,
                              env={**self.env, "TERM": "xterm-256color"}, check=True)
        return done.stdout

    def wait_for(self, condition, seconds=30):
        until = time.monotonic() + seconds
        while not condition():
            self.assertLess(time.monotonic(), until, "not in time")
            time.sleep(0.05)

    def stage(self):
        shutil.copytree(SOURCE / "configs", self.folder / "configs")
        shutil.copytree(SOURCE / "site-profiles", self.folder / "site-profiles")
        (self.folder / "configs" / ".venv" / "bin").mkdir(parents=True)
        (self.folder / "job.sbatch").write_text(SCRIPT)
        (self.folder / "mistakes.yaml").write_text(MISTAKES)
        plan = self.nlaunch("plan", "configs/grpo.yaml", "--site", "isambard", "--json", cwd=self.folder)
        self.assertEqual(plan.returncode, 0, plan.stderr)
        run = self.folder / "runs" / "grpo-olmo3-7b" / RUN
        RecordedRun(run, plan.stdout)
        (run.parent / "latest").symlink_to(RUN)

    def show(self, name, width):
        """The lines on a terminal; fails where one is wider."""
        done = self.folder / f"done.{name}.{width}"
        words = SCREENS[name].replace("$FOLDER", ".")
        line = f"cd {shlex.quote(str(self.folder))}; {NLAUNCH} {words}; : > {done}; sleep 60"
        session = f"{name}-{width}"
        self.tmux("new-session", "-d", "-s", session, "-x", width, "-y", 50, "bash", "--norc", "-c", line)
        self.wait_for(done.exists)
        time.sleep(0.1)  # tmux reads the rest
        shown = self.tmux("capture-pane", "-p", "-S", "-", "-t", session)
        whole = self.tmux("capture-pane", "-p", "-J", "-S", "-", "-t", session)
        wider = [line for line in whole.splitlines() if len(line.rstrip()) > width]
        self.assertEqual(wider, [], f"wider than {width} columns")
        self.tmux("kill-session", "-t", session)
        text = "\n".join(line.rstrip() for line in shown.rstrip().splitlines()) + "\n"
        text = text.replace(str(self.folder), "/tmp/nlaunch-cli-12345678")
        return re.sub(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?", lambda found: "2026-01-31 12:00:00"[:len(found[0])], text)

    def test_all(self):
        self.tmux("new-session", "-d", "-s", "keep", "sleep 600")
        self.addCleanup(self.tmux, "kill-server")
        self.stage()
        for name in SCREENS:
            with self.subTest(name):
                shown = "".join(f"--- {width} columns\n{self.show(name, width)}" for width in WIDTHS)
                golden = GOLDEN / f"{name}.txt"
                if os.environ.get("NLAUNCH_UPDATE_GOLDEN"):
                    golden.write_text(shown)
                self.assertEqual(shown, golden.read_text())


LEARNER = """
import time
time.sleep(1)
for step in range(1, 500):
    print("step", step, "reward", step / 100, flush=True)
    time.sleep(0.2)
"""
EXPERIMENT = f"""
version: 1
name: test
cpu_slots: true
weight_sync: {{backend: none}}
roles:
  engine: {{kind: engine, command: [bash, -c, "echo loading shards; until [ -e go ]; do sleep 0.1; done; echo serving; sleep 600"],
           ready: {{log: serving, timeout: 5m}}}}
  learner: {{kind: learner, command: [{sys.executable}, -c, {json.dumps(LEARNER)}]}}
start: [[engine], [learner]]
watch: {{progress: 'step (\\d+)', metrics: {{reward: 'reward (\\S+)'}}}}
"""


@unittest.skipUnless(shutil.which("tmux"), "tmux is not installed")
class Footer(Screens):
    test_all = None

    def run_in_terminal(self, *options):
        (self.folder / "experiment.yaml").write_text(EXPERIMENT)
        line = f"cd {shlex.quote(str(self.folder))}; {NLAUNCH} run experiment.yaml --site local --no-preflight {' '.join(options)}; sleep 60"
        self.tmux("new-session", "-d", "-x", 80, "-y", 24, "bash", "--norc", "-c", line)
        self.addCleanup(self.tmux, "kill-server")

    def screen(self):
        return self.tmux("capture-pane", "-p").rstrip().splitlines()

    def last_three(self):
        return "\n".join(self.screen()[-3:])

    def test_it_says_what_is_waited_for_and_then_the_steps(self):
        self.run_in_terminal()
        self.wait_for(lambda: re.fullmatch(r"test on local · running · up \S+ m?s · \S+\n"
                                           r"waiting for engine\.0 \(0 of 1 ready\), \S+ m?s of 5m00s\n"
                                           r"engine\.0 │ loading shards", self.last_three()))
        (self.folder / "go").touch()
        self.wait_for(lambda: re.fullmatch(r"test on local · running · up \S+ m?s · \S+\n"
                                           r"step \d+ · 0\.\d+ s/step, p90 0\.\d+ · .*\n"
                                           r"reward 0\.\d+ \S+", self.last_three()))
        lines = self.screen()
        self.assertRegex(lines[-4], r"^learner\.0 │ step \d+ reward \S+$")  # output goes on above it
        self.assertEqual(sum("test on local · running" in line for line in lines), 1)
        self.tmux("send-keys", "C-c")
        self.wait_for(lambda: any(line.startswith("run directory: ") for line in self.screen()))
        self.assertNotIn("running ·", "\n".join(self.screen()))
        self.assertTrue(any(re.match(r"stopped by SIGINT", line) for line in self.screen()), self.screen())

    def test_plain_has_none(self):
        (self.folder / "go").touch()
        self.run_in_terminal("--plain")
        self.wait_for(lambda: re.match(r"learner\.0 │ step \d+ reward", "".join(self.screen()[-1:])))
        self.assertNotIn("running ·", "\n".join(self.screen()))


# A shell with job control, whose command begins in the background. Each `fg` waits for a file.
JOB = """
set -m
{nlaunch} run experiment.yaml --site local {options} &
until [ -e first ]; do sleep 0.1; done
fg
sleep 0.3
echo the-shell-again
until [ -e second ]; do sleep 0.1; done
fg
"""


class Background(CliTest):
    """A terminal belongs to the program in its foreground: nlaunch draws there only as long as that is nlaunch."""

    def start(self, options="--no-preflight", **environment):
        (self.folder / "experiment.yaml").write_text(EXPERIMENT)
        (self.folder / "go").touch()
        self.terminal, inside = pty.openpty()
        self.addCleanup(os.close, self.terminal)

        def begin():
            os.setsid()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        self.shell = subprocess.Popen(["bash", "--norc", "-c", JOB.format(nlaunch=shlex.quote(str(NLAUNCH)), options=options)], stdin=inside, stdout=inside,
                                      stderr=inside, preexec_fn=begin, cwd=self.folder, env={**self.env, "TERM": "xterm", "NO_COLOR": "1", **environment})
        os.close(inside)
        self.addCleanup(self.shell.wait)
        self.addCleanup(self.shell.kill)
        self.addCleanup(lambda: self.nlaunch("stop", "test", cwd=self.folder))

    def read_until(self, *texts, times=1, seconds=30):
        """What the terminal gets until it has each text so many times."""
        until, got = time.monotonic() + seconds, b""
        while any(got.count(text.encode()) < times for text in texts):
            self.assertLess(time.monotonic(), until, got)
            if select.select([self.terminal], [], [], 0.1)[0]:
                got += os.read(self.terminal, 65536)
        return got.decode(errors="replace")

    def assert_only_lines(self):
        """For some more than two seconds, in which the run goes on."""
        got = self.read_until("learner.0 │ step ", times=12)
        self.assertNotRegex(got, r"\x1b\[[0-9]*[AJK]")
        self.assertNotIn("test on local · running", got)

    def assert_drawn_again(self):
        self.read_until("test on local · running", "\r\x1b[2A\x1b[J", times=2)

    def test_nothing_is_drawn_without_the_terminal(self):
        self.start()
        self.assert_only_lines()
        (self.folder / "first").touch()
        self.assert_drawn_again()
        os.write(self.terminal, b"\x1a")
        self.read_until("the-shell-again\r\n")
        self.assert_only_lines()
        (self.folder / "second").touch()
        self.assert_drawn_again()
        os.write(self.terminal, b"\x03")
        self.read_until("run directory: ")

    def test_neither_is_the_progress_of_the_preflight(self):
        self.start("--level quick", NO_COLOR="")
        self.assertNotIn("\x1b[K", self.read_until(" step "))


if __name__ == "__main__":
    unittest.main()

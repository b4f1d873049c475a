#!/usr/bin/env python3
"""Checkpoints: who stops a run waits for the one that is being written, and what comes after begins with the newest."""
import json
import os
import signal
import subprocess
import sys
import time
import unittest

from harness import NLAUNCH, SOURCE, CliTest

# Saves as transformers does: the weights, some time later the state. Each save takes as long as its first argument.
LEARNER = r"""
import os, pathlib, sys, time
takes, dir, fail_at = float(sys.argv[1]), pathlib.Path(sys.argv[2]), int(sys.argv[3])
first = int(sys.argv[5].rsplit("-", 1)[1]) if sys.argv[4:5] == ["--resume"] else 0
print("from", first, flush=True)
for step in range(first + 1, first + 200):
    print("step", step, flush=True)
    if step == fail_at and first == 0: sys.exit(3)
    if step % 5 == 0:
        (dir / f"checkpoint-{step}").mkdir(parents=True)
        (dir / f"checkpoint-{step}" / "model.safetensors").write_text("")
        time.sleep(takes)
        (dir / f"checkpoint-{step}" / "trainer_state.json").write_text("{}")
    time.sleep(0.02)
"""
EXPERIMENT = """
version: 1
name: saving
cpu_slots: true
weight_sync: {{backend: none}}
roles:
  learner:
    kind: learner
    command: [{python}, -c, {learner}, "{takes}", "{dir}", "{fail_at}"]
    stop: {{grace: 2s}}
watch: {{progress: 'step (?P<step>\\d+)'}}
checkpoint: {{dir: "{dir}", format: transformers, resume: [--resume, "${{resume.path}}"]}}
restart: {{policy: on-failure, max: 1, backoff: 10ms}}
"""


class Checkpoints(CliTest):
    def start(self, takes, fail_at=0):
        path = self.folder / "saving.yaml"
        path.write_text(EXPERIMENT.format(python=sys.executable, learner=json.dumps(LEARNER), takes=takes, dir=self.folder / "ckpt", fail_at=fail_at))
        process = subprocess.Popen([NLAUNCH, "run", path, "--site", "local", "--no-preflight", "--runs-dir", self.folder / "runs"],
                                   cwd=SOURCE, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def run_folder(self):
        return (self.folder / "runs" / "saving" / "latest").resolve()

    def log(self, attempt=0):
        try:
            return (self.run_folder() / f"attempt-{attempt}" / "logs" / "learner.0.log").read_text()
        except OSError:
            return ""

    def wait_for(self, true, seconds=20):
        deadline = time.monotonic() + seconds
        while not true():
            self.assertLess(time.monotonic(), deadline, "it did not come to that")
            time.sleep(0.01)

    def newest(self, step, after):
        left = "" if after == 0 else "; the step after it is not saved" if after == 1 else f"; the {after} steps after it are not saved"
        return f"the newest complete checkpoint is {self.folder}/ckpt/checkpoint-{step} (step {step}){left}\n"

    def test_who_stops_a_run_waits_for_the_one_that_is_being_written(self):
        process = self.start(takes=4)
        self.wait_for(lambda: (self.folder / "ckpt" / "checkpoint-5").exists())
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
        self.assertEqual(process.returncode, 130, err)
        self.assertIn("nlaunch: waiting up to 2m for checkpoint checkpoint-5, which is being written; press Ctrl-C again to skip the wait\n", err)
        self.assertTrue((self.folder / "ckpt" / "checkpoint-5" / "trainer_state.json").exists())
        last = int(self.log().split()[-1])
        self.assertIn(self.newest(5, last - 5), err)
        summary = json.loads((self.run_folder() / "summary.json").read_text())
        self.assertEqual(summary["checkpoint"], {"path": f"{self.folder}/ckpt/checkpoint-5", "step": 5, "last_step": last})

    def test_who_asks_twice_does_not_wait(self):
        process = self.start(takes=60)
        self.wait_for(lambda: (self.folder / "ckpt" / "checkpoint-5").exists())
        process.send_signal(signal.SIGINT)
        self.wait_for(lambda: '"checkpoint-awaited"' in (self.run_folder() / "events.jsonl").read_text())
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=20)
        self.assertEqual(process.returncode, 130, err)
        self.assertIn("no complete checkpoint was found\n", err)

    def test_what_comes_after_a_failure_begins_with_the_newest(self):
        process = self.start(takes=0, fail_at=12)
        self.wait_for(lambda: "step 15\n" in self.log(1))
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
        self.assertIn(self.newest(10, 2), err)
        self.assertIn(f"resuming from checkpoint {self.folder}/ckpt/checkpoint-10\n", err)
        self.assertEqual(self.log(0).splitlines()[0], "from 0")
        self.assertEqual(self.log(1).splitlines()[:2], ["from 10", "step 11"])


if __name__ == "__main__":
    unittest.main()

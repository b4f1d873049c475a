#!/usr/bin/env python3
"""The live view of a run, on a terminal of 80 columns and as one screen."""
import json
import re
import shutil
import subprocess
import sys
import time
import unittest

from harness import NLAUNCH, CliTest

LEARNER = """
import time
for step in range(1, 2000):
    print("step", step, "reward", step / 100, flush=True)
    time.sleep(0.3)
"""
ENGINE = """
import time
print("serving", flush=True)
time.sleep(600)
"""
EXPERIMENT = f"""
cpu_slots: true
roles:
  engine: {{kind: engine, count: 2, command: [{sys.executable}, -c, {json.dumps(ENGINE)}], ready: {{log: serving}}}}
  learner: {{kind: learner, command: [{sys.executable}, -c, {json.dumps(LEARNER)}]}}
start: [[engine], [learner]]
watch: {{progress: 'step (\\d+)', metrics: {{reward: 'reward (\\S+)'}}}}
"""


class Top(CliTest):
    def setUp(self):
        super().setUp()
        path = self.folder / "experiment.yaml"
        path.write_text("version: 1\nname: test\nweight_sync: {backend: none}\n" + EXPERIMENT)
        self.process = subprocess.Popen([NLAUNCH, "run", path, "--site", "local", "--no-preflight", "--runs-dir", self.folder / "runs"],
                                        env=self.env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.process.communicate)
        self.addCleanup(self.process.terminate)
        self.wait_for(lambda: re.search(r"^step [4-9]", self.once(), re.M))

    def wait_for(self, condition, seconds=30):
        until = time.monotonic() + seconds
        while not condition():
            self.assertLess(time.monotonic(), until, "not in time")
            time.sleep(0.1)

    def once(self, **environment):
        return self.nlaunch("top", "--once", "--runs-dir", self.folder / "runs", env=environment).stdout

    def tmux(self, *words):
        return subprocess.run(["tmux", "-S", str(self.folder / "tmux"), "-f", "/dev/null", *map(str, words)], capture_output=True, text=True,
                              timeout=20, env={**self.env, "TERM": "xterm-256color"}, check=False).stdout

    def open(self):
        command = f"{NLAUNCH} top test --runs-dir {self.folder / 'runs'}; sleep 60"
        self.tmux("new-session", "-d", "-x", 80, "-y", 24, command)
        self.addCleanup(self.tmux, "kill-server")
        self.wait_for(lambda: "q quit" in self.screen())

    def screen(self):
        return self.tmux("capture-pane", "-p")

    def press(self, *keys):
        self.tmux("send-keys", *keys)

    def test_one_screen(self):
        screen = self.once(COLUMNS="100")
        self.assertRegex(screen, r"(?s)^test on local · running · up \S+ m?s · \S+\n"
                                 r"step \d+ · 0\.\d+ s/step, p90 0\.\d+ · \S+ · ETTR \d+ %\n"
                                 r"reward 0\.\d+ \S+\n"
                                 r"engine 2/2 · learner 1/1\n"
                                 r"process +step +state +last line\n"
                                 r"engine\.0 +ready +serving\n"
                                 r"engine\.1 +ready +serving\n"
                                 r"learner\.0 +\d+ +running +step \d+ reward \S+\n$")
        self.assertLessEqual(max(map(len, screen.splitlines())), 100)

    @unittest.skipUnless(shutil.which("tmux"), "tmux is not installed")
    def test_a_terminal_with_keys(self):
        self.open()
        screen = self.screen()
        self.assertEqual(len(screen.splitlines()), 24)
        self.assertIn("learner.0", screen)
        step = int(re.search(r"step (\d+)", screen)[1])
        self.wait_for(lambda: int(re.search(r"step (\d+)", self.screen())[1]) > step)  # it is live
        self.press("/", "e", "n", "g", "i", "n", "e", "Enter")
        self.wait_for(lambda: "filter: engine" in self.screen() and "learner.0" not in self.screen())
        self.press("Escape")
        self.wait_for(lambda: "learner.0" in self.screen())
        self.press("s")
        self.wait_for(lambda: "stop run" in self.screen())
        self.press("n")
        self.wait_for(lambda: "q quit" in self.screen())
        self.assertIsNone(self.process.poll())
        self.press("s")
        self.press("y")
        self.process.wait(timeout=30)
        self.assertEqual(self.process.returncode, 130)

    @unittest.skipUnless(shutil.which("tmux"), "tmux is not installed")
    def test_it_leaves_the_terminal_as_it_was(self):
        self.open()
        self.press("q")
        self.wait_for(lambda: "q quit" not in self.screen())
        self.assertIsNone(self.process.poll())

    def test_without_a_terminal_it_says_what_to_do(self):
        done = self.nlaunch("top", "test", "--runs-dir", self.folder / "runs")
        self.assertEqual((done.returncode, done.stderr), (64, "nlaunch top: needs a terminal; --once prints one screen\n"))


if __name__ == "__main__":
    unittest.main()

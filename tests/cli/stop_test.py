#!/usr/bin/env python3
"""How a run is stopped, by `nlaunch stop` and by signals, while it runs and in between."""
import json
import os
import shutil
import signal
import subprocess
import time
import unittest

from harness import NLAUNCH, CliTest


class Stop(CliTest):
    """`nlaunch stop` of a run that a script has put in the background: bash has SIGINT and SIGQUIT ignored there."""

    def start(self, learner):
        path = self.folder / "e.yaml"
        path.write_text("version: 1\nname: test\nsignals: {TERM: ignore, HUP: ignore}\n"
                        f"roles: {{learner: {{kind: learner, stop: {{grace: 100s}}, command: [sh, -c, '{learner}']}}}}\n")
        script = 'trap "" TERM HUP; "$@" & echo $!; wait $!; exit $?'
        run = [NLAUNCH, "run", path, "--site", "local", "--no-preflight", "--runs-dir", self.folder / "runs"]
        self.process = subprocess.Popen(["bash", "-c", script, "-", *run], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.env)
        self.addCleanup(self.process.kill)
        self.pid = int(self.process.stdout.readline())
        self.assertEqual(self.process.stdout.readline(), "learner.0 │ up\n")

    def stop(self, *options):
        stopped = self.nlaunch("stop", "test", "--runs-dir", self.folder / "runs", *options, timeout=20)
        self.assertRegex(stopped.stdout, r"^run \S+ stopped: interrupted\n$", stopped.stderr)
        out, err = self.process.communicate(timeout=10)
        self.assertEqual(self.process.returncode, 130, err)
        self.assertRegex(err, r"\nstopped by `nlaunch stop` after \S+\n")
        return out

    def test_a_copy_of_a_run_stops_nobody(self):
        self.start("echo up; sleep 100")
        events = self.run_folder / "events.jsonl"
        copy = self.folder / "copy"
        shutil.copytree(self.run_folder, copy)
        refused = self.nlaunch("stop", copy, timeout=20)
        pid = next(json.loads(line)["pid"] for line in events.read_text().splitlines() if '"event":"run"' in line)
        self.assertEqual(refused.returncode, 65)
        self.assertEqual(refused.stderr, f"error: run {self.run_folder.name} records pid {pid}, which is an nlaunch but does not write "
                                         "this run's events: the directory was copied or changed, so no signal was sent [run.pid]\n")
        self.assertIsNone(self.process.poll())
        # The run that another one's events are put into.
        shutil.copy(events, copy / "of-another.jsonl")
        (copy / "of-another.jsonl").rename(copy / "events.jsonl")
        self.assertEqual(self.nlaunch("stop", copy, timeout=20).returncode, 65)
        self.stop("--now")

    def test_scratch_does_not_stay_when_the_supervisor_is_killed(self):
        self.start("echo up; sleep 100")
        supervisor = next(e["supervisor"] for e in map(json.loads, (self.run_folder / "events.jsonl").read_text().splitlines()) if e["event"] == "attempt-started")
        scratch = json.loads(next(self.run_folder.glob("attempt-0/bound.*.json")).read_text())["scratch"]
        self.assertTrue(os.path.isdir(scratch))
        os.kill(supervisor, signal.SIGKILL)
        deadline = time.monotonic() + 20
        while os.path.exists(scratch):
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)
        self.process.communicate(timeout=20)

    def test_it_is_graceful(self):
        self.start('trap "echo saved; exit 0" TERM; echo up; while :; do sleep 0.05; done')
        self.assertIn("learner.0 │ saved\n", self.stop())

    def test_now_waits_for_nobody(self):
        self.start('trap "" TERM; echo up; while :; do sleep 0.05; done')
        self.stop("--now")

    def test_a_live_run_keeps_its_name(self):
        self.start("echo up; sleep 100")
        role = "roles: {learner: {kind: learner, command: [%s]}}\n"
        refused = self.run_experiment(role % "no-such-program")
        self.assertEqual(refused.returncode, 65, refused.stderr)
        self.assertEqual(self.run_experiment(role % '"true"').returncode, 0)
        checked = self.nlaunch("preflight", self.folder / "experiment.yaml", "--site", "local", "--level", "quick", "--runs-dir", self.folder / "runs")
        self.assertEqual(checked.returncode, 0, checked.stderr)
        ps = self.nlaunch("ps", "test", "--runs-dir", self.folder / "runs").stdout
        self.assertIn(f"(pid {self.pid}, attempt 0): running", ps)
        self.stop()
        self.assertIn(": finished", self.nlaunch("ps", "test", "--runs-dir", self.folder / "runs").stdout)

    def test_it_reaches_a_run_that_ctrl_z_has_stopped(self):
        self.start("echo up; sleep 100")
        os.kill(self.pid, signal.SIGTSTP)
        self.stop()


class StopInBetween(CliTest):
    """A run that is told to stop while none of its processes is there: it says so, at once."""

    def start(self, text, *options):
        path = self.folder / "e.yaml"
        path.write_text("version: 1\nname: test\n" + text)
        process = subprocess.Popen([NLAUNCH, "run", path, "--site", "local", "--no-preflight", "--runs-dir", self.folder / "runs", *options],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=self.env)
        self.addCleanup(process.kill)
        return process

    def stopped(self, process, by, code, outcome, sentence):
        begin = time.monotonic()
        if by is None:
            self.nlaunch("stop", self.own_folder, timeout=20)
        else:
            process.send_signal(by)
        _, err = process.communicate(timeout=20)
        self.assertLess(time.monotonic() - begin, 5)
        self.assertEqual(process.returncode, code, err)
        self.assertRegex(err, rf"(^|\n){sentence}\nrun directory: \S+\n$")
        summary = json.loads((self.own_folder / "summary.json").read_text())
        self.assertEqual((summary["outcome"], summary["exit_code"]), (outcome, code))
        self.assertRegex(summary["sentence"], f"^{sentence}$")

    @property
    def own_folder(self):
        return next((self.folder / "runs" / "test").glob("*-*-*"))

    def while_it_is_bound(self, by, code, outcome, said, text=""):
        init = self.folder / "modules.sh"
        init.write_text(f"echo $$ > {self.folder}/shell.tmp; mv {self.folder}/shell.tmp {self.folder}/shell; sleep 100\n")
        process = self.start(text + "roles: {learner: {kind: learner, command: ['true']}}\n",
                             "--set", f"site.modules={{init: {init}, load: [none]}}")
        deadline = time.monotonic() + 20
        while not (self.folder / "shell").exists():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.02)
        self.stopped(process, by, code, outcome, f"stopped{said} before anything was started")
        self.assertFalse(os.path.exists(f"/proc/{(self.folder / 'shell').read_text().strip()}"))

    def test_ctrl_c_while_it_is_bound(self):
        self.while_it_is_bound(signal.SIGINT, 130, "interrupted", " by SIGINT")

    def test_nlaunch_stop_while_it_is_bound(self):
        self.while_it_is_bound(None, 130, "interrupted", " by `nlaunch stop`")

    def test_a_terminate_while_it_is_bound(self):
        self.while_it_is_bound(signal.SIGTERM, 143, "terminated", " by SIGTERM")

    def between_attempts(self, by, code, outcome, name, text=""):
        process = self.start(text + "restart: {policy: on-failure, max: 2, backoff: 60s}\nroles: {learner: {kind: learner, command: ['false']}}\n")
        for line in process.stderr:
            if line == "nlaunch: restart 1 of 2 in 1m\n":
                break
        self.stopped(process, by, code, outcome, rf"stopped by {name} after \S+")

    def test_ctrl_c_between_attempts(self):
        self.between_attempts(signal.SIGINT, 130, "interrupted", "SIGINT")

    def test_nlaunch_stop_between_attempts(self):
        self.between_attempts(None, 130, "interrupted", "`nlaunch stop`")

    def test_a_signal_that_the_experiment_ignores_is_passed_over(self):
        process = self.start("signals: {TERM: ignore}\nrestart: {policy: on-failure, max: 1, backoff: 1s}\n"
                             "roles: {learner: {kind: learner, command: ['false']}}\n")
        for line in process.stderr:
            if line == "nlaunch: restart 1 of 1 in 1s\n":
                break
        for ignored in (signal.SIGTERM, signal.SIGUSR1):
            process.send_signal(ignored)
        process.communicate(timeout=20)
        self.assertEqual(process.returncode, 1)
        self.assertTrue((self.own_folder / "attempt-1").exists())


if __name__ == "__main__":
    unittest.main()

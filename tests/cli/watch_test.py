#!/usr/bin/env python3
"""A run that gets on, one that does not, and what nlaunch does then: whole runs of real processes."""
import json
import re
import threading
import time
import unittest

from harness import BUILD, CliTest

# Prints a step every tenth of a second; at step 3 its rank in $HANG stays where it is.
STEPS = """
import os, sys, time
rank, hang, last = os.environ["RANK"], os.environ.get("HANG"), int(os.environ.get("STEPS", "5"))
for step in range(1, last + 1):
    if rank == hang and step == 3:
        time.sleep(1000)
    time.sleep(0.1)
    print(f"step {step} loss {1 / step:.3f}", flush=True)
if hang is not None:
    time.sleep(1000)
"""
EXPERIMENT = """roles:
  learner: {kind: learner, count: 2, rendezvous: torch, command: [python3, steps.py], stop: {grace: 1s}}
watch: {progress: '^step (\\d+)', stall: 2s, metrics: {loss: 'loss ([\\d.]+)'}}
"""


class Watch(CliTest):
    def setUp(self):
        super().setUp()
        (self.folder / "steps.py").write_text(STEPS)

    def watched(self, *arguments, text=EXPERIMENT):
        return self.run_experiment(text, *arguments, timeout=120)

    def summary(self):
        return json.loads((self.run_folder / "summary.json").read_text())

    def test_a_run_that_gets_on_is_summed_up(self):
        done = self.watched("--env", "STEPS=12")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("no progress", done.stdout + done.stderr)
        summary = self.summary()
        watch = summary["watch"]
        self.assertEqual((watch["last_step"], watch["findings"], watch["by_process"]), (12, [], {"learner.0": 12, "learner.1": 12}))
        self.assertLess(0.05, watch["step_seconds"]["median"])
        loss = summary["metrics"]["loss"]
        self.assertEqual((loss["count"], loss["min"], loss["max"], loss["first"], loss["last"]), (24, 0.083, 1.0, 1.0, 0.083))
        self.assertAlmostEqual(loss["slope"], -0.0571, places=4)
        self.assertRegex(done.stderr, r"\nfinished after \S+: 12 steps, 0\.\d\d s/step \(p90 0\.\d\d\), loss 1 → 0\.083\n")

    def test_who_ends_well_before_the_last_step_is_named(self):
        (self.folder / "bar.py").write_text(
            "import sys, time\n"
            "print('Loading weights: 100%|##########| 51/51 [00:00<00:00, 6014.27it/s]')\n"
            "for step in range(4):\n"
            "    sys.stderr.write(f'\\r {step}%|#  | {step}/40 [00:00<00:00,  1.99s/it]')\n"
            "    sys.stderr.flush()\n"
            "    time.sleep(0.3)\n")
        done = self.watched(text="roles:\n  learner: {kind: learner, command: [python3, bar.py]}\nwatch: {progress: trl}\n")
        self.assertEqual(done.returncode, 0, done.stderr)
        said = "learner.0 exited with code 0 at step 3 of 40"
        self.assertIn(f"\n{said}\n", done.stderr)
        self.assertRegex(done.stderr, r"\nfinished after \S+: 4 steps|\nfinished after \S+: 3 steps")
        summary = self.summary()
        self.assertEqual((summary["troubles"], summary["watch"]["totals"], summary["watch"]["by_process"]), ([said], {"learner.0": 40}, {"learner.0": 3}))

    def test_a_stall_is_said_and_the_run_goes_on(self):
        done = self.watched("--set", "watch.on_stall=warn", "--env", "HANG=1", "--set", "restart.policy=never", text=EXPERIMENT.replace(
            "command: [python3, steps.py]", "command: [timeout, '6', python3, steps.py]"))
        self.assertEqual(done.returncode, 124, done.stderr)  # timeout's own
        self.assertEqual(len(re.findall(r"^nlaunch: no progress for [\d.]+ s, after step 5$", done.stderr, re.MULTILINE)), 1, done.stderr)
        self.assertEqual(self.summary()["outcome"], "failed")
        self.assertFalse((self.run_folder / "attempt-0/evidence").exists())

    def test_abort_collects_evidence_names_the_culprit_and_is_124(self):
        done = self.watched("--set", "watch.on_stall=abort", "--env", "HANG=1")
        self.assertEqual(done.returncode, 124, done.stderr)
        summary = self.summary()
        self.assertEqual(summary["outcome"], "stalled")
        evidence, = (self.run_folder / "attempt-0/evidence").iterdir()
        host, = (path for path in evidence.iterdir() if path.is_dir())
        self.assertEqual(sorted(path.name for path in host.iterdir() if path.is_dir()), ["learner.0", "learner.1"])
        self.assertTrue((evidence / "verdict.json").exists())
        finding, = summary["watch"]["findings"]
        self.assertEqual((finding["kind"], finding["evidence"]), ("stalled", str(evidence)))
        # Who has done fewer steps than the others is the one they wait for.
        self.assertIn("learner.1", finding["verdict"]["sentence"])
        self.assertEqual(summary["first"], "learner.1")

    def test_restart_makes_another_attempt(self):
        done = self.watched("--set", "watch.on_stall=restart", "--set", "restart.policy=on-failure", "--set", "restart.max=1",
                            "--set", "restart.backoff=100ms", "--env", "HANG=1")
        self.assertEqual(done.returncode, 124, done.stderr)
        self.assertIn("restart 1 of 1", done.stderr)
        self.assertTrue((self.run_folder / "attempt-1/evidence").exists())

    def test_a_heartbeat_is_progress(self):
        script = "for i in 1 2 3 4 5 6; do date > beat.$RANK; sleep 0.7; done"
        text = f"""roles:
  learner: {{kind: learner, count: 1, rendezvous: torch, command: [sh, -c, '{script}']}}
watch: {{heartbeat: 'beat.${{self.rank}}', stall: 2s, on_stall: abort}}
"""
        done = self.watched(text=text)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        without = self.watched(text=text.replace("beat.$RANK", "/dev/null").replace("stall: 2s", "stall: 1s, start: 2s"))
        self.assertEqual(without.returncode, 124, without.stdout + without.stderr)
        self.assertRegex(without.stderr, r"no progress in the [2-4][.\d]* s since the start")

    def test_a_rank_that_guesses_its_gpu_is_told_once(self):
        line = "using GPU 0 to perform barrier as devices used by this process are currently unknown. This can potentially cause a hang"
        done = self.run_experiment(f"roles: {{learner: {{kind: learner, count: 2, command: [sh, -c, 'echo {line}; sleep 1']}}}}\n")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr.count("nlaunch: PyTorch guesses which GPU a rank uses"), 1, done.stderr)

    def test_counts_that_differ_between_ranks_are_told(self):
        text = """roles:
  learner: {kind: learner, count: 3, rendezvous: torch, command: [sh, -c, 'echo has $((120 - RANK / 2)) batches']}
watch: {metrics: {batches: 'has ([0-9]+) batches'}}
"""
        done = self.watched(text=text)
        self.assertEqual(done.returncode, 0, done.stderr)
        told = "batches: 119 in learner.2, 120 in learner.0, learner.1"
        self.assertIn(f"ranks with different counts end up waiting for each other:\n  {told}\n", done.stderr)
        self.assertEqual(self.summary()["uneven"], [told])

    def test_the_use_of_gpus_is_sampled_and_tells_who_has_not_come(self):
        # NVML of a board whose last GPU is idle, while the others draw little and are busy.
        self.env["LD_LIBRARY_PATH"] = str(BUILD / "lib" / "fake-nvml" / "new")
        text = EXPERIMENT.replace("count: 2", "count: 4, gpus: 1")
        done = self.watched("--set", "watch.on_stall=abort", "--env", "HANG=3", text=text)
        self.assertEqual(done.returncode, 124, done.stdout + done.stderr)
        said, = (source for source in self.summary()["watch"]["findings"][-1]["verdict"]["sources"] if source["source"] == "GPUs")
        self.assertEqual(said["says"], [
            "learner.0, learner.1 and learner.2: 100 % busy at 130 W: a kernel that waits, as in a collective", "learner.3: idle"])
        self.assertEqual(said["accused"], ["learner.3"])
        devices = {entry["process"]: entry["devices"][0] for entry in self.summary()["devices"]}
        self.assertEqual([(devices[f"learner.{i}"]["busy_percent"], devices[f"learner.{i}"]["power_watts"]) for i in (0, 3)],
                         [(100.0, 130.0), (0.0, 70.0)])
        self.assertNotIn("nlaunch-probe", done.stdout + done.stderr)  # is nothing that the run has left behind

    def test_evidence_is_taken_by_the_runs_own_nlaunch(self):
        run = threading.Thread(target=lambda: results.append(self.watched("--set", "watch.on_stall=warn", "--env", "HANG=1")))
        results = []
        run.start()
        while not (self.run_folder / "events.jsonl").exists() or "process-started" not in (self.run_folder / "events.jsonl").read_text():
            time.sleep(0.05)
        time.sleep(1)  # until rank 1 hangs
        asked = self.nlaunch("evidence", "test", "--runs-dir", self.folder / "runs")
        stopped = self.nlaunch("stop", "test", "--runs-dir", self.folder / "runs")
        run.join()
        self.assertEqual((asked.returncode, stopped.returncode), (0, 0), asked.stderr + stopped.stderr)
        self.assertNotIn("does not respond", asked.stderr)
        self.assertIn("nlaunch: evidence was requested; collecting it from all processes\n", results[0].stderr)
        evidence, = (self.run_folder / "attempt-0/evidence").iterdir()
        self.assertTrue(asked.stdout.endswith(f"evidence: {evidence}\n"), asked.stdout)
        self.assertFalse((self.run_folder / "attempt-0/evidence-wanted").exists())
        later = self.nlaunch("evidence", "test", "--runs-dir", self.folder / "runs")
        self.assertEqual((later.returncode, later.stdout), (65, ""))

    def test_what_is_written_wrongly(self):
        for setting, message in (("watch.slow=1x", "'watch.slow' must be more than 1x"),
                                 ("watch.slow=2", "'2' has no unit: write 2x"),
                                 ("watch.on_stall=kill", "must be one of warn, dump, abort, restart"),
                                 ("watch.progress=step (", "is not a regular expression")):
            with self.subTest(setting):
                done = self.watched("--set", setting)
                self.assertEqual(done.returncode, 65, done.stderr)
                self.assertIn(message, done.stderr)


if __name__ == "__main__":
    unittest.main()

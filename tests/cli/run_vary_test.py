#!/usr/bin/env python3
"""nlaunch run --vary: whole runs in turn, their metrics, failures and times compared; what stops them; what is typed wrongly."""
import json
import os
import pathlib
import pty
import re
import signal
import subprocess
import time
import unittest

from harness import NLAUNCH, SOURCE, CliTest

# Prints a metric of its arm's size; with FLAKY, every second run of this folder fails after a while.
LEARNER = r"""
import os, pathlib, sys, time
for step in range(3):
    print(f"step {step}: sync took {float(os.environ['SYNC']) + step / 1000:.3f}s reward {-0.5 + step / 10}", flush=True)
if "FLAKY" in os.environ:
    counter = pathlib.Path(os.environ["FLAKY"])
    turn = int(counter.read_text()) if counter.exists() else 0
    counter.write_text(str(turn + 1))
    if turn % 2 == 0:
        time.sleep(0.1)
        sys.exit(7)
"""
EXPERIMENT = """
version: 1
name: small
weight_sync: {backend: gloo}
env: {SYNC: "1"}
watch: {metrics: {sync: 'sync took ([\\d.]+)s', reward: 'reward (\\S+)', never: 'never (\\d+)'}}
roles:
  learner: {kind: learner, command: [python3, -u, learner.py]}
"""


class RunVary(CliTest):
    def setUp(self):
        super().setUp()
        (self.folder / "learner.py").write_text(LEARNER)
        self.experiment = self.folder / "small.yaml"
        self.experiment.write_text(EXPERIMENT)

    def arguments(self, *arguments):
        return ["run", self.experiment, "--site", "local", "--runs-dir", self.folder / "runs", "--no-preflight", *arguments]

    def vary(self, *arguments, **options):
        return self.nlaunch(*self.arguments("--color", "never", *arguments), timeout=120, **options)

    @property
    def kept(self):
        return json.loads((self.folder / "runs" / "small" / "ab.json").read_text())

    def normal(self, text):
        text = re.sub(r"\d{8}-\d{6}-\d+", "ID", super().normal(text))
        text = re.sub(r"after \d+ms|after [\d.]+s", "after T", text)
        return re.sub(r" +", " ", text)

    def test_arms_take_turns_and_their_metrics_are_compared(self):
        done = self.vary("--vary", "SYNC=1,2", "--seed", "7", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        said = json.loads(done.stdout)
        self.assertEqual(said, self.kept)
        self.assertEqual([(arm["name"], arm["repeats"], arm["failed"]) for arm in said["arms"]], [("SYNC=1", 5, 0), ("SYNC=2", 5, 0)])
        lines = {(line["quantity"], line["arm"]): line for line in said["lines"]}
        self.assertEqual(list(lines), [(what, f"SYNC={n}") for what in ("time to finish", "sync", "reward") for n in (1, 2)])
        self.assertEqual(lines["sync", "SYNC=2"]["values"], [2.001] * 5)
        self.assertEqual(lines["sync", "SYNC=2"]["printed"], 15)
        self.assertEqual(lines["sync", "SYNC=2"]["verdict"]["text"], "99.9 % more [99.9, 99.9]")
        self.assertEqual(lines["reward", "SYNC=2"]["verdict"]["word"], "no difference shown")
        self.assertEqual(lines["reward", "SYNC=2"]["verdict"]["difference"], 0)
        self.assertEqual(said["differences"], [{"role": "learner", "variable": "SYNC", "values": ["1", "2"]}])
        self.assertEqual(said["arms"][1]["environments"]["learner"]["SYNC"], "2")
        for first, second in zip(said["order"][::2], said["order"][1::2]):
            self.assertEqual({first, second}, {"SYNC=1", "SYNC=2"})
        again = json.loads(self.vary("--vary", "SYNC=1,2", "--seed", "7", "--json", "--quiet").stdout)
        self.assertEqual(again["order"], said["order"])
        self.assertEqual(len(list((self.folder / "runs" / "small").glob("ab-*.json"))), 2)

    def test_its_json_keeps_its_shape(self):
        said = json.loads(self.vary("--vary", "SYNC=1,2", "--repeat", "1", "--json", "--seed", "1").stdout)
        shape = json.dumps(shape_of(said), indent=1, sort_keys=True) + "\n"
        golden = SOURCE / "tests" / "golden" / "ab" / "shape.json"
        if os.environ.get("NLAUNCH_UPDATE_GOLDEN"):
            golden.parent.mkdir(exist_ok=True)
            golden.write_text(shape)
        self.assertEqual(shape, golden.read_text())

    def test_every_run_is_one_like_any_other(self):
        self.vary("--vary", "SYNC=1,2", "--repeat", "1", "--seed", "1")
        runs = [pathlib.Path(run["folder"]) for arm in self.kept["arms"] for run in arm["runs"]]
        self.assertEqual(sorted(run.name for run in runs), sorted(path.parent.name for path in (self.folder / "runs" / "small").glob("2*/summary.json")))
        for run in runs:
            for name in ("plan.json", "lock.json", "events.jsonl", "nlaunch.log", "attempt-0/logs/learner.0.log"):
                self.assertTrue((run / name).exists(), name)
        done = self.nlaunch("logs", runs[0].name, "--runs-dir", self.folder / "runs")
        self.assertIn("sync took", done.stdout)

    def test_runs_that_fail_are_data(self):
        done = self.vary("--vary", f"FLAKY=default,{self.folder}/counter", "--repeat", "4", "--seed", "3")
        self.assertEqual(done.returncode, 0, done.stderr)
        name = "FLAKY=$FOLDER/counter"
        out = self.normal(done.stdout)
        self.assertIn(f"{name}: 2 of 4 failed (95 %: 15 to 85 %)\n learner.0 exited with code 7\n", out)
        self.assertIn("no run printed 'never': no line of the logs matches 'never (\\d+)'\n", out)
        self.assertIn("\nwith 4 repeats, intervals are not meaningful and arms are not compared: use --repeat 5 or more\n"
                      "4 repeats of each arm in random order, seed 3 (for the same order, use --seed 3)\n"
                      "results: $FOLDER/runs/small/ab-ID.json\n", out)
        self.assertIn(f"{name}: learner.0 exited with code 7 after T\n", self.normal(done.stderr))
        whole, flaky = self.kept["arms"]
        self.assertEqual((whole["failed"], flaky["failed"]), (0, 2))
        failed = [run for run in flaky["runs"] if run["exit_code"] != 0]
        self.assertEqual([(run["outcome"], run["exit_code"], run["culprit"]) for run in failed], [("failed", 7, "learner.0")] * 2)
        for run in failed:
            self.assertGreaterEqual(run["seconds"], 0.1)
            sync = {key: round(value, 6) for key, value in run["metrics"]["sync"].items()}
            self.assertEqual(sync, {"median": 1.001, "first": 1.0, "last": 1.002, "slope": 0.001, "values": 3})
        self.assertEqual([(line["quantity"], len(line["values"])) for line in self.kept["lines"] if line["arm"] == flaky["name"]][:2],
                         [("time to finish", 2), ("time to failure", 2)])

    def test_an_arm_without_a_good_run_is_the_exit_code(self):
        done = self.vary("--vary", "SYNC=1,none", "--repeat", "1")
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("SYNC=none: 1 of 1 failed (95 %: 21 to 100 %)\n learner.0 exited with code 1\n the first failed run: $FOLDER/runs/small/ID-", self.normal(done.stdout))

    def test_a_restart_does_not_hide_a_failure(self):
        self.vary("--vary", f"FLAKY=default,{self.folder}/counter", "--repeat", "1", "--set", "restart={policy: on-failure, max: 3}")
        self.assertEqual([arm["failed"] for arm in self.kept["arms"]], [0, 1])

    def test_repeats_alone_are_one_arm(self):
        done = self.vary("--repeat", "2", "--seed", "1", "--quiet")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual([(arm["name"], arm["repeats"]) for arm in self.kept["arms"]], [("as planned", 2)])
        self.assertEqual(self.kept["differences"], [])

    def test_a_run_that_a_person_ends_ends_the_comparison(self):
        for how in (signal.SIGINT, signal.SIGTERM, "stop"):
            with self.subTest(how):
                # The third run never ends by itself.
                (self.folder / "learner.py").write_text("import os, pathlib, time\ncounter = pathlib.Path('counter')\n"
                                                        "turn = int(counter.read_text()) if counter.exists() else 0\n"
                                                        "counter.write_text(str(turn + 1))\nprint('sync took 1s')\n"
                                                        "time.sleep(1000 if turn == 2 else 0)\n")
                (self.folder / "counter").unlink(missing_ok=True)
                comparing = subprocess.Popen([NLAUNCH, *map(str, self.arguments("--vary", "SYNC=1,2"))], env=self.env, text=True,
                                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
                self.addCleanup(comparing.kill)
                wait_for(lambda: (self.folder / "counter").exists() and (self.folder / "counter").read_text() == "3")
                if how == "stop":
                    self.assertEqual(self.nlaunch("stop", "small", "--runs-dir", self.folder / "runs").returncode, 0)
                elif how == signal.SIGINT:
                    os.killpg(comparing.pid, how)  # as a terminal does
                else:
                    comparing.send_signal(how)
                out, err = comparing.communicate(timeout=30)
                words = {signal.SIGINT: "SIGINT", signal.SIGTERM: "SIGTERM", "stop": "`nlaunch stop`"}[how]
                self.assertEqual(comparing.returncode, 143 if how == signal.SIGTERM else 130, err)
                self.assertIn(f"\nthe comparison stopped after 2 of 10 runs: stopped by {words} after T\n", self.normal(err))
                self.assertEqual((len(self.kept["order"]), self.normal(self.kept["stopped"])), (2, f"stopped by {words} after T"))
                self.assertEqual([line["printed"] for line in self.kept["lines"] if line["quantity"] == "sync"], [1, 1])
                self.assertIn("results: ", out)

    def test_killed_it_leaves_nothing_running_and_loses_nothing(self):
        (self.folder / "learner.py").write_text("import os, pathlib, time\npath = pathlib.Path('pid')\nagain = path.exists()\n"
                                                "path.write_text(str(os.getpid()))\ntime.sleep(1000 if again else 0)\n")
        comparing = subprocess.Popen([NLAUNCH, *map(str, self.arguments("--vary", "SYNC=1,2"))], env=self.env, stdin=subprocess.DEVNULL,
                                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for(lambda: (self.folder / "runs" / "small" / "ab.json").exists())
        first = (self.folder / "pid").read_text()
        wait_for(lambda: (self.folder / "pid").read_text() not in ("", first))
        learner = int((self.folder / "pid").read_text())
        comparing.kill()
        comparing.wait()
        wait_for(lambda: not pathlib.Path(f"/proc/{learner}").exists())
        self.assertEqual((len(self.kept["order"]), self.kept["stopped"]), (1, None))

    def test_what_is_typed_wrongly_is_said_before_anything_starts(self):
        own = "nlaunch run: --vary and --repeat start their own runs, here and one after another: they cannot be used with "
        slurm = ("nlaunch run: site 'isambard' is reached through Slurm, and this is not an allocation: salloc -N 1 nlaunch run ..., or "
                 "sbatch -N 1 --wrap 'nlaunch run ...'\n")
        wrong = [
            (("--vary", "NCCL_PROTOS=LL,Simple"), 65, "--vary NCCL_PROTOS=LL,Simple: no release of NCCL reads NCCL_PROTOS"),
            (("--vary", "learner.preloads=none,nccl"), 65, "hint: did you mean 'preload'?"),
            (("--vary", "SYNC=1,1"), 65, "--vary SYNC=1,1: duplicate value '1'"),
            (("--vary", "SYNC"), 65, "--vary SYNC: must be NAME=VALUE,VALUE,..."),
            (("--vary", "SYNC=1,2", "--set", "watch.metrics.sync=sync"), 65, "'sync' has no capture group"),
            (("--vary", "SYNC=1,2", "--detach"), 64, own + "--detach\n"),
            (("--vary", "SYNC=1,2", "--submit"), 64, own + "--submit\n"),
            (("--repeat", "2", "--run-dir", "x"), 64, own + "--run-dir\n"),
            (("--repeat", "0"), 64, "--repeat"),
            (("--json",), 64, "nlaunch run: --json and --seed require --vary or --repeat; for a single run, see summary.json\n"),
            (("--vary", "SYNC=1,2", "--site", "isambard"), 64, slurm),
        ]
        for arguments, code, words in wrong:
            with self.subTest(arguments):
                site = () if "--site" in arguments else ("--site", "local")
                done = self.nlaunch("run", self.experiment, *site, "--runs-dir", self.folder / "runs", "--no-preflight", "--no-lint", *arguments)
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertIn(words, done.stderr)
                self.assertFalse((self.folder / "runs").exists())

    def test_a_folder_that_cannot_be_written_ends_it_with_what_was_measured(self):
        learner = "import os, pathlib\nprint('sync took 1s')\npathlib.Path('runs/small').rename('runs/gone')\npathlib.Path('runs/small').write_text('')\n"
        (self.folder / "learner.py").write_text(learner)
        done = self.vary("--vary", "SYNC=1,2", "--quiet")
        self.assertEqual(done.returncode, 70, done.stderr)
        self.assertRegex(self.normal(done.stderr), r"the comparison stopped after 1 of 10 runs: cannot create .*\$FOLDER/runs/small/ID-2")
        self.assertIn("results: ", done.stdout)

    def test_runs_that_go_on_at_another_place_are_not_compared(self):
        replicas = {"BEAKER_JOB_ID": "j", "BEAKER_REPLICA_COUNT": "2", "BEAKER_REPLICA_RANK": "0",
                    "BEAKER_LEADER_REPLICA_HOSTNAME": "h", "BEAKER_LEADER_REPLICA_NODE_ID": "n"}
        for env, words in (({}, "site 'beaker-augusta' is reached through Beaker, and this is not one of its jobs: start a job with this command\n"),
                           (replicas, "runs cannot be compared across several replicas of a Beaker task, which would have to reconnect for each run\n")):
            with self.subTest(env):
                done = self.nlaunch("run", self.experiment, "--site", "beaker-augusta", "--runs-dir", self.folder / "runs", "--vary", "SYNC=1,2", env=env)
                self.assertEqual((done.returncode, done.stderr), (64, "nlaunch run: " + words))

    def test_the_progress_line_says_which_turn_it_is(self):
        (self.folder / "learner.py").write_text("import time\ntime.sleep(0.5)\n")
        main, other = pty.openpty()
        with subprocess.Popen([NLAUNCH, *map(str, self.arguments("--vary", "SYNC=1,2", "--repeat", "1", "--seed", "1"))],
                              env={**self.env, "TERM": "xterm"}, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=other) as comparing:
            os.close(other)
            shown = b""
            while True:
                try:
                    shown += os.read(main, 65536)
                except OSError:
                    break
            comparing.wait(30)
        os.close(main)
        for number, arm in enumerate(self.kept["order"], 1):
            self.assertRegex(shown.decode(), rf"\r\x1b\[K +0 s  run {number} of 2: {arm}.*\r\x1b\[Krun {number} of 2 \([-\d]+\), {arm}: finished after")

    def test_a_frozen_plan_is_not_varied(self):
        done = self.nlaunch("run", "--plan", "plan.json", "--repeat", "2")
        self.assertEqual(done.returncode, 64)
        self.assertEqual(done.stderr, "nlaunch run: --vary and --repeat start their own runs, here and one after another: they cannot be used with --plan\n")


def shape_of(value):
    """Of JSON: its keys, and the kinds of its values; of a list, the kinds of its elements, each once."""
    if isinstance(value, dict):
        return {key: shape_of(inner) if key != "environments" else "by role, by variable" for key, inner in value.items()}
    if isinstance(value, list):
        shapes = []
        for inner in map(shape_of, value):
            if inner not in shapes:
                shapes.append(inner)
        return shapes
    return "number" if isinstance(value, (int, float)) else type(value).__name__


def wait_for(condition, seconds=30):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise AssertionError("it did not happen in time")
        time.sleep(0.02)


if __name__ == "__main__":
    unittest.main()

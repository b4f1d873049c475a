"""Run directories that are damaged, or that a stranger has made: no command crashes, and none acts for the stranger."""
import json
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import time
import unittest

SOURCE = pathlib.Path(os.environ["NLAUNCH_SOURCE"])
NLAUNCH = pathlib.Path(os.environ["NLAUNCH_BUILD"]) / "bin" / "nlaunch"
RUNS = ("20260131-120000-4711", "20260131-130000-4712")
DEEP = "[" * 100000
HAS_READ_ALL = (0, 1, 64, 65)  # anything but a crash, or an error of nlaunch's own


class RunFiles(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="nlaunch-run-files-"))
        self.addCleanup(shutil.rmtree, self.folder)
        for run in RUNS:
            shutil.copytree(SOURCE / "tests/runs/version-1", self.folder / "runs/quickstart" / run)
        self.run_folder = self.folder / "runs/quickstart" / RUNS[1]
        self.called = self.folder / "called"
        programs = self.folder / "bin"
        programs.mkdir()
        for name in ("scancel", "flux"):
            (programs / name).write_text(f'#!/bin/sh\necho {name} "$@" >>{self.called}\n')
            (programs / name).chmod(0o755)
        self.env = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}

    def nlaunch(self, *arguments):
        return subprocess.run([NLAUNCH, *map(str, arguments)], cwd=self.folder, env=self.env, capture_output=True, text=True, timeout=60)

    def events(self, *events):
        """The run's events: as they were recorded, and these."""
        path = self.run_folder / "events.jsonl"
        path.write_text((SOURCE / "tests/runs/version-1/events.jsonl").read_text() + "".join(json.dumps(event) + "\n" for event in events))
        return path

    def goes_on(self, **more):
        """A run that nlaunch began on this machine, and that has not ended."""
        head = {"event": "run", "format": "nlaunch events", "version": 1, "id": RUNS[1], "name": "quickstart", "host": socket.gethostname(),
                "job": "", "pid": 1, "start_ticks": 1, **more}
        (self.run_folder / "events.jsonl").write_text(json.dumps(head) + "\n")

    def test_an_event_of_another_type_is_said_with_its_place_and_the_other_runs_are_listed(self):
        for event, problem in (({"event": 7}, "'event' must be a string, found: number"),
                               ({"event": "end", "outcome": ["x"]}, "'outcome' must be a string, found: array"),
                               ({"event": "process-started", "process": {}, "pid": 1}, "'process' must be a string, found: object"),
                               ({"event": "process-started", "process": "a.0", "pid": 1e300}, "'pid' must be a whole number, found: number"),
                               ({"event": "attempt", "number": "0"}, "'number' must be a whole number, found: string")):
            with self.subTest(event):
                path = self.events(event)
                line = len(path.read_text().splitlines())
                done = self.nlaunch("ps")
                self.assertEqual(done.returncode, 0)
                self.assertIn(f"error: {path}:{line}: {problem} [run.damaged]\n", done.stderr)
                self.assertIn("quickstart  20261122", done.stdout)
                for command in (["ps", RUNS[1]], ["stop", RUNS[1]], ["logs", RUNS[1]], ["exec", RUNS[1], "learner.0", "--", "true"]):
                    self.assertEqual(self.nlaunch(*command).returncode, 65, command)

    def test_json_without_end_crashes_nobody(self):
        for name in ("events.jsonl", "summary.json", "lock.json", "plan.json", "attempt-0/bound.node0.json", "attempt-0/audit.json",
                     "attempt-0/preflight.json"):
            path = self.run_folder / name
            before = path.read_bytes()
            for damage in (DEEP, '{"a":' * 100000, '{"format": 1, "version": {}}', "[]", "null", "7", "\0" * 100):
                path.write_text(damage)
                for command in (["ps"], ["ps", RUNS[1]], ["top", RUNS[1], "--once"], ["report", RUNS[1]], ["diff", *RUNS], ["bundle", RUNS[1], "-o", "ticket.tar.zst"], ["diagnose", RUNS[1]],
                                ["stop", RUNS[1]], ["preflight", "--from", path], ["plan", "--plan", path]):
                    with self.subTest(name, damage=damage[:9], command=command):
                        done = self.nlaunch(*command)
                        self.assertIn(done.returncode, HAS_READ_ALL, done.stderr[-500:])
            path.write_bytes(before)

    def test_stop_hands_nothing_but_a_job_id_to_the_scheduler(self):
        for job in ("--user=root", "-u root", "1; reboot", "1 2", "", "x" * 5000, "\x1b[2J"):
            with self.subTest(job):
                self.goes_on(host="elsewhere", job=job)
                done = self.nlaunch("stop", RUNS[1])
                self.assertNotEqual(done.returncode, 0)
                self.assertFalse(self.called.exists(), job)
                self.assertNotIn("\x1b", done.stdout + done.stderr)
        self.goes_on(host="elsewhere", job="4711")
        self.assertEqual(self.nlaunch("stop", RUNS[1]).returncode, 0)
        self.assertEqual(self.called.read_text(), "scancel --batch --signal=INT -- 4711\n")

    def test_stop_signals_nobody_but_nlaunch(self):
        with subprocess.Popen(["sleep", "60"]) as other:
            ticks = int(pathlib.Path(f"/proc/{other.pid}/stat").read_text().rpartition(")")[2].split()[19])
            self.goes_on(pid=other.pid, start_ticks=ticks)
            done = self.nlaunch("stop", RUNS[1])
            time.sleep(0.2)
            self.assertIsNone(other.poll())
            other.kill()
        self.assertEqual((done.returncode, done.stdout), (0, f"run {RUNS[1]} is not running: died without writing a summary (nlaunch was killed)\n"))

    def commands(self):
        return (["ps"], ["ps", RUNS[1]], ["top", RUNS[1], "--once"], ["report", RUNS[1]], ["logs", RUNS[1]], ["stop", RUNS[1]], ["exec", RUNS[1], "learner.0", "--", "true"], ["diff", *RUNS],
                ["bundle", RUNS[1], "-o", self.folder / "ticket.tar.zst"], ["diagnose", RUNS[1]], ["evidence", RUNS[1]])

    def test_links_out_of_a_run_are_not_followed_and_no_fifo_is_waited_for(self):
        secret = "RuntimeError: CUDA out of memory. The secret of somebody else"
        outside = self.folder / "outside"
        whole = self.folder / "whole"
        shutil.copytree(self.run_folder, whole)
        evidence = whole / "attempt-0/evidence/20260101-120000"
        (evidence / "nid1/learner.0").mkdir(parents=True)
        (evidence / "verdict.json").write_text(json.dumps({"sentence": "quickstart hangs"}))
        (evidence / "nid1/collected.json").write_text(json.dumps({"host": "quickstart"}))
        (evidence / "nid1/learner.0/processes.json").write_text(json.dumps({"name": "learner.0", "ended": "quickstart"}))
        shutil.copytree(whole, outside)
        for path in outside.rglob("*"):
            if path.suffix in (".json", ".jsonl"):
                path.write_text(path.read_text().replace("quickstart", secret))
            elif path.suffix == ".log":
                path.write_text(secret + "\n")
        names = [path.relative_to(outside) for path in outside.rglob("*")]
        self.assertIn(pathlib.Path("attempt-0/logs/learner.0.log"), names)
        self.assertIn(pathlib.Path("attempt-0/evidence"), names)
        for name in names:
            path = self.run_folder / name
            for kind in ("link", "fifo"):
                shutil.rmtree(self.run_folder)
                shutil.copytree(whole, self.run_folder)
                shutil.rmtree(path) if path.is_dir() else path.unlink()
                path.symlink_to(outside / name) if kind == "link" else os.mkfifo(path)
                for command in self.commands():
                    with self.subTest(str(name), kind=kind, command=command[0]):
                        done = self.nlaunch(*command)
                        self.assertNotIn("secret of somebody", done.stdout + done.stderr)
                        self.assertIn(done.returncode, HAS_READ_ALL, done.stderr)
                packed = self.folder / "ticket.tar.zst"
                if packed.exists():
                    listed = subprocess.run(["tar", "--zstd", "-xOf", packed], capture_output=True)
                    self.assertNotIn(b"secret of somebody", listed.stdout, (name, kind))
                    packed.unlink()

    def test_what_acts_on_a_terminal_is_shown_and_not_sent_there(self):
        evil = "\x1b]0;title\x07\x1b[2J\x9b31m\rgone\x7f"
        for name in ("summary.json", "plan.json", "lock.json", "attempt-0/preflight.json", "attempt-0/audit.json"):
            path = self.run_folder / name
            if path.exists():
                path.write_text(json.dumps(self.poisoned(json.loads(path.read_text()), evil)))
        events = [json.loads(line) for line in (SOURCE / "tests/runs/version-1/events.jsonl").read_text().splitlines()]
        kept = ("event", "format", "time")
        (self.run_folder / "events.jsonl").write_text("".join(
            json.dumps({key: value if key in kept else self.poisoned(value, evil) for key, value in event.items()}) + "\n" for event in events))
        for command in (*self.commands(), ["diff", *RUNS, "--json"], ["ps", "--color", "always"]):
            with self.subTest(command):
                done = self.nlaunch(*command)
                said = done.stdout + done.stderr
                for sequence in ("\x1b]", "\x1b[2J", "\x07", "\x9b", "\x7f"):
                    self.assertNotIn(sequence, said)
                self.assertIn(done.returncode, HAS_READ_ALL, done.stderr)
        self.assertIn("\\x1b[2J", self.nlaunch("ps", RUNS[1]).stdout)

    def poisoned(self, value, evil):
        """All texts but those that say what a file is."""
        if isinstance(value, dict):
            return {key: one if key in ("format", "kind", "scheduler") else self.poisoned(one, evil) for key, one in value.items()}
        if isinstance(value, list):
            return [self.poisoned(one, evil) for one in value]
        return value + evil if isinstance(value, str) else value

    def test_a_line_break_in_a_name_is_no_row_of_its_own(self):
        self.goes_on(name="x\nforged  20990101-000000-1  running")
        self.assertNotIn("\nforged", self.nlaunch("ps").stdout)
        self.assertNotIn("\nforged", self.nlaunch("ps", RUNS[1]).stdout)

    def test_exec_hands_each_option_of_a_plan_to_srun_as_one_word_and_none_to_a_shell(self):
        said = self.folder / "words"
        srun = self.folder / "bin/srun"
        srun.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >{said}\n')
        srun.chmod(0o755)
        odd = f"--comment=a b; touch {self.folder}/made $(touch {self.folder}/made) `touch {self.folder}/made` '\" *"
        plan = json.loads((self.run_folder / "plan.json").read_text())
        plan["scheduler"] = "slurm"
        plan["slurm"] = {"directives": [], "submit": [], "srun": [odd, "--mpi=none"], "template": "", "spares": 0, "bad_nodes": "",
                         "bad_nodes_ttl_ms": 0}
        (self.run_folder / "plan.json").write_text(json.dumps(plan))
        self.goes_on(host="elsewhere", job="4711")
        with open(self.run_folder / "events.jsonl", "a") as events:
            events.write(json.dumps({"event": "process-started", "process": "learner.0", "host": "elsewhere-1", "pid": 7}) + "\n")
        done = self.nlaunch("exec", RUNS[1], "learner.0", "--", "echo", "a b", "$HOME")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        words = said.read_text().splitlines()
        self.assertEqual(words[words.index(odd) + 1], "--mpi=none")
        self.assertEqual(words[-4:], ["--", "echo", "a b", "$HOME"])
        self.assertFalse((self.folder / "made").exists())

    @unittest.skipUnless(os.geteuid() == 0, "to make a folder of another user takes root")
    def test_a_run_of_somebody_else_is_left_alone(self):
        self.goes_on(host="elsewhere", job="4711")
        os.chown(self.run_folder, 65534, 65534)
        for command in (["stop", RUNS[1]], ["exec", RUNS[1], "learner.0", "--", "true"], ["restart", RUNS[1], "engine"], ["drain", RUNS[1], "node1"],
                        ["scale", RUNS[1], "engine=1"], ["resume", RUNS[1]], ["update", RUNS[1], "x.yaml"]):
            done = self.nlaunch(*command)
            self.assertEqual(done.returncode, 65)
            self.assertRegex(done.stderr, r"^error: \S+/runs/quickstart/\S+ belongs to nobody: only that user can act on this run \[run\.owner\]\n$")
        self.assertFalse(self.called.exists())


if __name__ == "__main__":
    unittest.main()

"""Runs of each format that there ever was are read by all commands that read runs; those of a newer one are refused in words."""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ["NLAUNCH_SOURCE"])
NLAUNCH = pathlib.Path(os.environ["NLAUNCH_BUILD"]) / "bin" / "nlaunch"
RECORDED = sorted((SOURCE / "tests" / "runs").glob("version-*"))
VERSION = subprocess.run([NLAUNCH, "--version"], capture_output=True, text=True, check=True).stdout.split()[1]
IDS = ("20260131-120000-4711", "20260131-130000-4712")
# file: (its format, a command that reads it)
READERS = {
    "plan.json": ("nlaunch plan", ["plan", "--plan", "FILE"]),
    "events.jsonl": ("nlaunch events", ["logs", "quickstart"]),
    "summary.json": ("nlaunch summary", ["diff", *IDS]),
    "lock.json": ("nlaunch lock", ["bundle", "quickstart"]),
    "attempt-0/bound.node0.json": ("nlaunch bound", ["bundle", "quickstart"]),
    "attempt-0/audit.json": ("nlaunch audit", ["bundle", "quickstart"]),
    "attempt-0/preflight.json": ("nlaunch preflight", ["preflight", "--from", "FILE"]),
}


def set_version(path, change):
    """`change` gets the object that has the version."""
    first, *rest = path.read_text().splitlines(True) if path.suffix == ".jsonl" else [path.read_text()]
    head = json.loads(first)
    change(head)
    path.write_text(json.dumps(head) + "\n" + "".join(rest))


class OldRuns(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="nlaunch-old-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def stage(self, recorded):
        shutil.rmtree(self.folder / "runs", ignore_errors=True)
        for run in IDS:
            shutil.copytree(recorded, self.folder / "runs" / "quickstart" / run)
        return self.folder / "runs" / "quickstart" / IDS[1]

    def nlaunch(self, *arguments):
        return subprocess.run([NLAUNCH, *arguments], cwd=self.folder, capture_output=True, text=True, timeout=60)

    def says(self, arguments, code, *texts):
        done = self.nlaunch(*arguments)
        said = done.stdout + done.stderr
        self.assertEqual(done.returncode, code, said)
        for text in texts:
            self.assertIn(text, said)

    def all_commands_read_it(self, run):
        self.says(["ps", "quickstart"], 0, "failed\n", "learner.1", "exited with code 3")
        self.says(["logs", "quickstart", "--role", "learner.1"], 0, "learner.1 │ failing at step 3, as asked for by vars.fail_rank\n")
        self.says(["diff", *IDS], 0, "nothing differs")
        self.says(["diagnose", "quickstart"], 1, "culprit: learner.1\n")
        self.says(["stop", "quickstart"], 0, "is not running: failed\n")
        self.says(["preflight", "--from", str(run / "attempt-0/preflight.json")], 0, "preflight pass: level standard")
        self.says(["plan", "--plan", str(run / "plan.json")], 0, "learner  learner  2")
        self.says(["bundle", "quickstart", "-o", "ticket.tar.zst"], 0)
        readme = subprocess.run(["tar", "-xOf", "ticket.tar.zst", f"quickstart-{IDS[1]}/README.txt"], cwd=self.folder, capture_output=True, text=True)
        self.assertIn("learner.1 exited with code 3", readme.stdout)

    def test_all_commands_read_them(self):
        self.assertNotEqual(RECORDED, [])
        for recorded in RECORDED:
            with self.subTest(recorded.name):
                self.all_commands_read_it(self.stage(recorded))

    def test_and_those_from_before_formats_had_versions(self):
        run = self.stage(SOURCE / "tests/runs/version-1")
        for file in READERS:
            if file != "plan.json":  # which has had one from the start
                for path in (self.folder / "runs" / "quickstart").glob(f"*/{file}"):
                    set_version(path, lambda head: (head.pop("format"), head.pop("version")))
        self.all_commands_read_it(run)

    def test_a_newer_one_is_refused_with_the_file_and_what_to_do(self):
        for file, (name, command) in READERS.items():
            with self.subTest(file):
                run = self.stage(SOURCE / "tests/runs/version-1")
                set_version(run / file, lambda head: head.update(version=2))
                where = str(run / file)
                done = self.nlaunch(*(where if word == "FILE" else word for word in command))
                self.assertEqual((done.returncode, done.stderr), (65, f"""\
error: '{where}' has version 2 of the format '{name}'; this nlaunch ({VERSION}) supports 1 [format.newer]
hint: update nlaunch, or use the one that wrote it
"""))

    def test_logs_are_diagnosed_all_the_same(self):
        run = self.stage(SOURCE / "tests/runs/version-1")
        set_version(run / "summary.json", lambda head: head.update(version=2))
        (run / "attempt-0/logs/learner.1.log").write_text("ValueError: no reward\n")
        done = self.nlaunch("diagnose", "quickstart")
        self.assertEqual(done.returncode, 65)
        self.assertIn("has version 2 of the format 'nlaunch summary'", done.stderr)
        self.assertIn("learner.1.log:1: error: ", done.stdout)

    def test_a_list_of_runs_shows_the_others(self):
        run = self.stage(SOURCE / "tests/runs/version-1")
        set_version(run / "events.jsonl", lambda head: head.update(version=2))
        done = self.nlaunch("ps")
        self.assertEqual(done.returncode, 0)
        self.assertIn("[format.newer]", done.stderr)
        self.assertIn("quickstart  20261122", done.stdout)

    def test_a_name_is_not_an_older_run_of_another_host_that_has_ended(self):
        run = self.stage(SOURCE / "tests/runs/version-1")
        set_version(run / "events.jsonl", lambda head: head.update(host=""))  # of this host: of its pid nothing is left
        for command in (["ps", "--json", "quickstart"], ["stop", "quickstart"], ["bundle", "quickstart"]):
            self.says(command, 0)
        self.assertEqual(json.loads(self.nlaunch("ps", "--json", "quickstart").stdout)["folder"], str(run))
        self.assertTrue(run.with_name(f"quickstart-{IDS[1]}.tar.zst").exists())


if __name__ == "__main__":
    unittest.main()

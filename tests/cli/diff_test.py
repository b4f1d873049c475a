#!/usr/bin/env python3
"""nlaunch diff of real runs: the same twice, another environment, another command, what was never bound, what is no run."""
import json
import re
import shutil
import unittest

from harness import CliTest

EXPERIMENT = """roles:
  learner: {kind: learner, count: 2, rendezvous: torch, command: [sh, -c, 'echo "loss 0.5"; exit ${vars.code}']}
vars: {code: 0}
watch: {metrics: {loss: 'loss ([\\d.]+)'}}
"""


class Diff(CliTest):
    def run_once(self, *arguments, code=0):
        done = self.run_experiment(EXPERIMENT, *arguments)
        self.assertEqual(done.returncode, code, done.stderr)
        return self.run_folder

    def diff(self, a, b, *arguments):
        return self.nlaunch("diff", a, b, "--runs-dir", self.folder / "runs", *arguments)

    def differences(self, a, b):
        done = self.diff(a, b, "--json")
        said = json.loads(done.stdout)
        self.assertEqual(done.returncode, 0 if said["equal"] else 1, done.stderr)
        return {section["name"]: section for section in said["sections"]}

    def test_the_same_twice_is_equal(self):
        a, b = self.run_once(), self.run_once()
        done = self.diff(a.name, b.name)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("nothing differs except measurements\n", done.stdout)
        self.assertRegex(done.stdout, r"(?m)^the same: .*environment \(\d+\), plan \(\d+\)")

    def test_an_environment_of_another_kind_is_the_difference(self):
        a, b = self.run_once("--env", "NCCL_PROTO=Simple"), self.run_once("--env", "learner:NCCL_ALGO=Ring", "--env", "NCCL_PROTO=LL")
        sections = self.differences(a, b)
        self.assertEqual(sections["environment"]["differences"],
                         [{"what": "learner NCCL_ALGO", "a": "(unset)", "b": "Ring"}, {"what": "learner NCCL_PROTO", "a": "Simple", "b": "LL"}])
        self.assertGreater(sections["environment"]["equal"], 5)
        self.assertEqual([name for name, section in sections.items() if section["differences"] and not section["measured"]], ["environment"])
        done = self.diff(a, b)
        self.assertEqual(done.returncode, 1)
        text = re.sub(r"in [\d.]+m?s|after [\d.]+m?s", "in TIME", done.stdout.replace(a.name, "RUN-A").replace(b.name, "RUN-B"))
        self.assertIn("A  RUN-A: ", text)
        self.assertRegex(text, r"(?m)^environment \(\d+ the same\)\n +A +B\nlearner NCCL_ALGO +\(unset\) +Ring\nlearner NCCL_PROTO +Simple +LL$")

    def test_another_command_and_another_end(self):
        sections = self.differences(self.run_once(), self.run_once("--set", "vars.code=3", code=3))
        self.assertIn({"what": "outcome", "a": "finished", "b": "failed"}, sections["outcome"]["differences"])
        self.assertIn({"what": "vars.code", "a": "0", "b": "3"}, sections["plan"]["differences"])
        self.assertIn("roles.learner.command", [one["what"] for one in sections["plan"]["differences"]])
        self.assertEqual(sections["environment"]["differences"], [])

    def test_libraries_wheels_and_changes_of_the_lock(self):
        a = self.run_once()
        b = a.parent / "20260101-000000-1"
        shutil.copytree(a, b)
        lock = json.loads((b / "lock.json").read_text())
        lock["libraries"] = {"nccl": {"path": "/x/libnccl.so.2", "version": "2.28.9", "size": 5, "sha256": "ab" * 32}}
        lock["wheels"] = {"/x/.venv": ["torch 2.5.1", "numpy 1.0"]}
        lock["git"] = {"commit": "c0ffee", "branch": "main", "dirty": True, "diff": "diff --git a/train.py b/train.py\n-x\n+y\n"}
        (b / "lock.json").write_text(json.dumps(lock))
        sections = self.differences(a, b)
        self.assertEqual([one["what"] for one in sections["libraries"]["differences"]], ["nccl path", "nccl sha256", "nccl size", "nccl version"])
        self.assertEqual({one["what"]: one["b"] for one in sections["wheels"]["differences"]}, {"numpy": "1.0", "torch": "2.5.1"})
        self.assertIn("uncommitted changes in train.py", [one["what"] for one in sections["git"]["differences"]])

    def test_damaged_files_are_named_and_not_taken_for_missing_ones(self):
        a = self.run_once()
        lock = json.loads((a / "lock.json").read_text())
        (a / "lock.json").write_text(json.dumps(lock)[:-20])
        summary = json.loads((a / "summary.json").read_text())
        summary["processes"][1]["end"] = {"code": "0"}
        (a / "summary.json").write_text(json.dumps(summary))
        done = self.diff(a, a)
        self.assertEqual((done.returncode, done.stdout), (65, ""))
        self.assertEqual(done.stderr,
                         f"error: {a}/lock.json: it is not JSON [run.damaged]\n\n"
                         f"error: {a}/summary.json: 'processes[1].end.code' must be a whole number, found: string [run.damaged]\n\n2 errors\n")

    def test_a_run_that_was_never_bound_is_compared_as_planned(self):
        a, b = self.run_once("--env", "X=1"), self.run_once("--env", "X=2")
        for run in (a, b):
            shutil.rmtree(run / "attempt-0")
        sections = self.differences(a, b)
        self.assertEqual(sections["environment, as planned"]["differences"], [{"what": "learner X", "a": "1", "b": "2"}])

    def test_what_is_no_run(self):
        run = self.run_once()
        for a, b in ((run, "nobody"), (self.folder, run)):
            done = self.diff(a, b)
            self.assertEqual(done.returncode, 65)
            self.assertIn("error: no run '", done.stderr)


if __name__ == "__main__":
    unittest.main()

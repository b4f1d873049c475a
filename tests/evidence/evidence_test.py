"""Evidence and its verdict over ranks that hang in Gloo."""
import json
import os
import shutil
import tempfile
import unittest

from hangs import PYTHON, Ranks, has_torch, states

PY_SPY = os.environ.get("NLAUNCH_TEST_PY_SPY", "")


@unittest.skipUnless(has_torch(), f"{PYTHON} has no torch (Debian: python3-torch)")
class Hangs(unittest.TestCase):
    maxDiff = None

    def path(self, *names):
        """A folder with py-spy, if it is named, for PATH."""
        folder = tempfile.mkdtemp(prefix="nlaunch-tools-")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        if names and not PY_SPY:
            self.skipTest("py-spy is not here: scripts/test.sh gets it")
        for name in names:
            os.symlink(PY_SPY, os.path.join(folder, name))
        return folder

    def verdict_of(self, fault, names, bad=1, **options):
        path = self.path(*names)
        with Ranks(fault, bad, **options) as ranks:
            ranks.wait_for_the_fault()
            before = {p.pid: states(p.pid) for p in ranks.processes if p.poll() is None}
            ranks.collect(path)
            for pid, was in before.items():
                self.assertEqual("T" in states(pid), "T" in was, "nobody is stopped or continued by us")
            return ranks.verdict()

    def assert_right(self, fault, names, why, **options):
        verdict = self.verdict_of(fault, names, **options)
        bad = options.get("bad", 1)
        self.assertEqual([one["process"] for one in verdict["culprits"]], [f"learner.{bad}"], verdict)
        self.assertIn(why, verdict["sentence"])
        self.assertTrue(verdict["sure"], verdict)
        return verdict

    def test_with_python_stacks(self):
        for fault, why in (("sleeps", "it sleeps in load_batch (train.py:10), outside of any collective; 2 others wait"),
                           ("spins", "it computes in load_batch (train.py:1"),
                           ("stopped", "it is stopped (state T): train.py (pid "),
                           ("other collective", "it waits in all_gather, called from evaluate (train.py:19), where others "
                                                "are in all_reduce; 2 others wait")):
            with self.subTest(fault):
                self.assert_right(fault, ["py-spy"], why)

    def test_with_native_stacks_alone(self):
        for fault, why, world in (("sleeps", "it sleeps", 3), ("spins", "it computes", 2), ("stopped", "it is stopped (state T)", 3)):
            with self.subTest(fault):
                verdict = self.assert_right(fault, [], why, world=world)
                self.assertIn("Python stacks on node0: py-spy is neither on PATH nor in the environment of the process "
                              "(pip install py-spy)", verdict["missing"])

    def test_in_a_shell_the_program_counts(self):
        self.assert_right("sleeps", ["py-spy"], "it sleeps in load_batch", wrap=True)

    def test_who_dies_silently_is_to_blame_and_not_who_complains(self):
        self.assert_right("dies", [], "learner.1 (rank 1) on node0 is the culprit: it exited with code 0")

    def test_of_two_sizes_over_gloo_both_sides_are_candidates(self):
        for wrong_size in (100, 100_000):
            with self.subTest(wrong_size):
                verdict = self.verdict_of("other size", [], size=10_000, wrong_size=wrong_size)
                self.assertFalse(verdict["sure"])
                self.assertIn("learner.1", [one["process"] for one in verdict["culprits"]])

    def test_what_ranks_compared_tells_whose_collective_differs(self):
        detail = {"TORCH_DISTRIBUTED_DEBUG": "DETAIL"}
        self.assert_right("other size", [], "learner.1 (rank 1) on node0 is the culprit: it entered OpType=ALLREDUCE, TensorShape=[100], "
                          "TensorDtypes=Float, where others entered OpType=ALLREDUCE, TensorShape=[1000], TensorDtypes=Float", env=detail)
        self.assert_right("other collective", [], "it entered OpType=ALLGATHER, TensorShape=[1000], TensorDtypes=Float, where others "
                          "entered OpType=ALLREDUCE", env=detail)
        verdict = self.verdict_of("other size", [], env=detail, world=2)
        self.assertEqual((verdict["sure"], len(verdict["culprits"])), (False, 2), verdict)

    def test_what_is_written(self):
        with Ranks("sleeps", 0, world=2) as ranks:
            ranks.wait_for_the_fault()
            said = ranks.collect(self.path())
            environment = json.loads(ranks.file(0, "environment.json").read_text())
            self.assertEqual((environment["SECRET_TOKEN"], environment["PLAIN"]), ("***", "***"))
            self.assertEqual(environment["RANK"], "0")
            sockets = json.loads(ranks.file(1, "sockets.json").read_text())
            self.assertIn("ESTABLISHED", {one["state"] for one in sockets})
            processes = json.loads(ranks.file(1, "processes.json").read_text())["processes"]
            self.assertEqual([(one["pid"], one["state"], one["rank"]) for one in processes],
                             [(ranks.processes[1].pid, "S", 1)])
            self.assertEqual(ranks.file(0, "log.txt").read_text(), "step 0\nstep 1\nstep 2\nfault\n")
        got = said["processes"]["learner.0"]["got"]
        self.assertEqual(sorted(got), ["environment.json", "libraries.json", "log.txt", "native-stacks.txt",
                                       "processes.json", "sockets.json"])
        self.assertLess(said["seconds"], 20)


if __name__ == "__main__":
    unittest.main()

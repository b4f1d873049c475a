"""Evidence and its verdict over ranks that hang in Gloo."""
import json
import os
import shutil
import tempfile
import unittest

from hangs import PYTHON, Ranks, has_torch, states

PY_SPY = os.environ.get("NLAUNCH_TEST_PY_SPY", "")


def put_tools(folder, *names):
    """Makes `folder` a PATH with these programs alone."""
    for name in names:
        found = PY_SPY if name == "py-spy" else shutil.which(name)
        if not found:
            raise unittest.SkipTest(f"{name} is not here: scripts/test.sh gets it")
        os.symlink(found, os.path.join(folder, name))


@unittest.skipUnless(has_torch(), f"{PYTHON} has no torch (Debian: python3-torch)")
class Hangs(unittest.TestCase):
    maxDiff = None

    def path(self, *names):
        folder = tempfile.mkdtemp(prefix="nlaunch-tools-")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        put_tools(folder, *names)
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
        for tool, fault, why in (("eu-stack", "sleeps", "it sleeps"), ("eu-stack", "spins", "it computes"),
                                 ("gdb", "sleeps", "it sleeps")):
            with self.subTest(f"{fault}, {tool}"):
                verdict = self.assert_right(fault, [tool], why, world=2)
                self.assertIn("Python stacks on node0: py-spy is neither on PATH nor in the environment of the process "
                              "(pip install py-spy)", verdict["missing"])

    def test_without_any_tool_only_a_stopped_one_is_sure(self):
        self.assert_right("stopped", [], "it is stopped (state T)")
        for fault in ("sleeps", "spins"):
            with self.subTest(fault):
                verdict = self.verdict_of(fault, [])
                self.assertFalse(verdict["sure"])
                self.assertEqual([one["process"] for one in verdict["culprits"]], ["learner.1"])
                self.assertIn("native stacks on node0: neither eu-stack nor gdb is on PATH (apt install elfutils (or gdb))",
                              verdict["missing"])

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
            said = ranks.collect(self.path("eu-stack"))
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

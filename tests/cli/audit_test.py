"""The audit of a run: to which libnccl each process is bound, whatever else it has mapped. With two copies of a library that
takes NCCL's place, and with a real PyTorch where NLAUNCH_TEST_TORCH names a venv that has one."""
import glob
import json
import os
import pathlib
import shutil
import textwrap
import time
import unittest

from harness import BUILD, CliTest

FAKES = BUILD / "lib" / "fake-nccl"
WHEEL = FAKES / "wheel" / "libnccl.so.2"
OTHER = FAKES / "other" / "libnccl.so.2"
TORCH = os.environ.get("NLAUNCH_TEST_TORCH")

# As PyTorch does: opens the copy of its wheel by path, then what was linked against it.
LOAD = f"import ctypes, time; ctypes.CDLL('{WHEEL}'); ctypes.CDLL('{FAKES}/libuser_now.so'); time.sleep(3)"
# Uses a function that the preloaded copy lacks, after ten seconds.
LOAD_LATE = f"""
import ctypes, time
ctypes.CDLL('{WHEEL}', ctypes.RTLD_GLOBAL)
time.sleep(10)
ctypes.CDLL('{FAKES}/libuser_newer.so')
open('loaded', 'w')
time.sleep(60)
"""


class Audit(CliTest):
    def run_with(self, library, roles, *arguments, more="", timeout=120):
        site = self.folder / "site.yaml"
        site.write_text(f"version: 1\nname: box\nscheduler: {{kind: local}}\nlibraries: {{nccl: {{path: {library}}}}}\n")
        experiment = self.folder / "experiment.yaml"
        experiment.write_text("version: 1\nname: test\nweight_sync: {backend: gloo}\n" + more + "roles:\n" +
                              textwrap.indent(roles, "  "))
        return self.nlaunch("run", experiment, "--site", site, "--runs-dir", self.folder / "runs", "--no-preflight",
                            *arguments, timeout=timeout)

    @staticmethod
    def role(name, python, code, more=""):
        return f"{name}:\n  kind: {name}\n  command: {json.dumps([str(python), '-c', code])}\n{more}"

    def audit(self):
        return json.loads((self.run_folder / "attempt-0" / "audit.json").read_text())

    def libraries(self, name):
        """By path, what a process does with each."""
        entry = next(entry for entry in self.audit()["processes"] if entry["name"] == name)
        return {library["path"]: library["use"] for library in entry["libraries"]}

    def test_a_learner_is_bound_to_its_preload_and_an_engine_to_its_own(self):
        roles = (self.role("learner", "python3", LOAD, "  preload: [nccl]\n") +
                 self.role("engine", "python3", LOAD, "  exit: ok\n"))
        done = self.run_with(OTHER, roles)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, rf"\nlearner\.0 \(pid \d+\): bound to libnccl 2\.99\.1 {OTHER}, as preloaded; "
                                      rf"also mapped but not bound: libnccl 2\.99\.1 {WHEEL}\n")
        self.assertRegex(done.stderr, rf"\nengine\.0 \(pid \d+\): bound to its own libnccl 2\.99\.1 {WHEEL}\n")
        self.assertEqual(self.audit()["findings"], [])
        self.assertEqual(self.libraries("learner.0"), {str(OTHER): "bound", str(WHEEL): "mapped"})
        self.assertEqual(self.libraries("engine.0"), {str(WHEEL): "bound"})

    def test_enforce_ends_the_run_soon_after_a_second_copy_was_bound_whenever_that_is(self):
        done = self.run_with(OTHER, self.role("learner", "python3", LOAD_LATE, "  preload: [nccl]\n"),
                             more=f"workdir: {self.folder}\naudit: {{mode: enforce}}\n")
        took = time.time() - (self.folder / "loaded").stat().st_mtime
        self.assertEqual(done.returncode, 73, done.stderr)
        self.assertLess(took, 5)
        self.assertRegex(done.stderr, r"learner\.0 \(pid \d+, .*\) is bound to 2 copies of libnccl: "
                                      rf"libuser_newer\.so \(ncclGetVersion, ncclGroupStart\) to libnccl 2\.99\.1 \({OTHER}\) and "
                                      rf"libuser_newer\.so \(ncclCommWindowRegister\) to libnccl 2\.99\.1 \({WHEEL}\)")

    def test_roles_that_were_never_started_are_not_listed(self):
        roles = ("broken:\n  kind: service\n  command: ['false']\n  ready: {delay: 5s}\n" +
                 self.role("learner", "python3", LOAD, "  preload: [nccl]\n"))
        done = self.run_with(OTHER, roles, more="start: [[broken], [learner]]\n")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(self.audit()["processes"], [])
        self.assertNotIn("cannot be proven", done.stderr)

    @unittest.skipUnless(TORCH, "NLAUNCH_TEST_TORCH names no venv with torch and its NCCL wheel")
    def test_pytorch_is_bound_to_the_preload_though_it_opens_its_wheels_copy(self):
        wheel = glob.glob(f"{TORCH}/lib/python*/site-packages/nvidia/nccl/lib/libnccl.so.2")[0]
        copy = self.folder / "copy" / "libnccl.so.2"
        copy.parent.mkdir()
        shutil.copy(wheel, copy)
        python = pathlib.Path(TORCH) / "bin" / "python"
        code = "import torch, time; time.sleep(3)"
        roles = (self.role("learner", python, code, "  preload: [nccl]\n") +
                 self.role("engine", python, code, "  exit: ok\n"))
        done = self.run_with(copy, roles, timeout=280)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, rf"\nlearner\.0 \(pid \d+\): bound to libnccl \S+ {copy}, as preloaded")
        self.assertRegex(done.stderr, rf"\nengine\.0 \(pid \d+\): bound to its own libnccl \S+ {wheel}\n")
        self.assertEqual(self.audit()["findings"], [])
        self.assertEqual(self.libraries("learner.0")[str(copy)], "bound")
        self.assertEqual(self.libraries("engine.0"), {wheel: "bound"})
        learner = next(entry for entry in self.audit()["processes"] if entry["name"] == "learner.0")
        by = next(library["by"] for library in learner["libraries"] if library["use"] == "bound")
        self.assertIn("libtorch_cuda.so", [os.path.basename(path) for path in by])


if __name__ == "__main__":
    unittest.main()

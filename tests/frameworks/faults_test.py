#!/usr/bin/env python3
"""The fault matrix: real vLLM servers, TRL learners and Ray clusters are broken; nlaunch has to say who and why.

NLAUNCH_FAULTS=all faults_test.py                  all rows, an hour on two cores; else the few of EACH_TIME
NLAUNCH_FAULTS=all faults_test.py Matrix.test_ROW  one row
NLAUNCH_FAULTS_KEEP=DIR                            keeps what each row's run wrote, and a table, there
"""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import faults
from fault_rows import ROWS

TRL_VLLM = os.environ.get("NLAUNCH_TEST_TRL_VLLM")  # Python environments
RAY = os.environ.get("NLAUNCH_TEST_RAY")
ALL = os.environ.get("NLAUNCH_FAULTS") == "all"
KEEP = os.environ.get("NLAUNCH_FAULTS_KEEP")
# One of each kind: a part killed, one stopped, one that leaves no trace of its own, a start that fails, an exception, a
# sync that one side never enters, Ray's processes, and runs in which nobody is to be accused.
EACH_TIME = {
    "healthy",
    "engine_core_killed",
    "worker_stopped",
    "learner_killed",
    "model_path_wrong",
    "reward_raises",
    "sync_engine_never_enters",
    "ray_healthy",
    "ray_worker_killed",
    "raylet_killed",
}
CACHES = faults.SOURCE / ".test-cache" / "faults"  # what vLLM and PyTorch compile is the same in each row


class Matrix(unittest.TestCase):
    results = {}

    @classmethod
    def setUpClass(cls):
        cls.shared = pathlib.Path(tempfile.mkdtemp(prefix="nlaunch-faults-"))
        cls.addClassCleanup(shutil.rmtree, cls.shared)
        cls.addClassCleanup(cls.show)
        cls.env = {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "HOME": str(cls.shared),
            "LANG": "C.UTF-8",
            "HERE": str(faults.HERE),
            "TRL_VLLM": TRL_VLLM or "",
            "RAY": RAY or "",
            "VLLM_CACHE": str(CACHES / "vllm"),
            "TORCHINDUCTOR_CACHE_DIR": str(CACHES / "inductor"),
        }
        if spy := os.environ.get("NLAUNCH_TEST_PY_SPY"):
            cls.env["PATH"] = f"{pathlib.Path(spy).parent}:{cls.env['PATH']}"

    @classmethod
    def model(cls, name, hidden):
        folder = cls.shared / name
        if not folder.exists():
            subprocess.run(
                [f"{TRL_VLLM}/bin/python", faults.HERE / "make_model.py", folder, str(hidden)],
                check=True,
                capture_output=True,
            )
        return folder

    @classmethod
    def show(cls):
        if not cls.results:
            return
        lines = [f"{'row':26} {'':5} {'said':>6} {'ended':>6} {'code':>4}  {'first':12} cause"]
        for name, result in cls.results.items():
            said = result["said"]
            lines.append(
                f"{name:26} {'WRONG' if result['wrong'] else 'right'} "
                f"{said['seconds'] if said['seconds'] is not None else '-':>6} "
                f"{result['ended_after_fault']:>6} {said['code']:>4}  {said['first'] or '-':12} {said['cause'] or '-'}"
            )
            lines += [f"{'':32} {what}" for what in result["wrong"]]
        print("\n" + "\n".join(lines))
        if KEEP:
            pathlib.Path(KEEP, "table.txt").write_text("\n".join(lines) + "\n")

    def check(self, name):
        row = ROWS[name]
        folder = pathlib.Path(KEEP or self.shared, name)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        settings = dict(row.settings)
        if row.experiment == "faults.yaml":
            settings = {"vars.model": self.model("tiny", 128), "vars.other_model": self.model("wide", 256), **settings}
        settings = {key: str(value).replace("FOLDER", str(folder)) for key, value in settings.items()}
        run = faults.Run(row, folder, {**self.env, **row.env}, settings)
        result = faults.carry_out(run)
        self.results[name] = result
        if KEEP:
            faults.keep(name, run, result)
        self.assertEqual(result["wrong"], [], "\n".join(result["own_lines"]))


def add(name, row):
    missing = RAY if row.experiment.startswith("ray") else TRL_VLLM

    @unittest.skipUnless(
        missing, "no such framework here: scripts/test.sh fetches it, or set NLAUNCH_TEST_TRL_VLLM, NLAUNCH_TEST_RAY"
    )
    @unittest.skipUnless(ALL or name in EACH_TIME, "takes a minute or two; NLAUNCH_FAULTS=all runs all rows")
    def test(self):
        self.check(name)

    test.__doc__ = row.what
    setattr(Matrix, f"test_{name}", test)


for each in ROWS.items():
    add(*each)
# In the order of the table, which has the quick rows last.
unittest.TestLoader.sortTestMethodsUsing = lambda _, a, b: list(ROWS).index(a[5:]) - list(ROWS).index(b[5:])

if __name__ == "__main__":
    unittest.main(verbosity=2)

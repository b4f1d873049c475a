#!/usr/bin/env python3
"""What nlaunch diagnose says of each case here, as a person sees it. The expected texts are tests/golden/diagnose/CASE.txt."""
import os
import pathlib
import re
import subprocess
import unittest

SOURCE = pathlib.Path(os.environ["NLAUNCH_SOURCE"])
NLAUNCH = pathlib.Path(os.environ["NLAUNCH_BUILD"]) / "bin" / "nlaunch"
CASES = SOURCE / "tests" / "diagnose"
GOLDEN = SOURCE / "tests" / "golden" / "diagnose"
UPDATE = os.environ.get("NLAUNCH_UPDATE_GOLDEN") == "1"


class Cases(unittest.TestCase):
    maxDiff = None

    def test_each_case(self):
        cases = sorted(path.name for path in CASES.iterdir() if path.is_dir() and path.name != "__pycache__")
        self.assertEqual(sorted(path.stem for path in GOLDEN.glob("*.txt")) if not UPDATE else cases, cases)
        for case in cases:
            with self.subTest(case):
                done = subprocess.run([NLAUNCH, "diagnose", case], cwd=CASES, capture_output=True, text=True, timeout=60)
                self.assertEqual(done.stderr, "")
                self.assertEqual(done.returncode, 0 if case.startswith("healthy") else 1, done.stdout)
                golden = GOLDEN / f"{case}.txt"
                said = re.sub(r"\d+ signatures", "N signatures", done.stdout)
                if UPDATE:
                    golden.write_text(said)
                self.assertEqual(said, golden.read_text())


if __name__ == "__main__":
    unittest.main()

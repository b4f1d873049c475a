"""A short series of the kill trials; scripts/bench/kill_trials.py runs as many as one likes."""
import os
import pathlib
import subprocess
import sys
import unittest

TRIALS = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "bench" / "kill_trials.py"


class KillTrials(unittest.TestCase):
    def test_nothing_survives_two_seconds(self):
        done = subprocess.run([sys.executable, TRIALS, "20"], capture_output=True, text=True, env=os.environ)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()

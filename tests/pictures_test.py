"""The pictures of README.md show what nlaunch says."""
import os
import pathlib
import subprocess
import sys
import unittest

SOURCE = pathlib.Path(os.environ["NLAUNCH_SOURCE"])


class Pictures(unittest.TestCase):
    def test_they_are_current(self):
        done = subprocess.run([sys.executable, SOURCE / "scripts/pictures.py", "--check", "--build", os.environ["NLAUNCH_BUILD"]],
                              capture_output=True, text=True, timeout=200)
        self.assertEqual(done.returncode, 0, f"{done.stderr}\nscripts/pictures.py makes them anew")


if __name__ == "__main__":
    unittest.main()

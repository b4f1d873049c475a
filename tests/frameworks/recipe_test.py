#!/usr/bin/env python3
"""configs/trl-grpo.yaml as README has it, on a CPU: the real TRL and vLLM, with the preflight; its reward has to rise."""

import os
import pathlib
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("NLAUNCH_BUILD", SOURCE / "build"))
TRL_VLLM = os.environ.get("NLAUNCH_TEST_TRL_VLLM")


class Recipe(unittest.TestCase):
    @unittest.skipUnless(TRL_VLLM, "no TRL and vLLM here: scripts/test.sh fetches them, or set NLAUNCH_TEST_TRL_VLLM")
    def test_the_reward_rises_on_a_cpu(self):
        with tempfile.TemporaryDirectory() as home:
            done = subprocess.run(
                [SOURCE / "scripts/gpu-frameworks.sh", "recipe"],
                capture_output=True,
                text=True,
                env={
                    **os.environ,
                    "HOME": home,
                    "FRAMEWORKS_CPU": "1",
                    "FRAMEWORKS_VENV": TRL_VLLM,
                    "NLAUNCH": str(BUILD / "bin/nlaunch"),
                },
            )
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("\n1 passed, 0 failed, 0 skipped\n", done.stdout)


if __name__ == "__main__":
    unittest.main()

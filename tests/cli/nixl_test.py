#!/usr/bin/env python3
"""The preflight of weights that go over NIXL, with the real one where NLAUNCH_TEST_NIXL names a Python environment that has it."""
import json
import os
import unittest

from harness import CliTest

NIXL = os.environ.get("NLAUNCH_TEST_NIXL", "")
EXPERIMENT = """
version: 1
name: weights
cpu_slots: true
weight_sync: {backend: nixl}
roles:
  learner: {kind: learner, gpus: 1, command: [LEARNER, -c, pass]}
  engine: {kind: engine, count: 2, gpus: 1, command: [ENGINE, -c, pass]}
"""


class Nixl(CliTest):
    def rows(self, learner, engine):
        path = self.folder / "weights.yaml"
        path.write_text(EXPERIMENT.replace("LEARNER", learner).replace("ENGINE", engine))
        done = self.nlaunch("preflight", path, "--site", "local", "--json", "--runs-dir", self.folder / "runs")
        rows = json.loads(done.stdout)["rows"]
        return [(row["status"], row["subject"], row["value"]) for row in rows if row["check"] == "weights"]

    @unittest.skipUnless(NIXL, "NLAUNCH_TEST_NIXL names no environment with NIXL (scripts/test.sh fetches one)")
    def test_memory_arrives(self):
        python = f"{NIXL}/bin/python"
        rows = {subject: (status, value) for status, subject, value in self.rows(python, python)}
        self.assertEqual(rows["weight sync, from learner.0"], ("pass", "1 of 1 engine got 1 MiB"))
        status, value = rows["weight sync, learner.0 to engine.0"]
        self.assertEqual(status, "pass", rows)
        self.assertRegex(value, r"^1 MiB over NIXL \S+ after [\d.]+ (ms|s|µs)$")

    @unittest.skipUnless(NIXL, "NLAUNCH_TEST_NIXL names no environment with NIXL (scripts/test.sh fetches one)")
    def test_a_learner_without_it_is_named(self):
        rows = self.rows("/usr/bin/python3", f"{NIXL}/bin/python")
        self.assertIn(("unknown", "weight sync, learner.0 to engine.0", "the Python of learner.0 has no NIXL"), rows)
        self.assertIn(("fail", "weight sync, learner", "/usr/bin/python3 has no NIXL"), rows)

    def test_without_it_nothing_is_tried(self):
        rows = self.rows("/usr/bin/python3", "/usr/bin/python3")
        self.assertEqual(rows, [("fail", "weight sync, learner", "/usr/bin/python3 has no NIXL"),
                                ("fail", "weight sync, engine", "/usr/bin/python3 has no NIXL")])


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/env python3
"""nlaunch bench with real probes over Gloo: arms against each other, targets, an arm that fails, drills, and what is typed wrongly."""
import csv
import html.parser
import json
import unittest

from harness import CliTest

EXPERIMENT = """
version: 1
name: small
weight_sync: {backend: gloo}
cpu_slots: true
roles:
  slot: {kind: learner, per_node: 2, gpus: 1, rendezvous: torch, command: ["true"]}
bench:
  steps: 3
  warm_up: 1
  workloads:
    small: {group: world, budget: 10s, step: [{op: all_reduce, size: 64kB}]}
    large: {group: world, step: [{op: broadcast, size: 1MiB, count: 2}]}
"""


class Bench(CliTest):
    def setUp(self):
        super().setUp()
        self.experiment = self.folder / "small.yaml"
        self.experiment.write_text(EXPERIMENT)

    def bench(self, *arguments):
        return self.nlaunch("bench", *arguments, "--site", "local", "--runs-dir", self.folder / "runs", "--color", "never", timeout=120)

    def test_arms_take_turns_and_are_compared(self):
        page, table = self.folder / "b.html", self.folder / "b.csv"
        done = self.bench(self.experiment, "--vary", "OMP_NUM_THREADS=1,2", "--seed", "7", "--json", "--csv", table, "--html", page)
        self.assertEqual(done.returncode, 0, done.stderr)
        said = json.loads(done.stdout)
        self.assertEqual([(arm["name"], arm["repeats"], arm["failed"]) for arm in said["arms"]],
                         [("OMP_NUM_THREADS=1", 5, 0), ("OMP_NUM_THREADS=2", 5, 0)])
        self.assertEqual(said["differences"], [{"role": "slot", "variable": "OMP_NUM_THREADS", "values": ["1", "2"]}])
        self.assertEqual([(line["workload"], line["arm"], len(line["seconds"])) for line in said["lines"]],
                         [(workload, f"OMP_NUM_THREADS={n}", 5) for workload in ("small", "large") for n in (1, 2)])
        for line in said["lines"]:
            low, high = line["interval"]
            self.assertLessEqual(low, line["median"])
            self.assertLessEqual(line["median"], high)
        self.assertEqual([line["workload"] for line in said["lines"] if "verdict" in line], ["small", "large"])
        with table.open() as rows:
            self.assertEqual(len(list(csv.DictReader(rows))), 20)
        text = page.read_text()
        html.parser.HTMLParser(convert_charrefs=True).feed(text)
        self.assertIn("OMP_NUM_THREADS=2", text)
        self.assertRegex(said["answer"][0], r"^(no difference found between OMP_NUM_THREADS=1 and 2 in 2 comparisons; |OMP_NUM_THREADS=2 is )")
        self.assertEqual(said["answer"][1:], ["both targets were met"])
        self.assertIn(f"<h1>{html.escape(said['answer'][0])}</h1>", text)
        self.assertNotRegex(text, r"(src|href)=.https?:")
        kept, = (self.folder / "runs" / "small").glob("*/bench.json")
        self.assertEqual(json.loads(kept.read_text()), said)

    def test_a_budget_that_is_missed_is_the_exit_code(self):
        done = self.bench(self.experiment, "--set", "bench.workloads.small.budget=1us", "--only", "small", "--repeats", "1")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("at most 1.0 µs: MISSED", done.stdout)
        self.assertRegex(done.stdout, r"^the target was missed: small \(all_reduce, 64000B\) takes \S+ \S+, at most 1\.0 µs\nsmall \(.*\n\nworkload ")
        self.assertIn("with 1 repeat, intervals are not meaningful and arms are not compared: use --repeats 5 or more\n", done.stdout)

    def test_an_arm_that_never_works_is_named_with_its_cause(self):
        done = self.bench(self.experiment, "--vary", "GLOO_SOCKET_IFNAME=lo,nowhere0", "--only", "small", "--repeats", "1", "--json")
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertTrue(json.loads(done.stdout)["answer"][0].startswith("GLOO_SOCKET_IFNAME=nowhere0 failed in the only repeat: "), done.stdout)
        good, bad = json.loads(done.stdout)["arms"]
        self.assertEqual((good["failed"], bad["failed"]), (0, 1))
        self.assertIn("nowhere0", json.dumps(bad["causes"]))

    def test_what_is_typed_wrongly_is_said_before_anything_starts(self):
        wrong = {
            ("--vary", "weight_sync.bakend=nccl,gloo"): (65, "hint: did you mean 'backend'?"),
            ("--vary", "NCCL_PROTOS=LL,Simple"): (65, "NCCL_PROTO"),
            ("--only", "smal"): (65, "small"),
            ("--set", "bench.workloads.small.budget=9"): (65, "unit"),
        }
        for arguments, (code, words) in wrong.items():
            with self.subTest(arguments):
                done = self.bench(self.experiment, *arguments)
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertIn(words, done.stderr)
        self.assertFalse((self.folder / "runs").exists())

    def test_a_drill_ends_by_its_deadline_and_tells_what_each_rank_showed(self):
        done = self.bench(self.experiment, "--drill", "missing-rank")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"(?s)missing-rank\n  does   .*  shows  rank 0: Gloo: .*Timed out.*; rank 1: did not take part\n  end    ")


if __name__ == "__main__":
    unittest.main()

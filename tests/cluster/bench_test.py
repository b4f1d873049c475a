"""nlaunch bench over the nodes of an allocation: arms in one allocation, over Gloo."""
import csv
import json
import pathlib
import shutil
import tempfile
import time
import unittest

from cluster import SITE, Cluster
from runs import NLAUNCH

NODES = 3
EXPERIMENT = """
version: 1
name: timed
nodes: 3
weight_sync: {backend: gloo}
cpu_slots: true
roles:
  learner: {kind: learner, per_node: 2, gpus: 1, rendezvous: torch, command: ["true"]}
bench:
  steps: 3
  warm_up: 1
  workloads:
    small: {group: world, step: [{op: all_reduce, size: 64kB}]}
    large: {group: world, step: [{op: broadcast, size: 1MiB, count: 2}]}
"""


class Bench(unittest.TestCase):
    """On hosts, so that what goes from node to node is named by an address."""

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(nodes=NODES, gpus=0, hosts=True)
        cls.cluster.up()
        cls.addClassCleanup(cls.cluster.down)

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="nlaunch-timed-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        (self.folder / "timed.yaml").write_text(EXPERIMENT)

    def bench(self, *arguments, nodes=NODES, timeout=200):
        return self.cluster.run("salloc", "-Q", f"-N{nodes}", "--exclusive", NLAUNCH, "bench", self.folder / "timed.yaml",
                                "--site", SITE, "--set", "site.scheduler.directives.gpus-per-node=0",
                                "--runs-dir", self.folder / "runs", *arguments, timeout=timeout)

    def test_arms_take_turns_on_the_nodes_of_one_allocation(self):
        table, page = self.folder / "b.csv", self.folder / "b.html"
        done = self.bench("--vary", "OMP_NUM_THREADS=1,2", "--repeats", "5", "--seed", "7", "--json", "--csv", table, "--html", page)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        said = json.loads(done.stdout)
        self.assertEqual([(arm["name"], arm["repeats"], arm["failed"]) for arm in said["arms"]],
                         [("OMP_NUM_THREADS=1", 5, 0), ("OMP_NUM_THREADS=2", 5, 0)])
        self.assertEqual(said["differences"], [{"role": "learner", "variable": "OMP_NUM_THREADS", "values": ["1", "2"]}])
        self.assertEqual([(line["workload"], line["group"], line["arm"], line["ranks"], len(line["seconds"])) for line in said["lines"]],
                         [(workload, "learner world", f"OMP_NUM_THREADS={n}", 6, 5) for workload in ("small", "large") for n in (1, 2)])
        self.assertEqual([line["workload"] for line in said["lines"] if "verdict" in line], ["small", "large"])
        with table.open() as rows:
            self.assertEqual(len(list(csv.DictReader(rows))), 20)
        self.assertIn("OMP_NUM_THREADS=2", page.read_text())
        self.assertEqual(self.cluster.processes(), {})

    def test_an_arm_that_reaches_no_other_node_is_named_with_its_cause(self):
        done = self.bench("--vary", "GLOO_SOCKET_IFNAME=eth0,lo", "--repeats", "1", "--only", "small", "--set", "bench.timeout=5s", "--json")
        self.assertEqual(done.returncode, 3, done.stderr)
        good, bad = json.loads(done.stdout)["arms"]
        self.assertEqual((good["failed"], bad["failed"]), (0, 1))
        self.assertRegex(bad["causes"][0], r"^learner world: ranks 0, 1, 2, 3, 4, 5 arrived, but the communicator was not created: .* Gloo on interface lo: ")

    def test_fewer_nodes_than_the_plan_has_are_no_place_for_it(self):
        done = self.bench(nodes=2)
        self.assertEqual(done.returncode, 64)
        self.assertRegex(done.stderr, r"^nlaunch bench: job \d+ has 2 nodes, but the plan uses 3\n$")

    def test_it_is_broken_off_where_a_node_is_lost(self):
        process = self.cluster.start("salloc", "-Q", f"-N{NODES}", "--no-kill", "--exclusive", NLAUNCH, "bench", self.folder / "timed.yaml",
                                     "--site", SITE, "--set", "site.scheduler.directives.gpus-per-node=0", "--repeats", "900", "--json",
                                     "--runs-dir", self.folder / "runs")
        self.addCleanup(process.communicate)
        deadline = time.monotonic() + 60
        while not list(self.folder.glob("runs/timed/*/arm-0/attempt-0/preflight/spec.json")):  # it measures
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)
        self.cluster.kill_node(1)
        self.addCleanup(self.cluster.revive_node, 1)
        out, err = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 3, err)
        said = json.loads(out)
        self.assertRegex(said["broken_off"], r"^node node\d: the connection to its agent was closed")
        self.assertLess(said["arms"][0]["repeats"], 900)
        self.assertEqual(said["arms"][0]["repeats"], len(said["order"]))


if __name__ == "__main__":
    unittest.main()

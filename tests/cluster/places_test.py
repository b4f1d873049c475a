"""Where nodes stand, by a Slurm that knows its switches: what is kept together, and the order of ranks."""
import json
import pathlib
import shutil
import tempfile
import unittest

from cluster import SITE, Cluster
from runs import NLAUNCH, LooksAtRuns

# The leaves are not in the order of the nodes' names.
TOPOLOGY = """SwitchName=left Nodes=node[0,2,4]
SwitchName=right Nodes=node[1,3,5]
SwitchName=top Switches=left,right
"""
LEFT, RIGHT = {"node0", "node2", "node4"}, {"node1", "node3", "node5"}
EXPERIMENT = """
version: 1
name: places
pools: {train: {nodes: 2}, one: {nodes: 2}, other: {nodes: 2}}
cpu_slots: true
weight_sync: {backend: none}
roles:
  learner:
    kind: learner
    pool: train
    per_node: 1
    gpus: 1
    rendezvous: torch
    command: [bash, -c, "echo $SLURM_TOPOLOGY_ADDR; sleep 0.5"]
    KEEP
  one:
    kind: engine
    pool: one
    replica: {nodes: 2}
    gpus: 1
    command: [bash, -c, "echo $SLURM_TOPOLOGY_ADDR; exec sleep 1000"]
    keep_together: switch
  other:
    kind: engine
    pool: other
    replica: {nodes: 2}
    gpus: 1
    command: [bash, -c, "echo $SLURM_TOPOLOGY_ADDR; exec sleep 1000"]
    keep_together: switch
"""


class Places(LooksAtRuns):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(nodes=6, gpus=1, topology=TOPOLOGY,
                              conf="TopologyPlugin=topology/tree\nSlurmdTimeout=5\nMessageTimeout=3\n")
        cls.cluster.up()
        cls.addClassCleanup(cls.cluster.down)

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="nlaunch-places-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.addCleanup(self.cluster.end_all_jobs)

    @property
    def run_folder(self):
        return (self.folder / "runs" / "places" / "latest").resolve()

    def launch(self, *arguments, keep=""):
        text = EXPERIMENT.replace("    KEEP\n", f"    {keep}\n" if keep else "")
        (self.folder / "places.yaml").write_text(text)
        done = self.cluster.run(NLAUNCH, "run", self.folder / "places.yaml", "--site", SITE, "--runs-dir",
                                self.folder / "runs", "--no-preflight", "--set", "site.scheduler.directives.gpus-per-node=1",
                                *arguments)
        logs = "".join(log.read_text() for log in self.folder.glob("runs/places/slurm-*.log"))
        return done.returncode, done.stdout + done.stderr + logs

    def hosts(self):
        return {event["process"]: event["host"] for event in self.events("process-started")}

    def test_a_replica_is_at_one_switch(self):
        code, said = self.launch()
        self.assertEqual(code, 0, said)
        hosts = self.hosts()
        replicas = [{hosts[f"{role}.0.{rank}"] for rank in range(2)} for role in ("one", "other")]
        for replica in replicas:
            self.assertTrue(replica <= LEFT or replica <= RIGHT, hosts)
        self.assertEqual(len(set(hosts.values())), 6, hosts)
        log = (self.run_folder / "attempt-0" / "logs" / "one.0.0.log").read_text()
        self.assertRegex(log, r"^top\.(left|right)\.node\d\n$")
        named = [node["host"] for node in json.loads((self.run_folder / "attempt-0" / "nodes.json").read_text())]
        self.assertEqual([hosts["learner.0"], hosts["learner.1"]], named[:2])

    def test_what_fits_at_no_switch_is_refused_by_name(self):
        code, said = self.launch("--set", "roles.learner.pool=[train, one, other]", keep="keep_together: switch")
        self.assertEqual(code, 69, said)
        self.assertIn("'learner' must be within one switch (keep_together, ", said)
        self.assertRegex(said, r"and needs 6 nodes: in job \d+ no switch has more than 3 for it\n")
        self.assertEqual(self.events("process-started"), [])

    def test_slurm_is_asked_for_one_switch(self):
        topology = ["--set", "site.topology.slurm=tree"]
        rendered = self.cluster.run(NLAUNCH, "render", self.folder_file(3), "--site", SITE, *topology,
                                    "--runs-dir", self.folder / "runs")
        self.assertEqual(rendered.returncode, 0, rendered.stderr)
        self.assertIn("#SBATCH --switches=1\n", rendered.stdout)

    def folder_file(self, nodes):
        path = self.folder / "one.yaml"
        path.write_text(f"version: 1\nname: one\nnodes: {nodes}\ncpu_slots: true\nweight_sync: {{backend: gloo}}\nroles:\n"
                        f"  learner: {{kind: learner, per_node: 1, gpus: 1, command: [t], keep_together: switch}}\n")
        return path


if __name__ == "__main__":
    unittest.main()

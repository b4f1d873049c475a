"""The checks of several nodes: groups that cross them, a node that is not fit, and what is done about it."""
import json
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from cluster import SITE, Cluster
from runs import NLAUNCH, LooksAtRuns

NODES = 4
EXPERIMENT = """
version: 1
name: checked
nodes: 3
weight_sync: {backend: gloo}
cpu_slots: true
vars: {fail_on: none, while_there: /nowhere}
roles:
  learner:
    kind: learner
    per_node: 1
    gpus: 1
    rendezvous: torch
    command: [/bin/sh, -c, 'echo "on $SLURMD_NODENAME"; while [ -e ${vars.while_there} ]; do sleep 0.1; done;
      [ "$SLURMD_NODENAME" != ${vars.fail_on} ]']
  engine:
    kind: engine
    per_node: 1
    gpus: 1
    command: [sleep, "100"]
"""
# All of /dev but shm, in the mount namespace of one node.
WITHOUT_SHM = """set -e
mkdir {folder}
mount -t tmpfs none {folder}
for device in null zero random urandom; do
  touch "{folder}/$device"
  mount --bind "/dev/$device" "{folder}/$device"
done
mount --move {folder} /dev
"""

class Preflight(LooksAtRuns):
    """On hosts, so that each node has its own network and its own mounts."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="nlaunch-checked-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        (self.folder / "checked.yaml").write_text(EXPERIMENT)
        self.site = self.folder / "site.yaml"
        profile = pathlib.Path(SITE).read_text().replace(
            "  submit: [sbatch]", f"  submit: [sbatch]\n  bad_nodes: {{file: {self.folder}/bad, ttl: 1d}}")
        self.site.write_text(profile)

    @classmethod
    def setUpClass(cls):
        # Slurm itself would end the job of a node that died before the checks are over.
        cls.cluster = Cluster(nodes=NODES, gpus=0, hosts=True, conf="SlurmdTimeout=100\n")
        cls.cluster.up()
        cls.addClassCleanup(cls.cluster.down)

    def in_job(self, nodes, *command, **options):
        return self.cluster.run("salloc", "-Q", f"-N{nodes}", "--exclusive", NLAUNCH, *command, "--site", self.site,
                                "--set", "site.scheduler.directives.gpus-per-node=0", "--runs-dir", self.folder / "runs", **options)

    def run_it(self, nodes, *arguments):
        return self.in_job(nodes, "run", self.folder / "checked.yaml", *arguments)

    @property
    def run_folder(self):
        return (self.folder / "runs" / "checked" / "latest").resolve()

    def report(self, attempt=0):
        newest = max((self.folder / "runs").glob("*/2*"))
        return json.loads((newest / f"attempt-{attempt}" / "preflight.json").read_text())

    def rows(self, check, attempt=0):
        return [(row["status"], row["subject"], row["value"].split(":")[0], row.get("hosts"))
                for row in self.report(attempt)["rows"] if row["check"] == check]

    def spoil(self, node):
        """Takes /dev/shm away from a node, until it is started anew."""
        script = WITHOUT_SHM.format(folder=f"{self.folder}.dev")
        subprocess.run([*self.among_mounts_of(node), "bash", "-c", script], check=True)
        self.addCleanup(self.mend, node)

    def mend(self, node):
        self.cluster.kill_node(node)
        self.cluster.revive_node(node)
        pathlib.Path(f"{self.folder}.dev").rmdir()

    def among_mounts_of(self, node):
        """The begin of a command that sees the file systems of a node, from the root folder that its slurmd has."""
        slurmd = next(self.pids_of(node))
        return ["nsenter", f"--mount=/proc/{slurmd}/ns/mnt", f"--root=/proc/{slurmd}/root"]

    def pids_of(self, node):
        for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = path.read_bytes().split(b"\0")
            except OSError:
                continue
            if words[0].endswith(b"slurmd") and f"node{node}".encode() in words and str(self.cluster.folder).encode() in b" ".join(words):
                yield int(path.parent.name)

    # --- groups that cross nodes ---

    def test_the_nodes_of_an_allocation_are_checked_without_an_experiment(self):
        done = self.in_job(3, "preflight")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual([(status, group, value) for status, group, value, _ in self.rows("all_reduce")],
                         [("pass", f"node {n}", "2 ranks over gloo, all elements correct") for n in range(3)] +
                         [("pass", "learner world", "6 ranks over gloo, all elements correct")])
        self.assertRegex(done.stdout, r"pass  limits +all 3  open files")
        self.assertRegex(done.stdout, r"\npreflight pass: level standard in \d+\.\d s \(\d+ passed, \d+ skipped\)\n$")

    def test_the_groups_of_a_plan_cross_its_nodes(self):
        done = self.in_job(3, "preflight", self.folder / "checked.yaml")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([(op, group, value) for op in ("all_reduce", "broadcast") for _, group, value, _ in self.rows(op)],
                         [("all_reduce", f"node {n}", "2 ranks over gloo, all elements correct") for n in range(3)] +
                         [("all_reduce", "learner world", "3 ranks over gloo, all elements correct"),
                          ("broadcast", "weight sync", "4 ranks over gloo, all elements correct")])

    def test_fewer_nodes_than_the_plan_has_are_no_place_for_it(self):
        done = self.in_job(2, "preflight", self.folder / "checked.yaml")
        self.assertEqual(done.returncode, 65)
        self.assertRegex(done.stderr, r"^nlaunch preflight: job \d+ has 2 nodes, but the plan uses 3\n$")

    # --- a node that is not fit ---

    def test_a_node_that_fails_is_named_and_listed(self):
        self.spoil(1)
        done = self.run_it(3)
        self.assertEqual(done.returncode, 69, done.stderr)
        self.assertIn("fail limits /dev/shm on node1: does not exist (expected a tmpfs)\n     fix (admin): mount it\n", done.stderr)
        self.assertIn(f"nlaunch: node1 was added to {self.folder}/bad (limits /dev/shm: does not exist)\n", done.stderr)
        line = r"\d+\tnode1\tlimits /dev/shm: does not exist\t\w+\n"
        self.assertRegex((self.folder / "bad").read_text(), f"^{line}$")
        self.assertEqual(self.in_job(3, "preflight").returncode, 2)
        self.assertRegex((self.folder / "bad").read_text(), f"^({line}){{2}}$")

    def cut_off(self, node):
        self.cluster.cut_off(node)
        self.addCleanup(self.cluster.connect, node)

    def is_named(self, node):
        """By the search, as the only one of the four, and in the list of bad nodes."""
        host = f"node{node}"
        self.assertEqual([(status, subject, value.split(";")[0], hosts) for status, subject, value, hosts in self.rows("suspect")],
                         [("fail", host, "fails with 3 of 3 good partners", [host]),
                          ("pass", "learner world", "3 of 4 nodes are cleared", None)])
        self.assertRegex((self.folder / "bad").read_text(), rf"^\d+\t{host}\tsuspect {host}: fails with 3 of 3 good partners: .*\n$")

    def test_a_group_that_fails_is_taken_apart_and_the_bad_node_named(self):
        self.cut_off(2)
        done = self.in_job(4, "preflight", self.folder / "checked.yaml", "--set", "nodes=4", timeout=200)
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertEqual([row[:3] for row in self.rows("all_reduce")],
                         [("pass", f"node {n}", "2 ranks over gloo, all elements correct") for n in range(4)] +
                         [("fail", "learner world", "ranks 0, 1, 2, 3 arrived, but the communicator was not created")])
        self.is_named(2)
        self.assertIn("fix (user): the ranks must reach each other over TCP: see ip route, firewalls and GLOO_SOCKET_IFNAME\n", done.stdout)
        self.assertRegex(done.stdout, r"\nfail suspect node2: fails with 3 of 3 good partners: .* \(expected works like the others\)\n"
                                      r" +fix \(admin\): do not use the node; ")

    def test_the_ladder_ends_at_the_first_rung_that_fails(self):
        self.cut_off(1)
        done = self.in_job(4, "preflight", "--ladder", timeout=200)
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertEqual([row[:2] for row in self.rows("ladder")], [("pass", "one GPU"), ("pass", "one node"), ("fail", "two nodes")])
        self.assertTrue(self.value_of("one GPU").startswith("8 of 8 groups in "))
        self.assertTrue(self.value_of("one node").startswith("4 of 4 groups in "))
        self.assertRegex(self.value_of("two nodes"),
                         r"^all_reduce node 0 and node 1: ranks 0, 1, 2, 3 arrived, but the communicator was not created: .*; new at this rung: "
                         r"network cards, libfabric and NCCL's plugin, the switch between two nodes$")
        self.is_named(1)

    def value_of(self, rung):
        return next(row["value"] for row in self.report()["rows"] if (row["check"], row["subject"]) == ("ladder", rung))

    def test_the_ladder_ends_with_the_groups_of_the_plan(self):
        done = self.in_job(3, "preflight", "--ladder", timeout=200)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual([row[:2] for row in self.rows("ladder")],
                         [("pass", "one GPU"), ("pass", "one node"), ("pass", "two nodes"), ("pass", "all")])
        self.assertTrue(self.value_of("two nodes").startswith("1 of 1 groups in "), "the third node has no partner")

    def test_a_spare_takes_the_place_of_a_node_that_fails(self):
        self.spoil(1)
        done = self.run_it(4)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, r"nlaunch: node1 is excluded; 3 nodes of job \d+ remain for the 3 of the plan\n")
        self.assertEqual([row for row in self.rows("limits") if row[0] == "fail"], [("fail", "/dev/shm", "does not exist", ["node1"])])
        self.assertEqual(self.report(1)["verdict"], "pass")
        summary = json.loads((self.run_folder / "summary.json").read_text())
        self.assertEqual([p["host"] for p in summary["processes"][:3]], ["node0", "node2", "node3"])

    def test_spares_are_asked_for(self):
        done = self.cluster.run(NLAUNCH, "render", self.folder / "checked.yaml", "--site", self.site, "--spares", 1,
                                "--runs-dir", self.folder / "runs")
        self.assertIn("\n#SBATCH --nodes=4\n", done.stdout)
        self.assertNotIn("no-kill", done.stdout)
        done = self.cluster.run(NLAUNCH, "render", self.folder / "checked.yaml", "--site", self.site, "--spares", 1,
                                "--set", "restart.policy=on-failure", "--runs-dir", self.folder / "runs")
        self.assertIn("\n#SBATCH --no-kill\n", done.stdout)
        done = self.cluster.run(NLAUNCH, "plan", self.folder / "checked.yaml", "--site", "local", "--nodes", 1, "--spares", 1)
        self.assertEqual((done.returncode, done.stderr.splitlines()[0]),
                         (65, "error: --spares 1: site 'local' has no scheduler that could allocate spare nodes [plan.spares]"))

    def test_after_a_failure_another_node_is_tried(self):
        restart = ("--set", "restart.policy=on-failure", "--set", "restart.max=1", "--set", "restart.backoff=10ms")
        done = self.run_it(4, *restart, "--set", "vars.fail_on=node2")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("learner.2 (rank 2) on node2 exited with code 1", done.stderr)
        self.assertRegex(done.stderr, r"nlaunch: node2 is excluded; 3 nodes of job \d+ remain for the 3 of the plan\n")
        self.assertEqual(self.report(1)["level"], "quick")
        self.assertIn("on node3", (self.run_folder / "attempt-1" / "logs" / "learner.2.log").read_text())
        self.assertFalse((self.folder / "bad").exists(), "a program that failed is nobody's broken node")

    def test_after_a_node_died_another_one_is_tried(self):
        restart = ("--set", "restart.policy=on-failure", "--set", "restart.max=1", "--set", "restart.backoff=10ms")
        there = self.folder / "there"
        there.touch()
        process = self.start("run", self.folder / "checked.yaml", "--no-preflight", *restart, "--set", f"vars.while_there={there}",
                             options=("-N4", "--no-kill"))
        self.wait_until(lambda: self.events("process-started")[5:])
        self.cluster.kill_node(1)
        self.addCleanup(self.cluster.revive_node, 1)
        self.wait_until(lambda: self.events("node-lost"), 60)
        there.unlink()
        out, err = process.communicate(timeout=90)
        self.assertEqual(process.returncode, 0, err)
        self.assertIn("node node1 was lost", err)
        self.assertRegex(err, r"nlaunch: node1 is excluded; 3 nodes of job \d+ remain for the 3 of the plan\n")
        summary = json.loads((self.run_folder / "summary.json").read_text())
        self.assertEqual([p["host"] for p in summary["processes"][:3]], ["node0", "node2", "node3"])

    def test_a_node_that_does_not_share_the_file_system_is_named(self):
        on_node = self.among_mounts_of(2)
        subprocess.run([*on_node, "mount", "-t", "tmpfs", "none", self.folder], check=True)
        self.addCleanup(subprocess.run, [*on_node, "umount", self.folder], check=True)
        done = self.run_it(3)
        self.assertEqual(done.returncode, 65, done.stderr)
        self.assertRegex(done.stderr, r"^nlaunch: nlaunch agent on node2: error: cannot open '.*/attempt-0/step\.json': No such file or directory; "
                                      r"the run directory must be on a file system that all nodes share \(--runs-dir\)\n")

    # --- when the checks themselves are interrupted ---

    def start(self, *command, options=("-N3",)):
        process = self.cluster.start("salloc", "-Q", *options, "--exclusive", NLAUNCH, *command, "--site", self.site,
                                     "--set", "site.scheduler.directives.gpus-per-node=0", "--runs-dir", self.folder / "runs")
        self.addCleanup(process.communicate)
        return process

    def probes(self, node):
        return [pid for pid, name in self.cluster.processes(node).items() if name.startswith("nlaunch-probe")]

    def test_a_node_that_dies_while_it_is_checked_is_named(self):
        process = self.start("preflight")
        spec = "*/*/attempt-0/preflight/spec.json"  # written when all nodes have looked at themselves
        self.wait_until(lambda: list((self.folder / "runs").glob(spec)) and self.probes(2))
        self.cluster.kill_node(2)
        self.addCleanup(self.cluster.revive_node, 2)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 2, err)
        self.assertRegex(out, r"fail .* rank \d \(node2 CPU slot \d\).*its probe was lost: its agent does not answer")
        self.wait_until(lambda: not self.probes(0) and not self.probes(1))


if __name__ == "__main__":
    unittest.main()

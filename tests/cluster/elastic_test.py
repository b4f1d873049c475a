#!/usr/bin/env python3
"""Borrowed nodes: an elastic pool's nodes are jobs of their own, which join a run, are taken from it by a job of a higher partition, and come again."""
import json
import os
import signal
import unittest

from runs import NLAUNCH, SITE, WHEN, Runs

LEARNER = """
import os, pathlib, sys, time
addresses, enough = map(pathlib.Path, sys.argv[1:])
print("learner", os.getpid(), flush=True)
step = 0
while not enough.exists():
    print("step", step, len(addresses.read_text().split()), flush=True)
    step += 1
    time.sleep(0.1)
"""
EXPERIMENT = """
version: 1
name: fleet
pools:
  train: {nodes: 1}
  lent: {elastic: {min: 1, max: 3}, slurm: {partition: low}}
weight_sync: {backend: none}
roles:
  learner: {kind: learner, pool: train, command: [/usr/bin/python3, FOLDER/counter.py, "${role.engine.addrs_file}", FOLDER/enough], stop: {grace: 3s}}
  engine:
    kind: engine
    pool: lent
    per_node: 1
    ports: [http]
    command: [/usr/bin/python3, -m, http.server, --directory, FOLDER/empty, "${self.ports.http}"]
    ready: {http: "http://${self.host}:${self.ports.http}/", timeout: 20s}
    tolerate: {min: 0}
    stop: {grace: 3s}
start: [[engine], [learner]]
"""


class Elastic(Runs):
    conf = Runs.conf + """PreemptType=preempt/partition_prio
PreemptMode=CANCEL
PartitionName=low Nodes=ALL PriorityTier=1 PreemptMode=CANCEL
PartitionName=urgent Nodes=ALL PriorityTier=10 PreemptMode=CANCEL
"""

    def setUp(self):
        super().setUp()
        (self.folder / "counter.py").write_text(LEARNER)
        (self.folder / "fleet.yaml").write_text(EXPERIMENT.replace("FOLDER", str(self.folder)))

    def begun(self, *more):
        process = self.cluster.start("salloc", "-Q", "-N1", "-wnode0", "--exclusive", NLAUNCH, "run", self.folder / "fleet.yaml", "--site", SITE,
                                     "--runs-dir", self.folder / "runs", *(more or ("--no-preflight",)))
        self.addCleanup(process.communicate)
        self.addCleanup(self.cluster.end_all_jobs)
        self.wait_until(lambda: "step 3 " in self.log("learner.0"), 40)
        return process

    def begun_where_two_nodes_are_free(self):
        taken = self.cluster.start("srun", "-Q", "-wnode3", "--exclusive", "sleep", "300")
        self.addCleanup(taken.communicate)
        self.addCleanup(self.cluster.end_all_jobs)
        self.wait_until(lambda: self.cluster.state(3) == "allocated")
        return self.begun()

    def ends(self, process, seconds=40):
        """Well, with a learner that was one and the same, and with no job left."""
        (self.folder / "enough").touch()
        code, out, err = self.end_of(process, seconds)
        self.assertEqual(code, 0, err)
        lines = self.log("learner.0").splitlines()
        pids = {event["pid"] for event in self.events("process-started") if event["process"] == "learner.0"}
        self.assertEqual([f"learner {pid}" for pid in pids], lines[:1])
        self.assertEqual([int(line.split()[1]) for line in lines[1:]], list(range(len(lines) - 1)))
        self.nothing_is_left()
        self.wait_until(lambda: not self.jobs(), 10)
        return out, err

    def jobs(self):
        """Of borrowed nodes: their states, by id."""
        return dict(line.split() for line in self.cluster.run("squeue", "-ho", "%A %T", "-n", "fleet-lent").stdout.splitlines())

    def addresses(self):
        whole = self.log("learner.0").rpartition("\n")[0]  # the last line may not be finished yet
        return int(whole.splitlines()[-1].split()[-1])

    def borrowed(self):
        return json.loads((self.run_folder / "attempt-0" / "borrowed.json").read_text())

    def test_nodes_join_as_their_jobs_start(self):
        process = self.begun("--level", "quick")
        self.wait_until(lambda: self.addresses() == 3)
        self.assertEqual(sorted(self.jobs().values()), ["RUNNING"] * 3)
        self.assertEqual({name: one["on"] for name, one in self.borrowed().items()}.keys(), {"lent.0", "lent.1", "lent.2"})
        self.assertEqual({one["job"] for one in self.borrowed().values()}, self.jobs().keys())
        _, err = self.ends(process)
        self.assertRegex(err, r"nlaunch: node\d joins the run as lent\.\d\n")
        self.assertRegex(err, r"nlaunch: engine\.\d is ready on node\d\n")
        self.assertEqual(self.summary()["exit_code"], 0)
        self.assertEqual(self.borrowed(), {})

    def test_a_node_that_is_taken_away_comes_again(self):
        process = self.begun()
        self.wait_until(lambda: self.addresses() == 3)
        first = self.jobs()
        urgent = self.cluster.start("srun", "-Q", "-purgent", "-wnode2", "--exclusive", "sleep", "6")
        self.addCleanup(urgent.communicate)
        self.wait_until(lambda: self.addresses() == 2)
        lost = self.events("node-lost")
        self.assertEqual([(event["host"], event["why"]) for event in lost], [("node2", "its job received SIGTERM")])
        self.wait_until(lambda: self.addresses() == 3, 60)
        self.assertEqual(len(self.jobs().keys() - first.keys()), 1)
        self.assertEqual([event["host"] for event in self.events("node-back")].count("node2"), 2)
        _, err = self.ends(process)
        self.assertRegex(err, rf"node node2 was lost after {WHEN}: its job received SIGTERM; the run continues without engine\.\d, with 2 of 'engine'\n")

    def test_jobs_that_wait_in_the_queue_are_cancelled_with_the_run(self):
        process = self.begun_where_two_nodes_are_free()
        self.wait_until(lambda: self.addresses() == 2)
        self.assertEqual(sorted(self.jobs().values()), ["PENDING", "RUNNING", "RUNNING"])
        self.ends(process)

    def test_a_job_that_ends_in_the_queue_is_asked_for_again(self):
        process = self.begun_where_two_nodes_are_free()
        self.wait_until(lambda: "PENDING" in self.jobs().values())
        job = next(job for job, state in self.jobs().items() if state == "PENDING")
        self.cluster.run("scancel", job)
        self.wait_until(lambda: self.events("trouble"), 60)
        self.wait_until(lambda: "PENDING" in self.jobs().values(), 20)
        _, err = self.ends(process)
        self.assertRegex(err, rf"no node could be borrowed for lent\.\d: job {job} ended before its agent connected\n")

    def test_without_any_the_run_goes_on_and_says_why(self):
        process = self.begun("--no-preflight", "--set", "pools.lent.elastic.min=0", "--set", "pools.lent.slurm.partition=nowhere")
        self.wait_until(lambda: len(self.events("trouble")) >= 3)
        self.assertEqual(self.addresses(), 0)
        _, err = self.ends(process)
        self.assertRegex(err, r"no node could be borrowed for lent\.0: exited with code 1: sbatch: error: [^\n]*invalid partition specified: nowhere\n|"
                              r"no node could be borrowed for lent\.0: exited with code 1: sbatch: error: Batch job submission failed: Invalid partition name specified\n")

    def test_they_outlive_the_leader(self):
        process = self.begun("--no-preflight", "--set", "leader_grace=30s")
        self.wait_until(lambda: self.addresses() == 3)
        jobs = self.jobs()
        pids = {event["process"]: event["pid"] for event in self.events("process-started")}
        os.kill(self.events("attempt-started")[-1]["supervisor"], signal.SIGKILL)
        self.wait_until(lambda: len(self.events("node-back")) == 6, 30)
        self.wait_until(lambda: len(self.events("process-started")) == 8, 30)
        self.assertEqual({event["process"]: event["pid"] for event in self.events("process-started")[4:]}, pids)
        self.assertEqual(self.jobs(), jobs)
        self.ends(process)


del Runs  # which has no tests of its own

if __name__ == "__main__":
    unittest.main()

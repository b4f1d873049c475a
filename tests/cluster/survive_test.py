#!/usr/bin/env python3
"""A run that outlives nodes: its engines' agents and nodes are lost, one after the other, and the learner counts its steps."""
import os
import signal
import unittest

from runs import NLAUNCH, NODES, SITE, WHEN, Runs

LEARNER = """
import os, sys, time
print("learner", os.getpid(), flush=True)
for step in range(int(sys.argv[1])):
    print("step", step, flush=True)
    time.sleep(0.1)
"""
EXPERIMENT = """
version: 1
name: fleet
pools:
  train: {nodes: 1}
  serve: {nodes: 3}
weight_sync: {backend: none}
vars: {steps: "60"}
roles:
  learner: {kind: learner, pool: train, command: [/usr/bin/python3, FOLDER/counter.py, "${vars.steps}"], stop: {grace: 3s}}
  engine:
    kind: engine
    pool: serve
    per_node: 1
    ports: [http]
    command: [/usr/bin/python3, -m, http.server, --directory, FOLDER/empty, "${self.ports.http}"]
    ready: {http: "http://${self.host}:${self.ports.http}/", timeout: 20s}
    tolerate: {min: 1}
    stop: {grace: 3s}
start: [[engine], [learner]]
"""


class Survive(Runs):
    def setUp(self):
        super().setUp()
        (self.folder / "counter.py").write_text(LEARNER)
        (self.folder / "fleet.yaml").write_text(EXPERIMENT.replace("FOLDER", str(self.folder)))

    def begun(self, steps):
        process = self.cluster.start("salloc", "-Q", "--no-kill", f"-N{NODES}", NLAUNCH, "run", self.folder / "fleet.yaml", "--site", SITE, "--no-preflight",
                                     "--runs-dir", self.folder / "runs", "--set", f"vars.steps={steps}")
        self.addCleanup(process.communicate)
        self.addCleanup(self.cluster.end_all_jobs)
        self.wait_until(lambda: "step 3\n" in self.log("learner.0"))
        return process

    def counted_all(self, steps):
        pid = next(event["pid"] for event in self.events("process-started") if event["process"] == "learner.0")
        self.assertEqual(self.log("learner.0"), f"learner {pid}\n" + "".join(f"step {step}\n" for step in range(steps)))

    def lost(self):
        return {process["name"]: process["lost"] for process in self.summary()["processes"] if process["lost"]}

    def test_an_agent_and_then_a_node(self):
        process = self.begun(150)
        os.kill(self.agents()["node1"][0], signal.SIGKILL)
        self.wait_until(lambda: len(self.events("process-lost")) == 1)
        self.cluster.kill_node(3)
        self.addCleanup(self.cluster.revive_node, 3)
        code, _, err = self.end_of(process, 60)
        self.assertEqual(code, 0, err)
        self.counted_all(150)
        self.assertEqual(sorted(self.lost()), ["engine.0", "engine.2"])
        for node, engine, left in ((1, 0, 2), (3, 2, 1)):
            self.assertRegex(err, rf"\nnode node{node} was lost after {WHEN}: [^\n]*; the run goes on without engine\.{engine}, with {left} of 'engine'\n")
        self.assertEqual(self.summary()["outcome"], "finished")
        self.nothing_is_left()

    def test_the_node_of_the_learner_ends_the_run(self):
        process = self.begun(600)
        os.kill(self.agents()["node0"][0], signal.SIGKILL)
        self.is_lost(process, rf"node node0 was lost after {WHEN}: the connection to its agent has ended\n")

    def test_one_engine_too_few_ends_the_run(self):
        process = self.begun(600)
        for number, node in enumerate(("node1", "node2")):
            os.kill(self.agents()[node][0], signal.SIGKILL)
            self.wait_until(lambda: len(self.events("process-lost")) == number + 1)
        os.kill(self.agents()["node3"][0], signal.SIGKILL)
        self.is_lost(process, rf"node node3 was lost after {WHEN}: the connection to its agent has ended\n")
        self.assertEqual(sorted(self.lost()), ["engine.0", "engine.1"])


del Runs  # which has no tests of its own

if __name__ == "__main__":
    unittest.main()

#!/usr/bin/env python3
"""A run that outlives nodes: its engines' agents and nodes are lost and come back, and the learner counts its steps."""
import json
import os
import signal
import unittest

from runs import COUNTER, NLAUNCH, NODES, OUTLIVING, SITE, WHEN, Runs


class Survive(Runs):
    def setUp(self):
        super().setUp()
        (self.folder / "counter.py").write_text(COUNTER)
        (self.folder / "fleet.yaml").write_text(OUTLIVING.replace("FOLDER", str(self.folder)))

    def begun(self, steps, *more):
        options = more or ("--no-preflight",)
        process = self.cluster.start("salloc", "-Q", "--no-kill", f"-N{NODES}", NLAUNCH, "run", self.folder / "fleet.yaml", "--site", SITE,
                                     "--runs-dir", self.folder / "runs", "--set", f"vars.steps={steps}", *options)
        self.addCleanup(process.communicate)
        self.addCleanup(self.cluster.end_all_jobs)
        self.wait_until(lambda: "step 3\n" in self.log("learner.0"), 40)
        return process

    def counted_all(self, steps):
        pid = next(event["pid"] for event in self.events("process-started") if event["process"] == "learner.0")
        self.assertEqual(self.log("learner.0"), f"learner {pid}\n" + "".join(f"step {step}\n" for step in range(steps)))

    def lost(self):
        return {process["name"]: process["lost"] for process in self.summary()["processes"] if process["lost"]}

    def back(self):
        return [event["process"] for event in self.events("process-back")]

    def starts_of(self, process):
        return [event["host"] for event in self.events("process-started") if event["process"] == process]

    def test_an_agent_comes_back_on_its_node(self):
        process = self.begun(100)
        os.kill(self.agents()["node1"][0], signal.SIGKILL)
        self.wait_until(lambda: self.back() == ["engine.0"])
        code, _, err = self.end_of(process, 60)
        self.assertEqual(code, 0, err)
        self.counted_all(100)
        self.assertEqual((self.lost(), self.starts_of("engine.0"), self.starts_of("engine.1")), ({}, ["node1", "node1"], ["node2"]))
        self.assertRegex(err, rf"\nnode node1 was lost after {WHEN}: [^\n]*; the run continues without engine\.0, with 2 of 'engine'\n")
        self.assertRegex(err, rf"nlaunch: node1 is back\n(.*\n)*nlaunch: engine\.0 is back on node1, {WHEN} after it was lost\n")
        self.nothing_is_left()

    def test_a_spare_takes_the_place_after_a_preflight(self):
        (self.folder / "fleet.yaml").write_text((self.folder / "fleet.yaml").read_text().replace("serve: {nodes: 3}", "serve: {nodes: 2}"))
        process = self.begun(150, "--level", "quick")
        self.cluster.kill_node(2)
        self.addCleanup(self.cluster.revive_node, 2)
        self.wait_until(lambda: self.back() == ["engine.1"], 30)
        code, _, err = self.end_of(process, 60)
        self.assertEqual(code, 0, err)
        self.counted_all(150)
        self.assertEqual((self.lost(), self.starts_of("engine.1")), ({}, ["node2", "node3"]))
        self.assertIn("nlaunch: node3 replaces node2\n", err)
        at = [address["host"] for address in json.loads((self.run_folder / "attempt-0" / "nodes.json").read_text())]
        self.assertEqual(at, ["node0", "node1", "node3"])
        self.nothing_is_left()

    def test_a_node_comes_back_when_it_is_well_again(self):
        process = self.begun(400)
        self.cluster.kill_node(3)
        try:
            self.wait_until(lambda: self.events("trouble"), 30)  # it could not be had
        finally:
            self.cluster.revive_node(3)
        self.wait_until(lambda: self.back() == ["engine.2"], 60)
        code, _, err = self.end_of(process, 90)
        self.assertEqual(code, 0, err)
        self.counted_all(400)
        self.assertIn("node3 could not replace node 3 of the plan: srun exited with code ", err)
        self.nothing_is_left()

    def test_a_drained_node_is_left_and_a_spare_takes_its_place(self):
        (self.folder / "fleet.yaml").write_text((self.folder / "fleet.yaml").read_text().replace("serve: {nodes: 3}", "serve: {nodes: 2}"))
        process = self.begun(100)
        drained = self.nlaunch("drain", "fleet", "node1")
        self.assertEqual((drained.returncode, drained.stdout), (0, f"run {self.run_folder.name}: draining node1: stopping engine.0\n"), drained.stderr)
        self.wait_until(lambda: self.starts_of("engine.0") == ["node1", "node3"])
        self.assertNotIn("node1", self.agents())
        self.assertEqual(self.nlaunch("drain", "fleet", "node0").stderr, "nlaunch drain: nlaunch itself runs on node0, the first node of the run\n")
        code, _, err = self.end_of(process, 60)
        self.assertEqual(code, 0, err)
        self.counted_all(100)
        self.assertIn("nlaunch: node3 replaces node1\n", err)
        engines = [(self.run_folder / "attempt-0" / "addrs" / "engine").read_text().split(), [event["removed"] for event in self.events("addresses")]]
        self.assertEqual((len(engines[0]), [len(one) for one in engines[1]]), (2, [1, 0]))
        self.nothing_is_left()

    def update(self, steps):
        return self.nlaunch("update", "fleet", self.folder / "fleet.yaml", "--site", SITE, "--set", f"vars.steps={steps}", "--yes")

    def test_engines_get_other_settings_on_all_nodes(self):
        process = self.begun(200)
        experiment = (self.folder / "fleet.yaml").read_text()
        (self.folder / "fleet.yaml").write_text(experiment.replace("FOLDER/empty".replace("FOLDER", str(self.folder)), f"{self.folder}/other"))
        (self.folder / "other").mkdir()
        updated = self.update(200)
        self.assertEqual(updated.returncode, 0, updated.stderr)
        self.assertIn(f"engine\n  command\n    - /usr/bin/python3 -m http.server --directory {self.folder}/empty ", updated.stdout)
        self.wait_until(lambda: len(self.events("process-ready")) == 6)
        self.assertEqual([self.starts_of(f"engine.{n}") for n in range(3)], [[f"node{n + 1}"] * 2 for n in range(3)])
        # An agent that comes later has the same plan.
        os.kill(self.agents()["node2"][0], signal.SIGKILL)
        self.wait_until(lambda: self.back() == ["engine.1"])
        bound = json.loads((self.run_folder / "attempt-0" / "bound.node2.json").read_text())
        self.assertIn(f"{self.folder}/other", json.dumps(bound))
        code, _, err = self.end_of(process, 60)
        self.assertEqual(code, 0, err)
        self.counted_all(200)
        self.nothing_is_left()

    def test_an_update_that_one_node_cannot_have_changes_none(self):
        process = self.begun(100)
        program = self.folder / "serve"
        program.write_text("#!/bin/sh\nexec /usr/bin/python3 \"$@\"\n")
        experiment = (self.folder / "fleet.yaml").read_text()
        (self.folder / "fleet.yaml").write_text(experiment.replace("command: [/usr/bin/python3, -m", f"command: [{program}, -m"))
        refused = self.update(100)
        self.assertEqual(refused.returncode, 65)
        self.assertRegex(refused.stderr, rf"^nlaunch update: node\d: engine: '{program}' is not executable[^\n]*\n$")
        self.assertEqual(len(self.events("process-started")), 4)
        self.assertNotIn("serve", json.loads((self.run_folder / "plan.json").read_text())["roles"][1]["command"][0])
        code, _, err = self.end_of(process, 60)
        self.assertEqual(code, 0, err)
        self.counted_all(100)

    def test_the_node_of_the_learner_ends_the_run(self):
        process = self.begun(600)
        os.kill(self.agents()["node0"][0], signal.SIGKILL)
        self.is_lost(process, rf"node node0 was lost after {WHEN}: the connection to its agent was closed\n")

    def test_one_engine_too_few_ends_the_run(self):
        process = self.begun(600)
        for _, (pid, _) in sorted(self.agents().items())[1:]:
            os.kill(pid, signal.SIGKILL)
        self.is_lost(process, rf"node node\d was lost after {WHEN}: the connection to its agent was closed\n")
        self.assertEqual(len(self.lost()), 2)


del Runs  # which has no tests of its own

if __name__ == "__main__":
    unittest.main()

#!/usr/bin/env python3
"""A run whose agents connect through each other: eight nodes, a fan-out of two. Nodes 0 and 1 connect to nlaunch, 2 and 3 to
node 0, 4 and 5 to node 1, 6 and 7 to node 2."""
import json
import os
import pathlib
import signal
import unittest

from runs import COUNTER, NLAUNCH, OUTLIVING, SITE, WHEN, Runs


class Tree(Runs):
    nodes = 8
    hosts = True  # whose names lead to them

    def setUp(self):
        super().setUp()
        self.site = self.folder / "site.yaml"
        self.site.write_text(SITE.read_text().replace("kind: slurm", "kind: slurm\n  fan_out: 2"))
        experiment = self.folder / "fleet.yaml"
        experiment.write_text(experiment.read_text().replace("nodes: 4", "nodes: 8").replace("count: 4", "count: 8"))

    def command(self, *arguments):
        return [self.site if word == SITE else word for word in super().command(*arguments)]

    def connections(self):
        """How many connections the leader has at the port of its agents, by the file that the agents read."""
        port = json.loads((self.run_folder / "attempt-0" / "step.json").read_text())["port"]
        lines = pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]
        established = "01"
        return sum(words[1].endswith(f":{port:04X}") and words[3] == established for words in map(str.split, lines))

    def test_all_take_part_and_two_connect_to_nlaunch(self):
        process = self.start()
        self.assertEqual(self.connections(), 4, "two agents, with two connections each")
        step = json.loads((self.run_folder / "attempt-0" / "step.json").read_text())
        self.assertEqual((step["fan_out"], step["relays"]), (2, ["node0", "node1", "node2"]))
        stopped = self.nlaunch("stop", self.run_folder)
        self.assertEqual(stopped.returncode, 0, stopped.stderr)
        self.end_of(process)
        self.nothing_is_left()

    def test_all_finish_and_are_heard(self):
        done = self.run_it()
        self.assertEqual(done.returncode, 0, done.stderr)
        for rank in range(8):
            self.assertIn(f"rank {rank} of 8 on node{rank} local 0", done.stdout)
        self.assertNotIn("another way", (self.run_folder / "attempt-0" / "srun.log").read_text())
        self.nothing_is_left()

    def test_a_learner_that_fails_on_a_node_below_others(self):
        done = self.run_it("--set", "vars.fail_rank=7")
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertRegex(self.summary()["sentence"], rf"^learner\.7 \(rank 7\) on node7 exited with code 3 after {WHEN}")
        self.nothing_is_left()

    def test_with_a_preflight(self):
        command = [word for word in self.command("--level", "quick") if word != "--no-preflight"]
        done = self.cluster.run(*command)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.nothing_is_left()

    def outliving(self, steps, grace=""):
        """A run of one learner, on node 0, that continues while engines are lost."""
        (self.folder / "counter.py").write_text(COUNTER)
        text = OUTLIVING.replace("FOLDER", str(self.folder)).replace("serve: {nodes: 3}", "serve: {nodes: 7}")
        (self.folder / "fleet.yaml").write_text(text + grace)
        process = self.cluster.start("salloc", "-Q", "--no-kill", "-N8", NLAUNCH, "run", self.folder / "fleet.yaml", "--site", self.site,
                                     "--no-preflight", "--runs-dir", self.folder / "runs", "--set", f"vars.steps={steps}")
        self.addCleanup(process.communicate)
        self.addCleanup(self.cluster.end_all_jobs)
        self.wait_until(lambda: "step 3\n" in self.log("learner.0"), 40)
        return process

    def counted_all(self, steps):
        pids = [event["pid"] for event in self.events("process-started") if event["process"] == "learner.0"]
        self.assertEqual(self.log("learner.0"), f"learner {pids[0]}\n" + "".join(f"step {step}\n" for step in range(steps)))

    def lost(self):
        return [event["host"] for event in self.events("node-lost")]

    def starts(self):
        """How often each engine started, by the node that it is on."""
        started = {(event["process"], event["pid"]) for event in self.events("process-started") if event["process"].startswith("engine")}
        engines = [name for name, _ in started]
        return {int(name.split(".")[1]) + 1: engines.count(name) for name in engines}

    def test_the_nodes_below_a_lost_relay_stay(self):
        process = self.outliving(150)
        os.kill(self.agents()["node1"][0], signal.SIGKILL)
        self.wait_until(lambda: [event["process"] for event in self.events("process-back")] == ["engine.0"])
        # What came back still hears and is heard.
        drained = self.nlaunch("drain", "fleet", "node5")
        self.assertEqual(drained.returncode, 0, drained.stderr)
        self.wait_until(lambda: "node5" not in self.agents())
        code, _, err = self.end_of(process, 60)
        self.assertEqual(code, 0, err)
        self.counted_all(150)
        self.assertEqual(self.lost(), ["node1"])
        self.assertEqual({node: count for node, count in self.starts().items() if node != 5}, {1: 2, 2: 1, 3: 1, 4: 1, 6: 1, 7: 1})
        log = (self.run_folder / "attempt-0" / "srun.log").read_text() + "".join(
            path.read_text() for path in (self.run_folder / "attempt-0").glob("srun*.log"))
        for node in (4, 5):
            self.assertIn(f"nlaunch agent on node{node}: the connection to nlaunch was closed, through node1; connecting another way\n", log)
        self.nothing_is_left()

    def test_a_relay_below_a_relay_is_lost_and_then_the_one_above(self):
        process = self.outliving(250)
        os.kill(self.agents()["node2"][0], signal.SIGKILL)
        self.wait_until(lambda: "engine.1" in [event["process"] for event in self.events("process-back")])
        for node in ("node6", "node7", "node3"):  # all of them are below node 0 now, or were before
            self.assertIn(node, self.agents())
        for node in ("node6", "node1"):
            os.kill(self.agents()[node][0], signal.SIGKILL)
        self.wait_until(lambda: sorted(event["process"] for event in self.events("process-back")) == ["engine.0", "engine.1", "engine.5"])
        code, _, err = self.end_of(process, 60)
        self.assertEqual(code, 0, err)
        self.counted_all(250)
        self.assertEqual(sorted(self.lost()), ["node1", "node2", "node6"])
        self.assertEqual(self.starts(), {1: 2, 2: 2, 3: 1, 4: 1, 5: 1, 6: 2, 7: 1})
        self.nothing_is_left()

    def test_a_relay_is_drained(self):
        process = self.outliving(150)
        drained = self.nlaunch("drain", "fleet", "node1")
        self.assertEqual(drained.returncode, 0, drained.stderr)
        self.wait_until(lambda: "node1" not in self.agents())
        code, _, err = self.end_of(process, 60)
        self.assertEqual(code, 0, err)
        self.counted_all(150)
        self.assertEqual({node: count for node, count in self.starts().items() if node != 1}, {2: 1, 3: 1, 4: 1, 5: 1, 6: 1, 7: 1})
        self.nothing_is_left()

    def test_the_machine_of_a_relay_dies(self):
        process = self.outliving(800)
        self.cluster.kill_node(1)
        self.addCleanup(self.cluster.revive_node, 1)
        self.wait_until(lambda: self.lost() == ["node1"], 45)
        code, _, err = self.end_of(process, 120)
        self.assertEqual(code, 0, err)
        self.counted_all(800)
        self.assertEqual(self.lost(), ["node1"])
        self.assertEqual({node: count for node, count in self.starts().items() if node != 1}, {2: 1, 3: 1, 4: 1, 5: 1, 6: 1, 7: 1})
        self.nothing_is_left()

    def test_another_nlaunch_takes_the_run_over(self):
        process = self.outliving(250, "leader_grace: 20s\n")
        os.kill(self.events("attempt-started")[-1]["supervisor"], signal.SIGKILL)
        self.wait_until(lambda: len(self.events("taken-over")) == 1, 40)
        code, _, err = self.end_of(process, 60)
        self.assertEqual(code, 0, err)
        self.counted_all(250)
        self.assertEqual((self.lost(), set(self.starts().values())), ([], {1}))
        self.nothing_is_left()

    def test_the_job_is_cancelled(self):
        process = self.start()
        self.cluster.run("scancel", "--user=root")
        self.end_of(process)
        self.assertIn("SIGTERM", self.summary()["sentence"])
        self.nothing_is_left()


if __name__ == "__main__":
    unittest.main()

"""A run over nodes that stalls: evidence of every node, the culprit, and the end."""
import json
import time
import unittest

from runs import NODES, Runs

# A star around rank 0 over TCP, in steps. In the third, one rank sleeps.
LEARNER = """
import os, socket, sys, time
rank, size, bad = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), int(sys.argv[1])
address = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
if rank == 0:
    server = socket.create_server(("", address[1]), backlog=size)
    peers = [server.accept()[0] for _ in range(size - 1)]
else:
    for _ in range(400):
        try:
            peers = [socket.create_connection(address, timeout=30)]; break
        except OSError: time.sleep(0.05)
    peers[0].settimeout(None)
for step in range(1, 6):
    if rank == bad and step == 3:
        time.sleep(1000)
    if rank == 0:
        for peer in peers: assert peer.recv(1) == b"x"
        for peer in peers: peer.sendall(b"y")
    else:
        peers[0].sendall(b"x")
        assert peers[0].recv(1) == b"y"
    print("step", step, flush=True)
"""
EXPERIMENT = """
version: 1
name: fleet
nodes: 4
weight_sync: {backend: gloo}
vars: {bad: "-1"}
roles:
  learner:
    kind: learner
    per_node: 1
    rendezvous: torch
    command: [/usr/bin/python3, FOLDER/watched.py, "${vars.bad}"]
    stop: {grace: 1s}
watch: {progress: '^step (\\d+)', stall: 4s, on_stall: abort}
"""


class Watch(Runs):
    hosts = True

    def setUp(self):
        super().setUp()
        (self.folder / "watched.py").write_text(LEARNER)
        (self.folder / "fleet.yaml").write_text(EXPERIMENT.replace("FOLDER", str(self.folder)))

    def test_a_run_that_gets_on_is_left_alone(self):
        done = self.run_it()
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(self.summary()["watch"]["by_process"], {f"learner.{i}": 5 for i in range(NODES)})

    def test_the_rank_that_sleeps_is_named_from_the_evidence_of_all_nodes(self):
        done = self.run_it("--set", "vars.bad=2")
        self.assertEqual(done.returncode, 124, done.stdout + done.stderr)
        finding = self.summary()["watch"]["findings"][-1]
        self.assertEqual(finding["kind"], "stalled")
        self.assertTrue(finding["verdict"]["sure"], finding)
        self.assertEqual([culprit["process"] for culprit in finding["verdict"]["culprits"]], ["learner.2"])
        evidence, = (self.run_folder / "attempt-0/evidence").iterdir()
        self.has_all_nodes(evidence)

    def has_all_nodes(self, evidence):
        hosts = sorted(path.name for path in evidence.iterdir() if path.is_dir())
        self.assertEqual(len(hosts), NODES, hosts)
        for host in hosts:
            self.assertTrue(json.loads((evidence / host / "collected.json").read_text())["processes"])

    def test_evidence_of_all_nodes_is_had_from_any_host(self):
        process = self.cluster.start(*self.command("--set", "vars.bad=2", "--set", "watch.on_stall=warn"))
        self.addCleanup(process.communicate)
        self.addCleanup(self.cluster.end_all_jobs)
        self.wait_until(lambda: "step 2" in self.log("learner.2"))
        time.sleep(1)
        asked = self.nlaunch("evidence", "fleet", "--json")
        self.assertEqual(asked.returncode, 0, asked.stderr)
        verdict = json.loads(asked.stdout)
        self.assertEqual([culprit["process"] for culprit in verdict["culprits"]], ["learner.2"], verdict)
        self.assertEqual(asked.stderr, "")
        evidence, = (self.run_folder / "attempt-0/evidence").iterdir()
        self.has_all_nodes(evidence)


if __name__ == "__main__":
    unittest.main()

"""A run over nodes that stalls: evidence of every node, the culprit, and the end."""
import json
import time
import unittest

from runs import NODES, SITE, Runs

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


# Steps whose times are said, longer on node1; the last rank fails after twelve.
TIMED = """
import os, sys, time
for step in range(12):
    print("step", step, "took", 1.5 if os.environ["SLURMD_NODENAME"] == "node1" else 1.0, flush=True)
    time.sleep(0.3)
time.sleep(1)
sys.exit(3 if os.environ["RANK"] == "0" else 0)
"""
SLOW = """
version: 1
name: fleet
nodes: 3
weight_sync: {backend: gloo}
roles:
  learner: {kind: learner, per_node: 1, rendezvous: torch, command: [/usr/bin/python3, FOLDER/timed.py], stop: {grace: 1s}}
watch: {progress: '^step (?P<step>\\d+) took (?P<seconds>[0-9.]+)'}
restart: {policy: on-failure, max: 3, backoff: 100ms}
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

    def test_a_node_that_is_slow_in_three_attempts_is_on_the_list(self):
        (self.folder / "timed.py").write_text(TIMED)
        (self.folder / "site.yaml").write_text(f"version: 1\nname: ours\nextends: {SITE}\nscheduler: {{bad_nodes: {{file: bad, ttl: 1h}}}}\n")
        (self.folder / "fleet.yaml").write_text(SLOW.replace("FOLDER", str(self.folder)))
        command = [self.folder / "site.yaml" if word == SITE else word for word in self.command()]
        done = self.cluster.run(*command)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertEqual([event["host"] for event in self.events("slowest-node")], ["node1"] * 4)
        reason = r"its steps were the slowest in 3 of the last 3 attempts: 1\.50 s against 1\.00 s on the other nodes in the newest"
        self.assertRegex(done.stderr, rf"nlaunch: node1: {reason}\n(.*\n)*?nlaunch: node1 was added to {self.folder}/bad \({reason}\)\n")
        self.assertRegex((self.folder / "bad").read_text(), rf"^\d+\tnode1\t{reason}\t\w+\n$")

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

"""A heterogeneous job of three pools: each with its own nodes, an engine of two nodes, colocated roles, a task before all."""
import json
import os
import pathlib
import re
import shutil
import signal
import tempfile
import unittest

from cluster import SITE, Cluster
from runs import LEARNER, NLAUNCH, LooksAtRuns

TRAIN, ROLLOUT, CPU = 4, 2, 1
EXPERIMENT = """
version: 1
name: pools
pools:
  train: {nodes: 4}
  rollout: {nodes: 2, slurm: {gpus-per-node: 2}}
  cpu: {nodes: 1, gpus: 0}
cpu_slots: true
weight_sync: {backend: gloo, order: [engine, learner.0], master: engine.0}
vars: {seconds: "0.2"}
roles:
  prepare:
    kind: task
    pool: cpu
    command: [bash, -c, "echo prepared on $SLURMD_NODENAME; echo done > FOLDER/prepared"]
  learner:
    kind: learner
    pool: train
    per_node: 1
    gpus: 1
    gpu_memory: 0.5
    rendezvous: torch
    command: [/usr/bin/python3, FOLDER/learner.py, "${vars.seconds}", "-1"]
    stop: {grace: 3s}
  judge:
    kind: engine
    pool: train
    per_node: 1
    gpus: 1
    share_gpus_with: learner
    gpu_memory: 0.4
    command: [sleep, "1000"]
  engine:
    kind: engine
    pool: rollout
    count: 1
    replica: {nodes: 2}
    gpus: 1
    ports: [http, meet]
    command:
    - bash
    - -c
    - |
      cat FOLDER/prepared
      echo "rank ${self.replica.rank} of ${self.replica.size} of replica ${self.replica.index} in ${self.pool}"
      echo "meets at ${self.replica.host}:${self.replica.ports.meet} of ${pool.rollout.nodes} on $SLURMD_NODENAME"
      [[ ${self.replica.rank} = 0 ]] || exec sleep 1000
      exec /usr/bin/python3 -m http.server --directory FOLDER/empty ${self.ports.http}
    ready: {http: "http://${self.host}:${self.ports.http}/", timeout: 20s}
    restart: {policy: on-failure, max: 2, backoff: 100ms}
    stop: {grace: 3s}
  reward:
    kind: service
    pool: cpu
    per: node
    command: [bash, -c, "echo asks ${role.engine.addrs} on $SLURMD_NODENAME; exec sleep 1000"]
start: [[prepare], [engine, judge, reward], [learner]]
"""


class Pools(LooksAtRuns):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(nodes=TRAIN + ROLLOUT + CPU, gpus=4, conf="SlurmdTimeout=5\nMessageTimeout=3\n")
        cls.cluster.up()
        cls.addClassCleanup(cls.cluster.down)

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="nlaunch-pools-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.addCleanup(self.cluster.end_all_jobs)
        (self.folder / "learner.py").write_text(LEARNER)
        (self.folder / "empty").mkdir()
        (self.folder / "pools.yaml").write_text(EXPERIMENT.replace("FOLDER", str(self.folder)))

    @property
    def run_folder(self):
        return (self.folder / "runs" / "pools" / "latest").resolve()

    def command(self, *arguments):
        return [NLAUNCH, "run", self.folder / "pools.yaml", "--site", SITE, "--runs-dir", self.folder / "runs", *arguments]

    def log(self, process):
        return (self.run_folder / "attempt-0" / "logs" / f"{process}.log").read_text()

    def pid_of(self, process):
        return [event["pid"] for event in self.events("process-started") if event["process"] == process]

    def test_the_job_has_a_component_for_each_pool(self):
        done = self.cluster.run(*self.command())
        said = done.stdout + done.stderr + "".join(log.read_text() for log in self.folder.glob("runs/pools/slurm-*.log"))
        self.assertEqual(done.returncode, 0, said)
        hosts = {event["process"]: event["host"] for event in self.events("process-started")}
        nodes = {name: int(host.removeprefix("node")) for name, host in hosts.items()}
        self.assertEqual([nodes[f"learner.{i}"] for i in range(TRAIN)], [nodes[f"judge.{i}"] for i in range(TRAIN)])
        of_train = {nodes[f"learner.{i}"] for i in range(TRAIN)}
        of_rollout = {nodes["engine.0.0"], nodes["engine.0.1"]}
        of_cpu = {nodes["prepare.0"], nodes["reward.0"]}
        self.assertEqual((len(of_train), len(of_rollout), len(of_cpu)), (TRAIN, ROLLOUT, CPU))
        self.assertEqual(len(of_train | of_rollout | of_cpu), TRAIN + ROLLOUT + CPU)
        for rank in range(2):
            self.assertRegex(self.log(f"engine.0.{rank}"),
                             rf"done\nrank {rank} of 2 of replica 0 in rollout\nmeets at \S+:\d+ of 2 on node\d\n")
        first, second = (re.search(r"meets at (\S+)", self.log(f"engine.0.{rank}")).group(1) for rank in range(2))
        self.assertEqual(first, second)
        self.assertRegex(self.log("reward.0"), r"^asks [\d.]+:\d+ on node\d\n")
        summary = json.loads((self.run_folder / "summary.json").read_text())
        self.assertEqual(summary["outcome"], "finished")
        all_rows = json.loads((self.run_folder / "attempt-0" / "preflight.json").read_text())["rows"]
        for group in ("learner world", "engine.0 tensor parallel", "weight sync"):
            rows = [row for row in all_rows if row["subject"] == group]
            self.assertIn("pass", {row["status"] for row in rows}, rows)
            self.assertEqual({row["status"] for row in rows} - {"pass", "skip"}, set(), rows)

    def test_a_replica_starts_again_as_one(self):
        done = self.cluster.run(*self.command("--detach", "--no-preflight", "--set", "vars.seconds=20"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.wait_until(lambda: len(self.pid_of("learner.3")) == 1 and "all are here" in self.log("learner.3"), 40)
        learners = [self.pid_of(f"learner.{rank}") for rank in range(TRAIN)]
        os.kill(self.pid_of("engine.0.1")[-1], signal.SIGKILL)
        self.wait_until(lambda: len(self.pid_of("engine.0.0")) == 2 and len(self.pid_of("engine.0.1")) == 2)
        self.wait_until(lambda: len([e for e in self.events("process-ready") if e["process"] == "engine.0.0"]) == 2)
        self.wait_until(lambda: (self.run_folder / "summary.json").exists(), 60)
        summary = json.loads((self.run_folder / "summary.json").read_text())
        self.assertEqual((summary["outcome"], summary["exit_code"]), ("finished", 0), summary["sentence"])
        restarts = {process["name"]: process["restarts"] for process in summary["processes"]}
        self.assertEqual({name: number for name, number in restarts.items() if number},
                         {"engine.0.0": 1, "engine.0.1": 1})
        self.assertEqual([self.pid_of(f"learner.{rank}") for rank in range(TRAIN)], learners)
        self.assertIn("nlaunch: engine.0.1 was killed by SIGKILL; engine.0 restarts in 100ms, all 2 of its processes (restart 1 of 2)\n",
                      "".join(log.read_text() for log in self.folder.glob("runs/pools/slurm-*.log")))
        of_replica = self.cluster.run(NLAUNCH, "logs", self.run_folder, "--role", "engine.0").stdout
        of_process = self.cluster.run(NLAUNCH, "logs", self.run_folder, "--role", "engine.0.1").stdout
        self.assertEqual(len(re.findall("^engine.0.[01] +│ rank [01] of 2", of_replica, re.M)), 4, of_replica)
        self.assertEqual(of_process.count("rank 1 of 2"), 2, of_process)

    def preflight_rows(self, check, *arguments):
        self.cluster.run(*self.command(*arguments))
        report = json.loads((self.run_folder / "attempt-0" / "preflight.json").read_text())
        return [(row["hosts"][0], row["status"], row["value"]) for row in report["rows"] if row["check"] == check]

    def test_weights_that_go_over_a_folder_are_seen_by_the_engines_nodes(self):
        rows = self.preflight_rows("weights", "--set", f"weight_sync={{backend: disk, path: {self.folder}/weights}}")
        writer, *readers = sorted(rows)
        self.assertEqual(writer[1:], ("pass", "learner.0 writes there for 5 other nodes"))
        self.assertEqual(len(readers), 5)  # the other colocated engines, and the two nodes of the replica
        for _, status, value in readers:
            self.assertEqual(status, "pass", value)
            self.assertRegex(value, r"^files that learner\.0's node writes are seen here after 0\.\d\d s$")
        self.assertEqual(list((self.folder / "weights").iterdir()), [])

    def test_a_folder_that_an_engine_cannot_reach_is_found(self):
        (self.folder / "file").write_text("")
        rows = self.preflight_rows("weights", "--set", f"weight_sync={{backend: disk, path: {self.folder}/file/weights}}")
        self.assertEqual({row[1:] for row in rows}, {("fail", "cannot create the directory: Not a directory")})

    def test_nixl_is_looked_for_where_weights_go_over_it(self):
        rows = self.preflight_rows("weights", "--set", "weight_sync={backend: nixl}")
        self.assertEqual({(status, value) for _, status, value in rows},
                         {("fail", "/usr/bin/python3 has no NIXL"),
                          ("unknown", "unknown whether it has NIXL: its command names no Python")})

    def test_a_command_runs_beside_a_process_of_any_component(self):
        done = self.cluster.run(*self.command("--detach", "--no-preflight", "--set", "vars.seconds=30"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.wait_until(lambda: len(self.pid_of("learner.3")) == 1 and "all are here" in self.log("learner.3"), 40)
        hosts = {event["process"]: event["host"] for event in self.events("process-started")}
        for process in ("learner.1", "engine.0.1", "reward.0"):
            said = self.cluster.run(NLAUNCH, "exec", self.run_folder, process, "--", "bash", "-c", "echo $SLURMD_NODENAME")
            self.assertEqual(said.stdout.strip(), hosts[process], said.stderr)
        stopped = self.cluster.run(NLAUNCH, "stop", self.run_folder)
        self.assertEqual(stopped.returncode, 0, stopped.stderr)
        self.wait_until(lambda: (self.run_folder / "summary.json").exists())
        self.wait_until(lambda: not self.cluster.run("squeue", "-ho", "%i").stdout, 20)


if __name__ == "__main__":
    unittest.main(verbosity=2)

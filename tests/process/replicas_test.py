"""Replicas of a Beaker task: nlaunch as the spec starts it, in network namespaces of their own, each with a result folder that no
other one sees."""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

SOURCE = pathlib.Path(os.environ.get("NLAUNCH_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
NLAUNCH = pathlib.Path(os.environ.get("NLAUNCH_BUILD", SOURCE / "build")) / "bin" / "nlaunch"
TOKEN = "0123456789abcdef-a-token-for-this-test"


def ip(*arguments):
    subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True)


def why_not():
    """Why there can be no replicas here; empty when there can."""
    if not shutil.which("ip"):
        return "no ip here (Debian: iproute2)"
    probe = f"nl-{os.getpid()}-probe"
    done = subprocess.run(["ip", "netns", "add", probe], capture_output=True, text=True)
    if done.returncode:
        return f"network namespaces are not allowed here: {done.stderr.strip()}"
    done = subprocess.run(["ip", "-n", probe, "link", "add", "bridge", "type", "bridge"], capture_output=True, text=True)
    subprocess.run(["ip", "netns", "del", probe], check=True)
    return f"bridges in network namespaces are not allowed here: {done.stderr.strip()}" if done.returncode else ""


WHY_NOT = why_not()

SITE = """\
version: 1
name: replicas
scheduler:
  kind: beaker
  beaker: {{image: x, nlaunch: {nlaunch}, result: {results}, workdir: {workdir}, start_timeout: {start}}}
node: {{scratch: {scratch}}}
"""

SLOTS = """\
version: 1
name: slots
nodes: 3
weight_sync: {backend: gloo}
cpu_slots: true
roles:
  learner: {kind: learner, per_node: 1, gpus: 1, rendezvous: torch, command: [sh, -c, 'echo "I am $RANK of $WORLD_SIZE"']}
  engine: {kind: engine, per_node: 1, gpus: 1, command: [sleep, "60"]}
"""


@unittest.skipIf(WHY_NOT, WHY_NOT)
class Replicas(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="nlaunch-replicas-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.results = self.folder / "results"
        self.results.mkdir()
        self.running = {}
        self.net = f"nl-{os.getpid()}-"
        self.make_network(3)
        self.addCleanup(self.end_all)

    def make_network(self, replicas):
        """A switch, and on it a namespace for each replica: 10.77.0.1 is the leader's."""
        ip("netns", "add", self.net + "switch")
        self.addCleanup(ip, "netns", "del", self.net + "switch")
        inside = ("-n", self.net + "switch")
        ip(*inside, "link", "add", "bridge", "type", "bridge")
        ip(*inside, "link", "set", "bridge", "up")
        for rank in range(replicas):
            name = f"{self.net}{rank}"
            ip("netns", "add", name)
            self.addCleanup(ip, "netns", "del", name)
            ip(*inside, "link", "add", f"port{rank}", "type", "veth", "peer", "name", "eth0", "netns", name)
            ip(*inside, "link", "set", f"port{rank}", "master", "bridge", "up")
            ip("-n", name, "link", "set", "lo", "up")
            ip("-n", name, "addr", "add", f"10.77.0.{rank + 1}/24", "dev", "eth0")
            ip("-n", name, "link", "set", "eth0", "up")

    def spec(self, experiment, *arguments, start="30s", workdir=SOURCE / "configs"):
        """What Beaker would start: the command, and the variables."""
        site = self.folder / "site.yaml"
        site.write_text(SITE.format(nlaunch=NLAUNCH, results=self.results, workdir=workdir, start=start, scratch=self.folder))
        done = subprocess.run([NLAUNCH, "render", experiment, "--site", site, *map(str, arguments)], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("  leaderSelection: true\n  hostNetworking: true\n  propagateFailure: true\n", done.stdout)
        block = re.search(r"^  command:\n((?:  - .*\n)+)", done.stdout, re.M)[1]
        command = [json.loads(line[4:]) for line in block.splitlines()]
        values = dict(re.findall(r'- name: "(\w+)"\n    value: "([^"]*)"', done.stdout))
        self.assertEqual(re.findall(r'- name: "(\w+)"\n    secret: "([^"]*)"', done.stdout), [("NLAUNCH_TOKEN", "nlaunch_token")])
        return command, values

    def start(self, rank, spec, token=TOKEN, count=3):
        command, values = spec
        own = self.replica(rank)
        own.mkdir()
        env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(self.folder), "LANG": "C.UTF-8", **values,
               "BEAKER_JOB_ID": f"job-{rank}", "BEAKER_REPLICA_RANK": str(rank), "BEAKER_REPLICA_COUNT": str(count),
               "BEAKER_LEADER_REPLICA_HOSTNAME": "10.77.0.1", "BEAKER_NODE_HOSTNAME": f"host{rank}"}
        if token:
            env["NLAUNCH_TOKEN"] = token
        script = 'mount --bind "$1" "$2" && shift 2 && exec "$@"'
        log = open(self.folder / f"out.{rank}", "w", encoding="utf-8")
        self.addCleanup(log.close)
        self.running[rank] = subprocess.Popen(
            ["ip", "netns", "exec", f"{self.net}{rank}", "unshare", "--mount", "sh", "-c", script, "sh", own, self.results, *command],
            env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
        return self.running[rank]

    def replica(self, rank):
        """What stands in the result folder of a replica."""
        return self.folder / f"replica{rank}"

    def run_folder(self, rank):
        found = [path for path in self.replica(rank).glob("*/2*") if path.is_dir()]
        self.assertEqual(len(found), 1, self.said(rank))
        return found[0]

    def said(self, rank):
        return (self.folder / f"out.{rank}").read_text().replace(str(self.folder), "$FOLDER")

    def summary(self, rank):
        return json.loads((self.run_folder(rank) / "summary.json").read_text())

    def ends(self, within=60):
        deadline = time.monotonic() + within
        return [self.running[rank].wait(max(0.1, deadline - time.monotonic())) for rank in sorted(self.running)]

    def pids(self, rank):
        """All processes in the replica's namespace."""
        said = subprocess.run(["ip", "netns", "pids", f"{self.net}{rank}"], capture_output=True, text=True, check=True).stdout
        return [int(pid) for pid in said.split()]

    def kill(self, rank):
        """As when a machine dies."""
        for pid in self.pids(rank):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def end_all(self):
        for rank, process in self.running.items():
            self.kill(rank)
            process.wait()

    def wait_until(self, done, within=30):
        deadline = time.monotonic() + within
        while not done():
            self.assertLess(time.monotonic(), deadline, "\n".join(self.said(rank) for rank in self.running))
            time.sleep(0.05)

    def logs(self, rank, attempt=0):
        folder = self.run_folder(rank) / f"attempt-{attempt}" / "logs"
        return {path.stem: path.read_text() for path in folder.glob("*.log")}

    def experiment(self, text):
        path = self.folder / "experiment.yaml"
        path.write_text(text)
        return path

    def nothing_is_left(self):
        for rank in self.running:
            self.assertEqual(self.pids(rank), [])
        self.assertEqual(list(self.folder.glob("nlaunch-*")), [])

    # --- a good run ---

    def test_quickstart(self):
        spec = self.spec(SOURCE / "configs" / "quickstart.yaml", "--nodes", 3)
        for rank in range(3):
            self.start(rank, spec)
        self.assertEqual(self.ends(), [0, 0, 0], "\n---\n".join(map(self.said, range(3))))
        for rank in range(3):
            self.assertEqual(sorted(self.logs(rank)), [f"{role}.{rank * 2 + i}" for role in ("engine", "learner") for i in (0, 1)])
            self.assertEqual(self.summary(rank), self.summary(0))
        self.assertEqual(self.summary(0)["outcome"], "finished")
        self.assertIn("learner.5", self.said(0))  # one merged stream, at the leader
        self.assertEqual(json.loads((self.run_folder(1) / "attempt-0" / "nodes.json").read_text())[0]["address"], "10.77.0.1")
        self.assertEqual(sorted(json.loads((self.run_folder(0) / "attempt-0" / "audit.json").read_text())), ["host0", "host1", "host2"])
        self.nothing_is_left()

    def test_the_preflight_is_of_all_replicas_together(self):
        spec = self.spec(self.experiment(SLOTS))
        for rank in range(3):
            self.start(rank, spec)
        self.assertEqual(self.ends(), [0, 0, 0], self.said(0))
        report = json.loads((self.run_folder(0) / "attempt-0" / "preflight.json").read_text())
        self.assertEqual(report["verdict"], "pass", self.said(0))
        measured = {(one["group"], one["op"], one["ranks"]) for one in report["measurements"]}
        self.assertIn(("learner world", "all_reduce", 3), measured)
        self.assertIn(("weight sync", "broadcast", 4), measured)
        for rank in range(3):
            self.assertEqual(self.logs(rank)[f"learner.{rank}"], f"I am {rank} of 3\n")
            self.assertEqual(json.loads((self.run_folder(rank) / "attempt-0" / "preflight.json").read_text()), report)

    def test_files_that_nodes_have_in_common_are_on_all(self):
        spec = self.spec(self.experiment("""\
version: 1
name: files
nodes: 3
roles:
  service: {kind: service, per: node, ports: [http], exit: ok, command: [sleep, "60"]}
  actor: {kind: engine, per_node: 1, spawned_by: service, env: {SPECIAL: "yes"}}
  driver: {kind: service, per: node, ends_run: true, command: [sh, -c, 'cat ${role.service.addrs_file} ${role.actor.env_file}']}
weight_sync: {backend: gloo}
cpu_slots: true
"""))
        for rank in range(3):
            self.start(rank, spec)
        self.assertEqual(self.ends(), [0, 0, 0], self.said(0))
        first = self.logs(0)["driver.0"]
        self.assertRegex(first, r"^10\.77\.0\.1:\d+\n10\.77\.0\.2:\d+\n10\.77\.0\.3:\d+\n")
        self.assertIn('"SPECIAL": "yes"', first)
        for rank in range(3):
            self.assertEqual(self.logs(rank)[f"driver.{rank}"], first)

    def test_the_token_is_in_no_file_no_log_no_command_line_and_no_process(self):
        spec = self.spec(self.experiment(SLOTS.replace('echo "I am $RANK of $WORLD_SIZE"', "env; sleep 3")), "--set", "preflight.level=quick")
        for rank in range(3):
            self.start(rank, spec)
        self.wait_until(lambda: "RANK=2" in self.said(0))
        for rank in range(3):
            for pid in self.pids(rank):
                self.assertNotIn(TOKEN, pathlib.Path(f"/proc/{pid}/cmdline").read_text())
        self.assertEqual(self.ends(), [0, 0, 0], self.said(0))
        for rank in range(3):
            for path in [self.folder / f"out.{rank}", *self.replica(rank).rglob("*")]:
                if path.is_file():
                    self.assertNotIn(TOKEN, path.read_text(), path)
            for log in self.logs(rank).values():
                self.assertNotRegex(log, "NLAUNCH_(TOKEN|PLAN)")

    def test_one_that_is_late_is_waited_for(self):
        spec = self.spec(SOURCE / "configs" / "quickstart.yaml", "--nodes", 3)
        for rank in (2, 1):  # before there is a leader
            self.start(rank, spec)
        time.sleep(1)
        self.start(0, spec)
        self.assertEqual(self.ends(), [0, 0, 0], self.said(0))

    # --- when things go wrong ---

    def test_one_that_never_comes_is_named(self):
        spec = self.spec(SOURCE / "configs" / "quickstart.yaml", "--nodes", 3, start="3s")
        for rank in (0, 1):
            self.start(rank, spec)
        self.assertEqual(self.ends(), [70, 70], self.said(0))
        self.assertIn("nlaunch: no agent connected from replica 2 within 3s\n", self.said(0))
        self.assertEqual(self.summary(1)["sentence"], "no agent connected from replica 2 within 3s")
        self.nothing_is_left()

    def test_one_without_the_token_says_what_to_do(self):
        spec = self.spec(SOURCE / "configs" / "quickstart.yaml", "--nodes", 3, start="3s")
        self.start(2, spec, token="")
        self.assertEqual(self.ends(), [65])
        self.assertEqual(self.said(2), "nlaunch run: NLAUNCH_TOKEN is not set: replicas authenticate each other with it. The spec reads it from "
                                       "the Beaker secret 'nlaunch_token'; create it once in the workspace: openssl rand -hex 32 | beaker "
                                       "secret write nlaunch_token\n")

    def test_one_with_another_token_is_refused_on_both_sides(self):
        spec = self.spec(SOURCE / "configs" / "quickstart.yaml", "--nodes", 3, start="5s")
        self.start(0, spec)
        self.start(1, spec)
        self.start(2, spec, token=TOKEN[::-1])
        self.assertEqual(self.running[2].wait(20), 65, self.said(2))
        self.assertIn("nlaunch agent on host2: error: nlaunch at 10.77.0.1 refused this node: it has a different token\n", self.said(2))
        self.assertEqual(self.ends(), [70, 70, 65], self.said(0))
        self.assertIn("nlaunch: rejected a connection from 10.77.0.3: it does not know the token\n", self.said(0))
        self.assertIn("nlaunch: no agent connected from replica 2 within 5s: rejected a connection from 10.77.0.3: it does not know the token\n",
                      self.said(0))

    def test_one_with_another_plan_is_refused_on_both_sides(self):
        spec = self.spec(SOURCE / "configs" / "quickstart.yaml", "--nodes", 3)
        other = self.spec(SOURCE / "configs" / "quickstart.yaml", "--nodes", 3, "--set", "vars.steps=7")
        for rank in (0, 1):
            self.start(rank, spec)
        self.start(2, other)
        self.assertEqual(self.ends(), [65, 65, 65], self.said(0))
        sentence = r"host2 has a different plan \([0-9a-f]{12}\) than the leader \([0-9a-f]{12}\)"
        self.assertRegex(self.said(0), rf"(?m)^nlaunch: {sentence}$")
        self.assertRegex(self.said(2), rf"(?m)^nlaunch agent on host2: error: refused: {sentence}$")
        self.assertRegex(self.summary(1)["sentence"], f"^{sentence}$")

    def test_a_task_with_another_number_of_replicas_is_refused(self):
        spec = self.spec(SOURCE / "configs" / "quickstart.yaml", "--nodes", 3)
        self.start(1, spec, count=2)
        self.assertEqual((self.ends(), self.said(1)), ([65], "nlaunch run: the plan has 3 nodes, but this task has 2 replicas\n"))

    def test_one_that_is_killed_ends_the_run_and_the_others_know(self):
        spec = self.spec(SOURCE / "configs" / "quickstart.yaml", "--nodes", 3, "--set", "vars.steps=100000")
        for rank in range(3):
            self.start(rank, spec)
        self.wait_until(lambda: "learner.5" in self.said(0))
        self.kill(1)
        self.assertEqual([code for rank, code in enumerate(self.ends()) if rank != 1], [137, 137], self.said(0))
        self.assertRegex(self.summary(0)["sentence"], r"^node host1 was lost after [\d.]+m?s: the connection to its agent was closed")
        self.assertEqual(self.summary(2), self.summary(0))
        self.assertEqual(self.pids(2), [])

    def test_without_their_leader_the_others_end_what_they_have(self):
        spec = self.spec(SOURCE / "configs" / "quickstart.yaml", "--nodes", 3, "--set", "vars.steps=100000")
        for rank in range(3):
            self.start(rank, spec)
        self.wait_until(lambda: "step 2" in self.said(0))
        self.kill(0)
        self.assertEqual(self.ends()[1:], [70, 70])
        self.assertIn("nlaunch agent on host1: the connection to nlaunch was closed; stopping the processes here\n", self.said(1))
        self.assertIn("step 2", self.logs(1)["learner.2"])
        for rank in (1, 2):
            self.assertEqual(self.summary(rank)["sentence"], f"host{rank}: the connection to nlaunch was closed; the processes here were stopped")
            self.assertEqual(self.pids(rank), [])

    def test_a_failure_is_explained_on_all_before_any_of_them_exits(self):
        spec = self.spec(SOURCE / "configs" / "quickstart.yaml", "--nodes", 3, "--set", "vars.fail_rank=3")
        for rank in range(3):
            self.start(rank, spec)
        self.wait_until(lambda: any(process.poll() is not None for process in self.running.values()))
        summaries = [self.summary(rank) for rank in range(3)]  # at the moment when the first one is gone
        self.assertEqual(self.ends(), [3, 3, 3], self.said(0))
        for summary in summaries:
            self.assertRegex(summary["sentence"], r"^learner\.3 .*host1")
        self.assertIn("failing at step 3, as asked for by vars.fail_rank", self.logs(1)["learner.3"])
        self.nothing_is_left()

    def test_a_job_that_restarts_takes_the_same_replicas(self):
        spec = self.spec(self.experiment("""\
version: 1
name: again
nodes: 3
restart: {policy: on-failure, max: 2, backoff: 100ms}
roles:
  learner: {kind: learner, per_node: 1, command: [sh, -c, 'case ${run.dir} in *) test -d ${run.dir}/attempt-1 || exit $((${self.index} * 5));; esac']}
"""))
        for rank in range(3):
            self.start(rank, spec)
        self.assertEqual(self.ends(), [0, 0, 0], self.said(0))
        self.assertIn("nlaunch: restart 1 of 2 in 100ms\n", self.said(0))
        for rank in range(3):
            self.assertEqual(sorted(self.logs(rank, attempt=1)), [f"learner.{rank}"])

    # What an agent is asked comes a round trip after what it was told to start.
    def test_a_line_that_comes_at_once_makes_ready(self):
        ready = self.experiment("""version: 1
name: ready
nodes: 3
roles:
  engine: {kind: engine, per_node: 2, command: [sh, -c, 'echo server is ready; exec sleep 30'], ready: {log: is ready, timeout: 5s}}
  learner: {kind: learner, command: ["true"]}
start: [[engine], [learner]]
""")
        spec = self.spec(ready)
        for rank in range(3):
            self.start(rank, spec)
        self.assertEqual(self.ends(), [0, 0, 0], self.said(0))
        self.assertIn("nlaunch: engine: 6 of 6 ready after ", self.said(0))
        self.nothing_is_left()

    def test_a_stop_by_beaker_stops_all(self):
        spec = self.spec(SOURCE / "configs" / "quickstart.yaml", "--nodes", 3, "--set", "vars.steps=100000")
        for rank in range(3):
            self.start(rank, spec)
        self.wait_until(lambda: "learner.5" in self.said(0))
        self.running[2].terminate()  # as a container's first process gets it
        self.assertEqual(self.ends(), [143, 143, 143], self.said(0))
        self.assertEqual(self.summary(2)["outcome"], "terminated")
        self.nothing_is_left()


if __name__ == "__main__":
    unittest.main()

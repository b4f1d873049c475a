"""Runs over the nodes of an allocation, and what is said and left when something breaks."""
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

from cluster import SITE, Cluster

SOURCE = pathlib.Path(os.environ["NLAUNCH_SOURCE"])
NLAUNCH = pathlib.Path(os.environ["NLAUNCH_BUILD"]) / "bin" / "nlaunch"
NODES = 4
WHEN = r"(\d+\.\ds|\d+ms)"

# Each learner says who it is, waits for all others at the port of rank 0's node, and goes on as it is told.
LEARNER = """
import os, socket, sys, time, signal
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
address = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
print("rank", rank, "of", size, "on", os.environ["SLURMD_NODENAME"], "local", os.environ["LOCAL_RANK"])
if rank == 0:
    server = socket.create_server(("", address[1]), backlog=size)
    others = [server.accept()[0] for _ in range(size - 1)]
    for other in others: other.sendall(b"go")
else:
    for _ in range(200):
        try:
            connection = socket.create_connection(address, timeout=5); break
        except OSError: time.sleep(0.05)
    assert connection.recv(2) == b"go"
print("all are here")
time.sleep(float(sys.argv[1]))
if rank == int(sys.argv[2]): sys.exit(3)
"""
EXPERIMENT = """
version: 1
name: fleet
nodes: 4
weight_sync: {backend: gloo}
vars: {seconds: "0.2", fail_rank: "-1"}
roles:
  learner:
    kind: learner
    per_node: 1
    rendezvous: torch
    command: [/usr/bin/python3, FOLDER/learner.py, "${vars.seconds}", "${vars.fail_rank}"]
    stop: {grace: 3s}
  engine:
    kind: engine
    count: 4
    ports: [http]
    command: [/usr/bin/python3, -m, http.server, --directory, FOLDER/empty, "${self.ports.http}"]
    ready: {http: "http://${self.host}:${self.ports.http}/", timeout: 20s}
    stop: {grace: 3s}
start: [[engine], [learner]]
"""


class Runs(unittest.TestCase):
    """What the tests of this file share; each class has a cluster of its own."""

    hosts = False

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(nodes=NODES, gpus=4, hosts=cls.hosts, conf="SlurmdTimeout=5\nMessageTimeout=3\n")
        cls.cluster.up()
        cls.addClassCleanup(cls.cluster.down)

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="nlaunch-fleet-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        (self.folder / "learner.py").write_text(LEARNER)
        (self.folder / "empty").mkdir()
        (self.folder / "fleet.yaml").write_text(EXPERIMENT.replace("FOLDER", str(self.folder)))

    def command(self, *arguments):
        return ["salloc", "-Q", f"-N{NODES}", NLAUNCH, "run", self.folder / "fleet.yaml", "--site", SITE, "--no-preflight",
                "--runs-dir", self.folder / "runs", *arguments]

    def run_it(self, *arguments):
        return self.cluster.run(*self.command(*arguments))

    def start(self, *arguments):
        """Starts a run that goes on for long, and returns once all learners are there."""
        process = self.cluster.start(*self.command("--set", "vars.seconds=100", *arguments))
        self.addCleanup(process.communicate)
        self.addCleanup(self.end_all_jobs)
        self.wait_until(lambda: len(self.events("process-started")) == 2 * NODES)
        self.wait_for_learners()
        return process

    def wait_for_learners(self):
        self.wait_until(lambda: all("all are here" in self.log(f"learner.{rank}") for rank in range(NODES)))

    def end_all_jobs(self):
        """So that a test that fails leaves the nodes to the next one."""
        self.cluster.run("scancel", "--user=root")
        self.wait_until(lambda: self.cluster.run("squeue", "-ho", "%i").stdout == "", 40)

    def wait_until(self, true, seconds=20):
        deadline = time.monotonic() + seconds
        while not true():
            self.assertLess(time.monotonic(), deadline, "it did not come to that")
            time.sleep(0.02)

    @property
    def run_folder(self):
        return (self.folder / "runs" / "fleet" / "latest").resolve()

    def events(self, name):
        try:
            lines = (self.run_folder / "events.jsonl").read_text().splitlines()
        except OSError:
            return []
        return [event for event in map(json.loads, lines) if event["event"] == name]

    def log(self, process):
        try:
            return (self.run_folder / "attempt-0" / "logs" / f"{process}.log").read_text()
        except OSError:
            return ""

    def summary(self):
        return json.loads((self.run_folder / "summary.json").read_text())

    def agents(self):
        """The pids of the tasks of the step, by node: those whose parent is a slurmstepd."""
        found = {}
        for pid in self.cluster.processes():
            try:
                words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
                environment = pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
                parent = int(pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
                stepd = pathlib.Path(f"/proc/{parent}/comm").read_text().startswith("slurmstepd")
            except (OSError, ValueError):
                continue
            if words[1:2] == [b"agent"] and stepd:
                found[next(e for e in environment if e.startswith(b"SLURMD_NODENAME=")).split(b"=")[1].decode()] = (pid, parent)
        return found

    def nothing_is_left(self, seconds=8):
        """On no node that lives."""
        def left():
            names = ("agent", str(self.folder))
            out = []
            for entry in pathlib.Path("/proc").iterdir():
                if not entry.name.isdigit():
                    continue
                try:
                    line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                except OSError:
                    continue
                if str(self.folder) in line and "salloc" not in line and any(name in line for name in names):
                    out.append(f"{entry.name} {line}")
            return out
        deadline = time.monotonic() + seconds
        while left() and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertEqual(left(), [])

    def end_of(self, process, seconds=30):
        out, err = process.communicate(timeout=seconds)
        return process.returncode, out, err

    def is_lost(self, process, sentence):
        """The run ends as one does that somebody has killed a part of, and says so."""
        code, _, err = self.end_of(process)
        self.assertEqual(code, 137, err)
        self.assertRegex(err, f"\\n{sentence}")
        self.nothing_is_left()

    def submit(self, *arguments, **options):
        """From the login node. What the job itself said is printed where the test fails."""
        done = self.cluster.run(*self.command(*arguments)[3:], **options)
        if done.returncode:
            for log in self.folder.glob("runs/fleet/slurm-*.log"):
                print(log.read_text())
        return done

    def nlaunch(self, *arguments):
        return self.cluster.run(NLAUNCH, *arguments, "--runs-dir", self.folder / "runs")


class Fleet(Runs):
    # --- when all goes well ---

    def test_processes_of_all_nodes_find_each_other(self):
        done = self.run_it()
        self.assertEqual(done.returncode, 0, done.stderr)
        for rank in range(NODES):
            self.assertIn(f"rank {rank} of 4 on node{rank} local 0\nall are here\n", self.log(f"learner.{rank}"))
            self.assertIn(f"learner.{rank} │ rank {rank} of 4 on node{rank} local 0", done.stdout)
        self.assertIn("fleet on test-cluster: 4 learner · 4 engine", done.stderr)
        self.assertRegex(done.stderr, rf"\nfinished after {WHEN}\n")
        summary = self.summary()
        self.assertEqual([p["host"] for p in summary["processes"][:NODES]], [f"node{n}" for n in range(NODES)])
        bound = sorted(path.name for path in (self.run_folder / "attempt-0").glob("bound.*.json"))
        self.assertEqual(bound, [f"bound.node{n}.json" for n in range(NODES)])
        self.nothing_is_left()

    def test_the_preflight_runs_on_every_node(self):
        command = [word for word in self.command() if word != "--no-preflight"]
        done = self.cluster.run(*command)
        self.assertEqual(done.returncode, 0, done.stderr)
        report = json.loads((self.run_folder / "attempt-0" / "preflight.json").read_text())
        for node in range(NODES):
            self.assertTrue(any(row.get("hosts") == [f"node{node}"] for row in report["rows"]), report["rows"])

    # --- when something breaks ---

    def test_a_failing_rank_is_named_with_its_node(self):
        done = self.run_it("--set", "vars.fail_rank=2")
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("last lines of learner.2", done.stderr)
        self.assertRegex(done.stderr, rf"\nlearner\.2 \(rank 2\) on node2 exited with code 3 after {WHEN}")
        self.nothing_is_left()

    def test_a_killed_rank_is_named(self):
        process = self.start()
        pid = next(e["pid"] for e in self.events("process-started") if e["process"] == "learner.1")
        os.kill(pid, signal.SIGKILL)
        self.is_lost(process, r"learner\.1 \(rank 1\) on node1 was killed by SIGKILL after")

    def test_a_killed_agent_is_a_lost_node(self):
        process = self.start()
        os.kill(self.agents()["node2"][0], signal.SIGKILL)
        self.is_lost(process, rf"node node2 was lost after {WHEN}: the connection to its agent has ended\n")

    def test_a_killed_slurmstepd_is_a_lost_node(self):
        process = self.start()
        os.kill(self.agents()["node1"][1], signal.SIGKILL)
        self.is_lost(process, rf"node node1 was lost after {WHEN}: its slurmstepd is gone\n")

    def test_a_dead_node_is_named(self):
        process = self.start()
        self.cluster.kill_node(3)
        self.addCleanup(self.cluster.revive_node, 3)
        self.is_lost(process, rf"node node3 was lost after {WHEN}: ")

    def test_a_node_whose_daemons_die_holds_nobody_up(self):
        process = self.start()
        slurmd = int((self.cluster.folder / "node3" / "slurmd.pid").read_text())
        self.addCleanup(self.cluster.revive_node, 3)
        for pid in (slurmd, self.agents()["node3"][1]):
            os.kill(pid, signal.SIGKILL)
        self.nothing_is_left(5)  # the grace and two seconds
        code, _, err = self.end_of(process)
        self.assertEqual(code, 137, err)
        self.assertRegex(err, rf"\nnode node3 was lost after {WHEN}: its slurmstepd is gone\n")

    def test_a_killed_srun_ends_the_run(self):
        process = self.start()
        for pid in map(int, subprocess.run(["pgrep", "-x", "srun"], capture_output=True, text=True).stdout.split()):
            try:
                if str(self.folder).encode() in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes():
                    os.kill(pid, signal.SIGKILL)
            except OSError:  # srun is two processes, and one goes with the other
                pass
        self.is_lost(process, rf"srun was killed by SIGKILL \(after {WHEN}\)\n")

    def test_scancel_stops_it_and_leaves_nothing(self):
        process = self.start()
        job = re.search(r"^\d+", self.cluster.run("squeue", "-ho", "%i").stdout).group()
        self.cluster.run("scancel", job)
        self.end_of(process)
        self.nothing_is_left()

    def test_nlaunch_killed_leaves_nothing(self):
        process = self.start()
        guardian = next(e["pid"] for e in self.events("run"))
        os.kill(guardian, signal.SIGKILL)
        self.end_of(process)
        self.nothing_is_left()

    def test_nlaunch_killed_while_the_nodes_are_bound(self):
        (self.folder / "modules.sh").write_text("module() { sleep 2; }\n")
        process = self.cluster.start(*self.command("--set", f"site.modules={{init: {self.folder}/modules.sh, load: [slow]}}"))
        self.addCleanup(process.communicate)
        self.addCleanup(self.end_all_jobs)
        runs = self.folder / "runs" / "fleet"
        self.wait_until(lambda: any(runs.glob("2*/attempt-0/nodes.json")))
        run = next(runs.glob("2*"))
        os.kill(json.loads((run / "events.jsonl").read_text().splitlines()[0])["pid"], signal.SIGKILL)
        self.end_of(process)
        self.nothing_is_left()
        summary = json.loads((run / "summary.json").read_text())
        self.assertEqual((summary["outcome"], summary["sentence"]),
                         ("killed", "nlaunch was killed before anything was started"))

    def test_what_ignores_the_stop_signal_is_killed_before_slurm_does_it(self):
        # Slurm kills everything, nlaunch too, KillWait=5 seconds after a scancel.
        learner = self.folder / "learner.py"
        learner.write_text("import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + LEARNER)
        done = self.submit("--detach", "--set", "vars.seconds=100", "--set", "roles.learner.stop.grace=60s")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.wait_for_learners()
        self.cluster.run("scancel", json.loads((self.run_folder / "job.json").read_text())["jobs"][0])
        self.wait_until(lambda: (self.run_folder / "summary.json").exists())
        summary = self.summary()
        self.assertEqual((summary["outcome"], summary["exit_code"]), ("terminated", 143))
        self.assertEqual([p["end"] for p in summary["processes"][:NODES]], [{"signal": "SIGKILL"}] * NODES)
        self.assertNotIn(None, [p["end"] for p in summary["processes"]])
        (told, *_), (ended,) = self.events("signal"), self.events("attempt-ended")
        self.assertLess(2000, ended["mono_ms"] - told["mono_ms"])
        self.assertLess(ended["mono_ms"] - told["mono_ms"], 5000)
        self.nothing_is_left()

    def test_ctrl_c_while_the_nodes_are_bound(self):
        init = self.folder / "modules.sh"
        init.write_text(f"touch {self.folder}/loading.$SLURMD_NODENAME; sleep 100\n")
        process = self.cluster.start(*self.command("--set", f"site.modules={{init: {init}, load: [none]}}"))
        self.addCleanup(process.communicate)
        self.addCleanup(self.end_all_jobs)
        self.wait_until(lambda: len(list(self.folder.glob("loading.*"))) == NODES)
        folder = next((self.folder / "runs" / "fleet").glob("*-*-*"))
        events = map(json.loads, (folder / "events.jsonl").read_text().splitlines())
        begin = time.monotonic()
        os.kill(next(event["pid"] for event in events if event["event"] == "run"), signal.SIGINT)
        code, _, err = self.end_of(process)
        self.assertLess(time.monotonic() - begin, 5)
        self.assertEqual((code, err.splitlines()[0]), (130, "stopped by SIGINT before anything was started"))
        summary = json.loads((folder / "summary.json").read_text())
        self.assertEqual((summary["outcome"], summary["sentence"]), ("interrupted", "stopped by SIGINT before anything was started"))
        self.nothing_is_left()

    # --- when it cannot begin ---

    def test_too_few_files_for_so_many_nodes(self):
        done = self.cluster.run("salloc", "-Q", f"-N{NODES}", "prlimit", "--nofile=50:50", *self.command()[3:])
        self.assertEqual(done.returncode, 70, done.stderr)
        self.assertIn("nlaunch: 4 nodes need 72 open files here, and this process may have 50 (ulimit -Hn)\n", done.stderr)

    def test_too_few_nodes_and_here(self):
        done = self.cluster.run("salloc", "-Q", "-N2", *self.command("--here")[3:])
        self.assertEqual(done.returncode, 65)
        self.assertRegex(done.stderr, r"^nlaunch run: job \d+ has 2 nodes, and the plan uses 4\n$")

    # --- from the login node ---

    def test_from_the_login_node_it_submits_and_follows(self):
        done = self.submit("--set", "vars.seconds=5")  # Slurm is asked every three seconds
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, r"^fleet on test-cluster: 4 learner · 4 engine\njob \d+, run \S+ in ")
        self.assertRegex(done.stderr, r"\njob \d+ runs on node\[0-3\]\n")
        self.assertIn("learner.3 │ rank 3 of 4 on node3 local 0\n", done.stdout)
        self.assertRegex(done.stdout, rf"\nnlaunch: engine: 4 of 4 ready after {WHEN}\n(.*\n)*\nfinished after {WHEN}\n")
        self.assertIn("exec ", (self.run_folder / "job.sbatch").read_text().splitlines()[-1])
        self.nothing_is_left()

    def test_the_exit_code_of_a_job_is_that_of_its_run(self):
        done = self.submit("--set", "vars.fail_rank=2")
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("learner.2 (rank 2) on node2 exited with code 3", done.stdout)

    def test_ctrl_c_detaches_and_the_job_goes_on(self):
        process = self.cluster.start(*self.command("--set", "vars.seconds=3")[3:])
        self.addCleanup(process.communicate)
        self.addCleanup(self.end_all_jobs)
        self.wait_until(lambda: len(self.events("process-started")) == 2 * NODES)
        process.send_signal(signal.SIGINT)
        code, _, err = self.end_of(process)
        self.assertEqual(code, 0, err)
        self.assertRegex(err, r"\njob \d+ goes on\. To follow it again: nlaunch logs -f ")
        self.wait_until(lambda: (self.run_folder / "summary.json").exists())
        self.assertEqual(self.summary()["outcome"], "finished")

    def test_near_the_walltime_the_run_is_stopped_and_goes_on_in_the_next_job(self):
        chain = "{signal: USR1, before: 60s, then: chain, max: 2}"
        done = self.submit("--detach", "--set", "vars.seconds=100", "--set", f"walltime={chain}")
        self.assertEqual(done.returncode, 0, done.stderr)
        jobs = lambda: json.loads((self.run_folder / "job.json").read_text())["jobs"]
        self.wait_for_learners()
        self.cluster.run("scancel", "--batch", "--signal=USR2", jobs()[0])  # as Slurm does by itself
        self.wait_until(lambda: (self.run_folder / "summary.json").exists())
        self.assertEqual((self.summary()["outcome"], self.summary()["exit_code"]), ("walltime", 75))
        self.assertEqual({p["end"]["signal"] for p in self.summary()["processes"][:NODES]}, {"SIGUSR1"})
        second = self.run_folder / "attempt-1" / "logs" / "learner.3.log"
        self.wait_until(lambda: second.exists() and "all are here" in second.read_text())
        self.assertEqual(len(jobs()), 2)
        self.assertEqual(self.cluster.run("squeue", "-ho", "%i").stdout.split(), [jobs()[1]])
        self.cluster.run("scancel", "--batch", "--signal=TERM", jobs()[1])
        self.wait_until(lambda: self.summary()["exit_code"] == 143)
        log = (self.run_folder.parent / f"slurm-{jobs()[0]}.log").read_text()
        self.assertIn(f"job {jobs()[1]} is to go on after this one, as number 2 of at most 2\n", log)
        self.nothing_is_left()

    def test_a_requeued_job_goes_on_in_its_run_and_is_followed(self):
        requeue = "{signal: USR1, before: 60s, then: requeue}"
        process = self.cluster.start(*self.command("--set", "vars.seconds=12", "--set", f"walltime={requeue}")[3:])
        self.addCleanup(process.communicate)
        self.addCleanup(self.end_all_jobs)
        self.wait_until(lambda: (self.run_folder / "job.json").exists())
        self.wait_for_learners()
        job = json.loads((self.run_folder / "job.json").read_text())["jobs"][0]
        self.cluster.run("scancel", "--batch", "--signal=USR2", job)  # as Slurm does by itself
        self.wait_until(lambda: (self.run_folder / "summary.json").exists())
        self.assertEqual((self.summary()["outcome"], self.summary()["exit_code"]), ("walltime", 75))
        self.assertEqual({p["end"]["signal"] for p in self.summary()["processes"][:NODES]}, {"SIGUSR1"})
        self.wait_until(lambda: f": job {job} waits to go on\n" in self.nlaunch("ps", "fleet").stdout)
        code, out, err = self.end_of(process, 60)
        self.assertEqual(code, 0, err)
        self.assertRegex(out, rf"\nstopped after {WHEN}, for the walltime comes near\n(.*\n)+job {job} is requeued\n(.*\n)+finished after {WHEN}\n")
        self.assertRegex(err, rf"\njob {job} is waiting: BeginTime.*\n(.*\n)*job {job} runs on node\[0-3\]\n$")
        self.assertEqual(self.summary()["outcome"], "finished")
        self.assertEqual(json.loads((self.run_folder / "job.json").read_text())["jobs"], [job])
        self.assertEqual([e["number"] for e in self.events("attempt")], [0, 1])
        self.assertIn("all are here\n", (self.run_folder / "attempt-1" / "logs" / "learner.3.log").read_text())
        self.nothing_is_left()

    def test_a_requeued_job_that_waits_can_be_stopped(self):
        self.submit("--detach", "--set", "vars.seconds=100", "--set", "walltime={before: 60s, then: requeue}")
        self.addCleanup(self.end_all_jobs)
        self.wait_for_learners()
        job = json.loads((self.run_folder / "job.json").read_text())["jobs"][0]
        self.cluster.run("scancel", "--batch", "--signal=USR2", job)
        self.wait_until(lambda: self.cluster.run("squeue", "-ho", "%t %r").stdout == "PD BeginTime\n")
        done = self.nlaunch("stop", "fleet")
        self.assertEqual((done.returncode, done.stdout), (0, f"job {job} of run {self.run_folder.name} is taken out of the queue\n"))
        self.wait_until(lambda: self.cluster.run("squeue", "-ho", "%i").stdout == "")
        self.assertFalse((self.run_folder / "attempt-1").exists())

    def test_after_success_the_next_job_is_cancelled(self):
        done = self.submit("--set", "walltime={before: 60s, then: chain}")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"\njob \d+, which was to go on, is cancelled\n")
        self.wait_until(lambda: self.cluster.run("squeue", "-ho", "%i").stdout == "")

    def test_a_job_that_waits_can_be_looked_at_and_stopped(self):
        self.submit("--detach", "--set", "slurm.begin=now+1hour")
        job = json.loads((self.run_folder / "job.json").read_text())["jobs"][0]
        self.assertIn(f"job {job} has not begun", self.nlaunch("ps", "fleet").stdout)
        done = self.nlaunch("stop", "fleet")
        self.assertEqual((done.returncode, done.stdout), (0, f"job {job} of run {self.run_folder.name} is taken out of the queue\n"))
        self.wait_until(lambda: self.cluster.run("squeue", "-ho", "%i").stdout == "")

    def test_a_notebook_job_is_named_and_a_job_is_submitted(self):
        done = self.cluster.run("salloc", "-Q", "-N1", "--gpus-per-node=0", "-p", "short", *self.command("--detach", "--set", "slurm.exclusive=false")[3:])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, r"^nlaunch run: job \d+ has 1 node, and the plan uses 4; submitting a job of its own\n")
        self.wait_until(lambda: (self.run_folder / "summary.json").exists(), 40)

    def test_what_sbatch_refuses_is_said_with_the_place_of_the_directive(self):
        done = self.submit("--set", "slurm.partition=nosuch")
        self.assertEqual(done.returncode, 65)
        self.assertIn("invalid partition specified: nosuch", done.stderr)
        self.assertIn("note: --partition=nosuch is from --set:1:17\n", done.stderr)

    def test_what_a_partition_would_never_start_is_not_submitted(self):
        done = self.submit("--set", "slurm.partition=short", "--set", "slurm.time=00:20:00")
        self.assertEqual((done.returncode, done.stderr), (65, """\
error: partition 'short' gives a job at most 2 nodes (MaxNodes), and this one asks for 4 [launch.partition]
note: --partition=short is from --set:1:17
hint: `sinfo -s` lists the partitions

error: partition 'short' lets a job run for at most 00:10:00 (MaxTime), and this one asks for 00:20:00 [launch.partition]
note: --time=00:20:00 is from --set:1:12
note: --partition=short is from --set:1:17
hint: `sinfo -s` lists the partitions

2 errors
"""))
        self.assertFalse((self.folder / "runs").exists())

    def test_what_is_not_there_is_not_submitted(self):
        path = self.folder / "fleet.yaml"
        text = path.read_text().replace("[/usr/bin/python3, -m, http.server", "[/opt/none/serve, -m, http.server")
        path.write_text(text.replace("command: [/usr/bin/python3,", "workdir: gone\n    command: [/usr/bin/python3,"))
        done = self.submit("--set", "venv=.venv")
        self.assertEqual((done.returncode, done.stderr), (65, f"""\
error: learner: the working folder '{self.folder}/gone' ({path}:12:14) does not exist [launch.workdir]

error: learner, engine: the venv '{self.folder}/.venv' (--set:1:6) does not exist [launch.venv]
hint: make it: python3 -m venv {self.folder}/.venv

2 errors
"""))
        self.assertFalse((self.folder / "runs").exists())

    def test_a_program_that_only_the_nodes_may_have_is_a_note(self):
        path = self.folder / "fleet.yaml"
        path.write_text(path.read_text().replace("[/usr/bin/python3, -m, http.server", "[/opt/none/serve, -m, http.server"))
        done = self.submit("--detach", "--set", "slurm.begin=now+1hour")
        self.addCleanup(self.end_all_jobs)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr.splitlines()[0], "note: engine: '/opt/none/serve' is not on this machine: is it on the nodes?")

    def test_without_slurm_the_way_is_said(self):
        done = self.submit(env={"PATH": "/nowhere"})
        self.assertEqual(done.returncode, 64)
        self.assertEqual(done.stderr.splitlines()[0],
                         "error: site 'test-cluster' submits with sbatch, which is not on PATH here [launch.no-slurm]")

    def test_a_text_that_no_other_node_would_get_as_it_is(self):
        done = self.cluster.run(*self.command("--set", "vars.seconds=${env.ODD}"), env={"ODD": "1\udcff"})
        self.assertEqual((done.returncode, done.stderr), (
            65, "error: the plan cannot be saved, for a text in it is not UTF-8: /roles/0/command/2: '1\\xff' [launch.plan-text]\n"))

    def test_variables_that_contradict_each_other(self):
        done = self.cluster.run(*self.command()[3:], env={"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "node[0-3]",
                                                          "SLURM_JOB_NUM_NODES": "2"})
        self.assertEqual(done.returncode, 65)
        self.assertIn("SLURM_JOB_NUM_NODES=2 and SLURM_JOB_NODELIST=node[0-3] contradict each other: the list has 4 nodes",
                      done.stderr)

    def test_a_program_that_is_not_there_is_said_with_its_node(self):
        path = self.folder / "fleet.yaml"
        path.write_text(path.read_text().replace("[/usr/bin/python3, -m, http.server", "[no-such-program, -m, http.server"))
        done = self.run_it()
        self.assertEqual(done.returncode, 65, done.stderr)
        self.assertIn("on node0:\n", done.stderr)
        self.assertIn("no-such-program", done.stderr)
        self.nothing_is_left()


class Hosts(Runs):
    """Nodes that have a host name and an address of their own."""

    hosts = True

    def test_processes_find_each_other_over_the_network(self):
        done = self.submit("--set", "vars.seconds=3")
        self.assertEqual(done.returncode, 0, done.stderr)
        bound = [json.loads((self.run_folder / "attempt-0" / f"bound.node{n}.json").read_text()) for n in range(NODES)]
        masters = {p["env"]["MASTER_ADDR"] for b in bound for p in b["processes"] if p["name"].startswith("learner")}
        self.assertEqual(len(masters), 1)
        self.assertNotIn("127.0.0.1", masters)
        self.nothing_is_left()

    def test_the_lock_says_which_node_has_another_library(self):
        # /dev/shm is each node's own.
        make = "for name in same other; do echo 1 > /dev/shm/lib$name.so; done; [[ $SLURMD_NODENAME != node2 ]] || echo 12 > /dev/shm/libother.so"
        self.assertEqual(self.cluster.run("srun", f"-N{NODES}", "bash", "-c", make).returncode, 0)
        self.addCleanup(self.cluster.run, "srun", f"-N{NODES}", "bash", "-c", "rm /dev/shm/lib{same,other}.so")
        libraries = "{same: {path: /dev/shm/libsame.so}, other: {path: /dev/shm/libother.so}}"
        done = self.run_it("--set", f"site.libraries={libraries}")
        self.assertEqual(done.returncode, 0, done.stderr)
        lock = json.loads((self.run_folder / "lock.json").read_text())
        self.assertEqual({name: library["size"] for name, library in lock["libraries"].items()}, {"same": 2, "other": 2})
        self.assertEqual(lock["libraries_on"], {"node2": {"other": {"path": "/dev/shm/libother.so", "version": "", "size": 3}}})

    def test_a_command_beside_a_process_of_another_node(self):
        self.submit("--detach", "--set", "vars.seconds=100")
        self.addCleanup(self.end_all_jobs)
        self.wait_for_learners()
        script = 'echo rank $RANK on $(hostname) in $(pwd); cat; exit 7'
        execute = [NLAUNCH, "exec", self.run_folder]
        done = self.cluster.run("bash", "-c", 'echo typed | "$@"', "bash", *execute, "learner.2", "--", "sh", "-c", script)
        self.assertEqual((done.returncode, done.stdout), (7, f"rank 2 on node2 in {self.folder}\ntyped\n"), done.stderr)
        gone = self.cluster.run(*execute, "learner.9", "--", "true")
        self.assertEqual(gone.returncode, 64)
        self.assertRegex(gone.stderr, rf"^nlaunch exec: 'learner\.9' is no process in run {self.run_folder.name}; "
                                      r"alive are: ((engine|learner)\.[0-3](, |\n)){8}$")
        self.nlaunch("stop", "fleet")
        self.wait_until(lambda: (self.run_folder / "summary.json").exists())

    def test_a_run_is_stopped_from_the_login_node(self):
        self.submit("--detach", "--set", "vars.seconds=100")
        self.wait_for_learners()
        self.assertIn("running", self.nlaunch("ps", "fleet").stdout)
        done = self.nlaunch("stop", "fleet")
        self.assertRegex(done.stdout, r"^job \d+ of run \S+ is told to stop; nlaunch logs -f shows how it ends\n$")
        self.wait_until(lambda: (self.run_folder / "summary.json").exists())
        self.assertEqual((self.summary()["outcome"], self.summary()["exit_code"]), ("interrupted", 130))
        self.nothing_is_left()


if __name__ == "__main__":
    unittest.main()

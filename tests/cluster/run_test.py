"""Runs over the nodes of an allocation, and what is said and left when something breaks."""
import json
import os
import pathlib
import re
import signal
import subprocess
import time
import unittest

from runs import LEARNER, NLAUNCH, NODES, WHEN, Runs


class Fleet(Runs):
    # --- when all goes well ---

    def test_processes_of_all_nodes_find_each_other(self):
        done = self.run_it()
        self.assertEqual(done.returncode, 0, done.stderr)
        for rank in range(NODES):
            self.assertIn(f"rank {rank} of 4 on node{rank} local 0\nall are here\n", self.log(f"learner.{rank}"))
            self.assertIn(f"learner.{rank} │ rank {rank} of 4 on node{rank} local 0", done.stdout)
        self.assertIn("fleet on test-cluster: 4 × learner · 4 × engine", done.stderr)
        self.assertRegex(done.stderr, rf"\nfinished after {WHEN}(: .*)?\n")
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
        self.is_lost(process, rf"node node2 was lost after {WHEN}: the connection to its agent was closed\n")

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
        self.is_lost(process, rf"srun was killed by SIGKILL \({WHEN} into the run\)\n")

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
        self.addCleanup(self.cluster.end_all_jobs)
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
        self.addCleanup(self.cluster.end_all_jobs)
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
        done = self.cluster.run("salloc", "-Q", f"-N{NODES}", "prlimit", "--nofile=70:70", *self.command()[3:])
        self.assertEqual(done.returncode, 70, done.stderr)
        self.assertIn("nlaunch: 4 nodes need 72 open files, but this process may have only 70 (ulimit -Hn)\n", done.stderr)

    def test_too_few_nodes_and_here(self):
        done = self.cluster.run("salloc", "-Q", "-N2", *self.command("--here")[3:])
        self.assertEqual(done.returncode, 65)
        self.assertRegex(done.stderr, r"^nlaunch run: job \d+ has 2 nodes, but the plan uses 4\n$")

    def test_a_text_that_no_other_node_would_get_as_it_is(self):
        done = self.cluster.run(*self.command("--set", "vars.seconds=${env.ODD}"), env={"ODD": "1\udcff"})
        self.assertEqual((done.returncode, done.stderr), (
            65, "error: the plan cannot be saved because a text in it is not UTF-8: /roles/0/command/2: '1\\xff' [launch.plan-text]\n"))

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
        self.addCleanup(self.cluster.end_all_jobs)
        self.wait_for_learners()
        script = 'echo rank $RANK on $(hostname) in $(pwd); cat; exit 7'
        execute = [NLAUNCH, "exec", self.run_folder]
        done = self.cluster.run("bash", "-c", 'echo typed | "$@"', "bash", *execute, "learner.2", "--", "sh", "-c", script)
        self.assertEqual((done.returncode, done.stdout), (7, f"rank 2 on node2 in {self.folder}\ntyped\n"), done.stderr)
        gone = self.cluster.run(*execute, "learner.9", "--", "true")
        self.assertEqual(gone.returncode, 64)
        self.assertRegex(gone.stderr, rf"^nlaunch exec: 'learner\.9' is not a process in run {self.run_folder.name}; alive"
                                      r": ((engine|learner)\.[0-3](, |\n)){8}$")
        self.nlaunch("stop", "fleet")
        self.wait_until(lambda: (self.run_folder / "summary.json").exists())

    def test_a_run_is_stopped_from_the_login_node(self):
        self.submit("--detach", "--set", "vars.seconds=100")
        self.wait_for_learners()
        self.assertIn("running", self.nlaunch("ps", "fleet").stdout)
        done = self.nlaunch("stop", "fleet")
        self.assertRegex(done.stdout, r"^job \d+ of run \S+ was told to stop; watch it with nlaunch logs -f\n$")
        self.wait_until(lambda: (self.run_folder / "summary.json").exists())
        self.assertEqual((self.summary()["outcome"], self.summary()["exit_code"]), ("interrupted", 130))
        self.nothing_is_left()


if __name__ == "__main__":
    unittest.main()

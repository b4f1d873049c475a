"""Runs from a login node: submitted, followed, looked at and stopped."""
import json
import signal
import unittest

from runs import NODES, WHEN, Runs


class Login(Runs):
    def test_from_the_login_node_it_submits_and_follows(self):
        done = self.submit("--set", "vars.seconds=5")  # Slurm is asked every three seconds
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, r"^fleet on test-cluster: 4 × learner · 4 × engine\njob \d+, run \S+ in ")
        self.assertRegex(done.stderr, r"\njob \d+ runs on node\[0-3\]\n")
        self.assertIn("learner.3 │ rank 3 of 4 on node3 local 0\n", done.stdout)
        self.assertRegex(done.stdout, rf"\nnlaunch: engine: 4 of 4 ready after {WHEN}\n(.*\n)*\nfinished after {WHEN}(: .*)?\n")
        self.assertIn("exec ", (self.run_folder / "job.sbatch").read_text().splitlines()[-1])
        self.nothing_is_left()

    def test_the_exit_code_of_a_job_is_that_of_its_run(self):
        done = self.submit("--set", "vars.fail_rank=2")
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("learner.2 (rank 2) on node2 exited with code 3", done.stdout)

    def test_ctrl_c_detaches_and_the_job_goes_on(self):
        process = self.cluster.start(*self.command("--set", "vars.seconds=3")[3:])
        self.addCleanup(process.communicate)
        self.addCleanup(self.cluster.end_all_jobs)
        self.wait_until(lambda: len(self.events("process-started")) == 2 * NODES)
        process.send_signal(signal.SIGINT)
        code, _, err = self.end_of(process)
        self.assertEqual(code, 0, err)
        self.assertRegex(err, r"\ndetached; job \d+ keeps running\. To follow it again: nlaunch logs -f ")
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
        self.assertEqual([e["verdict"] for e in self.events("preflight")], ["skipped"] * 2)  # what was said holds for the next job
        self.assertEqual(self.cluster.run("squeue", "-ho", "%i").stdout.split(), [jobs()[1]])
        self.cluster.run("scancel", "--batch", "--signal=TERM", jobs()[1])
        self.wait_until(lambda: self.summary()["exit_code"] == 143)
        log = (self.run_folder.parent / f"slurm-{jobs()[0]}.log").read_text()
        self.assertIn(f"job {jobs()[1]} will continue after this one, as job 2 of at most 2\n", log)
        self.nothing_is_left()
        self.wait_until(lambda: len(self.events("end")) == 2)
        told = json.loads(self.nlaunch("report", "fleet", "--json").stdout)
        causes = {cause["kind"]: cause for cause in told["causes"]}
        self.assertEqual(causes["walltime"]["cause"], f"walltime of job {jobs()[0]}")
        self.assertIn("queue", [phase["phase"] for phase in causes["walltime"]["phases"]])  # between the two jobs
        self.assertNotIn("restart", [phase["phase"] for phase in told["phases"]])
        self.assertEqual(causes["stopped"]["job"], jobs()[1])

    def test_a_requeued_job_goes_on_in_its_run_and_is_followed(self):
        requeue = "{signal: USR1, before: 60s, then: requeue}"
        process = self.cluster.start(*self.command("--set", "vars.seconds=12", "--set", f"walltime={requeue}")[3:])
        self.addCleanup(process.communicate)
        self.addCleanup(self.cluster.end_all_jobs)
        self.wait_until(lambda: (self.run_folder / "job.json").exists())
        self.wait_for_learners()
        job = json.loads((self.run_folder / "job.json").read_text())["jobs"][0]
        self.cluster.run("scancel", "--batch", "--signal=USR2", job)  # as Slurm does by itself
        self.wait_until(lambda: (self.run_folder / "summary.json").exists())
        self.assertEqual((self.summary()["outcome"], self.summary()["exit_code"]), ("walltime", 75))
        self.assertEqual({p["end"]["signal"] for p in self.summary()["processes"][:NODES]}, {"SIGUSR1"})
        self.wait_until(lambda: f": waiting for job {job} to continue\n" in self.nlaunch("ps", "fleet").stdout)
        code, out, err = self.end_of(process, 60)
        self.assertEqual(code, 0, err)
        self.assertRegex(out, rf"\nstopped after {WHEN} because the walltime is near\n(.*\n)+job {job} is requeued\n(.*\n)+finished after {WHEN}(: .*)?\n")
        self.assertRegex(err, rf"\njob {job} is waiting: BeginTime.*\n(.*\n)*job {job} runs on node\[0-3\]\n$")
        self.assertEqual(self.summary()["outcome"], "finished")
        self.assertEqual(json.loads((self.run_folder / "job.json").read_text())["jobs"], [job])
        self.assertEqual([e["number"] for e in self.events("attempt")], [0, 1])
        self.assertIn("all are here\n", (self.run_folder / "attempt-1" / "logs" / "learner.3.log").read_text())
        self.nothing_is_left()

    def test_a_requeued_job_that_waits_can_be_stopped(self):
        self.submit("--detach", "--set", "vars.seconds=100", "--set", "walltime={before: 60s, then: requeue}")
        self.addCleanup(self.cluster.end_all_jobs)
        self.wait_for_learners()
        job = json.loads((self.run_folder / "job.json").read_text())["jobs"][0]
        self.cluster.run("scancel", "--batch", "--signal=USR2", job)
        self.wait_until(lambda: self.cluster.run("squeue", "-ho", "%t %r").stdout == "PD BeginTime\n")
        done = self.nlaunch("stop", "fleet")
        self.assertEqual((done.returncode, done.stdout), (0, f"job {job} of run {self.run_folder.name} was removed from the queue\n"))
        self.wait_until(lambda: self.cluster.run("squeue", "-ho", "%i").stdout == "")
        self.assertFalse((self.run_folder / "attempt-1").exists())

    def test_after_success_the_next_job_is_cancelled(self):
        done = self.submit("--set", "walltime={before: 60s, then: chain}")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"\njob \d+, which would have continued the run, was cancelled\n")
        self.wait_until(lambda: self.cluster.run("squeue", "-ho", "%i").stdout == "")

    def test_a_job_that_waits_can_be_looked_at_and_stopped(self):
        self.submit("--detach", "--set", "slurm.begin=now+1hour")
        job = json.loads((self.run_folder / "job.json").read_text())["jobs"][0]
        self.assertIn(f"waiting for job {job} to start", self.nlaunch("ps", "fleet").stdout)
        done = self.nlaunch("stop", "fleet")
        self.assertEqual((done.returncode, done.stdout), (0, f"job {job} of run {self.run_folder.name} was removed from the queue\n"))
        self.wait_until(lambda: self.cluster.run("squeue", "-ho", "%i").stdout == "")

    def test_a_notebook_job_is_named_and_a_job_is_submitted(self):
        done = self.cluster.run("salloc", "-Q", "-N1", "--gpus-per-node=0", "-p", "short", *self.command("--detach", "--set", "slurm.exclusive=false")[3:])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, r"^nlaunch run: job \d+ has 1 node, but the plan uses 4; submitting a separate job\n")
        self.wait_until(lambda: (self.run_folder / "summary.json").exists(), 40)

    def test_what_sbatch_refuses_is_said_with_the_place_of_the_directive(self):
        done = self.submit("--set", "slurm.partition=nosuch")
        self.assertEqual(done.returncode, 65)
        self.assertIn("invalid partition specified: nosuch", done.stderr)
        self.assertIn("note: --partition=nosuch is from --set:1:17\n", done.stderr)

    def test_what_a_partition_would_never_start_is_not_submitted(self):
        done = self.submit("--set", "slurm.partition=short", "--set", "slurm.time=00:20:00")
        self.assertEqual((done.returncode, done.stderr), (65, """\
error: partition 'short' allows at most 2 nodes per job (MaxNodes), but this one asks for 4 [launch.partition]
note: --partition=short is from --set:1:17
hint: `sinfo -s` lists the partitions

error: partition 'short' lets a job run for at most 00:10:00 (MaxTime), but this one asks for 00:20:00 [launch.partition]
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
error: learner: the working directory '{self.folder}/gone' ({path}:12:14) does not exist [launch.workdir]

error: learner, engine: the venv '{self.folder}/.venv' (--set:1:6) does not exist [launch.venv]
hint: create it: python3 -m venv {self.folder}/.venv

2 errors
"""))
        self.assertFalse((self.folder / "runs").exists())

    def test_a_program_that_only_the_nodes_may_have_is_a_note(self):
        path = self.folder / "fleet.yaml"
        path.write_text(path.read_text().replace("[/usr/bin/python3, -m, http.server", "[/opt/none/serve, -m, http.server"))
        done = self.submit("--detach", "--set", "slurm.begin=now+1hour")
        self.addCleanup(self.cluster.end_all_jobs)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr.splitlines()[0], "note: engine: '/opt/none/serve' does not exist on this machine: check that it exists on the nodes")

    def test_without_slurm_the_way_is_said(self):
        done = self.submit(env={"PATH": "/nowhere"})
        self.assertEqual(done.returncode, 64)
        self.assertEqual(done.stderr.splitlines()[0],
                         "error: site 'test-cluster' submits with sbatch, which is not on PATH here [launch.no-slurm]")


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/env python3
"""A run that outlives its nlaunch: the agents keep the processes, and another nlaunch takes the run over."""
import os
import pathlib
import signal
import unittest

from runs import COUNTER, NLAUNCH, NODES, OUTLIVING, SITE, Runs


def lives(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


class Resume(Runs):
    def begun(self, steps, grace="20s", detach=False):
        (self.folder / "counter.py").write_text(COUNTER)
        (self.folder / "fleet.yaml").write_text(OUTLIVING.replace("FOLDER", str(self.folder)).replace(
            "    tolerate:", "    restart: {policy: on-failure, max: 3, backoff: 100ms}\n    tolerate:") + f"leader_grace: {grace}\n")
        own = ["nlaunch", "run", self.folder / "fleet.yaml", "--site", SITE, "--no-preflight", "--runs-dir", self.folder / "runs",
               "--set", f"vars.steps={steps}"]
        own[0] = NLAUNCH
        self.process = self.cluster.start("salloc", "-Q", "--no-kill", f"-N{NODES}", *(["bash", "-c", "\"$@\"; echo shell has $?; sleep 60", "-"] if detach else []), *own)
        self.addCleanup(self.process.communicate)
        self.addCleanup(self.cluster.end_all_jobs)
        self.wait_until(lambda: "step 3\n" in self.log("learner.0"), 40)

    def supervisor(self):
        """The pids of the guardian and of the supervisor of now."""
        last = self.events("attempt-started")[-1]
        return last["guardian"], last["supervisor"]

    def pids(self):
        """Of the last start of each process."""
        return {event["process"]: event["pid"] for event in self.events("process-started")}

    def led_again(self, times=1):
        self.wait_until(lambda: len(self.events("taken-over")) == times and len(self.events("attempt-started")) == times + 1, 30)
        self.wait_until(lambda: len([e for e in self.events("process-ready") if e["process"] == "engine.2"]) > times)

    def counted_all(self, steps):
        """By one learner."""
        self.assertEqual(self.log("learner.0"), f"learner {self.pids()['learner.0']}\n" + "".join(f"step {step}\n" for step in range(steps)))

    def test_the_guardian_becomes_another_when_the_supervisor_is_killed(self):
        self.begun(250)
        before, (guardian, supervisor) = self.pids(), self.supervisor()
        os.kill(supervisor, signal.SIGKILL)
        self.led_again()
        self.assertEqual((self.pids(), self.supervisor()[0]), (before, guardian))
        self.assertIn("running", self.nlaunch("ps", self.run_folder).stdout)
        # What it has taken over it leads: an engine that dies starts again, and an agent that is lost comes back.
        os.kill(before["engine.1"], signal.SIGKILL)
        self.wait_until(lambda: self.pids()["engine.1"] != before["engine.1"])
        os.kill(self.agents()["node3"][0], signal.SIGKILL)
        self.wait_until(lambda: len(self.events("process-back")) == 1)
        code, out, err = self.end_of(self.process, 60)
        self.assertEqual(code, 0, err)
        self.counted_all(250)
        self.assertIn("nlaunch: the supervisor was killed by SIGKILL; its agents keep running, and another one takes over the run\n", err)
        self.assertIn("learner.0 │ step 249\n", out)
        self.assertEqual(self.summary()["outcome"], "finished")
        self.nothing_is_left()

    def test_somebody_takes_over_what_has_neither(self):
        self.begun(250, detach=True)
        before, both = self.pids(), self.supervisor()
        for pid in both:
            os.kill(pid, signal.SIGSTOP)  # so that none sees the other go
        for pid in both:
            os.kill(pid, signal.SIGKILL)
        self.wait_until(lambda: not any(map(lives, both)))
        job = self.events("run")[0]["job"]
        outside = self.nlaunch("resume", self.run_folder)
        self.assertEqual((outside.returncode, outside.stderr),
                         (65, f"nlaunch resume: run {self.run_folder.name} is in job {job} of Slurm, but this is not in a job: run the command in that job\n"))
        # In between an engine dies, which nobody notices yet.
        os.kill(before["engine.1"], signal.SIGKILL)
        inside = self.cluster.start("env", f"SLURM_JOB_ID={job}", f"SLURM_JOBID={job}", f"SLURM_JOB_NUM_NODES={NODES}", f"SLURM_NNODES={NODES}",
                                    f"SLURM_JOB_NODELIST=node[0-{NODES - 1}]", f"SLURM_NODELIST=node[0-{NODES - 1}]",
                                    NLAUNCH, "resume", self.run_folder)
        self.addCleanup(inside.communicate)
        self.led_again()
        again = self.nlaunch("resume", self.run_folder)
        self.assertEqual(again.stderr, f"nlaunch resume: run {self.run_folder.name} still has its nlaunch, with pid {self.supervisor()[0]} on this host\n")
        code, _, err = self.end_of(inside, 60)
        self.assertEqual(code, 0, err)
        after = self.pids()
        self.assertEqual({name for name in after if after[name] != before[name]}, {"engine.1"})
        self.counted_all(250)
        self.nothing_is_left()

    def test_without_another_the_agents_end_what_they_have(self):
        self.begun(1000, grace="3s", detach=True)
        both = self.supervisor()
        for pid in both:
            os.kill(pid, signal.SIGSTOP)
        for pid in both:
            os.kill(pid, signal.SIGKILL)
        self.wait_until(lambda: not any(pathlib.Path(f"/proc/{pid}").exists() for pid in self.pids().values()), 20)
        log = (self.run_folder / "attempt-0" / "srun.log").read_text()
        self.assertIn("processes here keep running for up to 3s without it\n", log)
        self.assertIn("no nlaunch took over the run within 3s; stopping the processes here\n", log)

    def test_a_run_that_is_being_ended_is_not_taken_over(self):
        self.begun(1000)
        learner = self.pids()["learner.0"]
        os.kill(learner, signal.SIGSTOP)  # it has its grace, and does nothing
        os.kill(self.supervisor()[0], signal.SIGINT)
        self.wait_until(lambda: self.events("run-ending"))
        os.kill(self.supervisor()[1], signal.SIGKILL)
        code, _, err = self.end_of(self.process)
        self.assertEqual((code, self.events("taken-over")), (70, []), err)
        self.assertEqual(self.summary()["outcome"], "killed")
        self.nothing_is_left()

    def test_a_run_that_is_stopped_is_over(self):
        self.begun(1000)
        os.kill(self.supervisor()[0], signal.SIGINT)
        code, _, err = self.end_of(self.process)
        self.assertEqual(code, 130, err)
        self.assertEqual(self.nlaunch("resume", self.run_folder).stderr, f"nlaunch resume: run {self.run_folder.name} has ended: interrupted\n")
        self.nothing_is_left()


if __name__ == "__main__":
    unittest.main()

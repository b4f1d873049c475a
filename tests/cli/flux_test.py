#!/usr/bin/env python3
"""Flux: whole scripts against golden files (NLAUNCH_UPDATE_GOLDEN=1 rewrites them), what is refused, and whole jobs with a
stand-in for the program `flux` (tests/flux/flux), which takes the documented options and refuses others."""
import os
import re
import subprocess
import unittest

from harness import BUILD, SOURCE, CliTest

GOLDEN = SOURCE / "tests" / "golden" / "flux"
DIRECTIVES = "{queue: batch, bank: lab, time-limit: 4h, requires: 'host:a b', setattr: system.x=1, unbuffered: true}"


class Flux(CliTest):
    def setUp(self):
        super().setUp()
        self.state = self.folder / "flux-state"
        self.state.mkdir()
        self.env |= {"PATH": f"{SOURCE}/tests/flux:{self.env['PATH']}", "FLUX_STAND_IN": str(self.state)}

    def site(self, scheduler="{kind: flux}", node="{gpus: 0}"):
        path = self.folder / "site.yaml"
        path.write_text(f"version: 1\nname: tuolumne\nnode: {node}\nscheduler: {scheduler}\n")
        return path

    def experiment(self, command, more=""):
        path = self.folder / "experiment.yaml"
        path.write_text(f"version: 1\nname: test\nnodes: 2\nweight_sync: {{backend: gloo}}\ncpu_slots: true\n{more}\n"
                        f"roles: {{worker: {{kind: service, per_node: 1, command: [sh, -c, '{command}'], ends_run: true}}}}\n")
        return path

    def run_flux(self, experiment, *arguments, scheduler="{kind: flux}", **options):
        return self.nlaunch("run", experiment, "--site", self.site(scheduler), "--runs-dir", self.folder / "runs", "--no-preflight", *arguments, **options)

    @property
    def called(self):
        path = self.state / "called"
        return path.read_text().splitlines() if path.exists() else []

    def logs(self):
        return "".join(path.read_text(errors="replace") for path in sorted(self.state.parent.glob("runs/test/*/*.log")))

    def test_a_golden_script(self):
        done = self.nlaunch("render", "configs/quickstart.yaml", "--nodes", 2, "--site", self.site(f"{{kind: flux, directives: {DIRECTIVES}}}", "{gpus: 4}"), "--runs-dir", self.folder / "runs")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        text = done.stdout.replace(str(BUILD / "bin"), "/opt/nlaunch/bin").replace(str(self.folder), "/home/me").replace(str(SOURCE), "/home/me/project")
        text = re.sub(r"plans/[0-9a-f]{16}\.json", "plans/0123456789abcdef.json", text)
        path = GOLDEN / "quickstart.flux"
        if os.environ.get("NLAUNCH_UPDATE_GOLDEN"):
            path.write_text(text)
        self.assertEqual(text, path.read_text(), f"{path} differs; NLAUNCH_UPDATE_GOLDEN=1 rewrites it")
        for checker in (["bash", "-n"], ["shellcheck"]):
            checked = subprocess.run([*checker, path], capture_output=True, text=True, check=False)
            self.assertEqual((checked.returncode, checked.stdout), (0, ""))

    def test_the_script_is_written_with_how_to_submit_it(self):
        done = self.nlaunch("render", "configs/quickstart.yaml", "--site", self.site(), "--runs-dir", self.folder / "runs", "--output", self.folder / "job.flux")
        self.assertEqual((done.returncode, self.normal(done.stderr)), (0, "submit it with: flux batch $FOLDER/job.flux\n"))

    def test_what_flux_cannot_be_told_is_refused(self):
        for scheduler, words in (
                ("{kind: flux, directives: {nodes: 3}}", "error: 'nodes' is set by nlaunch and cannot be set here [plan.flux-owned]"),
                ("{kind: flux, directives: {env: X}}", "error: 'env' is set by nlaunch and cannot be set here [plan.flux-owned]"),
                ("{kind: flux, directives: {-q: batch}}", "error: '-q' is not an option of flux batch [plan.flux-option]"),
                ("{kind: flux, directives: {queue: true}}", "error: 'queue' needs a value; `true` would make it a flag [plan.flux-value]"),
                ("""{kind: flux, directives: {queue: "it's"}}""", "error: 'it's' is not allowed in a #flux: line [plan.flux-value]"),
                ("{kind: flux, srun: [--exclusive]}", "error: 'scheduler.srun' is for Slurm, but the scheduler is flux [plan.flux-key]"),
                ("{kind: flux, template: x.sh}", "error: 'scheduler.template' is for Slurm, but the scheduler is flux [plan.flux-key]"),
                ("{kind: flux, bad_nodes: {file: bad.tsv}}", "error: 'scheduler.bad_nodes' is for Slurm, but the scheduler is flux [plan.flux-key]")):
            with self.subTest(scheduler):
                done = self.nlaunch("render", "configs/quickstart.yaml", "--site", self.site(scheduler), "--runs-dir", self.folder / "runs")
                self.assertEqual(done.returncode, 65, done.stderr)
                self.assertIn(words, done.stderr)
                self.assertFalse((self.folder / "runs").exists())

    def test_walltime_and_spares_are_refused(self):
        done = self.run_flux(self.experiment("true", "walltime: {then: chain}"))
        self.assertEqual(done.returncode, 65)
        self.assertIn("error: `walltime` has no effect under Flux, whose jobs are neither requeued nor chained [plan.walltime]\n", done.stderr)
        done = self.run_flux(self.experiment("true"), "--spares", 1)
        self.assertIn("--spares 1: site 'tuolumne' has no scheduler that could allocate spare nodes", done.stderr)
        self.assertEqual(self.called, [])

    def test_an_unknown_directive_has_a_warning(self):
        done = self.nlaunch("sites", "check", self.site("{kind: flux, directives: {qeue: batch}}"))
        self.assertIn("flux batch has no known option --qeue [plan.flux-unknown]", done.stdout + done.stderr)
        self.assertIn("did you mean queue?", done.stdout + done.stderr)

    def test_a_job_is_submitted_followed_and_its_exit_code_is_the_run_s(self):
        done = self.run_flux(self.experiment("echo here is node $FLUX_TASK_RANK; exit 0"), scheduler="{kind: flux, directives: {queue: batch}}")
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout + self.logs())
        self.assertRegex(done.stderr, r"job ƒ1, run [\d-]+")
        self.assertIn("job ƒ1 runs on flux[0-1]", done.stderr)
        self.assertIn("worker.1", done.stdout)
        self.assertEqual([line.split()[0] for line in self.called if not line.startswith("jobs")], ["batch", "getattr", "run"])
        step = next(line for line in self.called if line.startswith("run"))
        self.assertRegex(step, r"^run --nodes=2 --ntasks=2 --exclusive --input=/dev/null --setopt=cpu-affinity=off --setopt=gpu-affinity=off "
                               r"--setopt=pmi=off --setopt=exit-timeout=none --setopt=exit-on-error \S+/nlaunch agent --step \S+/attempt-0/step.json$")
        failed = self.run_flux(self.experiment("exit 3"))
        self.assertEqual(failed.returncode, 3)
        self.assertIn("exited with code 3", failed.stdout)

    def test_in_an_instance_that_is_too_small_a_job_of_its_own_is_submitted(self):
        env = {"FLUX_URI": "local:///x", "FLUX_ENCLOSING_ID": "ƒa", "FLUX_STAND_IN_HOSTS": "flux0"}
        done = self.run_flux(self.experiment("true"), "--here", env=env)
        self.assertEqual((done.returncode, done.stderr), (65, "nlaunch run: job ƒa has 1 node, but the plan uses 2\n"))
        done = self.run_flux(self.experiment("true"), "--detach", env=env)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("nlaunch run: job ƒa has 1 node, but the plan uses 2; submitting a separate job\n", done.stderr)

    def test_a_job_that_waits_is_taken_out_of_the_queue(self):
        done = self.run_flux(self.experiment("true"), "--detach", scheduler="{kind: flux, directives: {queue: hold}}")
        self.assertEqual(done.returncode, 0, done.stderr)
        stopped = self.nlaunch("stop", "test", "--runs-dir", self.folder / "runs")
        self.assertEqual(stopped.returncode, 0, stopped.stderr)
        self.assertRegex(stopped.stdout, r"^job ƒ1 of run \S+ was removed from the queue\n$")
        self.assertEqual(self.called[-1], "cancel 'ƒ1'")

    def test_without_flux_it_says_so(self):
        done = self.run_flux(self.experiment("true"), env={"PATH": "/usr/bin:/bin"})
        self.assertEqual(done.returncode, 64)
        self.assertIn("error: site 'tuolumne' submits with flux, which is not on PATH here [scheduler.no-flux]\n", done.stderr)

    def test_checks_are_made_in_an_instance(self):
        done = self.nlaunch("preflight", self.experiment("true"), "--site", self.site(), "--runs-dir", self.folder / "runs")
        self.assertEqual((done.returncode, done.stderr), (64,
            "nlaunch preflight: site 'tuolumne' is reached through Flux, and this is not an allocation: to check nodes, use flux alloc -N 2 nlaunch "
            "preflight ...; nlaunch run checks the nodes of its job before it starts anything there; nlaunch preflight --site tuolumne "
            "(without the experiment) checks this machine\n"))


if __name__ == "__main__":
    unittest.main()

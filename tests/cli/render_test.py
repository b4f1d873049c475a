#!/usr/bin/env python3
"""`nlaunch render`: whole scripts against golden files (NLAUNCH_UPDATE_GOLDEN=1 rewrites them), and what it refuses."""
import json
import os
import re
import shutil
import subprocess
import time
import unittest

from harness import BUILD, NLAUNCH, SOURCE, CliTest

GOLDEN = SOURCE / "tests" / "golden" / "render"
CLUSTER = SOURCE / "tests" / "cluster" / "site.yaml"
CASES = {
    "grpo.isambard": ["configs/grpo.yaml", "--site", "isambard"],
    "grpo-32b.isambard": ["configs/grpo-32b.yaml", "--site", "isambard"],
    "quickstart.test-cluster": ["configs/quickstart.yaml", "--site", CLUSTER, "--nodes", 4],
}
QUICKSTART = CASES["quickstart.test-cluster"]


class Render(CliTest):
    def render(self, *arguments, **options):
        return self.nlaunch("render", *arguments, "--runs-dir", self.folder / "runs", **options)

    def script(self, *arguments, **options):
        done = self.render(*arguments, **options)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def site(self, scheduler, **files):
        """A profile with this `scheduler:`, and files beside it."""
        for name, content in files.items():
            (self.folder / name).write_text(content)
        path = self.folder / "site.yaml"
        path.write_text(f"version: 1\nname: mine\nnode: {{gpus: 4}}\nscheduler: {scheduler}\n")
        return path

    @property
    def made(self):
        """What stands in the runs folder."""
        runs = self.folder / "runs"
        return sorted(str(path.relative_to(runs)) for path in runs.rglob("*") if not path.is_dir())

    def test_golden_scripts(self):
        for name, arguments in CASES.items():
            with self.subTest(name):
                text = self.script(*arguments).replace(str(BUILD / "bin"), "/opt/nlaunch/bin")
                text = text.replace(str(self.folder), "/home/me").replace(str(SOURCE), "/home/me/project")
                text = re.sub(r"plans/[0-9a-f]{16}\.json", "plans/0123456789abcdef.json", text)
                path = GOLDEN / f"{name}.sbatch"
                if os.environ.get("NLAUNCH_UPDATE_GOLDEN"):
                    path.write_text(text)
                self.assertEqual(text, path.read_text(), f"{path} differs; NLAUNCH_UPDATE_GOLDEN=1 rewrites it")

    def test_golden_scripts_are_clean_shell(self):
        for path in sorted(GOLDEN.glob("*.sbatch")):
            for checker in (["bash", "-n"], ["shellcheck"]):
                done = subprocess.run([*checker, path], capture_output=True, text=True)
                self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""), path)
        self.assertEqual({path.stem for path in GOLDEN.iterdir()}, set(CASES))

    def test_the_same_plan_gives_the_same_bytes_and_one_file(self):
        first = self.script(*QUICKSTART)
        self.assertEqual(self.script(*QUICKSTART), first)
        self.assertEqual(len(self.made), 1)
        self.assertNotEqual(self.script(*QUICKSTART, "--set", "vars.steps=7"), first)
        self.assertEqual(len(self.made), 2)

    def test_the_plan_is_frozen(self):
        script = self.script(*QUICKSTART)
        plan = self.folder / "runs" / self.made[0]
        self.assertEqual(plan.stat().st_mode & 0o777, 0o600)
        self.assertEqual(plan.parent.stat().st_mode & 0o777, 0o700)
        self.assertEqual(plan.read_text(), self.nlaunch("plan", *QUICKSTART, "--json").stdout)
        self.assertTrue(script.endswith(
            f"\nexec {BUILD}/bin/nlaunch run --plan {plan} --runs-dir {self.folder}/runs --here\n"), script)
        self.assertEqual(self.script("--plan", plan), script)

    def test_nothing_of_the_environment_is_in_it(self):
        script = self.script("configs/grpo.yaml", "--site", "isambard",
                             env={"WANDB_API_KEY": "hush-hush", "LD_PRELOAD": "", "PATH": "/usr/bin:/secret/bin"})
        for word in ("hush", "WANDB", "LD_PRELOAD", "/secret/bin", "NCCL", "export"):
            self.assertNotIn(word, script)

    def test_output_goes_to_a_file(self):
        target = self.folder / "it's job.sbatch"
        done = self.render(*QUICKSTART, "--output", target)
        self.assertEqual((done.returncode, done.stdout), (0, ""))
        self.assertEqual(done.stderr, f"submit it with: sbatch '{self.folder}/it'\\''s job.sbatch'\n")
        self.assertEqual(target.read_text(), self.script(*QUICKSTART))
        self.assertEqual(self.render(*QUICKSTART, "--output", target, "--quiet").stderr, "")
        done = self.render(*QUICKSTART, "--output", self.folder / "none" / "job.sbatch")
        self.assertEqual((done.returncode, self.normal(done.stderr)), (
            65, "error: cannot write '$FOLDER/none/job.sbatch': No such file or directory [file.write]\n"))

    def test_what_cannot_be_printed_is_no_success(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([NLAUNCH, "render", *map(str, QUICKSTART)], stdout=full, stderr=subprocess.PIPE, text=True,
                                  env=self.env, cwd=SOURCE, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (
            70, "nlaunch: output truncated: cannot write to standard output: No space left on device\n"))

    def test_bad_nodes_are_left_out_by_the_submission_and_not_by_the_script(self):
        site = self.folder / "sites" / "our.yaml"
        site.parent.mkdir()
        site.write_text(f"version: 1\nname: our\nextends: {CLUSTER}\nscheduler: {{bad_nodes: {{file: bad.tsv, ttl: 7d}}}}\n")
        arguments = (QUICKSTART[0], "--site", site, *QUICKSTART[3:])
        before = self.script(*arguments)
        ledger = site.parent / "bad.tsv"
        now = int(time.time())
        ledger.write_text(f"{now}\tnode1\tECC errors\talice\n{now - 8 * 86400}\tnode2\told\tbob\nwhat?\n")
        target = self.folder / "job.sbatch"
        done = self.render(*arguments, "--set", "slurm.exclude=node[7-8]", "--output", target)
        day = time.strftime("%Y-%m-%d", time.localtime(now))
        self.assertEqual((done.returncode, self.normal(done.stderr)), (
            0, "note: 1 line of $FOLDER/sites/bad.tsv cannot be parsed and is ignored; the first is line 3\n"
               f"note: excluded nodes (listed in $FOLDER/sites/bad.tsv): node1 (ECC errors; alice, {day})\n"
               "submit it with: sbatch '--exclude=node[7-8],node1' $FOLDER/job.sbatch\n"))
        self.assertIn("#SBATCH --exclude=node[7-8]\n", target.read_text())
        done = self.render(*arguments)
        self.assertEqual(done.stdout, before)
        self.assertNotIn("node1", before)

    def test_a_folder_with_any_name_stays_a_folder(self):
        for name in ("two words", "it's", '"quoted"', "$(touch pwned)", "`touch pwned`", "a;touch pwned;b", "#x", "100%j", "&", "ü"):
            runs = self.folder / name
            done = self.nlaunch("render", *QUICKSTART, "--runs-dir", runs)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            # With a `printf` in place of `exec`, the shell itself says what words it would pass on.
            said = subprocess.run(["bash"], input=done.stdout.replace("\nexec ", "\nprintf '%s\\0' "), text=True, cwd=self.folder,
                                  capture_output=True, check=True)
            self.assertEqual(said.stdout.split("\0"), [
                f"{BUILD}/bin/nlaunch", "run", "--plan", str(*runs.glob("quickstart/plans/*.json")), "--runs-dir", str(runs),
                "--here", ""])
            self.assertFalse((self.folder / "pwned").exists())
            shutil.rmtree(runs)

    def test_a_folder_that_sbatch_could_not_be_told_is_refused(self):
        for name, shown in (("two\nlines", "two\\nlines"), ("\udcff", "\\xff")):
            done = self.nlaunch("render", *QUICKSTART, "--runs-dir", self.folder / name)
            self.assertEqual((done.returncode, self.normal(done.stderr)), (
                65, f"error: '--output=$FOLDER/{shown}/quickstart/slurm-%j.log' cannot be used in an #SBATCH line "
                    "[emit.slurm-value]\n"
                    "hint: line breaks, other control characters and invalid UTF-8 are not allowed there\n"))
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_folders_of_logs_are_made(self):
        self.script(*QUICKSTART, "--set", f"slurm.output={self.folder}/%%/%u/%x-logs/%j.log", "--set", "slurm.job-name=x y",
                    "--set", f"slurm.error={self.folder}/errors/%x.%j.err")
        user = subprocess.run(["id", "-un"], capture_output=True, text=True, check=True).stdout.strip()
        self.assertTrue((self.folder / "%" / user / "x y-logs").is_dir())
        self.assertTrue((self.folder / "errors").is_dir())
        done = self.render(*QUICKSTART, "--set", f"slurm.output={self.folder}/%j/log")
        self.assertEqual((done.returncode, self.normal(done.stderr)), (
            65, "error: the directory of `output: $FOLDER/%j/log` (--set:1:14) must exist before the job, but Slurm knows %j only "
                "once the job exists [launch.log-folder]\n"
                "hint: use only %u and %x in the directory, and the others in the file name\n"))

    def test_without_a_scheduler_there_is_no_script(self):
        done = self.render("configs/quickstart.yaml", "--site", "local")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (
            65, "", "nlaunch render: site 'local' has no scheduler to submit a script to: run it here with `nlaunch run`, "
                    "or choose another --site (`nlaunch sites` lists them)\n"))
        self.assertEqual(self.made, [])

    def test_what_a_saved_plan_does_not_keep_is_refused(self):
        done = self.render(*QUICKSTART, "--env", "engine:MY_API_KEY=hush")
        self.assertEqual((done.returncode, done.stderr), (
            65, "error: MY_API_KEY of role 'engine' (--env engine:MY_API_KEY) looks like a secret, and the plan of a job must "
                "not contain one [launch.secret-in-env]\n"
                "hint: declare `secrets: {MY_API_KEY: env}`, which reads it where the job runs\n"))
        done = self.render(*QUICKSTART, "--set", "vars.fail_rank=${env.ODD}", env={"ODD": "a\udcff"})
        self.assertEqual((done.returncode, done.stderr), (
            65, "error: the plan cannot be saved because a text in it is not UTF-8: /roles/1/command/6: '--fail-rank=a\\xff' [launch.plan-text]\n"))
        self.assertEqual(self.made, [])

    def test_a_site_brings_its_own_template(self):
        site = self.site("{kind: slurm, template: own.sbatch}", **{
            "own.sbatch": "#!/bin/bash -l\n# {{NAME}} on {{SITE}}\n{{DIRECTIVES}}\nulimit -c 0\nexec {{COMMAND}}\n"})
        lines = self.script("configs/quickstart.yaml", "--site", site).splitlines()
        self.assertEqual(lines[:3], ["#!/bin/bash -l", "# quickstart on mine", "#SBATCH --job-name=quickstart"])
        self.assertEqual(lines[-2], "ulimit -c 0")
        plan = json.loads((self.folder / "runs" / self.made[0]).read_text())
        self.assertEqual(plan["slurm"]["template"], str(self.folder / "own.sbatch"))

    def test_a_template_is_checked_before_it_is_used(self):
        site = self.site("{kind: slurm, template: own.sbatch}", **{
            "own.sbatch": "#!/bin/bash\n# {{NAMES}}\n{{DIRECTIVES}}\nexec {{COMMAND}}\n"})
        done = self.render("configs/quickstart.yaml", "--site", site)
        self.assertEqual((done.returncode, done.stdout, self.normal(done.stderr)), (
            65, "", "$FOLDER/own.sbatch:2:3: error: '{{NAMES}}' is not a name of this template [emit.unknown-name]\n"
                    "   2 | # {{NAMES}}\n"
                    "     |   ^^^^^^^^^\n"
                    "hint: did you mean {{NAME}}?\n"))
        done = self.render("configs/quickstart.yaml", "--site", self.site("{kind: slurm, template: none.sbatch}"))
        self.assertEqual((done.returncode, self.normal(done.stderr)), (
            65, "error: cannot open '$FOLDER/none.sbatch': No such file or directory [file.open]\n"))
        self.assertEqual(self.made, [])

    def test_the_shipped_template_is_the_built_in_one(self):
        site = self.site(f"{{kind: slurm, template: {SOURCE / 'templates' / 'slurm.sbatch'}}}")
        own = self.script("configs/quickstart.yaml", "--site", site)
        built_in = self.script("configs/quickstart.yaml", "--site", self.site("{kind: slurm}"))
        self.assertEqual(re.sub(r"\w+\.json", "", own), re.sub(r"\w+\.json", "", built_in))


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/env python3
"""`nlaunch lint`: whole outputs over cases/ against golden files (NLAUNCH_UPDATE_GOLDEN=1 rewrites them), the shipped files, and what
stands around it. The cases are written after faults that public scripts have."""
import json
import os
import pathlib
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "cli"))
from harness import SOURCE, CliTest  # noqa: E402

CASES = HERE / "cases"
GOLDEN = SOURCE / "tests" / "golden" / "lint"
CONFIGS = sorted(str(path.relative_to(SOURCE / "configs")) for path in (SOURCE / "configs").rglob("*.yaml"))
SITES = sorted(path.stem for path in (SOURCE / "site-profiles").glob("*.yaml"))
REFUSED = 65


class Lint(CliTest):
    def lint(self, *arguments, **keywords):
        return self.nlaunch("lint", *arguments, **keywords)

    def lint_text(self, text, *arguments, name="job.sh"):
        path = self.folder / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return self.lint(path, *arguments)

    def rules(self, text, *arguments, name="job.sh"):
        """(rule, severity, line) of what is found."""
        result = self.lint_text(text, "--json", *arguments, name=name)
        return [(one["rule"], one["severity"], one["line"]) for one in json.loads(result.stdout)]


class Cases(Lint):
    def test_cases(self):
        for path in sorted(CASES.iterdir()):
            with self.subTest(path.name):
                result = self.lint(f"tests/lint/cases/{path.name}")
                golden = GOLDEN / f"{path.name}.txt"
                if os.environ.get("NLAUNCH_UPDATE_GOLDEN"):
                    golden.parent.mkdir(exist_ok=True)
                    golden.write_text(result.stdout)
                self.assertEqual(result.stderr, "")
                self.assertEqual(result.stdout, golden.read_text(), f"{golden} differs; NLAUNCH_UPDATE_GOLDEN=1 rewrites it")
                self.assertEqual(result.returncode, REFUSED if "error" in result.stdout.splitlines()[-1] else 0)

    def test_nothing_is_found_in_a_script_that_is_as_it_should_be(self):
        result = self.lint("tests/lint/cases/clean_torchrun.sbatch", "--strict")
        self.assertEqual((result.returncode, result.stdout), (0, "no findings in 31 settings\n"))

    def test_every_rule_is_shown_by_a_case_or_has_a_test_here(self):
        shown = "".join(path.read_text() for path in GOLDEN.iterdir()) + pathlib.Path(__file__).read_text()
        shown += "".join(path.read_text() for path in (SOURCE / "tests/unit/lint").rglob("*_test.cpp"))
        listed = self.lint("--explain").stdout.splitlines()[1:]
        self.assertEqual([line.split()[0] for line in listed if line.split()[0] not in shown], [])


class Shipped(Lint):
    def test_nothing_is_found_in_what_is_shipped(self):
        for site in SITES:
            for config in CONFIGS:
                with self.subTest(f"{config} on {site}"):
                    options = [] if site in ("isambard", "alps") else ["--set", "site.node.gpus=4", "--set", "site.node.arch=x86_64"]
                    result = self.lint(f"configs/{config}", "--site", site, *options)
                    if "[plan." in result.stderr:
                        continue  # does not fit there, whatever the environment is
                    self.assertEqual((result.returncode, result.stderr), (0, ""), result.stdout)
                    self.assertRegex(result.stdout, r"^no findings in \d+ settings?\n$")

    def test_the_scripts_of_this_project_are_clean(self):
        scripts = [str(path.relative_to(SOURCE)) for path in SOURCE.glob("scripts/**/*.sh")]
        result = self.lint(*scripts, timeout=300)  # bash runs all of them
        self.assertEqual(result.returncode, 0, result.stdout)


class Submitted(Lint):
    def test_a_script_that_a_script_submits_is_linted_as_it_is_submitted(self):
        (self.folder / "job.sh").write_text("#!/bin/bash\n#SBATCH --gpus-per-node=1 -c 8\n#SBATCH --output=%j.out\ncd /scratch/x\nsrun -c 8 python train.py --model $1\necho $1\n")
        found = self.rules("for m in a b; do\n  sbatch --time=1:00:00 --exclusive job.sh $m || exit 1\ndone\n", name="submit.sh")
        self.assertEqual(found, [("setup-unchecked", "note", 4), ("exit-code-hidden", "warning", 6)])
        alone = self.lint(self.folder / "job.sh", "--json")
        self.assertIn("no-time", alone.stdout)  # which the submission gives
        self.assertNotIn("no-time", str(found))

    def test_the_failure_of_a_script_that_a_script_calls_is_told_where_it_is_called(self):
        (self.folder / "in.sh").write_text("export A=1\npython eval.py $1\n")
        self.assertIn(("failure-unseen", "note", 2), self.rules("echo begin\nbash -e in.sh 1\necho done\n"))
        self.assertNotIn("failure-unseen", str(self.rules("bash in.sh 1 || exit 1\n")))
        job = "#!/bin/bash\n#SBATCH -N 1 -c 8 --time=9\nfor i in 1 2; do\n  bash -e in.sh $i &\ndone\n"
        self.assertIn(("exit-code-hidden", "warning", 6), self.rules(job + "wait\n"))
        self.assertIn(("not-waited-for", "error", 4), self.rules(job + "echo done\n"))

    def test_one_that_is_not_here_is_left_out(self):
        self.assertEqual(self.rules("sbatch nowhere.sh\n"), [])


class Plans(Lint):
    def test_a_role_gets_its_findings_with_their_place(self):
        path = self.folder / "exp.yaml"
        path.write_text("version: 1\nname: e\nroles:\n  learner:\n    kind: learner\n    command: [python, train.py]\n"
                        "    env: {NCCL_DEBUG: ERROR}\n  engine:\n    kind: engine\n    command: [vllm]\n    env: {NCCL_DEBUG: INFO}\n")
        result = self.lint(path, "--site", "local")
        self.assertEqual(result.returncode, REFUSED)
        self.assertEqual(result.stdout.replace(f"{self.folder}/", ""),
                         "exp.yaml:7:11: error: NCCL_DEBUG does not know 'ERROR': it accepts VERSION, WARN, INFO, ABORT or TRACE "
                         "[unknown-value]\n"
                         "   7 |     env: {NCCL_DEBUG: ERROR}\n"
                         "     |           ^^^^^^^^^^\n"
                         "roles: learner\n"
                         "why: NCCL then prints nothing at all, not even warnings, and failures have no message "
                         "(NCCL: src/debug.cc@2.30.7)\n"
                         "instead: NCCL_DEBUG=WARN\n\n"
                         "1 finding: 1 error; for details: nlaunch lint --explain unknown-value\n")

    def findings(self, env, *arguments, roles=""):
        """Of a job of two nodes on isambard whose learner has `env`."""
        path = self.folder / "exp.yaml"
        path.write_text("version: 1\nname: e\nnodes: 2\nweight_sync: {backend: nccl}\nroles:\n"
                        f"  learner: {{kind: learner, gpus: 1, per_node: 1, rendezvous: torch, command: [python], env: {{{env}}}}}\n"
                        f"  engine: {{kind: engine, gpus: 1, count: 2, command: [vllm]}}\n{roles}")
        result = self.lint(path, "--json", "--site", "isambard", *arguments)
        self.assertEqual(result.stderr, "")
        return [(one["rule"], one["roles"]) for one in json.loads(result.stdout)]

    def test_grace_hopper_without_a_guard(self):
        guard = ["--set", "site.env.set.FI_CXI_RDZV_THRESHOLD=2048"]
        self.assertEqual(self.findings("", *guard), [])  # the profile has a second guard: NCCL_PROTO
        self.assertEqual(self.findings("NCCL_PROTO: Simple", *guard), [])
        bare = [*guard, "--env", "NCCL_PROTO=LL128,Simple", "--release", "NCCL=2.27.5"]
        self.assertEqual(self.findings("", *bare), [("forced-ll128", ["learner", "engine"]), ("ll128-guard", ["learner", "engine"])])
        self.assertEqual(self.findings("", *guard, "--env", "NCCL_PROTO=Tree", "--release", "NCCL=2.26.6"),
                         [("unknown-algorithm", ["learner", "engine"])])
        self.assertEqual(self.findings("NCCL_GDRCOPY_ENABLE: '1'", *guard), [("gdrcopy", ["learner"])])
        self.assertEqual(self.findings("NCCL_GDRCOPY_ENABLE: '1'"), [])

    def test_what_differs_within_a_group(self):
        self.assertEqual(self.findings("NCCL_CUMEM_ENABLE: '0'"), [("cumem-differs", [])])
        self.assertEqual(self.findings("", "--env", "NCCL_CUMEM_ENABLE=0"), [])

    def test_alt_read_wants_the_steps_option(self):
        self.assertEqual(self.findings("", "--set", "site.scheduler.srun=[]"), [("alt-read", ["learner", "engine"])])

    def test_a_release_decides(self):
        self.assertEqual(self.findings("NCCL_LAUNCH_ORDER_IMPLICIT: '1'", "--release", "NCCL=2.25.1"), [("not-in-release", ["learner"])])
        self.assertEqual(self.findings("NCCL_LAUNCH_ORDER_IMPLICIT: '1'", "--release", "nccl=2.26.2"), [])

    def test_one_node_needs_no_network(self):
        self.assertEqual(self.findings("NCCL_NET: AWS Libfabric", "--nodes", "1"), [("net-on-one-node", ["learner"])])

    def test_a_service_needs_no_preload(self):
        roles = ("  helper: {kind: service, command: [python], preload: [nccl]}\n")
        self.assertEqual(self.findings("", roles=roles), [("preload-unneeded", ["helper"])])

    def test_a_wrapper_that_takes_the_environment_away(self):
        roles = ("  cleaned: {kind: service, command: [python], wrapper: [bwrap, --clearenv, --dev-bind, /, /]}\n"
                 "  helper: {kind: service, command: [python], wrapper: [bwrap, --dev-bind, /, /]}\n")
        self.assertEqual(self.findings("", roles=roles), [("container-environment", ["cleaned"])])

    def test_a_comment_in_the_file_silences(self):
        path = self.folder / "exp.yaml"
        path.write_text("version: 1\nname: e\nroles:\n  learner:\n    kind: learner\n    command: [python]\n    env:\n"
                        "      NCCL_PROTO: LL  # nlaunch: allow forced-ll: its messages are small\n")
        result = self.lint(path, "--site", "local", "--strict")
        self.assertEqual(result.returncode, 0, result.stdout)

    def test_wheels_of_the_venv_say_the_release(self):
        packages = self.folder / ".venv/lib/python3.11/site-packages"
        (packages / "nvidia_nccl_cu12-2.25.1.dist-info").mkdir(parents=True)
        (self.folder / ".venv/bin").mkdir()
        path = self.folder / "exp.yaml"
        path.write_text("version: 1\nname: e\nvenv: .venv\nroles:\n  learner:\n    kind: learner\n    command: [python]\n"
                        "    env: {NCCL_LAUNCH_ORDER_IMPLICIT: '1'}\n")
        result = self.lint(path, "--site", "local")
        self.assertIn("NCCL 2.25.1 does not read NCCL_LAUNCH_ORDER_IMPLICIT yet [not-in-release]", result.stdout)

    def test_a_program_that_reads_a_variable_is_told(self):
        (self.folder / "train.py").write_text('import os\nwait = int(os.environ["NCCL_TIMEOUT"])\n')
        path = self.folder / "exp.yaml"
        path.write_text("version: 1\nname: e\nroles:\n  learner:\n    kind: learner\n    command: [python, train.py]\n"
                        "    env: {NCCL_TIMEOUT: '600'}\n")
        result = self.lint(path, "--site", "local")
        self.assertEqual(result.returncode, 0)
        self.assertIn("note: NCCL_TIMEOUT is read only by train.py [unknown-variable]", result.stdout)

    def test_an_nccl_conf_of_the_user_is_seen(self):
        (self.folder / ".nccl.conf").write_text("NCCL_IB_DISABLE=1\n")
        result = self.lint("configs/quickstart.yaml", "--site", "local", env={"HOME": str(self.folder)})
        self.assertIn(f"{self.folder}/.nccl.conf:1:1: warning: {self.folder}/.nccl.conf sets NCCL_IB_DISABLE, which nothing here asks for "
                      "[nccl-conf]", result.stdout)


class Rules(Lint):
    def test_which_nodes_and_networks_a_script_is_for(self):
        self.assertEqual(self.rules("#!/bin/bash\n#SBATCH -N 1\nexport NCCL_NET=Socket\n"), [("net-on-one-node", "warning", 3)])
        self.assertEqual(self.rules("#!/bin/bash\n#SBATCH -N 2\nexport NCCL_NET=Socket\n"), [])
        self.assertEqual(self.rules("export NCCL_IB_DISABLE=1\n"), [])
        self.assertEqual(self.rules("export FI_PROVIDER=cxi NCCL_NET_GDR_LEVEL=PHB\n", "--site", "isambard"), [("ll128-guard", "error", 1)])

    def test_a_finding_of_a_whole_script_names_the_script(self):
        result = self.lint_text("srun python train.py\n", "--site", "isambard")
        self.assertEqual(result.stdout.splitlines()[0],
                         f"{self.folder}/job.sh: error: GH200 with Slingshot, NCCL 2.27.3 or newer, and nothing that keeps LL128 off the "
                         "network [ll128-guard]")

    def test_what_nlaunch_starts_has_the_environment_of_its_plan(self):
        rendered = self.nlaunch("render", "configs/grpo.yaml", "--site", "isambard").stdout
        self.assertEqual(self.rules(rendered, "--site", "isambard"), [])

    def test_a_network_by_its_name_and_its_plugin(self):
        self.assertEqual(self.rules("export NCCL_NET=ofi\n", "--release", "aws-ofi-nccl=1.8.1"), [("net-plugin", "error", 1)])
        self.assertEqual(self.rules("export NCCL_NET=ofi\n", "--release", "aws-ofi-nccl=1.13.0"), [])
        self.assertEqual(self.rules('export NCCL_NET="AWS Libfabric" NCCL_NET_PLUGIN=ucx\n'), [("net-plugin", "error", 1)])
        self.assertEqual(self.rules("export NCCL_NET=Socket NCCL_NET_PLUGIN=none\n"), [])
        self.assertEqual(self.rules("export NCCL_NET=ofi NCCL_NET_PLUGIN=none\n"), [("net-plugin", "error", 1)])

    def test_modules_that_come_after(self):
        self.assertEqual(self.rules("export NCCL_DEBUG=WARN\nmodule load brics/nccl/2.26.6\n"), [("module-overrides", "warning", 1)])
        self.assertEqual(self.rules("module load brics/nccl/2.26.6\nexport NCCL_DEBUG=WARN\n"), [])

    def test_set_e(self):
        lost = "set -e\npython train.py\ncode=$?\nrm -rf /tmp/x\nexit $code\n"
        self.assertEqual(self.rules(lost), [("exit-code-lost", "error", 3)])
        self.assertEqual(self.rules(lost.replace("set -e", "set -e; trap clean EXIT")), [])
        self.assertEqual(self.rules(lost.replace("train.py", "train.py || true")), [])
        self.assertEqual(self.rules(lost.replace("python", "set +e; python")), [])
        self.assertEqual(self.rules("#!/bin/bash -e\nif srun a; then code=$?; fi\n"), [("failure-unseen", "note", 2)])

    def test_export_lists(self):
        self.assertEqual(self.rules("srun --export=ALL,NCCL_SOCKET_IFNAME=hsn0,hsn1 python\n"), [("export-commas", "error", 1)])
        self.assertEqual(self.rules("srun --export=ALL,A=1,B=2,PATH,http_proxy python\n"), [])
        self.assertEqual(self.rules("#!/bin/bash\n#SBATCH --export=NONE,NCCL_ALGO=Ring,Tree\n"), [("export-commas", "error", 2)])

    def test_values_that_are_made_when_the_script_runs_are_not_judged(self):
        self.assertEqual(self.rules('export NCCL_DEBUG=$LEVEL NCCL_CROSS_NIC="$(cat x)"\n'), [])
        self.assertEqual(self.rules('export NCCL_ALGO=${A:-Rign}\n'), [("unknown-algorithm", "error", 1)])
        self.assertEqual(self.rules('export NCCL_ALGO=${A:-Rign}\n', "--env", "A=Ring"), [])
        self.assertEqual(self.rules('L=ERROR\nexport NCCL_DEBUG=$L\n'), [("unknown-value", "error", 2)])
        self.assertEqual(self.rules('L=WARN\nif [ -n "$D" ]; then L=ERROR; fi\nexport NCCL_DEBUG=$L\n'), [])

    def test_what_is_exported_later_is_exported(self):
        self.assertEqual(self.rules("NCCL_DEBUG=WARN\npython x.py\n"), [("not-exported", "warning", 1)])
        for script in ("NCCL_DEBUG=WARN\nexport NCCL_DEBUG\n", "set -a\nNCCL_DEBUG=WARN\nset +a\n", "NCCL_DEBUG=WARN python x.py\n"):
            self.assertEqual(self.rules(script), [], script)

    def test_secrets_are_found_and_not_shown(self):
        secret = "0123456789abcdef0123456789abcdef"
        for line in (f"export WANDB_API_KEY={secret}", f"export https_proxy=http://me:{secret}@proxy:80"):
            for option in ([], ["--json"]):
                result = self.lint_text(line + "\n", *option)
                self.assertIn("secret", result.stdout)
                self.assertNotIn(secret, result.stdout + result.stderr)
        for line in ("export HF_TOKEN=$(cat ~/.hf)", "export HF_TOKEN=your_token_here", "export MY_KEY=/path/to/key", "export API_KEY="):
            self.assertEqual(self.rules(line + "\n"), [], line)

    def test_secrets_among_the_words_of_commands(self):
        key = "hf_AbCdEfGhIjKlMnOpQrStUvWx12"
        for line in (f"huggingface-cli login --token {key}", f"hf auth login --token={key}", f"vllm serve m --api-key sk-{key[3:]}",
                     f"wandb login {'0123456789abcdef' * 2}", f"git clone https://me:ghp_{key[3:]}@github.com/a/b",
                     f"srun bash -c 'wandb login {'0123456789abcdef' * 2}'", f"echo {key} > token", f"python train.py trainer.api_key={key}"):
            with self.subTest(line):
                result = self.lint_text(line + "\n")
                self.assertIn("[secret]", result.stdout)
                self.assertNotIn("0123456789abcdef", result.stdout)
                self.assertNotIn(key[3:], result.stdout)
                self.assertEqual(self.rules(line + "\n"), [("secret", "warning", 1)])
        for line in ("huggingface-cli login --token $HF_TOKEN", 'wandb login "$WANDB_API_KEY"'):
            self.assertEqual(self.rules(line + "\n"), [("secret", "note", 1)], line)
        for line in ('hf auth login --token "$(< ~/.hf)"', "pip install hf_transfer sk-learn-intelex",
                     "vllm serve m --api-key EMPTY", "hf auth login --token --add-to-git-credential", "python x.py --eos-token end_of_text --tokenizer meta/llama3", "wandb login --relogin",
                     "apptainer pull docker://ubuntu:22.04@sha256:0123456789abcdef", "git clone https://me:$PAT@github.com/a/b"):
            self.assertEqual(self.rules(line + "\n"), [], line)

    def test_what_no_quotes_hold_together_is_several_words(self):
        several = 'ENVS="NCCL_DEBUG=WARN NCCL_IB_HCA=mlx5"\n'
        self.assertEqual(self.rules(several + "srun env $ENVS python x.py\n"), [])
        self.assertEqual(self.rules(several.replace("WARN", "ERROR") + "srun env $ENVS python x.py\n"), [("unknown-value", "error", 1)])
        self.assertEqual(self.rules("env -u NCCL_DEBUG NCCL_BUFFSIZE=8M python x.py\n"), [("not-a-number", "error", 1)])

    def test_assignments_in_quotes(self):
        self.assertEqual(self.rules('export "NCCL_BUFFSIZE=8M"\nexport \'NCCL_DEBUG=ERROR\'\n'), [("not-a-number", "error", 1), ("unknown-value", "error", 2)])
        self.assertEqual(self.rules('export "NCCL_DEBUG=$LEVEL" "NCCL_BUFFSIZE=$(cat size)"\n'), [])

    def test_what_a_container_and_a_ray_job_get(self):
        for prefix in ("APPTAINERENV_", "SINGULARITYENV_"):
            self.assertEqual(self.rules(f"export {prefix}NCCL_DEBUG=ERROR\n"), [("unknown-value", "error", 1)])
            self.assertEqual(self.rules(f"{prefix}NCCL_DEBUG=ERROR\n", name="a.env"), [("unknown-value", "error", 1)])
        self.assertEqual(self.rules("export NCCL_DEBUG=WARN\nexport APPTAINERENV_NCCL_DEBUG=WARN\n"), [])
        self.assertEqual(self.rules("APPTAINERENV_NCCL_DEBUG=WARN\nexport APPTAINERENV_NCCL_DEBUG\n"), [])
        job = "ray job submit --runtime-env-json='{\n \"env_vars\": {\"NCCL_DEBUG\": \"ERROR\",\n \"NCCL_BUFFSIZE\": \"8M\"}}' -- python3 train.py\n"
        found = [("unknown-value", "error", 2), ("not-a-number", "error", 3)]
        self.assertEqual(self.rules(job), found)
        self.assertEqual(self.rules(job.replace("json=", "json ")), found)
        self.assertEqual(self.rules("E='{\"env_vars\":{\"NCCL_DEBUG\":\"ERROR\"}}'\nray job submit --runtime-env-json=\"$E\" -- x\n"), [("unknown-value", "error", 2)])
        self.assertEqual(self.rules('ray job submit --runtime-env-json="{\\"env_vars\\":{\\"NCCL_DEBUG\\":\\"$L\\"}}" -- x\n'), [])
        self.assertEqual(self.rules("ray job submit --runtime-env-json '{\"env_vars\": ' -- x\n"), [])

    def test_what_a_shell_within_a_command_sets(self):
        text = "srun --nodes=2 bash -c 'export NCCL_DEBUG=ERROR; export NCCL_BUFFSIZE=8M; python train.py'\n"
        result = json.loads(self.lint_text(text, "--json").stdout)
        self.assertEqual([(one["rule"], one["line"], one["column"]) for one in result],
                         [("unknown-value", 1, text.index("NCCL_DEBUG") + 1), ("not-a-number", 1, text.index("NCCL_BUFFSIZE") + 1)])
        self.assertEqual(self.rules("L=ERROR\nsrun bash -lc \"\nexport NCCL_DEBUG=$L\nexport NCCL_BUFFSIZE=$(cat size)\npython x.py\"\n"), [("unknown-value", "error", 3)])
        self.assertEqual(self.rules("srun bash -c 'NCCL_DEBUG=WARN; python x.py'\n"), [("not-exported", "warning", 1)])
        self.assertEqual(self.rules("export NCCL_DEBUG=WARN\nsrun bash -c 'NCCL_DEBUG=ABORT; python x.py'\n"), [])
        self.assertEqual(self.rules("srun bash -euo pipefail -c 'bash -c \"export NCCL_DEBUG=ERROR\"'\n"), [("unknown-value", "error", 1)])
        self.assertEqual(self.rules("export NCCL_X=1\nsrun bash -c 'python x.py --x $NCCL_X'\n"), [("unknown-variable", "note", 1)])
        (self.folder / "other.sh").write_text("")
        for fine in ('srun bash -c "export NCCL_DEBUG=\'$LEVEL\'; python x.py"', "bash other.sh -c 'export NCCL_DEBUG=ERROR'",
                     "set -e\nsrun bash -c 'export NCCL_DEBUG=WARN; python x.py'\nexport NCCL_DEBUG=WARN"):
            self.assertEqual(self.rules(fine + "\n"), [], fine)

    def test_shared_caches(self):
        # This machine has no network file system: the rule is held against one that says so in its unit test.
        self.assertEqual(self.rules("export TRITON_CACHE_DIR=/tmp/triton\n"), [])

    def test_releases_from_the_command_line(self):
        self.assertEqual(self.rules("export NCCL_ALGO='allreduce:ring'\n", "--release", "NCCL=2.23.4"), [("unknown-algorithm", "error", 1)])
        self.assertEqual(self.rules("export NCCL_ALGO='allreduce:ring'\n", "--release", "NCCL=2.24.3"), [])
        self.assertEqual(self.rules("export TORCH_NCCL_RETHROW_CUDA_ERRORS=1\n", "--release", "PyTorch=2.9.1+cu128"), [])  # as pip says it
        result = self.lint("tests/lint/cases/passed_on.sh", "--release", "nickel=1")
        self.assertEqual(result.returncode, REFUSED)
        self.assertIn("--release nickel=1: expected OWNER=VERSION, such as NCCL=2.27.5; owners: ", result.stderr)


class Around(Lint):
    def test_the_exit_code(self):
        self.assertEqual(self.lint_text("export NCCL_PROTO=LL\n").returncode, 0)
        self.assertEqual(self.lint_text("export NCCL_PROTO=LL\n", "--strict").returncode, REFUSED)
        self.assertEqual(self.lint_text("export NCCL_PROTO=LL\n", "--strict", "--allow", "forced-ll").returncode, 0)
        self.assertEqual(self.lint_text("export NCCL_DEBUG=ERROR\n").returncode, REFUSED)

    def test_a_script_gets_arguments_and_variables(self):
        text = "set -u\nwhile getopts m: o; do export NCCL_DEBUG=$OPTARG; done\nexport NCCL_BUFFSIZE=$SIZE\npython x.py --nodes $SLURM_NNODES\n"
        self.assertEqual(self.rules(text, "--env", "SIZE=8M", "--nodes", "2", "--", "-m", "ERROR"),
                         [("unknown-value", "error", 2), ("not-a-number", "error", 3)])
        self.assertEqual(self.rules(text, "--", "-m", "WARN"), [("unset", "note", 3)])
        result = self.lint("tests/lint/cases/clean_torchrun.sbatch", "tests/lint/cases/own_names.sh", "--", "--model", "x")
        self.assertEqual((result.returncode, result.stderr), (0, ""), result.stdout)

    def test_paths_are_those_of_the_folder_where_lint_is_called_or_of_the_script(self):
        (self.folder / "train").mkdir()
        (self.folder / "train" / "env.sh").write_text("export NCCL_DEBUG=ERROR\n")
        for text, cwd, path in (("source train/env.sh\n", self.folder, "train/job.sh"), ("source env.sh\n", self.folder / "train", "job.sh"),
                                ("source env.sh\n", self.folder, "train/job.sh")):
            with self.subTest(text, cwd=cwd):
                (self.folder / "train" / "job.sh").write_text(text + "python a.py\n")
                result = self.lint(path, cwd=cwd)
                self.assertEqual(result.stdout.splitlines()[0], f"{path.replace('job', 'env')}:1:8: error: NCCL_DEBUG does not know 'ERROR': "
                                 "it accepts VERSION, WARN, INFO, ABORT or TRACE [unknown-value]")
                self.assertEqual(result.stdout.splitlines()[-1], "1 finding: 1 error; for details: nlaunch lint --explain unknown-value")

    def test_what_cannot_be_read(self):
        result = self.lint("no-such-file.sh")
        self.assertEqual((result.returncode, result.stdout), (REFUSED, ""))
        self.assertIn("no-such-file.sh", result.stderr)
        result = self.lint("site-profiles/isambard.yaml")
        self.assertEqual(result.returncode, REFUSED)
        self.assertIn("site-profiles/isambard.yaml is a site profile: lint an experiment with --site site-profiles/isambard.yaml", result.stderr)
        self.assertEqual(self.lint().returncode, 64)

    def test_explain(self):
        result = self.lint("--explain", "forced-ll")
        self.assertEqual((result.returncode, result.stdout),
                         (0, "forced-ll: NCCL_PROTO=LL\n\n"
                             "LL is for small messages: half of what it sends is flags. If forced, it is also used for gigabytes of "
                             "gradients.\n\nsource: NCCL src/graph/tuning.cc; measured: docs/measurements.md\n"))
        result = self.lint("--explain", "forced-lm")
        self.assertEqual((result.returncode, result.stderr),
                         (64, "nlaunch lint: rule 'forced-lm' not found (did you mean 'forced-ll'?); list the rules with nlaunch lint --explain\n"))

    def test_large_and_odd_files_end(self):
        for text in (b"$(" * 1_000_000, b"export A='" * 2_000, b'"' + b"x\n" * 2_000_000, b"\xff\xfe" * 1_000_000, b"case x in\n" * 100_000,
                     b"${" * 500_000, b"`" * 999_999, b"cat <<A\n" * 100_000, b"export NCCL_DEBUG=INFO\n" * 20_000):
            result = self.lint_text(text)
            self.assertIn(result.returncode, (0, REFUSED), result.stderr)


    def test_values_that_double_with_each_line_end(self):
        self.assertEqual([rule for rule, _, _ in self.rules("A=xxxx\n" + "export A=$A$A\n" * 100 + "export NCCL_DEBUG=ERROR\n")], ["unreadable"])

    def test_what_is_wrong_in_each_line_is_told_two_hundred_times(self):
        found = self.rules("".join(f"export NCCL_F{i}=1\n" for i in range(5_000)))
        self.assertEqual((found[0], found[199], found[200:]), (("unknown-variable", "error", 1), ("unknown-variable", "error", 200),
                                                               [("unknown-variable", "note", 201)]))


class Gate(Lint):
    EXPERIMENT = ("version: 1\nname: e\nroles:\n  learner:\n    kind: learner\n    command: [\"true\"]\n    env: {NCCL_DEBUG: ERROR}\n")

    def test_run_stops_at_an_error(self):
        path = self.folder / "exp.yaml"
        path.write_text(self.EXPERIMENT)
        runs = ["--site", "local", "--runs-dir", f"{self.folder}/runs"]
        result = self.nlaunch("run", path, *runs)
        self.assertEqual((result.returncode, result.stdout), (REFUSED, ""))
        self.assertTrue(result.stderr.endswith("nlaunch run: lint errors; use --no-lint to continue anyway\n"), result.stderr)
        self.assertFalse((self.folder / "runs").exists())
        result = self.nlaunch("run", path, *runs, "--no-lint")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertTrue(result.stderr.startswith("note: not linted (--no-lint)\n"), result.stderr)

    def test_render_stops_at_an_error(self):
        arguments = ["configs/grpo.yaml", "--site", "isambard", "--env", "NCCL_DEBUG=ERROR"]
        result = self.nlaunch("render", *arguments)
        self.assertEqual((result.returncode, result.stdout), (REFUSED, ""))
        self.assertIn("--env NCCL_DEBUG: error: NCCL_DEBUG does not know 'ERROR'", result.stderr)
        self.assertEqual(self.nlaunch("render", *arguments, "--no-lint").returncode, 0)


if __name__ == "__main__":
    unittest.main()

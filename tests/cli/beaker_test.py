#!/usr/bin/env python3
"""Beaker: whole specs against golden files (NLAUNCH_UPDATE_GOLDEN=1 rewrites them) and against its own client's model, what is
refused, and submitting, with a stand-in for the client's program."""
import base64
import json
import os
import pathlib
import re
import subprocess
import unittest
import zlib

from harness import SOURCE, CliTest

GOLDEN = SOURCE / "tests" / "golden" / "beaker"
CASES = {
    "grpo.beaker-jupiter": ["configs/grpo.yaml", "--site", "beaker-jupiter"],
    "grpo-ray.beaker-jupiter": ["configs/grpo-ray.yaml", "--site", "beaker-jupiter"],
    "grpo.beaker-augusta": ["configs/grpo.yaml", "--site", "beaker-augusta"],
    "quickstart.beaker-titan": ["configs/quickstart.yaml", "--site", "beaker-titan"],
    "everything": ["everything.yaml", "--site", "beaker-ceres"],
    "min-runtime": ["configs/quickstart.yaml", "--site", "beaker-titan", "--set", "beaker.min_runtime=2h", "--set",
                    "beaker.auto_resume=true"],
}
OF_TWO = {"min-runtime"}  # keys that the model of beaker-py 1 does not have
ENVIRONMENTS = [pathlib.Path(path) for path in os.environ.get("NLAUNCH_TEST_BEAKER_PY", "").split(":") if path]

EVERYTHING = """\
version: 1
name: every_thing.1
nodes: 3
secrets: {HF_TOKEN: env, WANDB_API_KEY: {netrc: api.wandb.ai}}
roles:
  learner: {kind: learner, per_node: 8, gpus: 1, rendezvous: torch, command: [python, train.py]}
beaker:
  workspace: ai2/our-workspace
  budget: ai2/oe-adapt
  description: 'a "quoted" # text: with \\ and ünïcödé'
  image: docker://nvcr.io/nvidia/pytorch:25.06-py3
  hostname: [jupiter-cs-aus-101.reviz.ai2.in, jupiter-cs-aus-102.reviz.ai2.in]
  priority: high
  preemptible: true
  timeout: 24h
  start_timeout: 45m
  memory: 800GiB
  shared_memory: 64GiB
  datasets:
    /weka/adapt: {weka: oe-adapt-default, sub_path: models/olmo}
    /keys/id: {secret: my_key}
  secrets: {HF_TOKEN: me_HF_TOKEN}
  token: our_token
"""

# Loads a spec with the client's model, and says what it writes back.
ROUND_TRIP = """\
import json, sys, warnings
warnings.simplefilter("error", UserWarning)
import beaker
model = getattr(beaker, "ExperimentSpec", None) or beaker.BeakerExperimentSpec
spec = model.from_file(sys.argv[1])
if hasattr(spec, "validate"): spec.validate()
import yaml
print(json.dumps({"read": yaml.safe_load(open(sys.argv[1])), "written": spec.to_json()}))
"""


class Spec(CliTest):
    def setUp(self):
        super().setUp()
        (self.folder / "everything.yaml").write_text(EVERYTHING)

    def arguments(self, name):
        file, *rest = CASES[name]
        return [self.folder / file if file == "everything.yaml" else file, *rest]

    def spec(self, *arguments):
        done = self.nlaunch("render", *arguments, "--runs-dir", self.folder / "runs")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def refused(self, *arguments):
        done = self.nlaunch("render", *arguments)
        self.assertEqual(done.returncode, 65, done.stdout)
        return self.normal(done.stderr)

    def experiment(self, beaker, rest=""):
        path = self.folder / "mine.yaml"
        path.write_text("version: 1\nname: mine\nroles: {learner: {kind: learner, gpus: 1, command: [x]}}\n" + rest +
                        f"beaker: {beaker}\n")
        return path

    def test_golden_specs(self):
        for name in CASES:
            with self.subTest(name):
                text = self.spec(*self.arguments(name)).replace(str(self.folder), "/home/me").replace(str(SOURCE), "/home/me/project")
                text = re.sub(r'(NLAUNCH_PLAN"\n    value: )"[A-Za-z0-9+/=]+"', r'\1"the plan, packed"', text)
                path = GOLDEN / f"{name}.yaml"
                if os.environ.get("NLAUNCH_UPDATE_GOLDEN"):
                    path.write_text(text)
                self.assertEqual(text, path.read_text(), f"{path} differs; NLAUNCH_UPDATE_GOLDEN=1 rewrites it")
        self.assertEqual({path.stem for path in GOLDEN.iterdir()}, set(CASES))

    @unittest.skipUnless(ENVIRONMENTS, "no beaker-py here: scripts/test.sh fetches it, or set NLAUNCH_TEST_BEAKER_PY")
    def test_beakers_own_client_takes_every_spec_as_it_is(self):
        for name in CASES:
            file = self.folder / f"{name}.spec.yaml"
            file.write_text(self.spec(*self.arguments(name)))
            for environment in ENVIRONMENTS:
                if name in OF_TWO and list(environment.glob("lib/*/site-packages/beaker_py-1.*")):
                    continue
                with self.subTest(name, environment=environment.name):
                    done = subprocess.run([environment / "bin" / "python", "-c", ROUND_TRIP, file], capture_output=True, text=True)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    said = json.loads(done.stdout)
                    self.assertEqual(said["written"], said["read"])

    def test_the_same_plan_gives_the_same_bytes(self):
        arguments = self.arguments("grpo.beaker-jupiter")
        self.assertEqual(self.spec(*arguments), self.spec(*arguments))
        self.assertFalse((self.folder / "runs").exists())

    def test_the_plan_in_it_is_the_frozen_one(self):
        arguments = self.arguments("grpo-ray.beaker-jupiter")
        packed = re.search(r'NLAUNCH_PLAN"\n    value: "([A-Za-z0-9+/=]+)"', self.spec(*arguments))[1]
        plan = self.nlaunch("plan", *arguments, "--json").stdout
        self.assertEqual(zlib.decompress(base64.b64decode(packed)).decode(), plan)
        # And that is what a replica runs.
        done = self.nlaunch("plan", "--plan", "env:NLAUNCH_PLAN", "--json", env={"NLAUNCH_PLAN": packed})
        self.assertEqual((done.returncode, done.stdout), (0, plan))

    def test_a_variable_without_a_plan_is_named(self):
        for value, why in (("", "it is not set"), ("eNq", "it is truncated or something else"), ("hello!", "it is truncated or something else")):
            done = self.nlaunch("run", "--plan", "env:NLAUNCH_PLAN", env={"NLAUNCH_PLAN": value} if value else {})
            self.assertEqual((done.returncode, done.stderr), (
                65, f"error: the variable NLAUNCH_PLAN does not hold a plan: {why} [launch.plan]\n"))

    def test_nothing_of_the_environment_is_in_it(self):
        env = {"WANDB_API_KEY": "hush-hush", "NLAUNCH_TOKEN": "mums-the-word"}  # no base64 text has a hyphen
        text = self.nlaunch("render", *CASES["grpo.beaker-jupiter"], env=env).stdout
        plan = zlib.decompress(base64.b64decode(re.search(r'value: "([^"]+)"', text)[1])).decode()
        for word in ("hush-hush", "mums-the-word"):
            self.assertNotIn(word, text + plan)

    def test_a_secret_comes_from_beaker_wherever_it_was(self):
        plan = json.loads(self.nlaunch("plan", *CASES["grpo.beaker-jupiter"], "--json").stdout)
        self.assertEqual([(secret["name"], secret["source"], secret["from"]) for secret in plan["secrets"]],
                         [("WANDB_API_KEY", "env", "WANDB_API_KEY")])

    def test_relative_paths_begin_at_the_containers_folder(self):
        plan = json.loads(self.nlaunch("plan", *CASES["grpo.beaker-jupiter"], "--json").stdout)
        self.assertEqual({(role["workdir"], role["venv"]) for role in plan["roles"]}, {("/repo", "/repo/.venv")})

    def test_what_is_in_the_image_needs_no_dataset(self):
        path = self.experiment("{nlaunch: /opt/nlaunch/bin/nlaunch, datasets: {/nlaunch: false}}")
        spec = self.spec(path, "--site", "beaker-jupiter")
        self.assertNotIn("datasets", spec)
        self.assertIn('  command:\n  - "/opt/nlaunch/bin/nlaunch"\n', spec)

    def test_one_node_needs_neither_leader_nor_token(self):
        text = self.spec("configs/quickstart.yaml", "--site", "beaker-jupiter")
        self.assertIn("  leaderSelection: false\n", text)
        for word in ("replicas", "synchronizedStartTimeout", "NLAUNCH_TOKEN", "propagate"):
            self.assertNotIn(word, text)

    def test_any_text_stays_itself(self):
        for text in ("yes", "1e3", "- x: {y", "# no comment", "tab\there", "two\nlines", "nul\x01", "\x7f", "\u0085\u2028", "ü🦊", "'\"\\"):
            path = self.experiment("{description: " + json.dumps(text, ensure_ascii=ord(max(text)) < 0x10000) + "}")
            spec = self.spec(path, "--site", "beaker-jupiter")
            # JSON's escapes are YAML's, too.
            self.assertEqual(json.loads(re.search(r"^description: (.*)$", spec, re.M)[1]), text)

    def test_what_beaker_could_not_take_is_refused_at_its_place(self):
        for beaker, said in (
                ("{priority: hihg}", "$FOLDER/mine.yaml:4:20: error: 'beaker.priority' must be one of low, normal, high, urgent, immediate, "
                                     "found 'hihg' [config.choice]"),
                ("{preemptible: true, min_runtime: 1h}", "$FOLDER/mine.yaml:4:23: error: Beaker does not accept 'preemptible' together with 'min_runtime' or 'auto_resume' [plan.beaker-value]"),
                ("{start_timeout: 49h}", "$FOLDER/mine.yaml:4:25: error: 'start_timeout' must be more than 0s and at most 2d, found "
                                         "2d1h [plan.beaker-value]"),
                ("{shared_memory: 10}", "$FOLDER/mine.yaml:4:25: error: 'shared_memory': '10' has no unit: write 64MiB or 1GB "
                                        "[plan.beaker-value]"),
                ("{datasets: {data: {beaker: x}}}", "$FOLDER/mine.yaml:4:21: error: 'data' of 'datasets' must be a path in the container that starts with / [plan.beaker-value]"),
                ("{datasets: {/Results/x: {weka: x}}}", "$FOLDER/mine.yaml:4:21: error: the mount '/Results/x' overlaps with 'result', "
                                                        "which is '/results' [plan.beaker-mount]"),
                ("{datasets: {/data: {weka: x, beaker: y}}}", "$FOLDER/mine.yaml:4:28: error: 'beaker.datasets./data' must have exactly one source, found beaker and weka [config.beaker-mount]"),
                ("{secrets: {HF: me}}", "$FOLDER/mine.yaml:4:20: error: the experiment has no secret 'HF' [plan.beaker-secret]"),
                ("{imag: x}", "$FOLDER/mine.yaml:4:10: error: unknown key 'imag' in 'beaker' [config.unknown-key]")):
            with self.subTest(beaker):
                self.assertEqual(self.refused(self.experiment(beaker), "--site", "beaker-jupiter").splitlines()[0], said)

    def test_a_site_without_an_image_says_who_can_name_one(self):
        site = self.folder / "site.yaml"
        site.write_text("version: 1\nname: bare\nscheduler: {kind: beaker}\nnode: {gpus: 8}\n")
        self.assertEqual(self.refused(self.experiment("{}"), "--site", site),
                         "error: site 'bare' runs containers, but no image is set [plan.beaker-image]\n"
                         "hint: write `beaker: {image: USER/IMAGE}` (or docker://TAG) in the experiment, or --set beaker.image=...\n")

    def test_a_secret_in_the_environment_is_refused(self):
        said = self.refused("configs/grpo.yaml", "--site", "beaker-jupiter", "--env", "HF_TOKEN=hush-hush")
        self.assertIn("HF_TOKEN of role 'learner' (--env HF_TOKEN) looks like a secret, and the plan of a job must not contain one", said)
        self.assertNotIn("hush", said)

    def test_a_plan_too_large_for_a_variable_is_refused(self):
        noise = base64.b64encode(os.urandom(120_000)).decode()
        said = self.refused("configs/quickstart.yaml", "--site", "beaker-jupiter", "--env", f"NOISE={noise[:120_000]}")
        self.assertRegex(said, r"^error: the plan takes \d+ KiB, but an environment variable can hold at most 128 KiB: ")


class Everywhere(CliTest):
    """The same files, and only --site differs."""

    def test_grpo_plans_on_slurm_on_beaker_and_on_a_box_and_renders_where_there_is_a_scheduler(self):
        one_node = {"configs/grpo.yaml": ["--nodes", 1], "configs/grpo-ray.yaml": ["--nodes", 1]}
        for experiment, box in one_node.items():
            for site, more in (("isambard", []), ("beaker-jupiter", []), ("nvlink-box", [*box, "--set", "site.node.gpus=8"])):
                with self.subTest(experiment=experiment, site=site):
                    done = self.nlaunch("plan", experiment, "--site", site, *more)
                    self.assertEqual(done.returncode, 0, done.stderr)
            for site in ("isambard", "beaker-jupiter", "beaker-ceres", "beaker-titan", "beaker-augusta"):
                done = self.nlaunch("render", experiment, "--site", site, "--runs-dir", self.folder / "runs")
                self.assertEqual((done.returncode, done.stderr), (0, ""))


class Submit(CliTest):
    CLIENT = """\
#!/bin/sh
printf '%s\\n' "$@" > "$(dirname "$0")/arguments"
cp "$3" "$(dirname "$0")/seen.yaml"
echo 'Experiment 01JXYZ submitted. See progress at https://beaker.org/ex/01JXYZ'
"""

    def run_on(self, site, *arguments, client=None):
        self.bin = self.folder / "bin"
        self.bin.mkdir(exist_ok=True)
        if client:
            (self.bin / "beaker").write_text(client)
            (self.bin / "beaker").chmod(0o755)
        return self.nlaunch("run", "configs/grpo.yaml", "--site", site, "--runs-dir", self.folder / "runs", *arguments,
                            env={"PATH": f"{self.bin}:/usr/bin:/bin"})

    @property
    def run_folder(self):
        return next((self.folder / "runs" / "grpo-olmo3-7b").glob("2*"))

    def test_it_goes_through_beakers_own_program(self):
        done = self.run_on("beaker-jupiter", "--set", "beaker.workspace=ai2/ours", "--no-preflight", client=self.CLIENT)
        self.assertEqual((done.returncode, done.stdout, self.normal(done.stderr)), (
            0, "", "grpo-olmo3-7b on beaker-jupiter: 2 × learner · 6 × engine\n"
                   "Experiment 01JXYZ submitted. See progress at https://beaker.org/ex/01JXYZ\n"
                   f"the spec: $FOLDER/runs/grpo-olmo3-7b/{self.run_folder.name}/beaker.yaml\n"))
        spec = self.run_folder / "beaker.yaml"
        self.assertEqual((self.bin / "arguments").read_text().splitlines(), ["experiment", "create", str(spec), "--workspace", "ai2/ours"])
        self.assertEqual((self.bin / "seen.yaml").read_text(), spec.read_text())
        self.assertIn('  - "--no-preflight"\n', spec.read_text())
        self.assertEqual(json.loads((self.run_folder / "job.json").read_text())["site"], "beaker-jupiter")
        self.assertEqual((self.folder / "runs" / "grpo-olmo3-7b" / "latest").resolve(), self.run_folder)

    def test_without_the_program_it_says_what_to_type(self):
        done = self.run_on("beaker-jupiter")
        spec = self.run_folder / "beaker.yaml"
        self.assertEqual((done.returncode, done.stderr), (
            64, "nlaunch run: nothing was submitted: beaker is not on PATH here. The spec is written; to submit it, run this where the program is available:\n"
                f"  beaker experiment create {spec}\n"))
        self.assertTrue(spec.exists())

    def test_a_refusal_comes_in_the_programs_words(self):
        done = self.run_on("beaker-jupiter", client="#!/bin/sh\necho 'Error: budget is required' >&2\nexit 1\n")
        self.assertEqual((done.returncode, self.normal(done.stderr)), (
            65, "error: $FOLDER/bin/beaker exited with code 1: Error: budget is required [launch.submit]\n"
                f"hint: the spec: $FOLDER/runs/grpo-olmo3-7b/{self.run_folder.name}/beaker.yaml\n"))


class InAJob(CliTest):
    """Where Beaker has started nlaunch; with replicas: tests/process/replicas_test.py."""

    def start(self, *arguments, **beaker):
        site = self.folder / "site.yaml"
        site.write_text(f"version: 1\nname: one\nscheduler: {{kind: beaker, beaker: {{image: x, result: {self.folder}/results, "
                        f"workdir: {SOURCE}/configs}}}}\n")
        spec = self.nlaunch("render", "configs/quickstart.yaml", "--site", site).stdout
        packed = re.search(r'NLAUNCH_PLAN"\n    value: "([^"]+)"', spec)[1]
        return self.nlaunch("run", "--plan", "env:NLAUNCH_PLAN", *arguments,
                            env={"NLAUNCH_PLAN": packed, **{f"BEAKER_{name}": value for name, value in beaker.items()}})

    def test_a_job_of_one_node_runs_there_and_leaves_its_result(self):
        for beaker in ({"JOB_ID": "j"}, {"JOB_ID": "j", "REPLICA_RANK": "0", "REPLICA_COUNT": "1"}):
            done = self.start(**beaker)
            self.assertEqual(done.returncode, 0, done.stderr)
            run = (self.folder / "results" / "quickstart" / "latest").resolve()
            self.assertEqual(json.loads((run / "summary.json").read_text())["outcome"], "finished")
            self.assertNotIn("NLAUNCH_PLAN", (run / "attempt-0" / "logs" / "learner.0.log").read_text())

    def test_variables_that_contradict_each_other_are_an_error(self):
        done = self.start(REPLICA_RANK="2", REPLICA_COUNT="2")
        self.assertEqual((done.returncode, done.stderr), (
            65, "error: BEAKER_REPLICA_RANK='2' and BEAKER_REPLICA_COUNT='2' do not describe a replica [launch.replica]\n"))

    def test_another_number_of_replicas_than_nodes_is_refused(self):
        done = self.start(REPLICA_RANK="1", REPLICA_COUNT="2", LEADER_REPLICA_HOSTNAME="h")
        self.assertEqual((done.returncode, done.stderr), (65, "nlaunch run: the plan has 1 node, but this task has 2 replicas\n"))


if __name__ == "__main__":
    unittest.main()

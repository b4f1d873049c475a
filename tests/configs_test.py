"""What is shipped in configs/ and site-profiles/: each loads and plans, and what can run here does."""
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ["NLAUNCH_SOURCE"])
NLAUNCH = pathlib.Path(os.environ["NLAUNCH_BUILD"]) / "bin" / "nlaunch"
EXPERIMENTS = sorted(str(path.relative_to(SOURCE / "configs")) for path in (SOURCE / "configs").rglob("*.yaml"))
RECIPES = [name for name in EXPERIMENTS if name.startswith("frameworks/")]
WITH_RAY = [name for name in RECIPES if "\nextends: ../ray.yaml" in (SOURCE / "configs" / name).read_text()]
GLOO = ["--set", "weight_sync.backend=gloo", "--set", "cpu_slots=true"]
PRELOADED = {"grpo.yaml", "grpo-32b.yaml", "grpo-235b.yaml", "grpo-ray.yaml"}  # want several nodes and the site's libnccl
EIGHT_GPUS = ["--nodes", 1, "--set", "site.node.gpus=8"]


def nlaunch(*arguments, timeout=120):
    return subprocess.run([NLAUNCH, *map(str, arguments)], cwd=SOURCE, capture_output=True, text=True, timeout=timeout)


class Configs(unittest.TestCase):
    def plan(self, experiment, *arguments):
        done = nlaunch("plan", f"configs/{experiment}", "--json", *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_every_experiment_plans_on_every_cluster(self):
        for experiment in EXPERIMENTS:
            for site in ("isambard", "slingshot11", "alps", "efa", "beaker-jupiter", "beaker-augusta"):
                with self.subTest(experiment=experiment, site=site):
                    if experiment == "grpo-235b.yaml" and site.startswith("beaker"):  # replicas of one kind
                        self.assertIn("its own kind of nodes", nlaunch("plan", f"configs/{experiment}", "--site", site).stderr)
                        continue
                    self.plan(experiment, "--site", site)

    def test_every_experiment_of_one_node_plans_on_every_box(self):
        for experiment in EXPERIMENTS:
            if experiment in PRELOADED or experiment in RECIPES or experiment == "ray.yaml":  # of several nodes
                continue
            for site in ("local", "nvlink-box", "h100-nvlink", "h200-nvlink", "pcie-box"):
                with self.subTest(experiment=experiment, site=site):
                    self.plan(experiment, "--site", site, *GLOO)

    def test_every_recipe_plans_on_a_machine_with_eight_gpus(self):
        for recipe in RECIPES:
            for site in ("h100-nvlink", "h200-nvlink"):
                with self.subTest(recipe=recipe, site=site):
                    self.plan(recipe, "--site", site, *EIGHT_GPUS)

    def test_lint_finds_nothing(self):
        for experiment in EXPERIMENTS:
            for site in ("isambard", "alps"):
                with self.subTest(experiment=experiment, site=site):
                    done = nlaunch("lint", f"configs/{experiment}", "--site", site)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.assertRegex(done.stdout, r"\Ano findings in \d+ settings\n\Z")

    def test_every_experiment_renders_to_a_script(self):
        for experiment in EXPERIMENTS:
            for site in ("isambard", "alps"):
                with self.subTest(experiment=experiment, site=site), tempfile.TemporaryDirectory() as runs:
                    done = nlaunch("render", f"configs/{experiment}", "--site", site, "--runs-dir", runs)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    checked = subprocess.run(["bash", "-n"], input=done.stdout, capture_output=True, text=True, timeout=30)
                    self.assertEqual((checked.returncode, checked.stderr), (0, ""))

    def test_ray_is_started_alike_in_every_recipe(self):
        for recipe in RECIPES:
            text = (SOURCE / "configs" / recipe).read_text()
            self.assertEqual("ray-head" in text, recipe in WITH_RAY, recipe)
            self.assertNotIn("\n  ray-head:", text, recipe)
        self.assertGreaterEqual(len(WITH_RAY), 8)

    def test_a_recipe_says_what_it_follows_and_what_is_missing(self):
        for recipe in RECIPES:
            head = (SOURCE / "configs" / recipe).read_text().split("version: 1\n")[0]
            with self.subTest(recipe):
                self.assertRegex(head, r"^# yaml-language-server: .*\n# \S+ (at [0-9a-f]{7}|\d+\.\d+\.\d+)\b")
                self.assertIn("# What a plan cannot express yet:", head)
                if not re.search(r"\nextends: (?!\.\./ray\.yaml)", (SOURCE / "configs" / recipe).read_text()):
                    self.assertRegex(head, r"#   (git clone|pip install|docker pull) ")

    def test_the_32b_run_leaves_no_gpu_idle(self):
        plan = self.plan("grpo-32b.yaml", "--site", "isambard")
        self.assertEqual(len(plan["processes"]), 24)
        self.assertEqual(plan["idle_gpus"], [])

    def test_twelve_engines_of_the_32b_run_are_refused_with_what_fits(self):
        done = nlaunch("plan", "configs/grpo-32b.yaml", "--site", "isambard", "--nodes", 8, "--set", "roles.engine.count=12")
        self.assertEqual(done.returncode, 65)
        self.assertIn("role 'engine': 12 processes of 2 GPUs do not fit on 8 nodes × 4 GPUs: "
                      "8 fit, and 0 GPUs stay idle", done.stderr)

    def test_ray_workers_stand_where_the_head_does_not(self):
        plan = self.plan("grpo-ray.yaml", "--site", "isambard", "--nodes", 3)
        nodes = {}
        for process in plan["processes"]:
            nodes.setdefault(process["role"], []).append(process["node"])
        self.assertEqual(nodes["ray-head"], [0])
        self.assertEqual(nodes["ray-worker"], [1, 2])


class Profiles(unittest.TestCase):
    def value(self, variable, *arguments):
        done = nlaunch("env", "configs/grpo.yaml", "--site", "isambard", "--role", "learner", "--explain", variable, *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.strip().splitlines()[-1]

    def test_the_network_plugin_is_named_on_several_nodes_alone(self):
        self.assertEqual(self.value("NCCL_NET"), "NCCL_NET=AWS Libfabric")
        self.assertEqual(self.value("NCCL_NET", "--nodes", 1, "--set", "roles.engine.count=3"), "NCCL_NET is not set")

    def test_nccl_warns_and_its_watchdog_stays(self):
        self.assertEqual(self.value("NCCL_DEBUG"), "NCCL_DEBUG=WARN")
        self.assertEqual(self.value("TORCH_NCCL_BLOCKING_WAIT"), "TORCH_NCCL_BLOCKING_WAIT is not set")

    def test_an_overlay_wins_over_the_site(self):
        self.assertEqual(self.value("NCCL_DEBUG", "--with", "nccl-debug"), "NCCL_DEBUG=INFO")

    def test_every_profile_says_what_it_is_for(self):
        for path in (SOURCE / "site-profiles").glob("*.yaml"):
            self.assertRegex(path.read_text(), r"(?m)^description: \S", path.name)


class Runs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.runs = pathlib.Path(folder.name)

    def run_experiment(self, *arguments):
        return nlaunch("run", *arguments, "--site", "local", "--runs-dir", self.runs)

    def logs(self, name):
        folder = self.runs / name / "latest" / "attempt-0" / "logs"
        return {path.stem: path.read_text() for path in folder.glob("*.log")}

    def test_quickstart(self):
        done = self.run_experiment("configs/quickstart.yaml")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        logs = self.logs("quickstart")
        self.assertEqual(sorted(logs), ["engine.0", "engine.1", "learner.0", "learner.1"])
        self.assertEqual(re.findall(r"^step (\d+) ", logs["learner.1"], re.M), list("123456"))
        self.assertEqual(len(re.findall(r"^weight sync took [\d.]+s", logs["learner.0"], re.M)), 3)
        for engine in ("engine.0", "engine.1"):
            self.assertEqual(logs[engine].count("checksum verified"), 3)

    def test_quickstart_with_a_learner_that_fails(self):
        done = self.run_experiment("configs/quickstart.yaml", "--set", "vars.fail_rank=1")
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        self.assertIn("learner.1", done.stdout + done.stderr)
        self.assertIn("failing at step 3, as asked for by vars.fail_rank", self.logs("quickstart")["learner.1"])

    @unittest.skipUnless(pathlib.Path("/usr/lib/python3/dist-packages/torch").exists(), "python3-torch is not installed")
    def test_weight_sync_over_gloo(self):
        done = self.run_experiment("configs/weight-sync.yaml", *GLOO)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        logs = self.logs("weight-sync")
        self.assertIn("all checks passed: 3 syncs of 300 tensors to 2 engines", logs["learner.0"])
        for engine in ("engine.0", "engine.1"):
            self.assertIn("sync 3: 300 tensors, 0 wrong", logs[engine])


if __name__ == "__main__":
    unittest.main()

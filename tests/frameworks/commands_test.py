"""The recipes in configs/frameworks/ with a real Ray, and their commands with the frameworks' own parsers.

Each recipe with Ray runs as a whole on this machine, with CPU slots in place of GPUs. Only the frameworks' own programs are stood in for
(stand_in.py), which note the arguments that they get, after references and shells.
"""
import json
import os
import pathlib
import re
import subprocess
import tempfile
import textwrap
import unittest

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = pathlib.Path(os.environ["NLAUNCH_SOURCE"])
NLAUNCH = pathlib.Path(os.environ["NLAUNCH_BUILD"]) / "bin" / "nlaunch"
RAY = os.environ.get("NLAUNCH_TEST_RAY")  # Python environments
VERL = os.environ.get("NLAUNCH_TEST_VERL")
OPENRLHF = os.environ.get("NLAUNCH_TEST_OPENRLHF")
WHERE = "scripts/test.sh fetches it, or set"

# One GPU for each role: there are as many slots as cores.
ONE_EACH = {"verl": ["learner.per_node", "engine.per_node"], "areal": ["learner.per_node"],
            "slime": ["learner.count", "engine.count", "engine.gpus"],
            **{name: ["learner.count", "engine.count"] for name in
               ("verl-async", "openrlhf", "slime-ray", "nemo-rl", "open-instruct", "skyrl")}}

# Composes the configuration as hydra.main of the program does, without importing verl, which wants torch.
VERL_PARSER = """
    import importlib.util, pathlib, sys
    from hydra import compose, initialize_config_dir
    package = pathlib.Path(importlib.util.find_spec("verl").submodule_search_locations[0])
    folder, name, overrides = package / sys.argv[1], sys.argv[2], sys.argv[3:]
    with initialize_config_dir(str(folder), version_base=None):
        compose(name, overrides=[f"hydra.searchpath=[file://{package}/trainer/config]", *overrides])
"""

# The statements of the program that make its parser, without its imports, which want torch and vLLM.
OPENRLHF_PARSER = """
    import argparse, ast, importlib.util, os, pathlib
    from datetime import datetime
    package = pathlib.Path(importlib.util.find_spec("openrlhf").submodule_search_locations[0])
    tree = ast.parse((package / "cli" / "train_ppo_ray.py").read_text())
    main = next(node for node in tree.body if isinstance(node, ast.If))
    parsed = next(i for i, node in enumerate(main.body) if "parse_args" in ast.unparse(node))
    exec(compile(ast.Module(main.body[:parsed + 1], []), "train_ppo_ray.py", "exec"))
"""


def parse(environment, parser, *arguments):
    return subprocess.run([f"{environment}/bin/python", "-W", "ignore", "-c", textwrap.dedent(parser), *arguments],
                          capture_output=True, text=True, timeout=120)


@unittest.skipUnless(RAY, f"no Ray here: {WHERE} NLAUNCH_TEST_RAY")
class Recipes(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="nlaunch-recipe-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.record = self.folder / "arguments"
        programs = self.folder / ".venv" / "bin"
        programs.mkdir(parents=True)
        (programs / "ray").symlink_to(f"{RAY}/bin/ray")
        for name in ("python", "python3"):
            program = programs / name  # `python -c` is the recipe's question whether Ray is there
            program.write_text(f'#!/bin/bash\n[[ $1 == -c ]] && exec {RAY}/bin/python "$@"\n'
                               f'exec {RAY}/bin/python {HERE}/stand_in.py {self.record} "$@"\n')
            program.chmod(0o755)
        models = self.folder / "scripts" / "models"
        models.mkdir(parents=True)
        (models / "qwen3-4B.sh").write_text('MODEL_ARGS=(--num-layers 36 --normalization "RMSNorm")\n')

    def run_recipe(self, recipe, *arguments):
        """What the framework's programs are told, the engines first."""
        settings = [f"workdir={self.folder}", "venv=.venv", "vars.cpus=2", "weight_sync.backend=gloo", "cpu_slots=true", "secrets={}",
                    *[f"roles.{key}=1" for key in ONE_EACH[recipe]]]
        done = subprocess.run([NLAUNCH, "run", f"configs/frameworks/{recipe}.yaml", "--site", "local", "--nodes", "1", "--no-preflight",
                               "--runs-dir", self.folder / "runs", *[word for setting in settings for word in ("--set", setting)],
                               *arguments], cwd=SOURCE, capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"Ray gave [12] GPUs")
        return [json.loads(line) for line in self.record.read_text().splitlines()]

    def test_every_recipe_with_ray_is_here(self):
        recipes = {path.stem for path in (SOURCE / "configs" / "frameworks").glob("*.yaml") if "ray-head" in path.read_text()}
        self.assertEqual(set(ONE_EACH), recipes)

    @unittest.skipUnless(VERL, f"no verl here: {WHERE} NLAUNCH_TEST_VERL")
    def test_verl(self):
        for recipe, module, folder, name in (
                ("verl", "verl.trainer.main_ppo", "trainer/config", "ppo_trainer"),
                ("verl-async", "verl.experimental.fully_async_policy.fully_async_main", "experimental/fully_async_policy/config",
                 "fully_async_ppo_trainer")):
            with self.subTest(recipe):
                self.record.unlink(missing_ok=True)
                told, = self.run_recipe(recipe)
                self.assertEqual(told[:2], ["-m", module])
                self.assertIn("trainer.nnodes=1", told)
                program, = pathlib.Path(VERL).glob(f"lib/python*/site-packages/{module.replace('.', '/')}.py")
                self.assertIn(f'config_name="{name}"', program.read_text())
                done = parse(VERL, VERL_PARSER, folder, name, *told[2:])
                self.assertEqual(done.returncode, 0, done.stderr)
                done = parse(VERL, VERL_PARSER, folder, name, *told[2:], "trainer.n_nodes=1")
                self.assertIn("Key 'n_nodes' is not in struct", done.stderr)

    @unittest.skipUnless(OPENRLHF, f"no OpenRLHF here: {WHERE} NLAUNCH_TEST_OPENRLHF")
    def test_openrlhf(self):
        told, = self.run_recipe("openrlhf")
        self.assertEqual(told[:2], ["-m", "openrlhf.cli.train_ppo_ray"])
        done = parse(OPENRLHF, OPENRLHF_PARSER, *told[2:])
        self.assertEqual(done.returncode, 0, done.stderr)
        done = parse(OPENRLHF, OPENRLHF_PARSER, *told[2:], "--vllm.engines=1")
        self.assertIn("unrecognized arguments: --vllm.engines=1", done.stderr)

    def test_slime_is_told_of_the_engines(self):
        engine, trainer = self.run_recipe("slime")
        address = "{--host}:{--port}".format_map(dict(option.split("=", 1) for option in engine if "=" in option))
        self.assertEqual(engine[:2], ["-m", "sglang.launch_server"])
        self.assertEqual(trainer[:7], ["train.py", "--num-layers", "36", "--normalization", "RMSNorm",
                                       "--rollout-external-engine-addrs", address])
        self.assertIn("--actor-num-gpus-per-node=1", trainer)

    def test_slime_with_its_own_engines(self):
        trainer, = self.run_recipe("slime-ray")
        self.assertEqual(trainer[:5], ["train.py", "--num-layers", "36", "--normalization", "RMSNorm"])
        self.assertIn("--rollout-num-gpus=1", trainer)

    def test_skyrl_is_told_of_the_engines(self):
        engine, trainer = self.run_recipe("skyrl")
        address = "{--host}:{--port}".format_map(dict(option.split("=", 1) for option in engine if "=" in option))
        self.assertEqual(trainer[:3], ["-m", "skyrl.train.entrypoints.main_base",
                                       f"generator.inference_engine.external_server_urls=['http://{address}']"])

    def test_nemo_rl_with_the_settings_for_large_clusters(self):
        trainer, = self.run_recipe("nemo-rl", "--with", "ray-large")
        self.assertEqual(trainer[:2], ["examples/run_grpo.py", "cluster.num_nodes=1"])

    def test_open_instruct(self):
        trainer, = self.run_recipe("open-instruct")
        self.assertEqual(trainer[0], "open_instruct/grpo_fast.py")
        self.assertIn("--vllm_num_engines=1", trainer)

    def test_areal(self):
        trainer, = self.run_recipe("areal")
        self.assertEqual(trainer[:2], ["examples/math/gsm8k_rl.py", "cluster.n_nodes=1"])
        self.assertIn("scheduler.type=ray", trainer)

    def test_ray_reads_what_is_set_for_large_clusters(self):
        names = re.findall(r"^ +RAY_(\w+):", (SOURCE / "site-profiles" / "common.yaml").read_text(), re.M)
        self.assertGreater(len(names), 15)
        program, = pathlib.Path(RAY).glob("lib/python*/site-packages/ray/core/src/ray/gcs/gcs_server")
        known = program.read_bytes()
        self.assertEqual([name for name in names if f"RAY_{name}\0".encode() not in known], [])


if __name__ == "__main__":
    unittest.main()

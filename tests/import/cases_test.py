#!/usr/bin/env python3
"""`nlaunch import`: what it makes of the scripts in cases/, against golden files (NLAUNCH_UPDATE_GOLDEN=1 rewrites them). Every pair is
the same job as its script, is planned, linted, and held against the schemas. The cases are written after scripts that people have;
isambard_grpo.sbatch does all that docs/isambard.md lists."""
import json
import os
import pathlib
import re
import shutil
import sys
import unittest

import jsonschema
import yaml

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from importing import SAME, SOURCE, Import  # noqa: E402

CASES = HERE / "cases"
GOLDEN = SOURCE / "tests" / "golden" / "import"
LIBRARY = ".venv/lib/python3.11/site-packages/nvidia/nccl/lib/libnccl.so.2"
ISAMBARD = ["--exists", ".venv/", "--exists", ".git/", "--exists", LIBRARY, "--env", "MODEL=/projects/lab/sft", "--prints", "ls -td="]
# Options of the import, and roles, in their order: (name, kind, processes, GPUs of each).
CASE_OF = {
    "isambard_grpo.sbatch": (ISAMBARD + ["--exists", "grpo.yaml", "--", "grpo.yaml", "--seed", "1"],
                             [("python", "task", 1, 4), ("python-2", "task", 1, 4), ("uvicorn", "service", 2, 0), ("ray-head", "service", 1, 0), ("mkdir", "task", 1, 0), ("write-files", "task", 1, 0),
                              ("ray-worker", "service", 1, 0), ("trainer", "service", 1, 0), ("learner", "learner", 2, 1), ("engine", "engine", 6, 1)]),
    "torchrun_nodes.sbatch": ([], [("prepare-data", "task", 1, 8), ("learner", "learner", 4, 8)]),
    "vllm_trainer.sbatch": ([], [("engine", "engine", 1, 4), ("learner", "learner", 1, 4)]),
    "verl_ray.sbatch": ([], [("ray-head", "service", 1, 0), ("ray-worker", "service", 1, 0), ("trainer", "service", 1, 0), ("learner", "learner", 16, 1)]),
    "hetjob_grpo.sbatch": ([], [("engine", "engine", 2, 4), ("sandbox", "service", 1, 0), ("learner", "learner", 4, 8)]),
    "accelerate_nodes.sbatch": ([], [("learner", "learner", 3, 8)]),
    "containers.sbatch": ([], [("engine", "engine", 1, 2), ("learner", "learner", 1, 2)]),
}
# Rules of scripts alone: a plan cannot have what they find.
OF_SCRIPTS = {"exit-code-lost", "preload-everywhere", "export-commas", "line-ends"}


class Cases(Import):
    def imported(self, script, *more):
        """The two files of a case, made in the folder of the test, where its script has a copy."""
        options, roles = CASE_OF[script]
        shutil.copy(CASES / script, self.folder)
        name = script.partition(".")[0]
        result = self.run_import(script, "--name", name, *more, *options, cwd=self.folder)
        self.assertEqual((result.returncode, result.stdout), (0, ""), result.stderr)
        self.assertTrue(result.stderr.splitlines()[-2].startswith(SAME) or more, result.stderr)
        return name, roles, result

    def test_every_case_is_named_here(self):
        self.assertEqual(sorted(path.name for path in CASES.iterdir()), sorted(CASE_OF))

    def test_cases(self):
        for script in CASE_OF:
            with self.subTest(script):
                name, roles, _ = self.imported(script)
                for suffix, kind in ((".yaml", "experiment"), (".site.yaml", "site")):
                    text = self.normal((self.folder / f"{name}{suffix}").read_text())
                    golden = GOLDEN / f"{name}{suffix}"
                    if os.environ.get("NLAUNCH_UPDATE_GOLDEN"):
                        golden.parent.mkdir(exist_ok=True)
                        golden.write_text(text)
                    self.assertEqual(text, golden.read_text(), f"{golden} differs; NLAUNCH_UPDATE_GOLDEN=1 rewrites it")
                    schema = json.loads((SOURCE / "schema" / f"{kind}.json").read_text())
                    errors = jsonschema.Draft202012Validator(schema).iter_errors(yaml.safe_load(text))
                    self.assertEqual([error.message for error in errors], [])
                done = self.plan(name, "--json")
                self.assertEqual(done.returncode, 0, done.stderr)
                plan = json.loads(done.stdout)
                found = [(role["name"], role["kind"], sum(one["role"] == role["name"] for one in plan["processes"]),
                          max((len(one["gpus"]) for one in plan["processes"] if one["role"] == role["name"]), default=0)) for role in plan["roles"]]
                self.assertEqual(sorted(found), sorted(roles))

    def test_a_configuration_that_is_a_script_plans_all_gpus_too(self):
        shutil.copy(CASES / "isambard_grpo.sbatch", self.folder)
        (self.folder / "mine.sh").write_text("python open_instruct/grpo_fast.py --model_name_or_path \"$1\" --num_learners_per_node 1 1 --vllm_num_engines 6 "
                                             "--checkpoint_state_dir \"$2\" \"${@:3}\"\n")
        result = self.run_import("isambard_grpo.sbatch", "--name", "mine", *ISAMBARD, "--", "mine.sh", "--seed", "1", cwd=self.folder)
        self.assertEqual(result.returncode, 0, result.stderr)
        plan = json.loads(self.plan("mine", "--json").stdout)
        self.assertEqual(sum(len(one["gpus"]) for one in plan["processes"] if one["role"] in ("learner", "engine")), 8)
        trainer = yaml.safe_load((self.folder / "mine.yaml").read_text())["roles"]["trainer"]["command"]
        self.assertEqual(trainer[-2:], ["--seed", "1"])

    def test_lint_finds_in_the_plan_what_it_finds_in_the_script(self):
        for script in ("vllm_trainer.sbatch", "torchrun_nodes.sbatch", "accelerate_nodes.sbatch"):
            with self.subTest(script):
                name, _, _ = self.imported(script)
                before = json.loads(self.nlaunch("lint", self.folder / script, "--json", cwd=self.folder).stdout)
                result = self.nlaunch("lint", self.folder / f"{name}.yaml", "--site", self.folder / f"{name}.site.yaml", "--json")
                self.assertEqual(result.stderr, "")
                errors = lambda found: {one["rule"] for one in found if one["severity"] == "error"}  # noqa: E731
                self.assertEqual(errors(before) - OF_SCRIPTS, errors(json.loads(result.stdout)))

    def test_lines_that_are_named_are_those_of_the_script(self):
        for script in CASE_OF:
            lines = (CASES / script).read_text().splitlines()
            name = script.partition(".")[0]
            for suffix in (".yaml", ".site.yaml"):
                for variable, number in re.findall(r"^ +([A-Z][A-Za-z0-9_]+): .*# line (\d+)", (GOLDEN / f"{name}{suffix}").read_text(), re.M):
                    if variable in ("API_KEY", "MODEL"):  # of the command line, of --env
                        continue
                    value = "\n".join(lines[max(0, int(number) - 20):int(number)])  # bash names the last line of several
                    self.assertIn(variable, value, f"{script}: line {number}")


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/env python3
"""`nlaunch import`: what it makes of the scripts in cases/, against golden files (NLAUNCH_UPDATE_GOLDEN=1 rewrites them). Every pair is
planned, linted, and held against the schemas. The cases are written after scripts that people have; isambard_grpo.sbatch does all that
docs/isambard.md lists."""
import json
import os
import pathlib
import re
import sys
import unittest

import jsonschema
import yaml

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from importing import SOURCE, Import  # noqa: E402

CASES = HERE / "cases"
GOLDEN = SOURCE / "tests" / "golden" / "import"
# Roles, in their order: (name, kind, processes, GPUs of each).
ROLES = {
    "isambard_grpo.sbatch": [("ray-head", "service", 1, 0), ("ray-worker", "service", 1, 0), ("code-server", "service", 2, 0), ("trainer", "service", 1, 0),
                             ("learner", "learner", 2, 1), ("engine", "engine", 6, 1)],
    "torchrun_nodes.sbatch": [("learner", "learner", 32, 1)],
    "vllm_trainer.sbatch": [("engine", "engine", 1, 4), ("learner", "learner", 4, 1)],
    "verl_ray.sbatch": [("ray-head", "service", 1, 0), ("ray-worker", "service", 1, 0), ("trainer", "service", 1, 0), ("learner", "learner", 16, 1)],
    "accelerate_nodes.sbatch": [("learner", "learner", 3, 8)],
    "containers.sbatch": [("engine", "engine", 1, 2), ("learner", "learner", 2, 1)],
}
# Rules of scripts alone: a plan cannot have what they find.
OF_SCRIPTS = {"exit-code-lost", "preload-everywhere", "export-commas", "line-ends"}


class Cases(Import):
    def test_every_case_is_named_here(self):
        self.assertEqual(sorted(path.name for path in CASES.iterdir()), sorted(ROLES))

    def test_cases(self):
        for script, roles in ROLES.items():
            with self.subTest(script):
                name = script.partition(".")[0]
                result = self.run_import(CASES / script, "--name", name, "--output", self.folder)
                self.assertEqual((result.returncode, result.stdout), (0, ""), result.stderr)
                for suffix, kind in ((".yaml", "experiment"), (".site.yaml", "site")):
                    text = (self.folder / f"{name}{suffix}").read_text()
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

    def test_lint_finds_in_the_plan_what_it_finds_in_the_script(self):
        for script in ROLES:
            with self.subTest(script):
                name = script.partition(".")[0]
                self.run_import(CASES / script, "--name", name, "--output", self.folder)
                before = json.loads(self.nlaunch("lint", CASES / script, "--json").stdout)
                result = self.nlaunch("lint", self.folder / f"{name}.yaml", "--site", self.folder / f"{name}.site.yaml", "--json")
                self.assertEqual(result.stderr, "")
                errors = lambda found: {one["rule"] for one in found if one["severity"] == "error"}  # noqa: E731
                self.assertEqual(errors(before) - OF_SCRIPTS, errors(json.loads(result.stdout)))

    def test_the_job_of_isambard_is_short(self):
        for suffix, most in ((".yaml", 90), (".site.yaml", 60)):
            self.assertLess(len((GOLDEN / f"isambard_grpo{suffix}").read_text().splitlines()), most)
        self.assertGreater(len((CASES / "isambard_grpo.sbatch").read_text().splitlines()), 320)

    def test_lines_that_are_named_are_those_of_the_script(self):
        for script in ROLES:
            lines = (CASES / script).read_text().splitlines()
            name = script.partition(".")[0]
            for suffix in (".yaml", ".site.yaml"):
                for variable, number in re.findall(r"^ +([A-Z][A-Za-z0-9_]+): .*# line (\d+)", (GOLDEN / f"{name}{suffix}").read_text(), re.M):
                    self.assertIn(variable, lines[int(number) - 1], f"{script}: line {number}")


if __name__ == "__main__":
    unittest.main()

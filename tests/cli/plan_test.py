#!/usr/bin/env python3
"""`nlaunch plan` and `nlaunch env`: whole outputs against golden files (NLAUNCH_UPDATE_GOLDEN=1 rewrites them)."""
import json
import os
import resource
import subprocess
import time
import unittest

from harness import NLAUNCH, SOURCE, CliTest

GOLDEN = SOURCE / "tests" / "golden" / "plan"
CASES = {
    "grpo.isambard": ["configs/grpo.yaml", "--site", "isambard"],
    "grpo-32b.isambard": ["configs/grpo-32b.yaml", "--site", "isambard"],
    "grpo-ray.isambard": ["configs/grpo-ray.yaml", "--site", "isambard"],
    "weight-sync.nvlink-box": ["configs/weight-sync.yaml", "--site", "nvlink-box", "--set", "site.node.gpus=4",
                               "--set", "site.node.arch=x86_64"],
    "quickstart.local": ["configs/quickstart.yaml", "--site", "local", "--set", "site.node.arch=x86_64"],
}


class Plan(CliTest):
    def compare(self, path, text):
        if os.environ.get("NLAUNCH_UPDATE_GOLDEN"):
            path.write_text(text)
        self.assertEqual(text, path.read_text(), f"{path} differs; NLAUNCH_UPDATE_GOLDEN=1 rewrites it")

    def test_golden_plans(self):
        for name, arguments in CASES.items():
            with self.subTest(name):
                result = self.nlaunch("plan", *arguments, "--json")
                self.assertEqual(result.returncode, 0, result.stderr)
                text = json.dumps(json.loads(self.normal(result.stdout)), indent=1, ensure_ascii=False) + "\n"
                self.compare(GOLDEN / f"{name}.json", text)
                table = self.nlaunch("plan", *arguments)
                self.compare(GOLDEN / f"{name}.txt", self.normal(table.stdout))

    def test_the_same_files_give_the_same_bytes(self):
        first = self.nlaunch("plan", *CASES["grpo.isambard"], "--json")
        self.assertEqual(first.stdout, self.nlaunch("plan", *CASES["grpo.isambard"], "--json").stdout)

    def test_a_frozen_plan_is_the_plan(self):
        whole = self.nlaunch("plan", *CASES["grpo.isambard"], "--json").stdout
        (self.folder / "plan.json").write_text(whole)
        self.assertEqual(self.nlaunch("plan", "--plan", self.folder / "plan.json", "--json").stdout, whole)

    def test_what_does_not_fit_is_said_with_what_would(self):
        result = self.nlaunch("plan", "configs/grpo-32b.yaml", "--site", "isambard", "--nodes", "8", "--set",
                              "roles.engine.count=12")
        self.assertEqual(result.returncode, 65)
        self.assertEqual(result.stderr.splitlines()[0],
                         "--set:1:20: error: role 'engine': 12 processes of 2 GPUs do not fit on 8 nodes × 4 GPUs: "
                         "8 fit, and 8 GPUs stay idle [plan.does-not-fit]")
        self.assertIn("hint: --set roles.engine.count=8, or --nodes 12", result.stderr)

    def test_big_plans_are_bounded(self):
        path = self.folder / "big.yaml"
        path.write_text("""version: 1
name: big
nodes: 10000
roles:
  learner: {kind: learner, per_node: 1, gpus: 1, rendezvous: torch, command: [t]}
  engine: {kind: engine, count: 70000, gpus: 1, ports: [http], command: [s]}
""")
        gigabyte = 1 << 30
        start = time.monotonic()
        result = subprocess.run([NLAUNCH, "plan", path, "--site", "isambard", "--set", "site.node.gpus=8", "--json"],
                                stdout=subprocess.PIPE, env=self.env, cwd=SOURCE, timeout=120,
                                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (gigabyte, gigabyte)))
        print(f"10,000 nodes x 8 GPUs planned in {time.monotonic() - start:.2f} s, {len(result.stdout) >> 20} MiB of JSON")
        self.assertEqual(result.returncode, 0)
        self.assertEqual(len(json.loads(result.stdout)["processes"]), 80000)


class Env(CliTest):
    def test_explain_names_the_line_that_wins(self):
        result = self.nlaunch("env", "configs/grpo.yaml", "--site", "isambard", "--role", "learner", "--explain",
                              "NCCL_SOCKET_IFNAME", "--env", "learner:NCCL_SOCKET_IFNAME=eth0")
        self.assertEqual(result.returncode, 0)
        lines = result.stdout.splitlines()
        self.assertRegex(lines[1], r"^site +=  hsn +site-profiles/slingshot11.yaml:\d+:\d+$")
        self.assertRegex(lines[2], r"^command line +=  eth0 +--env learner:NCCL_SOCKET_IFNAME +← wins$")
        self.assertEqual(lines[-1], "NCCL_SOCKET_IFNAME=eth0")

    def test_a_condition_that_does_not_hold_is_said(self):
        result = self.nlaunch("env", "configs/grpo.yaml", "--site", "isambard", "--role", "engine", "--nodes", "1",
                              "--set", "roles.engine.count=3", "--explain", "NCCL_NET")
        self.assertIn("not applied: nodes is 1, not >1", result.stdout)
        self.assertEqual(result.stdout.splitlines()[-1], "NCCL_NET is not set")

    def test_secrets_are_masked(self):
        result = self.nlaunch("env", "configs/quickstart.yaml", "--role", "engine", "--env", "MY_API_KEY=hush", "-v")
        self.assertNotIn("hush", result.stdout + result.stderr)
        self.assertIn("MY_API_KEY", result.stdout)

    def test_an_unknown_role_is_named_with_those_there_are(self):
        result = self.nlaunch("env", "configs/quickstart.yaml", "--role", "trainer")
        self.assertEqual((result.returncode, result.stderr),
                         (64, "nlaunch env: no role is called 'trainer'; the roles are engine, learner\n"))


class Usage(CliTest):
    def test_wrong_usage_is_64(self):
        for arguments in (["plan"], ["fly"], ["run", "x", "--level", "deepest"], []):
            with self.subTest(arguments):
                self.assertEqual(self.nlaunch(*arguments).returncode, 64)

    def test_help_and_version_are_0(self):
        self.assertEqual(self.nlaunch("--help").returncode, 0)
        version = self.nlaunch("--version")
        self.assertEqual(version.returncode, 0)
        self.assertRegex(version.stdout, r"^nlaunch \d+\.\d+\.\d+\nnlaunch-probe with ")

    def test_a_missing_file_is_65(self):
        result = self.nlaunch("plan", self.folder / "none.yaml", "--site", "local")
        self.assertEqual(result.returncode, 65)
        self.assertIn("No such file or directory", result.stderr)

    def test_every_site_loads(self):
        result = self.nlaunch("sites")
        self.assertEqual(result.returncode, 0)
        self.assertNotIn("cannot be read", result.stdout)
        for name in ("local", "isambard", "slingshot11", "nvlink-box", "pcie-box"):
            self.assertIn(name, result.stdout)
            self.assertEqual(self.nlaunch("sites", name).returncode, 0)


if __name__ == "__main__":
    unittest.main()

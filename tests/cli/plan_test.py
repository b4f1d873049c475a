#!/usr/bin/env python3
"""`nlaunch plan` and `nlaunch env`: whole outputs against golden files (NLAUNCH_UPDATE_GOLDEN=1 rewrites them)."""
import json
import os
import resource
import subprocess
import time
import unittest

from harness import BUILD, NLAUNCH, SOURCE, CliTest

GOLDEN = SOURCE / "tests" / "golden" / "plan"
CASES = {
    "grpo.isambard": ["configs/grpo.yaml", "--site", "isambard"],
    "grpo-32b.isambard": ["configs/grpo-32b.yaml", "--site", "isambard"],
    "grpo-235b.isambard": ["configs/grpo-235b.yaml", "--site", "isambard"],
    "grpo-ray.isambard": ["configs/grpo-ray.yaml", "--site", "isambard"],
    "weight-sync.nvlink-box": ["configs/weight-sync.yaml", "--site", "nvlink-box", "--set", "site.node.gpus=4",
                               "--set", "site.node.arch=x86_64"],
    "weight-sync-vllm.nvlink-box": ["configs/weight-sync-vllm.yaml", "--site", "nvlink-box", "--set", "site.node.gpus=4",
                                    "--set", "site.node.arch=x86_64"],
    **{f"bench-{name}.nvlink-box": [f"configs/bench/{name}.yaml", "--site", "nvlink-box", "--set", "site.node.gpus=4",
                                    "--set", "site.node.arch=x86_64"] for name in ("targets", "tp-inference", "weight-sync")},
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

    def test_recipes_are_placed_as_their_launchers_place_them(self):
        """Of what each recipe's head names; in one table each."""
        for recipe in sorted((SOURCE / "configs" / "frameworks").glob("*.yaml")):
            with self.subTest(recipe.stem):
                result = self.nlaunch("plan", recipe.relative_to(SOURCE), "--site", "isambard")
                self.assertEqual(result.returncode, 0, result.stderr)
                self.compare(GOLDEN / "frameworks" / f"{recipe.stem}.txt", self.normal(result.stdout))

    def test_the_same_files_give_the_same_bytes(self):
        first = self.nlaunch("plan", *CASES["grpo.isambard"], "--json")
        self.assertEqual(first.stdout, self.nlaunch("plan", *CASES["grpo.isambard"], "--json").stdout)

    def test_what_is_not_utf8_is_shown_and_does_not_break_the_json(self):
        arguments = ["configs/quickstart.yaml", "--site", "local", "--set", "vars.fail_rank=${env.ODD}"]
        result = self.nlaunch("plan", *arguments, "--json", env={"ODD": "a\udcff"})
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertIn("--fail-rank=a\ufffd", [word for role in json.loads(result.stdout)["roles"] for word in role["command"]])
        result = self.nlaunch("env", *arguments, "--role", "learner", "--json", env={"ODD": "a\udcff"})
        self.assertEqual((result.returncode, json.loads(result.stdout)["ODD"]), (0, "a\ufffd"), result.stderr)

    def test_a_frozen_plan_is_the_plan(self):
        whole = self.nlaunch("plan", *CASES["grpo.isambard"], "--json").stdout
        (self.folder / "plan.json").write_text(whole)
        self.assertEqual(self.nlaunch("plan", "--plan", self.folder / "plan.json", "--json").stdout, whole)

    def test_a_frozen_plan_takes_nothing_that_would_change_it(self):
        for options, named in ((["--set", "vars.a=1"], "--set"), (["--env", "A=1", "--nodes", "2"], "--env, --nodes"),
                               (["--site", "local", "--with", "x"], "--site, --with")):
            with self.subTest(named):
                result = self.nlaunch("run", "--plan", "plan.json", *options)
                self.assertEqual((result.returncode, result.stderr.splitlines()[0]),
                                 (64, f"nlaunch run: --plan cannot be used with {named}: a frozen plan runs unchanged. Make another one: nlaunch plan EXPERIMENT {named.split(',')[0]} ... --json"))

    def test_what_is_no_plan_is_said_for_people(self):
        (self.folder / "half.json").write_text('{"format": "nlaunch plan", "version": 1}')
        for path, why in ((SOURCE / "configs/quickstart.yaml", "it is not JSON"), (self.folder / "half.json", "key 'name' not found")):
            with self.subTest(why):
                result = self.nlaunch("plan", "--plan", path)
                self.assertEqual((result.returncode, result.stderr),
                                 (65, f"error: '{path}' cannot be read as a plan: {why} [plan.file]\n"
                                      "hint: --plan accepts the plan.json of a run or the output of `nlaunch plan --json`; pass an experiment without --plan\n"))

    def errors_of(self, text, site="local"):
        """The first lines of what is wrong with an experiment; the last says how many there are."""
        (self.folder / "wrong.yaml").write_text(text)
        result = self.nlaunch("plan", self.folder / "wrong.yaml", "--site", site)
        self.assertEqual((result.returncode, result.stdout), (65, ""))
        return [line.removeprefix(f"{self.folder}/") for line in result.stderr.splitlines() if "error" in line]

    def test_all_that_is_wrong_is_said_at_once(self):
        """Keys, types and names, of the file as of the site."""
        text = """version: 1
name: wrong
vars: {A: one}
roles:
  learner:
    kind: learner
    command: [python, "${vars.A}", "${vars.B}"]
    per_node: x
    nodes: 2
    env: {X: "${role.nope.addr}"}
start: [[learner, engine]]
"""
        of_the_file = {
            7: "wrong.yaml:7:37: error: unknown name '${vars.B}': did you mean '${vars.A}'? [plan.reference]",
            8: "wrong.yaml:8:15: error: 'roles.learner.per_node' must be a whole number, found 'x' [config.type]",
            9: "wrong.yaml:9:5: error: unknown key 'nodes' in 'roles.learner' [config.unknown-key]",
            10: "wrong.yaml:10:15: error: unknown name '${role.nope.addr}': 'nope' is not one of learner [plan.reference]",
            11: "wrong.yaml:11:19: error: unknown role 'engine' [config.unknown-role]"}
        self.assertEqual(self.errors_of(text), [*of_the_file.values(), "5 errors"])
        names = (7, 10)  # are looked up where the site is known
        self.assertEqual(self.errors_of(text, "nowhere"), ["error: site profile 'nowhere' not found [site.not-found]",
                                                           *(said for line, said in of_the_file.items() if line not in names), "4 errors"])

    def test_what_follows_from_a_mistake_is_not_said(self):
        self.assertEqual(self.errors_of("""version: 1
name: wrong
vars: [A, B]
roles:
  learner: {kind: learner, rendezvous: torhc, ports: {http: 1}, command: ["${vars.A}", "${self.rank}", "${self.ports.http}"]}
  engine: {kind: engine, command: ["${role.learner.addrs}"], ready: {http: "http://${self.host}:${vars.B}/"}}
"""), ["wrong.yaml:3:7: error: 'vars' must be a map, found a list [config.type]",
       "wrong.yaml:5:40: error: 'roles.learner.rendezvous' must be one of torch, none, found 'torhc' [config.choice]",
       "wrong.yaml:5:54: error: 'roles.learner.ports' must be a list, found a map [config.type]", "3 errors"])

    def test_what_all_roles_have_wrong_is_said_once(self):
        roles = "".join(f"  r{i}: {{kind: service, command: [x]}}\n" for i in range(61))
        self.assertEqual(self.errors_of("version: 1\nname: wrong\nnodes: x\nenv: {A: '${vars.nope}'}\nroles:\n" + roles),
                         ["wrong.yaml:3:8: error: 'nodes' must be a whole number, found 'x' [config.type]",
                          "wrong.yaml:4:11: error: unknown name '${vars.nope}': none of that kind is defined [plan.reference]", "2 errors"])

    def test_a_chain_of_vars_has_an_end(self):
        chain = "".join(f"  v{i}: '${{vars.v{i + 1}}}'\n" for i in range(24_000))
        errors = self.errors_of(f"version: 1\nname: wrong\nvars:\n{chain}  v24000: x\nroles: {{a: {{kind: learner, command: [x]}}}}\n")
        self.assertIn("error: vars refer to each other more than 100 levels deep [plan.deep-vars]", errors[0])

    def test_what_does_not_fit_is_said_with_what_would(self):
        result = self.nlaunch("plan", "configs/grpo-32b.yaml", "--site", "isambard", "--nodes", "8", "--set",
                              "roles.engine.count=12")
        self.assertEqual(result.returncode, 65)
        self.assertEqual(result.stderr.splitlines()[0],
                         "--set:1:20: error: role 'engine': 12 processes of 2 GPUs do not fit on 8 nodes × 4 GPUs: "
                         "8 fit, and 0 GPUs stay idle [plan.does-not-fit]")
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

        def bound():  # a sanitizer's shadow is larger than any memory
            if not os.environ.get("NLAUNCH_SANITIZE"):
                resource.setrlimit(resource.RLIMIT_DATA, (gigabyte, gigabyte))

        start = time.monotonic()
        result = subprocess.run([NLAUNCH, "plan", path, "--site", "isambard", "--set", "site.node.gpus=8", "--json"],
                                stdout=subprocess.PIPE, env=self.env, cwd=SOURCE, timeout=120,
                                preexec_fn=bound)
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

    def explain(self, name, **env):
        path = self.folder / "e.yaml"
        path.write_text("version: 1\nname: test\nroles: {learner: {kind: learner, preload: [nccl], command: ['true']}, engine: {kind: engine, command: ['true']}}\n")
        site = self.folder / "here.yaml"
        site.write_text(f"version: 1\nname: here\nscheduler: {{kind: local}}\nlibraries: {{nccl: {{path: {self.folder}/libnccl.so*}}}}\n")
        result = self.nlaunch("env", path, "--site", site, "--role", "learner", "--explain", name, env=env)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout.replace(str(self.folder), "$FOLDER").replace(str(BUILD), "$BUILD")

    def test_preload_is_explained(self):
        made = ("built on the node from\n"
                "  library 'nccl' ($FOLDER/here.yaml:4:26): $FOLDER/libnccl.so*%s\n"
                "  $BUILD/lib/libnlaunch-scope.so: keeps them out of programs that the process starts (scope: process)\n")
        said = self.explain("LD_PRELOAD", LD_PRELOAD="")
        self.assertTrue(said.startswith(made % ", not on this machine"), said)
        (self.folder / "libnccl.so.2").touch()
        said = self.explain("LD_PRELOAD")
        self.assertTrue(said.startswith(made % ""), said)
        self.assertEqual(said.splitlines()[-1], "LD_PRELOAD=$FOLDER/libnccl.so.2:$BUILD/lib/libnlaunch-scope.so")

    def test_what_is_not_inherited_is_said(self):
        self.assertEqual(self.explain("NCCL_FOO", NCCL_FOO="1"),
                         "NCCL_FOO=1 from the calling environment is not passed on: a launcher owns NCCL_*\nNCCL_FOO is not set\n")
        self.assertEqual(self.explain("RANK", RANK="3").splitlines()[0],
                         "RANK=3 from the calling environment is not passed on: a launcher owns RANK")

    def test_a_value_is_shown_as_the_process_has_it(self):
        for written, shown in (("${env.HOME} $${HOME}", f"{self.folder} ${{HOME}}"), ("${node.scratch} $${HOME}", "${node.scratch} $${HOME}")):
            done = self.nlaunch("env", "configs/quickstart.yaml", "--role", "engine", "--env", f"XB={written}", "--json")
            self.assertEqual(json.loads(done.stdout)["XB"], shown)

    def test_secrets_are_masked(self):
        result = self.nlaunch("env", "configs/quickstart.yaml", "--role", "engine", "--env", "MY_API_KEY=hush", "-v")
        self.assertNotIn("hush", result.stdout + result.stderr)
        self.assertIn("MY_API_KEY", result.stdout)

    def test_an_unknown_role_is_named_with_those_there_are(self):
        result = self.nlaunch("env", "configs/quickstart.yaml", "--role", "trainer")
        self.assertEqual((result.returncode, result.stderr),
                         (64, "nlaunch env: role 'trainer' not found; available: engine, learner\n"))


class Usage(CliTest):
    def test_wrong_usage_is_64(self):
        for arguments in (["plan"], ["fly"], ["run", "x", "--level", "deepest"], []):
            with self.subTest(arguments):
                self.assertEqual(self.nlaunch(*arguments).returncode, 64)

    COMMANDS = "run, stop, resume, restart, update, drain, scale, ps, top, logs, report, evidence, diagnose, diff, exec, plan, preflight, lint, env, bench, import, render, bundle, sites, schema, completion, help"

    def test_a_word_that_nobody_knows_is_said_with_the_nearest(self):
        cases = {
            ("rnu",): f"nlaunch: unknown command 'rnu': did you mean 'run'?\navailable commands: {self.COMMANDS}; see nlaunch help\n",
            ("fly", "x"): f"nlaunch: unknown command 'fly'\navailable commands: {self.COMMANDS}; see nlaunch help\n",
            ("--verion",): "nlaunch: unknown option '--verion': did you mean '--version'?\nsee nlaunch --help\n",
            ("run", "--sit", "local", "e.yaml"): "nlaunch run: unknown option '--sit': did you mean '--site'?\nsee nlaunch run --help\n",
            ("run", "--pln=p.json"): "nlaunch run: unknown option '--pln': did you mean '--plan'?\nsee nlaunch run --help\n",
            ("--site", "local", "run", "e.yaml"): "nlaunch run: put '--site' after the command: nlaunch run --site ...\n",
            ("ps", "a", "b"): "nlaunch ps: unexpected argument 'b'\nsee nlaunch ps --help\n",
            ("plan", "e.yaml", "--nodes", "x"): "nlaunch plan: --nodes expects N or POOL=N, with N at most 100000, got 'x'\nsee nlaunch plan --help\n",
            ("help", "rnu"): "nlaunch help: unknown command 'rnu': did you mean 'run'?\nsee nlaunch help --help\n",
            ("--dry-run",): "nlaunch: to see what would run, use 'nlaunch plan'\n",
            ("run", "e.yaml", "--dry-run"): "nlaunch run: to see what would run, use 'nlaunch plan'\n",
            (): f"nlaunch: missing command; available: {self.COMMANDS}; see nlaunch help\n",
        }
        for arguments, said in cases.items():
            with self.subTest(arguments):
                result = self.nlaunch(*arguments)
                self.assertEqual((result.returncode, result.stderr), (64, said))

    def test_a_word_of_other_tools_leads_to_ours(self):
        words = {"submit": "run", "sbatch": "run", "status": "ps", "validate": "plan", "monitor": "top", "watch": "top", "cancel": "stop",
                 "kill": "stop --now", "attach": "logs -f", "tail": "logs -f", "init": "sites init"}
        for word, ours in words.items():
            with self.subTest(word):
                result = self.nlaunch(word, "grpo")
                self.assertEqual((result.returncode, result.stderr), (64, f"nlaunch: unknown command '{word}': use 'nlaunch {ours}'\n"
                                                                         f"available commands: {self.COMMANDS}; see nlaunch help\n"))
        for word in ("report", "top"):
            self.assertEqual(self.nlaunch(word, "--help").returncode, 0)

    def test_help_says_how_a_command_is_used(self):
        for command, usage in (("run", "run EXPERIMENT [OPTIONS]"), ("preflight", "preflight [EXPERIMENT] [OPTIONS]"),
                               ("stop", "stop RUN [OPTIONS]"), ("exec", "exec RUN PROCESS [OPTIONS] -- COMMAND")):
            for arguments in (["help", command], [command, "--help"]):
                with self.subTest(arguments):
                    result = self.nlaunch(*arguments)
                    self.assertEqual((result.returncode, result.stdout.splitlines()[0]), (0, f"Usage: nlaunch {usage}"))
        result = self.nlaunch("help")
        self.assertIn("\n\nUsage: nlaunch COMMAND [OPTIONS]\n", result.stdout)
        self.assertNotIn("agent", result.stdout)

    def test_help_and_version_are_0(self):
        self.assertEqual(self.nlaunch("--help").returncode, 0)
        version = self.nlaunch("--version")
        self.assertEqual(version.returncode, 0)
        self.assertRegex(version.stdout, r"^nlaunch \d+\.\d+\.\d+\nnlaunch-probe with ")

    def test_a_missing_file_is_65(self):
        result = self.nlaunch("plan", self.folder / "none.yaml", "--site", "local")
        self.assertEqual(result.returncode, 65)
        self.assertIn("No such file or directory", result.stderr)

    def test_a_folder_with_profiles_that_is_not_there_is_64(self):
        for command in (["plan", "configs/quickstart.yaml"], ["sites"]):
            with self.subTest(command):
                result = self.nlaunch(*command, "--site-dir", "/nope")
                self.assertEqual((result.returncode, result.stderr),
                                 (64, f"nlaunch {command[0]}: --site-dir: Directory does not exist: /nope\n"
                                      f"see nlaunch {command[0]} --help\n"))

    def test_every_site_loads(self):
        result = self.nlaunch("sites")
        self.assertEqual(result.returncode, 0)
        self.assertNotIn("cannot be read", result.stdout)
        for name in ("local", "isambard", "slingshot11", "nvlink-box", "pcie-box"):
            self.assertIn(name, result.stdout)
            self.assertEqual(self.nlaunch("sites", name).returncode, 0)


if __name__ == "__main__":
    unittest.main()

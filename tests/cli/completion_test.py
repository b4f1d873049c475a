#!/usr/bin/env python3
"""Completion in a real bash and a real zsh, by the scripts that the program writes of its own tables."""
import json
import os
import pty
import re
import select
import subprocess
import time
import unittest

from harness import BUILD, SOURCE, CliTest


class Bash(CliTest):
    def complete(self, *words):
        return [word for line in self.offered(*words) for word in line.split()]

    def offered(self, *words):
        """What bash would offer for the last of the words."""
        (self.folder / "completion").write_text(self.nlaunch("completion", "bash").stdout)
        script = ('source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _nlaunch; '
                  '((${#COMPREPLY[@]} == 0)) || printf "%s\\n" "${COMPREPLY[@]}"')
        done = subprocess.run(["bash", "-c", script, self.folder / "completion", "nlaunch", *words], cwd=SOURCE, text=True,
                              env={**self.env, "PATH": f"{BUILD}/bin:{self.env['PATH']}"}, capture_output=True, timeout=30)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout.splitlines()

    def test_commands_are_those_of_the_help(self):
        listed = re.findall(r"^  ([a-z]+)  ", self.nlaunch("help").stdout, re.M)
        self.assertIn("preflight", listed)
        self.assertEqual(self.complete(""), listed)
        self.assertEqual(self.complete("pl"), ["plan"])
        self.assertEqual(self.complete("help", "ren"), ["render"])

    def test_options_are_those_of_the_command(self):
        for command in ("run", "plan", "preflight", "sites", "completion"):
            known = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", "\n".join(
                re.findall(r"^  (-.*?)(?:  |$)", self.nlaunch(command, "--help").stdout, re.M))))
            offered = set(self.complete(command, "--"))
            self.assertLessEqual(known - offered, set(), command)
        self.assertEqual(self.complete("sites", "init", "--o"), ["--output"])
        self.assertIn("--color", self.complete("--"))
        self.assertNotIn("--role", self.complete("plan", "--"))

    def test_options_that_help_does_not_show_are_not_offered(self):
        self.assertIn("--detach", self.complete("run", "--"))
        self.assertNotIn("--run-dir", self.complete("run", "--"))

    def test_names_of_sites_and_overlays(self):
        self.assertEqual(self.complete("plan", "--site", "isam"), ["isambard"])
        self.assertEqual(self.complete("sites", "efa"), ["efa"])
        self.assertEqual(self.complete("plan", "--site", "pcie-box", "--with", "no-"), ["no-ll128", "no-p2p"])
        self.assertEqual(self.complete("plan", "--with", "no-"), ["no-ll128"])
        self.experiment("overlays: {no-graphs: {set: {cpu_slots: true}}}\n")
        self.assertEqual(self.complete("plan", f"{self.folder}/grpo.yaml", "--with", "no-"), ["no-ll128", "no-graphs"])

    def experiment(self, text=""):
        (self.folder / "grpo.yaml").write_text(
            "version: 1\nname: grpo\nvars: {rate: 1}\npools: {train: {nodes: 1}, rollout: {nodes: 1}}\n"
            "roles:\n  learner: {kind: learner, count: 2, pool: train, command: [x]}\n"
            "  engine: {kind: engine, count: 1, pool: rollout, command: [y]}\n" + text)
        return self.folder / "grpo.yaml"

    def recorded_run(self, *processes):
        """A run whose events name these processes."""
        run = self.folder / "runs/grpo/20260101-000000-1"
        run.mkdir(parents=True)
        (run / "plan.json").write_text("{}")
        events = [{"event": "run", "time": "2026-01-01T00:00:00Z", "pid": 1, "host": "elsewhere"},
                  *({"event": "process-started", "process": name, "pid": 2, "host": "elsewhere"} for name in processes)]
        (run / "events.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
        return self.folder / "runs"

    def test_roles_of_the_experiment(self):
        path = self.experiment()
        self.assertEqual(self.complete("env", path, "--role", ""), ["learner", "engine"])
        self.assertEqual(self.complete("env", "--json", path, "--role", "=", "en"), ["engine"])
        self.assertEqual(self.complete("env", "--role", ""), [])
        self.assertEqual(self.complete("env", self.folder / "none.yaml", "--role", ""), [])
        path.write_text(path.read_text() + "no_such_key: 1\n")  # what can be read is enough
        self.assertEqual(self.complete("env", path, "--role", "l"), ["learner"])

    def test_keys_that_set_accepts(self):
        path = self.experiment()
        self.assertEqual(self.complete("plan", path, "--set", "roles.learner.gpu"), ["roles.learner.gpus=", "roles.learner.gpu_memory="])
        self.assertEqual(self.complete("run", "--site", "=", "local", path, "--set", "pools.ro"), [
            "pools.rollout.nodes=", "pools.rollout.elastic.min=", "pools.rollout.elastic.max=", "pools.rollout.gpus=", "pools.rollout.cpus=",
            "pools.rollout.gpu=", "pools.rollout.interface="])
        self.assertEqual(self.complete("update", "grpo", path, "--set", "vars."), ["vars.rate="])
        self.assertEqual(self.complete("plan", "--set", "preflight."), ["preflight.level=", "preflight.strict="])
        self.assertEqual(self.complete("plan", "--set", "roles."), [])
        self.assertEqual(self.complete("plan", "--set", "site.scheduler.k"), ["site.scheduler.kind="])
        # A value of a setting is no argument: the experiment is still the first one.
        self.assertEqual(self.complete("plan", "--set", "vars.rate", "=", "2", path, "--set", "vars."), ["vars.rate="])

    def test_every_key_that_is_offered_can_be_set(self):
        path = self.experiment()
        offered = self.complete("plan", path, "--set", "")
        self.assertGreater(len(offered), 200)
        last = [key for key in offered if not any(other.startswith(key[:-1] + ".") for other in offered)]
        for begin in range(0, len(last), 30):  # all of them are more errors than are shown
            keys = last[begin:begin + 30] + ["no.such.key="]
            result = self.nlaunch("plan", path, "--site", "local", *(word for key in keys for word in ("--set", key + "[]")))
            self.assertEqual(re.findall(r"unknown key '(.*?)'", result.stderr), ["no"], result.stderr)

    def test_roles_and_processes_of_a_run(self):
        runs = self.recorded_run("learner.0", "learner.1", "engine.0.0", "engine.0.1")
        for command in ("logs", "restart"):
            self.assertEqual(self.complete(command, "--runs-dir", runs, "grpo", "e"), ["engine", "engine.0", "engine.0.0", "engine.0.1"])
        self.assertEqual(self.complete("logs", "grpo", "--runs-dir", runs, "--role", "learner."), ["learner.0", "learner.1"])
        self.assertEqual(self.complete("exec", "--runs-dir", "=", runs, "grpo", "l"), ["learner.0", "learner.1"])
        self.assertEqual(self.complete("scale", "--runs-dir", runs, "grpo", ""), ["engine=", "learner="])
        self.assertEqual(self.complete("drain", "--runs-dir", runs, "grpo", ""), ["elsewhere"])
        self.assertEqual(self.complete("logs", "--runs-dir", runs, "none", ""), [])
        self.assertEqual(self.complete("logs", "--role", ""), [])

    def test_names_and_ids_of_runs(self):
        runs = self.folder / "elsewhere"
        for run in ("grpo/20260101-000000-1", "grpo/20260102-000000-1", "sft/20260103-000000-1"):
            (runs / run).mkdir(parents=True)
            (runs / run / "plan.json").write_text("{}")
        listed = sorted(self.nlaunch("completion", "runs", runs).stdout.split())
        self.assertEqual(listed, ["20260101-000000-1", "20260102-000000-1", "20260103-000000-1", "grpo", "sft"])
        for command in ("ps", "logs", "stop", "restart", "update", "drain", "scale", "exec", "evidence", "bundle", "diff"):
            self.assertEqual(sorted(self.complete(command, "--runs-dir", runs, "20260102")), ["20260102-000000-1"], command)
        self.assertEqual(self.complete("logs", "--runs-dir", runs, "gr"), ["grpo"])
        self.assertEqual(self.complete("ps", "configs/quickstart.y"), ["configs/quickstart.yaml"])
        self.assertEqual(self.nlaunch("completion", "runs", self.folder / "nowhere").stdout, "")

    def test_words_as_bash_hands_them_over(self):
        self.assertEqual(self.complete("plan", "--site", "=", "isam"), ["isambard"])
        self.assertIn("isambard", self.complete("plan", "--site", "="))
        self.assertEqual(self.complete("plan", "--site", "=", "pcie-box", "--with", "no-p"), ["no-p2p"])
        (self.folder / "runs/grpo/20260101-000000-1").mkdir(parents=True)
        (self.folder / "runs/grpo/20260101-000000-1/plan.json").write_text("{}")
        self.env["HOME"] = str(self.folder)
        self.assertEqual(self.complete("diagnose", "--runs-dir", "~/runs", "2026"), ["20260101-000000-1"])

    def test_no_name_is_run(self):
        """Folders of runs are often other people's."""
        runs, made = self.folder / "runs", self.folder / "made"
        for name in (f"$(touch {made})".replace("/", "${HOME:0:1}"), "a b", "x;y"):
            (runs / name / "20260101-000000-1").mkdir(parents=True)
            (runs / name / "20260101-000000-1/plan.json").write_text("{}")
        self.assertIn("a b", self.nlaunch("completion", "runs", runs).stdout.splitlines())
        self.assertEqual(set(self.complete("ps", "--runs-dir", runs, "")) - set(os.listdir(SOURCE)), {"20260101-000000-1"})
        for name in (f"$(touch {made})", "a b", "`id`"):
            self.experiment(f"overlays: {{{json.dumps(name)}: {{}}}}\n")
            path = self.folder / "grpo.yaml"
            path.write_text(path.read_text().replace("engine:", json.dumps(name) + ":").replace("rate:", json.dumps(name) + ":"))
            self.assertEqual(self.complete("env", path, "--role", ""), ["learner"])
            self.assertEqual([key for key in self.complete("plan", path, "--set", "vars.")], [])
            self.assertEqual(self.complete("plan", path, "--with", ""), self.complete("plan", "--with", ""))
        self.recorded_run("learner.0", f"$(touch {made}).0", "a b.1", "`id`.0")
        self.assertEqual(self.complete("logs", "--runs-dir", runs, "grpo", ""), ["learner", "learner.0"])
        (self.folder / "a file.yaml").touch()
        self.assertEqual(self.offered("plan", f"{self.folder}/a f"), [f"{self.folder}/a file.yaml"])
        self.assertFalse(made.exists())

    def test_choices_and_files(self):
        self.assertEqual(self.complete("--color", ""), ["auto", "always", "never"])
        self.assertEqual(self.complete("plan", "--color", "a"), ["auto", "always"])
        self.assertEqual(self.complete("schema", ""), ["experiment", "site"])
        self.assertEqual(self.complete("sites", ""), ["check", "init", *self.nlaunch("completion", "sites").stdout.split()])
        self.assertEqual(self.complete("plan", "configs/quickstart.y"), ["configs/quickstart.yaml"])
        self.assertEqual(self.complete("sites", "check", "site-profiles/al"), ["site-profiles/alps.yaml"])

    def test_the_built_files_are_these(self):
        for name, shell in (("nlaunch", "bash"), ("nlaunch.zsh", "zsh")):
            self.assertEqual((BUILD / "completion" / name).read_text(), self.nlaunch("completion", shell).stdout)


class Zsh(CliTest):
    def test_a_tab_completes(self):
        if not os.path.exists("/usr/bin/zsh"):
            self.skipTest("zsh is not installed")
        (self.folder / "completion").write_text(self.nlaunch("completion", "zsh").stdout)
        (self.folder / ".zshrc").write_text(f"PS1='ready> '\nautoload -U compinit && compinit -u -D\nsource {self.folder}/completion\n")
        pid, terminal = pty.fork()
        if pid == 0:
            os.chdir(SOURCE)
            os.execve("/usr/bin/zsh", ["zsh", "-i"], {**self.env, "PATH": f"{BUILD}/bin:{self.env['PATH']}", "TERM": "dumb",
                                                       "ZDOTDIR": str(self.folder)})
        try:
            self.wait_for(terminal, "ready> ")
            for typed, wanted in (("nlaunch prefl\t", "nlaunch preflight "), ("nlaunch sites che\t", "nlaunch sites check "),
                                  ("nlaunch plan --site isam\t", "nlaunch plan --site isambard "),
                                  ("nlaunch plan configs/quickstart.y\t", "nlaunch plan configs/quickstart.yaml ")):
                os.write(terminal, typed.encode())
                self.wait_for(terminal, wanted)
                os.write(terminal, b"\x15")  # forgets the line
        finally:
            os.write(terminal, b"\x15exit\n")
            os.close(terminal)
            os.waitpid(pid, 0)

    def wait_for(self, terminal, wanted):
        said, end = "", time.monotonic() + 20
        while time.monotonic() < end:
            if select.select([terminal], [], [], 0.2)[0]:
                said += os.read(terminal, 4096).decode(errors="replace")
            # How the line editor repaints is its own business.
            if wanted in re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|[\r\n\x07\x08]", "", said):
                return
        self.fail(f"zsh did not show {wanted!r}: {said!r}")


if __name__ == "__main__":
    unittest.main()

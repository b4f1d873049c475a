#!/usr/bin/env python3
"""Completion in a real bash and a real zsh, by the scripts that the program writes of its own tables."""
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
        listed = re.findall(r"^  ([a-z]+)  ", self.nlaunch("help").stdout.split("Subcommands:")[-1], re.M)
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

    def test_names_of_sites_and_overlays(self):
        self.assertEqual(self.complete("plan", "--site", "isam"), ["isambard"])
        self.assertEqual(self.complete("sites", "efa"), ["efa"])
        self.assertEqual(self.complete("plan", "--site", "pcie-box", "--with", "no-"), ["no-ll128", "no-p2p"])
        self.assertEqual(self.complete("plan", "--with", "no-"), ["no-ll128"])

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

#!/usr/bin/env python3
"""Help and man pages of the built program: how wide they are, what they begin with, and one page against a golden file
(NLAUNCH_UPDATE_GOLDEN=1 rewrites it)."""
import fcntl
import os
import pty
import re
import shutil
import struct
import subprocess
import termios
import unittest

from harness import BUILD, NLAUNCH, SOURCE, CliTest

GOLDEN = SOURCE / "tests" / "golden" / "man" / "nlaunch-stop.1"


def commands(listing):
    return re.findall(r"^  ([a-z]+)  ", listing, re.M)


class Help(CliTest):
    def on_a_terminal(self, columns, *arguments):
        """The lines that a terminal of so many columns gets."""
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
        with subprocess.Popen([NLAUNCH, *arguments], stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, env=self.env) as process:
            os.close(theirs)
            said = b""
            try:
                while block := os.read(ours, 65536):
                    said += block
            except OSError:  # the end of a terminal
                pass
            os.close(ours)
            self.assertEqual(process.wait(timeout=30), 0)
        return said.decode().splitlines()

    def test_lines_fit(self):
        listing = self.nlaunch("--help").stdout
        listed = commands(listing)
        self.assertIn("preflight", listed)
        for arguments in (["--help"], ["--help-all"], ["sites", "check", "--help"], *([command, "--help"] for command in listed)):
            with self.subTest(arguments):
                lines = self.nlaunch(*arguments, env={"COLUMNS": "200"}).stdout.splitlines()
                self.assertEqual([line for line in lines if len(line) > 80], [])

    def test_a_terminal_gets_what_fits(self):
        for columns, most in ((60, 60), (90, 90), (300, 100)):
            longest = max(map(len, self.on_a_terminal(columns, "run", "--help")))
            self.assertTrue(most - 8 <= longest <= most, f"{columns}: {longest}")
        self.assertEqual(self.on_a_terminal(80, "run", "--help"), self.nlaunch("run", "--help").stdout.splitlines())

    def test_examples_come_first(self):
        self.assertRegex(self.nlaunch("--help").stdout, r"\AExamples:\n(  nlaunch [^\n]+\n){2,3}\nUsage: nlaunch COMMAND ")
        self.assertRegex(self.nlaunch("logs", "--help").stdout,
                         r"\AUsage: nlaunch logs RUN \[WHAT\] \[OPTIONS\]\n\n[A-Z][^\n]+\.\n\nExamples:\n(  nlaunch logs [^\n]+\n){2,3}\n")

    def test_options_are_in_groups(self):
        headings = re.findall(r"^(\w.*):$", self.nlaunch("run", "--help").stdout, re.M)
        self.assertEqual(headings, ["Examples", "Arguments", "Plan options", "Options", "Options for a comparison", "General options"])
        plan = self.nlaunch("run", "--help").stdout.split("Plan options:\n")[1].split("\n\n")[0]
        self.assertEqual(re.findall(r"^  (--[a-z-]+)", plan, re.M),
                         ["--site", "--site-dir", "--set", "--with", "--env", "--nodes", "--spares", "--plan"])


class Man(CliTest):
    def setUp(self):
        super().setUp()
        result = self.nlaunch("reference", "--man", self.folder)
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "", ""))
        self.pages = {path.name: path.read_text() for path in self.folder.iterdir()}

    def test_each_command_has_a_page(self):
        names = [f"nlaunch-{command}.1" for command in commands(self.nlaunch("--help").stdout)]
        self.assertCountEqual(self.pages, ["nlaunch.1", "nlaunch-sites-check.1", "nlaunch-sites-init.1", *names])
        for name, page in self.pages.items():
            self.assertEqual([heading for heading in re.findall(r"^\.SH (.*)$", page, re.M) if heading != "COMMANDS"],
                             ["NAME", "SYNOPSIS", "EXAMPLES", "OPTIONS", "EXIT STATUS", "SEE ALSO"], name)

    def test_exit_codes_are_those_of_the_command(self):
        for code in ("69", "124", "143"):
            self.assertIn(f".TP\n\\fB{code}\\fR\n", self.pages["nlaunch.1"])
        self.assertIn(".TP\n\\fB2\\fR\na check failed\n", self.pages["nlaunch-preflight.1"])
        self.assertNotIn("a check failed", self.pages["nlaunch-run.1"])

    def test_one_page_as_a_whole(self):
        page = re.sub(r'"nlaunch \d+\.\d+\.\d+"', '"nlaunch VERSION"', self.pages[GOLDEN.name])
        if os.environ.get("NLAUNCH_UPDATE_GOLDEN"):
            GOLDEN.parent.mkdir(exist_ok=True)
            GOLDEN.write_text(page)
        self.assertEqual(page, GOLDEN.read_text(), f"{GOLDEN} differs; NLAUNCH_UPDATE_GOLDEN=1 rewrites it")

    def warnings(self, path):
        command = ["groff", "-man", "-ww", "-Tutf8"] if shutil.which("groff") else ["man", "--warnings", "-l"]
        return subprocess.run([*command, path], capture_output=True, text=True, timeout=60, env={**self.env, "MANPAGER": "cat"}).stderr

    def test_no_page_has_warnings(self):
        if not shutil.which("groff") and not shutil.which("man"):
            self.skipTest("neither man nor groff is installed")
        broken = self.folder / "broken.1"
        broken.write_text('.TH BROKEN 1\n.SH NAME\n\\fXbroken\\fR \\- [\\*[none]]\n')
        self.assertNotEqual(self.warnings(broken), "")
        for name in self.pages:
            self.assertEqual(self.warnings(self.folder / name), "", name)

    def test_the_built_pages_are_these(self):
        self.assertEqual({path.name: path.read_text() for path in (BUILD / "man").iterdir()}, self.pages)


if __name__ == "__main__":
    unittest.main()

"""The documents agree with the program: examples load, options exist, links lead somewhere."""
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ["NLAUNCH_SOURCE"])
NLAUNCH = pathlib.Path(os.environ["NLAUNCH_BUILD"]) / "bin" / "nlaunch"
DOCUMENTS = [SOURCE / "README.md", *sorted((SOURCE / "docs").glob("*.md")), *sorted((SOURCE / "docs/howto").glob("*.md"))]
ELSEWHERE = {"--mib", "--rounds", "--preset", "--build", "--install", "--prefix", "--strip", "--export", "--bind", "--no_python",
             "--network", "--dependency", "--engines", "--trials", "--seed", "--within", "--only", "--no-kill", "--overlap",
             "--port", "--api-key", "--nonblocking", "--ntasks-per-node", "--exclusive", "--kill-on-bad-exit", "--exclude", "--workspace", "--seconds"}  # of CMake, Slurm, Beaker, Python, torchrun, nlaunch-probe, and of the examples' own programs


def nlaunch(*arguments):
    return subprocess.run([NLAUNCH, *map(str, arguments)], cwd=SOURCE, capture_output=True, text=True, timeout=60)


def examples():
    """(document, text) of each YAML block that is a whole file."""
    for document in DOCUMENTS:
        for block in re.findall(r"^```yaml\n(.*?)^```", document.read_text(), re.M | re.S):
            if block.startswith("version: 1"):
                yield document.name, block


class Documents(unittest.TestCase):
    def test_whole_examples_plan(self):
        found = list(examples())
        self.assertGreaterEqual(len(found), 3)
        for document, text in found:
            with self.subTest(document=document), tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder) / "example.yaml"
                path.write_text(text)
                if "\nroles:" in text:
                    site = "nvlink-box" if "preload:" in text else "local"
                    done = nlaunch("plan", path, "--site", site, "--set", "weight_sync.backend=gloo")
                else:
                    done = nlaunch("plan", "configs/quickstart.yaml", "--site", path)
                self.assertEqual(done.returncode, 0, done.stderr)

    def test_commands_of_the_readme_do_what_they_say(self):
        commands = re.findall(r"^nlaunch ((?:plan|env|lint|render) [^#\n]*)", (SOURCE / "README.md").read_text(), re.M)
        self.assertEqual(len(commands), 4)
        for command in commands:
            with self.subTest(command):
                done = nlaunch(*command.split())
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertNotEqual(done.stdout, "")

    def test_options_exist(self):
        known = set(re.findall(r"--[a-z][a-z-]*", nlaunch("--help-all").stdout))
        self.assertIn("--set", known)
        for document in DOCUMENTS:
            named = set(re.findall(r"(?<![\w-])--[a-z][a-z_-]*", document.read_text()))
            self.assertEqual(named - known - ELSEWHERE, set(), document.name)

    def test_the_reference_is_current(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(nlaunch("reference", folder).returncode, 0)
            written = {path.name: path.read_text() for path in pathlib.Path(folder).iterdir()}
        there = {path.name: path.read_text() for path in (SOURCE / "docs" / "reference").iterdir()}
        self.assertEqual(sorted(written), sorted(there))
        for name, text in written.items():
            self.assertTrue(text == there[name], f"docs/reference/{name} is old: build/bin/nlaunch reference docs/reference")

    def test_links_lead_somewhere(self):
        for document in DOCUMENTS:
            for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", document.read_text()):
                self.assertTrue((document.parent / target).exists(), f"{document.name}: {target}")

    def test_files_that_are_named_exist(self):
        for document in DOCUMENTS:
            for path in re.findall(r"(?<![\w/.-])(?:scripts|configs|site-profiles)/[\w./-]+\w", document.read_text()):
                self.assertTrue((SOURCE / path).exists(), f"{document.name}: {path}")


if __name__ == "__main__":
    unittest.main()

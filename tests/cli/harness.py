"""What the tests of the built program share."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ.get("NLAUNCH_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
BUILD = pathlib.Path(os.environ.get("NLAUNCH_BUILD", SOURCE / "build"))
NLAUNCH = BUILD / "bin" / "nlaunch"


class CliTest(unittest.TestCase):
    """Each test has a folder of its own, and nothing of the caller's environment but what is said here."""

    maxDiff = None

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="nlaunch-cli-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(self.folder), "LANG": "C.UTF-8"}

    def nlaunch(self, *arguments, timeout=60, env=None, cwd=None):
        """Runs nlaunch to its end; the result has returncode, stdout and stderr as text."""
        return subprocess.run([NLAUNCH, *map(str, arguments)], capture_output=True, text=True, timeout=timeout,
                              env={**self.env, **(env or {})}, cwd=cwd or SOURCE, stdin=subprocess.DEVNULL)

    def run_experiment(self, text, *arguments, **options):
        """Runs an experiment given as text, without a preflight unless --level is asked for."""
        path = self.folder / "experiment.yaml"
        path.write_text("version: 1\nname: test\nweight_sync: {backend: gloo}\n" + text)
        if "--level" not in arguments:
            arguments += ("--no-preflight",)
        return self.nlaunch("run", path, "--site", "local", "--runs-dir", self.folder / "runs", *arguments, **options)

    @property
    def run_folder(self):
        """The newest run of `run_experiment`."""
        return (self.folder / "runs" / "test" / "latest").resolve()

    def normal(self, text):
        return text.replace(str(self.folder), "$FOLDER").replace(str(SOURCE), "$SOURCE")

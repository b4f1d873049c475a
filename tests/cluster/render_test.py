"""What `nlaunch render` writes, as a real sbatch reads it."""
import json
import os
import pathlib
import re
import subprocess
import tempfile
import time
import unittest

from cluster import SITE, Cluster

SOURCE = pathlib.Path(__file__).resolve().parents[2]
NLAUNCH = pathlib.Path(os.environ.get("NLAUNCH_BUILD", SOURCE / "build")) / "bin" / "nlaunch"
# What sbatch's parser, its patterns and a shell know, but what a directive may not have.
NAME = """it's "my" job #1 \\ 100%j; --wrap=id & {a,b} * ~ ü"""


class Submit(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(2, 4)
        cls.cluster.up()
        cls.addClassCleanup(cls.cluster.down)

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="nlaunch-render-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def submit(self, runs, *arguments):
        """Submits the quickstart on two nodes: the job, and the options that sbatch has read from the script."""
        script = self.folder / "job.sbatch"
        rendered = subprocess.run([NLAUNCH, "render", "configs/quickstart.yaml", "--site", SITE, "--nodes", "2", "--runs-dir",
                                   runs, "--output", script, *arguments], cwd=SOURCE, capture_output=True, text=True)
        self.assertEqual(rendered.returncode, 0, rendered.stderr)
        done = self.cluster.run("sbatch", "--verbose", "--parsable", script)
        self.assertEqual(done.returncode, 0, done.stderr)
        job = done.stdout.strip()
        self.addCleanup(self.cluster.end_all_jobs)
        read = dict(re.findall(r"^sbatch: (\S+) +: (.*)$", done.stderr, re.M))
        for own in ("verbose", "parsable"):
            del read[own]
        return job, read

    def test_sbatch_reads_what_was_meant_and_nothing_else(self):
        runs = self.folder / "100% $(touch pwned) it's"
        job, read = self.submit(runs, "--set", f"slurm.job-name={json.dumps(NAME)}", "--set", "slurm.comment=two words", "--set",
                                "slurm.hold=true", "--set", "walltime={before: 90s, then: requeue}")
        output = str(runs / "quickstart").replace("%", "%%") + "/slurm-%j.log"
        self.assertEqual(read, {
            "job-name": NAME, "nodes": "2", "ntasks-per-node": "1", "output": output, "open-mode": "a", "requeue": "requeue",
            "signal": "B:USR2@90", "partition": "main", "exclusive": "exclusive", "gpus-per-node": "4", "time": "00:10:00",
            "comment": "two words", "hold": "set"})
        shown = self.cluster.run("scontrol", "show", "job", job).stdout
        for field in (f" JobName={NAME}\n", " NumNodes=2-2 ", " Requeue=1 ", " TimeLimit=00:10:00 ", " NtasksPerN:B:S:C=1:0:*:* ",
                      " TresPerNode=gres:gpu:4\n", f" StdOut={output.replace('%j', job)}\n"):
            self.assertIn(field, shown)
        self.assertEqual(self.cluster.run("squeue", "-h", "-j", job, "-o", "%j|%D|%T").stdout, f"{NAME}|2|PENDING\n")

    def test_the_log_is_where_the_script_says(self):
        runs = self.folder / "100%"
        job, read = self.submit(runs, "--set", f"slurm.error={self.folder}/errors/%j")
        self.assertEqual(read["no-requeue"], "no-requeue")
        for path in (runs / "quickstart" / f"slurm-{job}.log", self.folder / "errors" / job):
            deadline = time.monotonic() + 30
            while not path.exists() and time.monotonic() < deadline:
                time.sleep(0.1)
            self.assertTrue(path.exists(), path)


if __name__ == "__main__":
    unittest.main()

"""`nlaunch preflight --node` hooked up as docs/node-checks.md says, word by word, and the list of bad nodes, under a real Slurm."""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import time
import unittest

from cluster import SITE, Cluster

SOURCE = pathlib.Path(os.environ["NLAUNCH_SOURCE"])
NLAUNCH = pathlib.Path(os.environ["NLAUNCH_BUILD"]) / "bin" / "nlaunch"
FAILS = "fail limits open files: 200 (expected at least 4096)"
# What makes one of the nodes, which are all this machine, a bad one.
BAD = "[[ $SLURMD_NODENAME != node1 ]] || ulimit -n 200\n"


def documented(name):
    """The script of that name in the documentation."""
    text = (SOURCE / "docs" / "node-checks.md").read_text()
    return next(block for block in re.findall(r"^```bash\n(.*?)^```", text, re.M | re.S) if name in block)


class NodeChecks(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="nlaunch-node-checks-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        for script in ("prolog.sh", "health.sh"):
            cls.script(script, "#!/bin/bash\n")
        cls.cluster = Cluster(nodes=2, gpus=4, conf=f"Prolog={cls.folder}/prolog.sh\nPrologFlags=Alloc\nPrologEpilogTimeout=90\n"
                              f"HealthCheckProgram={cls.folder}/health.sh\nHealthCheckInterval=3\nSlurmdTimeout=60\n")
        cls.cluster.up()
        cls.addClassCleanup(cls.cluster.down)

    @classmethod
    def script(cls, name, text):
        path = cls.folder / name
        new = cls.folder / f".{name}"
        new.write_text(text)
        new.chmod(0o755)
        new.rename(path)  # slurmd may be about to execute it

    def setUp(self):
        self.site = self.folder / "site.yaml"
        self.site.write_text("version: 1\nname: our-site\n")
        self.log = self.folder / "log"
        self.log.write_text("")
        self.addCleanup(self.make_all_well)

    def make_all_well(self):
        for script in ("prolog.sh", "health.sh"):
            self.script(script, "#!/bin/bash\n")
        self.cluster.end_all_jobs()
        self.wait_until(lambda: all([self.is_idle(node) for node in range(2)]))

    def is_idle(self, node):
        """Of a node without a job; one that was drained is taken back."""
        state = self.cluster.state(node)
        if state.startswith("drain"):
            self.cluster.run("scontrol", "update", f"NodeName=node{node}", "State=RESUME")
        return state == "idle"

    def wait_until(self, true, seconds=60):
        deadline = time.monotonic() + seconds
        while not true():
            self.assertLess(time.monotonic(), deadline, "it did not come to that")
            time.sleep(0.05)

    def fitted(self, text, bad=BAD):
        """A documented script for this cluster: where things are, and a node that is bad."""
        first, rest = text.split("\n", 1)
        for ours, theirs in (("/opt/nlaunch/bin/nlaunch", str(NLAUNCH)), ("our-site", str(self.site)),
                             ("/usr/bin/logger -t nlaunch", f"/usr/bin/tee -a {self.log}")):
            rest = rest.replace(ours, theirs)
        return f"{first}\nexport SLURM_CONF={self.cluster.folder}/slurm.conf\n{bad}{rest}"

    def field(self, what, of, name):
        return re.search(rf"\b{name}=(.*?)(?= \w+=|\n)", self.cluster.run("scontrol", "show", what, of).stdout)[1]

    def submit(self, *arguments):
        done = self.cluster.run("sbatch", "--parsable", "-o", self.folder / "%j.out", *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.strip()

    def output(self, job):
        path = self.folder / f"{job}.out"
        self.wait_until(lambda: "COMPLET" in self.field("job", job, "JobState") or "FAILED" in self.field("job", job, "JobState"))
        return path.read_text()

    # --- Prolog ---

    def test_a_prolog_that_passes_lets_the_job_run_and_says_nothing(self):
        self.script("prolog.sh", self.fitted(documented("prolog.sh"), bad=""))
        self.assertEqual(self.output(self.submit("-N2", "--wrap", "echo ran")), "ran\n")
        self.assertEqual(self.log.read_text(), "")

    def test_a_prolog_that_fails_drains_the_node_with_the_reason_and_puts_the_job_back(self):
        self.script("prolog.sh", self.fitted(documented("prolog.sh")))
        job = self.submit("-N2", "--wrap", "echo ran")
        self.wait_until(lambda: self.cluster.state(1).startswith("drain"))
        self.wait_until(lambda: self.field("job", job, "JobState") == "PENDING")
        self.assertRegex(self.field("node", "node1", "Reason"), rf"^nlaunch: {re.escape(FAILS)} \[root@")
        self.assertEqual(self.field("job", job, "Requeue"), "1")
        self.assertEqual(self.log.read_text(), f"nlaunch: node1: {FAILS}\n")
        self.assertFalse(self.cluster.state(0).startswith("drain"))

    def test_without_drain_slurm_drains_the_node_by_itself(self):
        self.script("prolog.sh", self.fitted(documented("prolog.sh").replace(" --drain", "")))
        self.submit("-N2", "--wrap", "echo ran")
        self.wait_until(lambda: self.cluster.state(1).startswith("drain"))
        self.assertRegex(self.field("node", "node1", "Reason"), r"^Prolog error")
        self.assertFalse(self.cluster.state(0).startswith("drain"))

    def test_what_is_unknown_or_missing_drains_nothing(self):
        self.site.write_text(f"version: 1\nname: our-site\nextends: {SITE}\n")  # NVML knows nothing of the GPUs that Slurm gives
        self.script("prolog.sh", self.fitted(documented("prolog.sh"), bad=""))
        self.assertEqual(self.output(self.submit("-N1", "--gpus-per-node=4", "--wrap", "echo ran")), "ran\n")
        self.assertRegex(self.log.read_text(), r"^nlaunch: node\d: unknown gpus number: .*\n$")
        for wrong in ("version: 1\nname: [\n", None):
            if wrong:
                self.site.write_text(wrong)
            else:
                self.script("prolog.sh", documented("prolog.sh"))  # there is no /opt/nlaunch here
            self.assertEqual(self.output(self.submit("-N2", "--wrap", "echo ran")), "ran\n")
        self.wait_until(lambda: [self.cluster.state(node) for node in range(2)] == ["idle", "idle"])

    # --- other hookups ---

    def test_a_health_check_drains_the_node(self):
        self.script("health.sh", self.fitted(documented("health.sh")))
        self.wait_until(lambda: self.cluster.state(1).startswith("drained"))
        self.assertRegex(self.field("node", "node1", "Reason"), rf"^nlaunch: {re.escape(FAILS)} \[root@")
        before = self.field("node", "node1", "Reason")
        self.wait_until(lambda: "nlaunch: node1 is already drained\n" in self.log.read_text())
        self.assertEqual((self.field("node", "node1", "Reason"), self.cluster.state(0)), (before, "idle"))

    def test_a_job_names_its_bad_nodes(self):
        script = self.folder / "check-nodes.sh"
        text = self.fitted(documented("check-nodes.sh"), bad="")
        directive = next(line for line in text.splitlines() if line.startswith("#SBATCH"))
        text = text.replace(directive + "\n", "").replace("#!/bin/bash\n", f"#!/bin/bash\n{directive}\n")
        script.write_text(text.replace(f"{NLAUNCH} preflight", f"bash -c '{BAD.strip()}; \"$@\"' - {NLAUNCH} preflight"))
        job = self.submit(script)
        said = self.output(job)
        self.assertIn(f"nlaunch: node1: {FAILS}\n", said)
        self.assertNotIn("nlaunch: node0", said)
        self.assertEqual(self.field("job", job, "ExitCode"), "2:0")

    def test_a_check_of_nhc_dies_of_a_failure_alone(self):
        # As NHC does, `die` hands the words to a shell within single quotes.
        harness = "die() { local status=$1; shift; eval echo \"'$*'\"; }\n"
        lines = self.fitted("#\n" + documented("nlaunch.nhc"), bad=harness) + f"ulimit -n $1\ncheck_nlaunch --site '{self.site}'\n"
        check = lambda files: subprocess.run(["bash", "-c", lines, "-", files], capture_output=True, text=True,
                                             env={"PATH": "/usr/bin:/bin", "SLURMD_NODENAME": "it's; $(node) `1`"})
        done = check("200")
        self.assertEqual((done.returncode, done.stdout, done.stderr),
                         (1, f"check_nlaunch: nlaunch: its; (node) 1: {FAILS}\n", ""))
        done = check("5000")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    def test_the_line_for_cron_drains_the_node(self):
        text = (SOURCE / "docs" / "node-checks.md").read_text()
        path, command = re.search(r"# /etc/cron.d/nlaunch\nPATH=(.*)\n\*/10 \* \* \* \* root (.*)\n", text).groups()
        for ours, theirs in (("/opt/nlaunch/bin/nlaunch", str(NLAUNCH)), ("our-site", str(self.site)),
                             ("logger -t nlaunch", f"tee -a {self.log}")):
            command = command.replace(ours, theirs)
        # Here the host's name is no node's.
        done = subprocess.run(["/bin/sh", "-c", f"ulimit -n 200; {command}"], capture_output=True, text=True, cwd="/",
                              env={"PATH": path, "SLURM_CONF": f"{self.cluster.folder}/slurm.conf", "SLURMD_NODENAME": "node1"})
        self.assertEqual((done.stdout, done.stderr), (f"nlaunch: node1: {FAILS}\n", ""))
        self.assertRegex(self.cluster.state(1), "^drained")

    # --- the list of bad nodes ---

    def run_quickstart(self, *arguments):
        return self.cluster.run(NLAUNCH, "run", SOURCE / "configs/quickstart.yaml", "--site", self.site, "--runs-dir",
                                self.folder / "runs", "--no-preflight", "--detach", *arguments)

    def with_ledger(self, *lines):
        self.site.write_text(f"version: 1\nname: our-site\nextends: {SITE}\nscheduler: {{bad_nodes: {{file: bad.tsv, ttl: 1h}}}}\n")
        (self.folder / "bad.tsv").write_text("".join(line + "\n" for line in lines))

    def test_a_job_keeps_away_from_a_bad_node(self):
        now = int(time.time())
        self.with_ledger(f"{now}\tnode0\tslow\talice", f"{now - 4000}\tnode1\texpired\tbob")
        done = self.run_quickstart()
        self.assertEqual(done.returncode, 0, done.stderr)
        day = time.strftime("%Y-%m-%d", time.localtime(now))
        self.assertTrue(done.stderr.startswith(f"note: excluded nodes (listed in {self.folder}/bad.tsv): node0 (slow; alice, {day})\n"), done.stderr)
        job = re.search(r"^job (\d+), run ", done.stderr, re.M)[1]
        self.assertEqual(self.field("job", job, "ExcNodeList"), "node0")
        self.wait_until(lambda: self.field("job", job, "NodeList") == "node1")
        script = next((self.folder / "runs").glob("quickstart/latest/job.sbatch"))
        self.assertNotIn("exclude", script.read_text())

    def test_the_next_job_of_a_chain_keeps_away_from_it_too(self):
        self.with_ledger(f"{int(time.time())}\tnode0\tslow\talice")
        done = self.run_quickstart("--set", "walltime={before: 60s, then: chain, max: 2}", "--set", "vars.steps=1000000")
        self.assertEqual(done.returncode, 0, done.stderr)
        jobs = lambda: self.cluster.run("squeue", "-ho", "%i").stdout.split()
        self.wait_until(lambda: len(jobs()) == 2)
        self.assertEqual({self.field("job", job, "ExcNodeList") for job in jobs()}, {"node0"})

    def test_where_no_node_is_left_sbatch_says_so(self):
        now = int(time.time())
        self.with_ledger(f"{now}\tnode1\tslow\talice")
        done = self.run_quickstart("--set", "slurm.exclude=node0")
        self.assertEqual(done.returncode, 65)
        self.assertIn("note: excluded nodes (listed in ", done.stderr)
        self.assertIn("error: ", done.stderr)
        self.assertIn("Requested node configuration is not available", done.stderr)


if __name__ == "__main__":
    unittest.main()

"""configs/grpo-ray.yaml with a real Ray on the test cluster; ray_trainer.py stands in for open-instruct."""
import glob
import json
import os
import pathlib
import re
import shutil
import signal
import tempfile
import unittest

from cluster import HERE, SITE, Cluster
from runs import NLAUNCH, SOURCE, WHEN, Runs

NODES = 2
RAY = os.environ.get("NLAUNCH_TEST_RAY")  # a Python environment
NCCL = os.environ.get("NLAUNCH_TEST_LIBNCCL")


@unittest.skipUnless(RAY, "no Ray here: scripts/test.sh fetches one, or set NLAUNCH_TEST_RAY")
@unittest.skipUnless(NCCL, "no libnccl.so.2 here: set NLAUNCH_TEST_LIBNCCL")
class Ray(Runs):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(nodes=NODES, gpus=2, hosts=True, conf="SlurmdTimeout=5\nMessageTimeout=3\n")
        cls.cluster.up()
        cls.addClassCleanup(cls.cluster.down)
        cls.library = pathlib.Path(tempfile.mkdtemp(prefix="nlaunch-nccl-")) / "libnccl.so.2"
        cls.addClassCleanup(shutil.rmtree, cls.library.parent)
        shutil.copy(NCCL, cls.library)  # the learners' own: the loader's could be an engine's too

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="nlaunch-ray-"))
        self.addCleanup(shutil.rmtree, self.folder)
        (self.folder / ".venv").symlink_to(RAY)
        (self.folder / "open_instruct").mkdir()
        shutil.copy(HERE / "ray_trainer.py", self.folder / "open_instruct" / "grpo_fast.py")
        # Without GPUs of its own the site's are CPU slots.
        (self.folder / "site.yaml").write_text(SITE.read_text().replace("gpus: 4, ", "").replace("gpus-per-node: 4", "gpus-per-node: 2") +
                                               f"libraries: {{nccl: {{path: {self.library}}}}}\n")

    def command(self, *arguments):
        settings = [f"workdir={self.folder}", "vars.cpus=2", "roles.engine.count=2", "weight_sync.backend=gloo", "cpu_slots=true", "secrets={}"]
        return ["salloc", "-Q", f"-N{NODES}", NLAUNCH, "run", SOURCE / "configs" / "grpo-ray.yaml", "--site",
                self.folder / "site.yaml", "--no-preflight", "--runs-dir", self.folder / "runs",
                *[word for setting in settings for word in ("--set", setting)], *arguments]

    def start(self, fault):
        process = self.cluster.start(*self.command("--env", f"trainer:FAULT={fault}"))
        self.addCleanup(process.communicate)
        self.addCleanup(self.cluster.end_all_jobs)
        return process

    @property
    def run_folder(self):
        return (self.folder / "runs" / "grpo-ray" / "latest").resolve()

    def audits(self):
        """By node."""
        return json.loads((self.run_folder / "attempt-0" / "audit.json").read_text())

    def nothing_is_left(self):
        self.wait_until(lambda: self.cluster.processes() == {}, 10)
        self.assertEqual(glob.glob(f"/tmp/nlaunch-*-{self.run_folder.name}*"), [])

    def test_learners_have_the_library_and_engines_do_not(self):
        code, out, err = self.end_of(self.start(""), 150)
        self.assertEqual(code, 0, err)
        self.assertIn("trainer.0    │ Ray has 4.0 GPUs\n", out)
        self.assertIn("step 7 loss [16, 16]", self.log("trainer.0"))
        for node in range(NODES):
            self.assertRegex(err, rf"\nnode{node}: learner\.{node} \(pid \d+\): has only libnccl \S+ {self.library} mapped, as preloaded\n")
        self.assertNotIn("finding", err)
        self.nothing_is_left()

    def test_all_of_os_environ_gives_the_library_to_the_engines_and_the_audit_says_so(self):
        code, _, err = self.end_of(self.start("forward"), 150)
        self.assertEqual(code, 0, err)
        findings = re.findall(r"^node\d: finding: (.*)$", err, re.M)
        self.assertEqual(len(findings), 2, err)  # two engines
        for finding in findings:
            self.assertRegex(finding, rf"^engine \(pid \d+, ray::LLMRayActor\S*\) has the learner's libnccl \S+ "
                                      rf"\({self.library}\); its parent passes on LD_PRELOAD, for example with all of os\.environ: "
                                      r"pass it \$\{role\.engine\.env_file\} instead$")
        self.nothing_is_left()

    def test_an_actor_that_dies_is_named_by_the_last_lines_of_the_driver(self):
        code, _, err = self.end_of(self.start("kill"), 150)
        self.assertEqual(code, 1, err)
        self.assertRegex(err, rf"\ntrainer\.0 on node0 exited with code 1 after {WHEN}")
        last = err[err.index("last lines of trainer.0"):]
        self.assertIn("ray.exceptions.ActorDiedError", last)
        self.assertIn("class_name: PolicyTrainer", last)
        self.nothing_is_left()

    def test_ctrl_c_ends_all_of_ray(self):
        process = self.start("hang")
        self.wait_until(lambda: "step 0" in self.log("trainer.0"), 120)
        names = set(self.cluster.processes().values())
        self.assertLessEqual({"gcs_server", "raylet"}, names)
        os.kill(self.events("run")[0]["pid"], signal.SIGINT)
        code, _, err = self.end_of(process)
        self.assertEqual(code, 130, err)
        self.nothing_is_left()


if __name__ == "__main__":
    unittest.main()

"""What the tests of `nlaunch import` share."""
import json
import pathlib
import sys

import yaml

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))
from harness import SOURCE, CliTest  # noqa: E402, F401

SAME = "The same job"
REFUSED = 65
USAGE = 64
TWO_NODES = "#!/bin/bash\n#SBATCH --nodes=2 --ntasks-per-node=1 --gpus-per-node=4\n"


class Import(CliTest):
    def setUp(self):
        super().setUp()
        self.env["USER"] = "ada"

    def run_import(self, script, *arguments, **options):
        return self.nlaunch("import", script, *arguments, **options)

    def import_text(self, text, *arguments, name="job.sbatch"):
        """(result, experiment, profile) of a script given as text; the two as texts."""
        (self.folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        result = self.run_import(name, "--stdout", *arguments, cwd=self.folder)
        experiment, _, profile = result.stdout.partition("---\n")
        return result, experiment, profile

    def plan(self, name, *arguments):
        return self.nlaunch("plan", self.folder / f"{name}.yaml", "--site", self.folder / f"{name}.site.yaml", *arguments)

    def planned(self, text, *arguments):
        """The plan of a script given as text, which is the same job, and its experiment and profile as values."""
        result, experiment, profile = self.import_text(text, *arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        (self.folder / "made.yaml").write_text(experiment)
        (self.folder / "made.site.yaml").write_text(profile)
        done = self.plan("made", "--json")
        self.assertEqual(done.returncode, 0, done.stderr + result.stdout)
        return json.loads(done.stdout), yaml.safe_load(experiment), yaml.safe_load(profile)

    def roles(self, text, *arguments):
        return self.planned(text, *arguments)[1]["roles"]

    def refusal(self, text, *arguments):
        """What is said of a script that is no job of a plan."""
        result, experiment, _ = self.import_text(text, *arguments)
        self.assertEqual((result.returncode, experiment), (REFUSED, ""), result.stderr)
        return self.normal(result.stderr)

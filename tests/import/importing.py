"""What the tests of `nlaunch import` share."""
import json
import pathlib
import sys

import yaml

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))
from harness import SOURCE, CliTest  # noqa: E402, F401


class Import(CliTest):
    def setUp(self):
        super().setUp()
        self.env["USER"] = "ada"

    def run_import(self, script, *arguments, **options):
        return self.nlaunch("import", script, *arguments, **options)

    def import_text(self, text, name="job.sbatch"):
        """(result, experiment, profile) of a script given as text; the two as texts."""
        path = self.folder / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        result = self.run_import(path, "--stdout")
        experiment, _, profile = result.stdout.partition("---\n")
        return result, experiment, profile

    def plan(self, name, *arguments):
        return self.nlaunch("plan", self.folder / f"{name}.yaml", "--site", self.folder / f"{name}.site.yaml", *arguments)

    def planned(self, text):
        """The plan of a script given as text, and its experiment and profile as values."""
        result, experiment, profile = self.import_text(text)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        (self.folder / "made.yaml").write_text(experiment)
        (self.folder / "made.site.yaml").write_text(profile)
        done = self.plan("made", "--json")
        self.assertEqual(done.returncode, 0, done.stderr + result.stdout)
        return json.loads(done.stdout), yaml.safe_load(experiment), yaml.safe_load(profile)

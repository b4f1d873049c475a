"""The commands of the documents that want a cluster, on the test cluster."""
import os
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import documented
from cluster import Cluster

RAY = os.environ.get("NLAUNCH_TEST_RAY")  # a Python environment
TUTORIAL = documented.SOURCE / "docs" / "tutorial.md"


@unittest.skipUnless(RAY, "no Ray here: scripts/test.sh fetches one, or set NLAUNCH_TEST_RAY")
class Documents(unittest.TestCase):
    def test_the_tutorial_does_what_it_says(self):
        with Cluster(nodes=2, gpus=0, hosts=True) as cluster, tempfile.TemporaryDirectory(prefix="nlaunch-tutorial-") as name:
            folder = pathlib.Path(name)
            (folder / ".home").mkdir()
            (folder / ".venv").symlink_to(RAY)
            documented.write_files(TUTORIAL, folder)
            env = {**documented.environment(folder), "SLURM_CONF": cluster.env["SLURM_CONF"], "PYTHONDONTWRITEBYTECODE": "1"}
            wrong = documented.run(TUTORIAL, "cluster", folder, env)
            self.assertEqual(wrong, [], "\n".join(wrong))

    def test_no_other_document_has_such_commands(self):
        others = {document.name for document in documented.DOCUMENTS for block in documented.blocks(document) if block.where == "cluster"}
        self.assertEqual(others, {TUTORIAL.name})


if __name__ == "__main__":
    unittest.main()

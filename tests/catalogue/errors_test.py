#!/usr/bin/env python3
"""scripts/update-errors.py on a small made-up program."""
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import unittest
import zipfile

SOURCE = pathlib.Path(os.environ.get("NLAUNCH_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
TITLES = "id\tclass\tkind\tweight\tpattern\twhy\tfix\tsource\n"

TABLE = TITLES + """\
serve.memory\tmemory\troot\t80\tNo room for \\d+ blocks|Too few blocks\twhy\tfix\tserve serve/cache.py@1.0.0
serve.moved\tmoved\troot\t80\tThe port \\d+ is taken\twhy\tfix\tserve serve/cache.py@1.0.0; other/one#7
serve.gone\tgone\troot\t80\tThis went away\twhy\tfix\tserve serve/cache.py@1.0.0
serve.older\tolder\troot\t80\tThis went long ago\twhy\tfix\tserve serve/cache.py@0.9.0
serve.native\tnative\troot\t80\tThe device is lost\twhy\tfix\tserve serve/_native.so@1.0.0
serve.class\tclass\troot\t80\tEngineLostError\twhy\tfix\tserve serve/errors.py@1.0.0
other.row\tother\troot\t80\tWords of another program\twhy\tfix\tother one.py@1.0.0
any.exception\tpython-exception\tfallback\t49\tValueError: \twhy\tfix\tCPython
"""
REVIEWED = "project\treviewed\tignored\nserve\t1.0.0\tserve/models/*\nother\t3.0\t\n"
CACHE = """
import logging
logger = logging.getLogger(__name__)
def start(blocks, port):
    if not blocks:
        raise ValueError(f"No room for {blocks} blocks")
    message = ("a setting is "
               "wrong: %s" % port)
    raise ValueError(message)
"""
OLD = {"serve/cache.py": CACHE + '''
raise ValueError("Too few blocks")
raise ValueError(f"The port {port} is taken")
logger.error("This went away")
'''}
NEW = {
    "serve/cache.py": CACHE + '''
logger.exception("The %s of rank %d stopped", name, rank)
logger.warning("only a warning")
raise ValueError("The chunk {} does not fit".format(chunk))
assert size % parts == 0, f"{size} does not split"
sys.exit("--port is needed")
parser.error("--port and --socket exclude each other")
raise KeyError(key)
''',
    "serve/ports.py": 'raise OSError(f"The port {port} is taken")',
    "serve/errors.py": "class EngineLostError(Exception):\n    pass",
    "serve/models/one.py": 'raise ValueError("of a model alone")',
    "serve/tests/cache.py": 'raise ValueError("This went away")',
    "serve/node.cc": 'RAY_LOG(FATAL) << "The node " << name << " is gone";\nRAY_LOG(INFO) << "all is well";',
    "serve/main.go": 'sylog.Fatalf("while opening %s: %s", image, err)\nsylog.Infof("opened")',
    "serve/plugin.c": 'slurm_error("plugin: no such image: %s", image);\nslurm_info("plugin: fine");',
    "serve/run.sh": 'common::err "No such archive: ${file}"\ncommon::log INFO "fine"',
}
NEW_MESSAGES = """\
unknown: serve/cache.py:11: logger.exception: The {} of rank {} stopped
unknown: serve/cache.py:13: ValueError: The chunk {} does not fit
unknown: serve/cache.py:14: AssertionError: {} does not split
unknown: serve/cache.py:15: sys.exit: --port is needed
unknown: serve/cache.py:16: parser.error: --port and --socket exclude each other
unknown: serve/main.go:1: sylog.Fatalf: while opening {}: {}
unknown: serve/node.cc:1: RAY_LOG(FATAL): The node {} is gone
unknown: serve/plugin.c:1: slurm_error: plugin: no such image: {}
unknown: serve/run.sh:1: common::err: No such archive: {}
"""
GONE = """\
moved: serve.moved (serve.tsv), from serve/cache.py to serve/ports.py
gone: serve.gone (serve.tsv), last in serve/cache.py@1.0.0
"""
AFTER = TABLE.replace("serve/cache.py@1.0.0\n", "serve/cache.py@1.1.0\n", 1) \
    .replace("serve/cache.py@1.0.0; other", "serve/ports.py@1.1.0; other") \
    .replace("_native.so@1.0.0", "_native.so@1.1.0").replace("errors.py@1.0.0", "errors.py@1.1.0")


class Update(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="nlaunch-errors-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "signatures").mkdir()
        self.table = self.folder / "signatures" / "serve.tsv"
        self.table.write_text(TABLE)
        self.reviewed = self.folder / "errors.tsv"
        self.reviewed.write_text(REVIEWED)

    def wheel(self, name, files):
        path = self.folder / name
        with zipfile.ZipFile(path, "w") as wheel:
            for file, text in files.items():
                wheel.writestr(file, text)
            wheel.writestr("serve/_native.so", b"\x7fELF\x00\x01The device is lost\x00\x02")
        return path

    def archive(self, name, files):
        sources = self.folder / "sources"
        for file, text in files.items():
            (sources / file).parent.mkdir(parents=True, exist_ok=True)
            (sources / file).write_text(text)
        with tarfile.open(self.folder / name, "w:gz") as archive:
            archive.add(sources, "serve-1.0.0")
        return self.folder / name

    def update(self, *arguments):
        return subprocess.run([sys.executable, SOURCE / "scripts" / "update-errors.py", "--diagnose", self.folder,
                               *map(str, arguments)], capture_output=True, text=True, timeout=60)

    def test_a_release_after_another(self):
        new = self.wheel("serve-1.1.0.whl", NEW)
        result = self.update("serve", new, "1.1.0", "--since", self.archive("serve-1.0.0.tar.gz", OLD))
        alternative = "gone: serve.memory (serve.tsv), of its alternatives: Too few blocks\n"
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertEqual(result.stdout, NEW_MESSAGES + alternative + GONE)
        self.assertEqual(self.table.read_text(), AFTER)
        self.assertEqual(self.reviewed.read_text(), REVIEWED.replace("serve\t1.0.0", "serve\t1.1.0"))

    def test_a_whole_release(self):
        result = self.update("serve", self.wheel("serve-1.1.0.whl", NEW), "1.1.0")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        setting = "unknown: serve/cache.py:9: ValueError: a setting is wrong: {}\n"
        self.assertEqual(result.stdout, setting + NEW_MESSAGES + GONE)
        again = self.update("serve", self.folder / "serve-1.1.0.whl", "1.1.0")
        self.assertEqual(again.stdout, setting + NEW_MESSAGES)  # what is gone is said once
        self.assertEqual(self.table.read_text(), AFTER)

    def test_the_tags_of_a_repository(self):
        sources = self.folder / "repository"
        subprocess.run(["git", "init", "-q", sources], check=True)
        for tag, files in (("v1.0.0", OLD), ("v1.1.0", NEW)):
            for file, text in files.items():
                (sources / file).parent.mkdir(parents=True, exist_ok=True)
                (sources / file).write_text(text)
            for arguments in (["add", "."], ["commit", "-q", "-m", tag], ["tag", tag]):
                subprocess.run(["git", "-C", sources, "-c", "user.name=a", "-c", "user.email=a@b", *arguments],
                               check=True, capture_output=True)
        result = self.update("serve", sources, "v1.1.0", "--since", "v1.0.0")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertTrue(result.stdout.startswith(NEW_MESSAGES), result.stdout)
        self.assertTrue(result.stdout.endswith(GONE), result.stdout)
        self.assertIn("serve/_native.so@1.0.0", self.table.read_text())  # a repository has no libraries

    def test_what_cannot_be_done_is_said(self):
        result = self.update("sglang", self.folder, "1.0")
        self.assertEqual((result.returncode, result.stderr), (1, "errors.tsv knows no 'sglang', but serve, other\n"))
        empty = self.folder / "empty"
        empty.mkdir()
        result = self.update("serve", empty, "1.0")
        self.assertEqual((result.returncode, result.stderr), (1, f"{empty} has no sources\n"))
        self.assertEqual(self.table.read_text(), TABLE)


class Tables(unittest.TestCase):
    def test_sources_name_the_release_that_was_reviewed_or_an_older_one(self):
        """A signature with a later release than errors.tsv says was never held against the whole of that release."""
        folder = SOURCE / "src" / "diagnose"
        lines = [line.split("\t") for line in (folder / "errors.tsv").read_text().splitlines()]
        self.assertEqual({len(line) for line in lines}, {3})
        reviewed = {line[0]: line[1] for line in lines[1:]}
        number = lambda release: [int(part) for part in release.split(".") if part.isdigit()]  # noqa: E731
        for table in sorted((folder / "signatures").glob("*.tsv")):
            for row in table.read_text().splitlines()[1:]:
                for source in row.split("\t")[7].split("; "):
                    project, _, release = source.partition(" ")[0], "", source.rpartition("@")[2]
                    if project in reviewed and "@" in source:
                        self.assertLessEqual(number(release), number(reviewed[project]), f"{table.name}: {row}")


if __name__ == "__main__":
    unittest.main()

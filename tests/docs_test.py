"""The documents agree with the program: examples load, options exist, links lead somewhere."""
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import documented
from documented import BUILD, DOCUMENTS, SOURCE

NLAUNCH = BUILD / "bin" / "nlaunch"
# Options of other programs that documents name alone: Slurm, container tools, torchrun, vLLM, the scripts.
OTHERS = set("""
--api-key --arch --bind --colocate --container-image --container-mount-home --container-mounts --cpu-bind --cpus-per-task --data-parallel-size
--dependency --dev --dev-bind --die-with-parent --enable-metrics --engines --environment --exclude --exclusive --export --faults --first
--gpu-memory-utilization --gpus-per-task --headless --het-group --host --install --kill-on-bad-exit --master-addr --master-port --master_addr --master_port
--max-tokens --model --mount --mpi --network --nnodes --no-kill --node-rank --node_rank --nodelist --nonblocking --nproc_per_node --ntasks-per-node
--nv --out --overlap --port --prefix --proc --resume_from_checkpoint --ro-bind --rollout-external-engine-addrs --rounds --runtime-env-json --segment
--served-model-name --strip --switches --symlink --temp-dir --tensor-parallel-size --tests --tmpfs --trials --uenv --unshare-pid --within --workspace
--zstd
""".split())
PROGRAMS = ("nlaunch", "salloc", "sbatch", "srun", "tar", "cmake", "beaker", "apptainer", "spack", "rattler-build", "kubectl", "python3", "pip")


def nlaunch(*arguments):
    return subprocess.run([NLAUNCH, *map(str, arguments)], cwd=SOURCE, capture_output=True, text=True, timeout=60)


def examples():
    """(document, text) of each YAML block that is a whole file, and that no command wants."""
    for document in DOCUMENTS:
        for block in documented.blocks(document):
            if block.language == "yaml" and not block.file and block.text.startswith("version: 1"):
                yield document.name, block.text


class Documents(unittest.TestCase):
    def test_whole_examples_plan(self):
        found = list(examples())
        self.assertGreaterEqual(len(found), 3)
        for document, text in found:
            with self.subTest(document=document), tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder) / "example.yaml"
                path.write_text(text)
                for base in re.findall(r"^extends: (\w+\.yaml)", text, re.M):
                    shutil.copy(SOURCE / "configs" / base, folder)
                if re.search(r"^extends: \w+\.yaml", text, re.M):
                    done = nlaunch("plan", path, "--site", "isambard")
                elif "\nroles:" in text:
                    site = "nvlink-box" if "preload:" in text else "local"
                    done = nlaunch("plan", path, "--site", site, "--set", "weight_sync.backend=gloo",
                                   "--set", "cpu_slots=true")
                else:
                    done = nlaunch("plan", "configs/quickstart.yaml", "--site", path)
                self.assertEqual(done.returncode, 0, done.stderr)

    def test_commands_do_what_they_say(self):
        for document in DOCUMENTS:
            if not any(block.where == "here" for block in documented.blocks(document)):
                continue
            with self.subTest(document=document.name), tempfile.TemporaryDirectory(prefix="nlaunch-docs-") as name:
                folder = pathlib.Path(name)
                documented.stage(folder)
                documented.write_files(document, folder)
                if document.name == "install.md":
                    documented.pack_release(folder)
                wrong = documented.run(document, "here", folder, documented.environment(folder))
                self.assertEqual(wrong, [], "\n".join(wrong))

    def test_every_command_says_where_it_is_run(self):
        for document in DOCUMENTS:
            for block in documented.blocks(document):
                if block.where:
                    self.assertRegex(block.where, r"^(here|cluster|elsewhere: \w.*)$", f"{document.name}:{block.line}")
                elif block.language in ("", "bash", "console", "shell"):
                    first = block.text.split(maxsplit=1)[0]
                    self.assertFalse(first in PROGRAMS or first.startswith("./scripts/"), f"{document.name}:{block.line}: {first}")
            indented = re.findall(rf"^ {{4,}}(?:{'|'.join(PROGRAMS)}) .*", document.read_text(), re.M)
            self.assertEqual(indented, [], document.name)

    def test_options_exist(self):
        known = set(re.findall(r"--[a-z][a-z-]*", nlaunch("--help-all").stdout))
        self.assertIn("--set", known)
        for document in DOCUMENTS:
            text = document.read_text()
            for block in documented.blocks(document):  # what others' programs are told
                if block.file:
                    text = text.replace(block.text, "")
                elif block.where.startswith("elsewhere"):
                    for _, command, _ in documented.commands(block):
                        text = text if "nlaunch " in command else text.replace(command, "")
            # `program --its-option`: a command of another program is that program's.
            text = re.sub(r"`(?![-`])[^`\n]*`", lambda span: span[0] if "nlaunch " in span[0] else " ", text)
            named = set(re.findall(r"(?<![\w-])--[a-z][a-z_-]*", text))
            with self.subTest(document=document.name):
                self.assertEqual(named - known - OTHERS, set())

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

"""What nlaunch-probe says of real Pythons, and of what they do before a program begins."""
import json
import os
import pathlib
import subprocess
import tempfile
import time
import unittest

PROBE = os.path.join(os.environ.get("NLAUNCH_BUILD", "build"), "bin", "nlaunch-probe")
SYSTEM = "/usr/bin/python3"
# Stands for the real one, which would take seconds.
TORCH = """
import types
__version__ = '2.9.0+cu130'
version = types.SimpleNamespace(cuda='13.0')
cuda = types.SimpleNamespace(nccl=types.SimpleNamespace(version=lambda: (2, 28, 9)))
"""


@unittest.skipUnless(os.path.exists(SYSTEM), f"no {SYSTEM}")
class Interpreter(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(os.path.realpath(folder.name))
        subprocess.run([SYSTEM, "-m", "venv", "--without-pip", self.folder / "venv"], check=True)
        self.python = self.folder / "venv/bin/python"
        self.packages = next((self.folder / "venv/lib").glob("python3*")) / "site-packages"
        (self.packages / "torch").mkdir()
        (self.packages / "torch/__init__.py").write_text(TORCH)
        (self.packages / "torch/version.py").write_text("__version__ = '2.9.0+cu130'\ncuda: Optional[str] = '13.0'\nhip = None\n")
        for wheel in ("torch-2.9.0+cu130", "nvidia_nccl_cu13-2.28.9", "torchvision-0.24.0"):
            (self.packages / f"{wheel}.dist-info").mkdir()

    def ask(self, python=None, env=None, subcommand="interpreter", workdir=None, more=()):
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.folder), **(env or {})}
        done = subprocess.run([PROBE, subcommand, str(python or self.python), str(workdir or self.folder), *more], env=environment,
                              capture_output=True, text=True, timeout=60, check=True)
        return json.loads(done.stdout)

    def assert_touched(self, said, by):
        self.assertEqual((said["imported"], said["by"]), (["torch"], [by]))
        self.assertEqual((said["libcuda"], said["devices"]), ("", []), "there is no CUDA in it")

    def test_a_python_that_does_nothing_early(self):
        said = self.ask()
        self.assertEqual(said["executable"], str(self.python))
        self.assertRegex(said["version"], r"^3\.\d+\.\d+$")
        self.assertEqual(said["packages"], {"torch": "2.9.0+cu130", "nvidia-nccl-cu13": "2.28.9"})
        self.assertEqual(said["torch_cuda"], "13.0")
        self.assertEqual((said["imported"], said["by"]), ([], []))

    def test_a_sitecustomize_that_imports_torch_and_talks(self):
        custom = self.folder / "custom"
        custom.mkdir()
        (custom / "sitecustomize.py").write_text("import os\nprint('good morning')\nimport torch\n")
        said = self.ask(env={"PYTHONPATH": f"{custom}:{self.packages}"})
        self.assert_touched(said, f"{custom}/sitecustomize.py:3")

    def test_a_pth_file_that_imports_torch(self):
        (self.packages / "eager.pth").write_text("import torch\n")
        self.assert_touched(self.ask(), f"{self.packages}/eager.pth (import torch)")

    def test_a_pth_file_that_imports_what_imports_torch(self):
        (self.packages / "patch.py").write_text("import torch\n")
        (self.packages / "eager.pth").write_text("import patch\n")
        self.assert_touched(self.ask(), f"{self.packages}/eager.pth (import patch)")

    def test_a_usercustomize_that_imports_torch(self):
        version = self.packages.parent.name
        home = self.folder / ".local/lib" / version / "site-packages"
        home.mkdir(parents=True)
        (home / "usercustomize.py").write_text("import torch\n")
        said = self.ask(python=SYSTEM, env={"PYTHONPATH": str(self.packages)})
        if os.geteuid() != os.getuid():
            self.skipTest("Python leaves the user's folder out where the user is not the real one")
        self.assert_touched(said, f"{home}/usercustomize.py:1")

    def test_a_shim_in_front_of_it(self):
        shim = self.folder / "shim"
        shim.write_text(f'#!/bin/sh\n: pyenv rehash\nexec "{self.python}" "$@"\n')
        shim.chmod(0o755)
        said = self.ask(python=shim)
        self.assertEqual((said["python"], said["executable"]), (str(shim), str(self.python)))

    def test_one_that_ends_at_once(self):
        (self.packages / "leave.pth").write_text("import sys; sys.exit('no licence')\n")
        said = self.ask()
        self.assertTrue(said["ended"])
        self.assertEqual(said["error"], f"{self.python} exited with code 1: SystemExit: no licence")

    def test_what_is_no_python(self):
        self.assertEqual(self.ask(python="/nowhere/python")["error"], "'/nowhere/python' does not exist")
        self.assertEqual(self.ask(python="/bin/false")["error"], "/bin/false exited with code 1")

    def test_one_that_hangs_is_ended_with_what_it_started(self):
        shim = self.folder / "shim"
        shim.write_text(f"#!/bin/sh\nsleep 987 &\necho $! >{self.folder}/pid\nwait\n")
        shim.chmod(0o755)
        begin = time.monotonic()
        said = self.ask(python=shim)
        self.assertLess(time.monotonic() - begin, 25)
        self.assertEqual(said["error"], f"{shim} did not answer within 18s")
        pid = int((self.folder / "pid").read_text())
        deadline = time.monotonic() + 5
        while os.path.exists(f"/proc/{pid}/root") and open(f"/proc/{pid}/stat", encoding="ascii").read().split()[2] != "Z":
            self.assertLess(time.monotonic(), deadline, "what the shim has started goes on")
            time.sleep(0.05)

    def test_torch_is_imported_where_that_is_asked_for(self):
        said = self.ask(subcommand="torch")
        self.assertEqual((said["version"], said["cuda"], said["nccl"]), ("2.9.0+cu130", "13.0", "2.28.9"))

    def test_torch_has_the_library_that_the_role_preloads(self):
        (self.packages / "torch/__init__.py").write_text(TORCH + "import os\n__version__ = os.environ['LD_PRELOAD']\n")
        said = self.ask(subcommand="torch", more=["libm.so.6"])
        self.assertEqual(said["version"], "libm.so.6")

    def test_torch_that_is_not_there(self):
        (self.packages / "torch/__init__.py").write_text("import nothing_of_that_name\n")
        self.assertIn("ModuleNotFoundError: No module named 'nothing_of_that_name'", self.ask(subcommand="torch")["error"])

    def test_debians_torch(self):
        done = subprocess.run([SYSTEM, "-c", "import torch"], capture_output=True, check=False)
        if done.returncode != 0:
            self.skipTest("python3-torch is not installed")
        said = self.ask(python=SYSTEM, subcommand="torch")
        self.assertRegex(said["version"], r"^\d+\.\d+")
        self.assertEqual((said["cuda"], said["nccl"]), ("", ""))


if __name__ == "__main__":
    unittest.main()

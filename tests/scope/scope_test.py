"""Who has a preloaded libnccl under libnlaunch-scope.so: real programs, a real libnccl, /proc/PID/maps."""

import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
import unittest

SCOPE = os.environ.get("NLAUNCH_SCOPE_LIB") or os.path.join(
    os.environ.get("NLAUNCH_BUILD", "build"), "lib", "libnlaunch-scope.so")
PYTHON = sys.executable


def find_nccl():
    named = os.environ.get("NLAUNCH_TEST_LIBNCCL")
    places = [named] if named else [
        "/usr/local/cuda/lib/libnccl.so.2", *glob.glob("/usr/local/cuda-*/lib*/libnccl.so.2"),
        *glob.glob("/usr/lib/*/libnccl.so.2"), *glob.glob("/usr/lib64/libnccl.so.2")]
    return next((path for path in places if os.path.exists(path)), None)


NCCL = find_nccl()

# Prints one JSON line about itself: a name, whether libnccl is mapped, whether LD_PRELOAD is in its environment.
TELL = textwrap.dedent("""
    import json, os, sys
    def tell(name):
        line = {"name": name, "nccl": "libnccl" in open("/proc/self/maps").read(),
                "preload": "LD_PRELOAD" in os.environ}
        os.write(1, (json.dumps(line) + "\\n").encode())
    if __name__ == "__main__": tell(sys.argv[1])
""")

# The same of itself and of what it starts, in the ways in which programs start things.
PROGRAM = textwrap.dedent("""
    import multiprocessing, os, subprocess, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    from tell import tell
    here = os.path.dirname(os.path.abspath(__file__))
    if __name__ == "__main__":
        tell("program")
        child = [sys.executable, os.path.join(here, "tell.py")]
        subprocess.run(child + ["subprocess"], check=True)
        subprocess.run(child + ["copied environment"], env=dict(os.environ), check=True)
        subprocess.run(["env", "bash", "-c", " ".join(child) + " shell"], check=True)
        os.system(" ".join(child) + " system")
        for method in ("spawn", "fork"):
            process = multiprocessing.get_context(method).Process(target=tell, args=(method,))
            process.start()
            process.join()
        os.execv(sys.executable, child + ["executed anew"])
""")

ALONE = {"program": True, "subprocess": False, "copied environment": False, "shell": False, "system": False,
         "spawn": False, "fork": True, "executed anew": False}

LAUNCHED = textwrap.dedent("""
    import os, subprocess, sys
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    from tell import tell
    rank = os.environ["RANK"]
    tell("rank " + rank)
    subprocess.run([sys.executable, "-c", "from tell import tell; tell('child of %s')" % rank],
                   cwd=os.path.dirname(os.path.abspath(__file__)), check=True)
""")

# A launcher by its name: ranks, and helpers that are none.
LAUNCHER = textwrap.dedent("""
    import os, subprocess, sys
    here = os.path.dirname(os.path.abspath(__file__))
    program = sys.argv[1:]
    def tell(name): return f"{sys.executable} {here}/tell.py '{name}'"
    for rank in ("0", "1"):
        env = dict(os.environ, RANK=rank, LOCAL_RANK=rank)
        subprocess.run([sys.executable, here + "/launched.py"], env=env, check=True)
        subprocess.run(f"{tell('rank %s by shell' % rank)}; :", shell=True, env=env, check=True)
    subprocess.run(f"{tell('helper by shell')}; :", shell=True, check=True)
    helper = f"import os; os.system(\\"{tell('child of helper')}\\")"
    subprocess.run([sys.executable, "-c", helper], check=True)
""")


@unittest.skipUnless(NCCL, "no libnccl.so.2 here: set NLAUNCH_TEST_LIBNCCL")
class Scope(unittest.TestCase):
    def setUp(self):
        self.assertTrue(os.path.exists(SCOPE), f"{SCOPE} is not built")
        folder = tempfile.TemporaryDirectory(prefix="nlaunch-scope-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        for name, text in (("tell.py", TELL), ("program.py", PROGRAM), ("launched.py", LAUNCHED),
                           ("torchrun", LAUNCHER)):
            self.write(name, text)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text, mode=0o644):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(self.path(name), mode)
        return self.path(name)

    def run_preloaded(self, argv, preload=None, **variables):
        env = {"PATH": os.environ["PATH"], "HOME": self.folder, "PYTHONDONTWRITEBYTECODE": "1",
               "LD_PRELOAD": preload or f"{NCCL}:{os.path.abspath(SCOPE)}", **variables}
        ran = subprocess.run(argv, env=env, cwd=self.folder, capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        return [json.loads(line[line.index("{"):]) for line in ran.stdout.splitlines()]

    def assert_alone(self, argv, **variables):
        told = self.run_preloaded(argv, **variables)
        self.assertEqual({line["name"]: line["nccl"] for line in told}, ALONE)
        self.assertEqual([line["name"] for line in told if line["preload"]], [])

    def program(self):
        return [PYTHON, self.path("program.py")]

    def test_program_alone(self):
        self.assert_alone(self.program())

    def test_a_rank_of_nlaunch_is_a_program_like_any_other(self):
        self.assert_alone(self.program(), RANK="0", LOCAL_RANK="0")

    def test_without_the_scope_library_all_inherit(self):
        told = self.run_preloaded(self.program(), preload=NCCL)
        self.assertEqual({line["nccl"] for line in told}, {True})

    def test_bash_c(self):
        self.assert_alone(["bash", "-c", " ".join(self.program())])
        self.assert_alone(["bash", "-c", " ".join(self.program()) + "; true"])

    def test_sh_and_env(self):
        self.assert_alone(["sh", "-c", "env A=1 " + " ".join(self.program()) + "; true"])

    def test_shell_script_named_python(self):
        shim = self.write("python", f'#!/usr/bin/env bash\nset -e\nhash -r\nexec "{PYTHON}" "$@"\n', 0o755)
        self.assert_alone([shim, self.path("program.py")])

    def test_nested_wrappers(self):
        wrappers = ["env", "nice", "timeout", "60", "taskset", "1", "stdbuf", "-oL", "setsid", "-w"]
        present = [name for name in wrappers if name.isdigit() or name.startswith("-") or shutil.which(name)]
        self.assertEqual(present, wrappers)
        self.assert_alone(wrappers + ["bash", "-c", "bash -c '" + " ".join(self.program()) + "; true'; true"])

    def test_every_command_of_a_script_gets_it_and_hands_nothing_on(self):
        script = self.write("train.sh", f"{PYTHON} tell.py first\n" + " ".join(self.program()) + "\n")
        told = {line["name"]: line["nccl"] for line in self.run_preloaded(["bash", script])}
        self.assertEqual(told, {"first": True, **ALONE})

    def test_perl(self):
        code = f'system("{PYTHON}", "tell.py", "child"); open(M, "/proc/self/maps"); exit(!grep(/libnccl/, <M>));'
        self.assertEqual(self.run_preloaded(["perl", "-e", code]),
                         [{"name": "child", "nccl": False, "preload": False}])

    def assert_launched(self, argv):
        told = {line["name"]: line["nccl"] for line in self.run_preloaded(argv)}
        self.assertEqual(told, {
            "rank 0": True, "child of 0": False, "rank 0 by shell": True,
            "rank 1": True, "child of 1": False, "rank 1 by shell": True,
            "helper by shell": False, "child of helper": False})

    def test_launcher_by_the_name_of_its_script(self):
        self.assert_launched([PYTHON, "-u", self.path("torchrun")])
        self.assert_launched(["bash", "-c", f"{PYTHON} -X utf8 {self.path('torchrun')}; true"])

    def test_launcher_by_the_name_of_its_module(self):
        for module in ("deepspeed/launcher/launch", "accelerate/commands/launch"):
            os.makedirs(self.path(os.path.dirname(module)))
            for name in ("tell.py", "launched.py"):
                shutil.copy(self.path(name), self.path(os.path.dirname(module)))
            self.write(module + ".py", LAUNCHER)
            self.assert_launched([PYTHON, "-um", module.replace("/", ".")])
            self.assert_launched([PYTHON, self.path(module + ".py")])

    def test_torchrun_of_pytorch(self):
        if subprocess.run([PYTHON, "-c", "import torch.distributed.run"], capture_output=True, check=False).returncode:
            self.skipTest(f"{PYTHON} has no torch.distributed.run (Debian: python3-torch)")
        # Under Python 3.11, PyTorch 1.13 cannot read its own defaults for these two.
        argv = [PYTHON, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2", "--redirects=1",
                "--tee=1", "--log_dir=" + self.path("logs"), self.path("launched.py")]
        told = {line["name"]: line["nccl"] for line in self.run_preloaded(argv)}
        self.assertEqual(told, {"rank 0": True, "child of 0": False, "rank 1": True, "child of 1": False})

    def test_a_static_program_hands_it_on(self):
        compiler = shutil.which("cc") or shutil.which("gcc")
        source = self.write("run.c", "#include <unistd.h>\n"
                                     "int main(int n, char** argv) { return n < 2 || execvp(argv[1], argv + 1); }\n")
        built = compiler and subprocess.run([compiler, "-static", source, "-o", self.path("run")],
                                            capture_output=True, check=False).returncode == 0
        if not built:
            self.skipTest("no compiler that links statically")
        self.assert_alone([self.path("run"), *self.program()])

    def test_library_whose_path_has_a_blank_and_a_colon_through_a_link(self):
        os.mkdir(self.path("a folder:x"))
        os.symlink(NCCL, self.path("a folder:x/libnccl.so.2"))
        os.symlink(self.path("a folder:x/libnccl.so.2"), self.path("link.so"))
        told = self.run_preloaded(self.program(), preload=f"{self.path('link.so')}:{os.path.abspath(SCOPE)}")
        self.assertEqual({line["name"]: line["nccl"] for line in told}, ALONE)

    def test_each_process_permits_the_tracer_to_look_into_it(self):
        """Seen by a library before it: a kernel without Yama refuses PR_SET_PTRACER."""
        compiler = shutil.which("cc") or shutil.which("gcc")
        if not compiler:
            self.skipTest("no compiler")
        source = self.write("seen.c", "#include <stdio.h>\n"
                                      "int prctl(int option, unsigned long pid) {\n"
                                      "  if (option == 0x59616d61) dprintf(1, \"{\\\"name\\\": \\\"tracer\\\", "
                                      "\\\"pid\\\": %lu}\\n\", pid);\n"
                                      "  return 0;\n}\n")
        subprocess.run([compiler, "-shared", "-fPIC", "-w", source, "-o", self.path("seen.so")], check=True)
        preload = f"{self.path('seen.so')}:{os.path.abspath(SCOPE)}"
        told = self.run_preloaded(["bash", "-c", "/bin/true; true"], preload=preload, NLAUNCH_TRACER="4711")
        self.assertEqual(told, [{"name": "tracer", "pid": 4711}] * 2)
        self.assertEqual(self.run_preloaded(["/bin/true"], preload=preload), [])

    def test_nothing_but_libc(self):
        listed = subprocess.run(["readelf", "-d", SCOPE], capture_output=True, text=True, check=True).stdout
        needed = [line.split("[")[1].rstrip("]") for line in listed.splitlines() if "(NEEDED)" in line]
        self.assertEqual(needed, ["libc.so.6"])


if __name__ == "__main__":
    unittest.main()

"""Roles in containers: what stands in front of a command, and what gets through it. With a real bubblewrap, as an
ordinary user, and with an apptainer that is a script around it. What is started, against golden files (NLAUNCH_UPDATE_GOLDEN=1
rewrites them)."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import textwrap
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from harness import BUILD, NLAUNCH, SOURCE, CliTest  # noqa: E402

GOLDEN = SOURCE / "tests" / "golden" / "containers"
NOBODY = 65534
# Another root: of this machine it has its programs alone, and a /tmp of its own.
BWRAP = ["bwrap", "--ro-bind", "/usr", "/usr", "--ro-bind", "/etc", "/etc", "--symlink", "usr/bin", "/bin", "--symlink", "usr/lib",
         "/lib", "--symlink", "usr/lib64", "/lib64", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--tmpfs", "/home"]

# Says what it is given, then stays until the audit has seen it.
PROGRAM = textwrap.dedent("""
    import os, subprocess, sys, time
    def has_nccl(): return "libnccl" in open("/proc/self/maps").read()
    if len(sys.argv) > 1:
        print("child", has_nccl(), "LD_PRELOAD" in os.environ, flush=True)
        sys.exit(0)
    print("program", has_nccl(), "LD_PRELOAD" in os.environ, flush=True)
    print("rank", os.environ.get("RANK"), "of", os.environ.get("WORLD_SIZE"), "in", os.environ.get("NLAUNCH_ROLE"), flush=True)
    print("mine", os.environ.get("MINE"), "inherited", os.environ.get("INHERITED"), flush=True)
    print("path", os.environ["PATH"], flush=True)
    print("outside", os.path.exists(os.environ["OUTSIDE"]), flush=True)
    subprocess.run([sys.executable, __file__, "child"], check=True)
    time.sleep(float(os.environ.get("STAY", "1.5")))
""")

# An apptainer as far as nlaunch uses it: options in, a root by bwrap out. What it itself is given it tells on stderr.
APPTAINER = textwrap.dedent("""\
    #!/usr/bin/env python3
    import os, sys
    words = sys.argv[1:]
    assert words.pop(0) == "exec", sys.argv
    binds, clean = [], False
    while words[0].startswith("-"):
        option = words.pop(0)
        if option == "--bind": binds.append(words.pop(0))
        elif option == "--cleanenv": clean = True
        elif option != "--nv": sys.exit(f"apptainer: unknown flag: {option}")
    image = words.pop(0)
    if not os.path.exists(image): sys.exit(f"FATAL: could not open image {image}")
    if os.path.basename(words[0]) == os.environ.get("REFUSES"):
        sys.exit(f"{words[0]}: /lib64/libc.so.6: version `GLIBC_2.28' not found (required by {words[0]})")
    assert os.environ["APPTAINER_NO_EVAL"] == "1"
    env = {} if clean else {name: value for name, value in os.environ.items()
                            if not name.startswith("APPTAINER") and name not in ("PATH", "LD_LIBRARY_PATH")}
    env["PATH"] = "/usr/local/bin:/usr/bin:/bin"
    prefix = "APPTAINERENV_"
    for name, value in os.environ.items():
        if name.startswith(prefix) and name != prefix + "PREPEND_PATH": env[name[len(prefix):]] = value
    if prefix + "PREPEND_PATH" in os.environ: env["PATH"] = os.environ[prefix + "PREPEND_PATH"] + ":" + env["PATH"]
    command = BWRAP + ["--die-with-parent", "--clearenv"]
    for name, value in env.items(): command += ["--setenv", name, value]
    for bind in binds:
        source, inside, *flags = bind.split(":")
        command += ["--ro-bind" if flags == ["ro"] else "--bind", source, inside]
    if "LD_PRELOAD" in os.environ: sys.exit("apptainer has LD_PRELOAD itself")
    os.execvp("bwrap", command + words)
""").replace("BWRAP +", repr(BWRAP) + " +")


def why_not():
    if not shutil.which("bwrap"):
        return "bwrap is not installed (Debian: bubblewrap)"
    options = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
    tried = subprocess.run([*BWRAP, "--unshare-pid", "true"], capture_output=True, text=True, **options)
    return f"bwrap cannot make namespaces here: {tried.stderr.strip()}" if tried.returncode else ""


WHY_NOT = why_not()


@unittest.skipIf(WHY_NOT, WHY_NOT)
class Containers(CliTest):
    """As an ordinary user: root's tests become nobody's, where nobody can read what was built."""

    def setUp(self):
        super().setUp()
        self.user = {}
        if os.geteuid() == 0 and subprocess.run(["test", "-x", NLAUNCH], user=NOBODY, group=NOBODY).returncode == 0:
            self.user = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
        self.work = self.folder / "work"
        self.work.mkdir()
        self.libraries = self.folder / "libraries"
        self.libraries.mkdir()
        self.library = self.libraries / "libnccl.so.2.99.1"
        (self.libraries / "empty.c").write_text("int nlaunch_test_library;\n")
        subprocess.run(["cc", "-shared", "-fPIC", "-o", self.library, self.libraries / "empty.c"], check=True)
        (self.libraries / "libnccl.so.2").symlink_to(self.library.name)  # as it is installed
        (self.work / "program.py").write_text(PROGRAM)
        tools = self.folder / "tools"
        tools.mkdir()
        (tools / "apptainer").write_text(APPTAINER)
        (tools / "apptainer").chmod(0o755)
        (self.work / "image.sif").write_text("")
        (self.folder / "site.yaml").write_text(
            "version: 1\nname: box\nscheduler: {kind: local}\nlibraries:\n"
            f"  nccl: {{path: {self.libraries}/libnccl.so.2}}\n")
        self.env |= {"PATH": f"{tools}:/usr/local/bin:/usr/bin:/bin", "INHERITED": "yes", "TMPDIR": str(self.folder)}
        for path in [self.folder, *self.folder.rglob("*")]:
            if self.user and not path.is_symlink():
                os.chown(path, NOBODY, NOBODY)

    def call(self, *arguments, timeout=120, env=None):
        return subprocess.run([NLAUNCH, *map(str, arguments)], capture_output=True, text=True, timeout=timeout,
                              env={**self.env, **(env or {})}, cwd=self.work, stdin=subprocess.DEVNULL, **self.user)

    def experiment(self, roles, more=""):
        path = self.work / "experiment.yaml"
        path.write_text("version: 1\nname: test\nweight_sync: {backend: gloo}\ncpu_slots: true\n"
                        f"env: {{OUTSIDE: {self.libraries}/empty.c}}\n{more}roles:\n{textwrap.indent(roles, '  ')}")
        return path

    def start(self, roles, *arguments, more="", env=None, level=None):
        arguments = [*arguments, *(["--set", f"preflight.level={level}"] if level else ["--no-preflight"])]
        return self.call("run", self.experiment(roles, more), "--site", self.folder / "site.yaml", "--runs-dir", self.folder / "runs",
                         *arguments, env=env)

    @staticmethod
    def words(words):
        return json.dumps(words)

    def learner(self, wrapper, more=""):
        return (f"learner:\n  kind: learner\n  rendezvous: torch\n  preload: [nccl]\n  env: {{MINE: \"a $(b) 'c'\"}}\n"
                f"  wrapper: {self.words(wrapper)}\n  command: [python3, program.py]\n{more}")

    def log(self, name):
        return (self.run_folder / "attempt-0" / "logs" / f"{name}.log").read_text()

    def audit(self):
        return json.loads((self.run_folder / "attempt-0" / "audit.json").read_text())

    def rows(self):
        reports = (self.folder / "runs").glob("test/*/attempt-0/preflight.json")  # a run that was refused is not `latest`
        return json.loads(max(reports, key=lambda path: path.stat().st_mtime).read_text())["rows"]

    def assert_proven(self, done, path):
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
        audit = self.audit()
        self.assertEqual(audit["findings"], [])
        proven = [entry for entry in audit["processes"] if entry["proof"] == "as-preloaded"]
        self.assertEqual([(entry["name"], entry["part"]) for entry in proven], [("learner.0", "program")])
        self.assertIn("program.py", proven[0]["command"])
        self.assertEqual([library["path"] for library in proven[0]["libraries"]], [path])
        self.assertEqual([library["inode"] for library in proven[0]["libraries"]], [os.stat(self.library).st_ino])

    def test_environment_and_preload_reach_the_program_and_nothing_else(self):
        for more in ([], ["--unshare-pid"], ["--unshare-all", "--share-net"], ["--new-session"]):
            with self.subTest(more):
                done = self.start(self.learner(BWRAP + more))
                self.assert_proven(done, str(self.libraries / "libnccl.so.2"))
                log = self.log("learner.0")
                for line in ("program True False", "child False False", "rank 0 of 1 in learner",
                             "mine a $(b) 'c' inherited yes", "outside False"):
                    self.assertIn(line + "\n", log)

    def test_a_library_of_the_image_with_the_same_path_is_another_one(self):
        # The engine's image has its own file where the learner's library is outside.
        own = self.folder / "own"
        own.mkdir()
        shutil.copy(self.library, own / "libnccl.so.2")
        engine = ["--dev-bind", "/", "/", "--bind", str(own), str(self.libraries)]
        code = f"import ctypes, time; ctypes.CDLL('{self.libraries}/libnccl.so.2'); time.sleep(60)"
        roles = self.learner(BWRAP) + (f"engine:\n  kind: engine\n  wrapper: {self.words(['bwrap', *engine])}\n"
                                       f"  command: [python3, -c, {json.dumps(code)}]\n")
        done = self.start(roles)
        self.assert_proven(done, str(self.libraries / "libnccl.so.2"))
        engine = [entry for entry in self.audit()["processes"] if entry["name"] == "engine.0"]
        self.assertEqual([entry["proof"] for entry in engine], ["own"])
        self.assertEqual(engine[0]["libraries"][0]["inode"], os.stat(own / "libnccl.so.2").st_ino)

    def test_an_engine_that_has_the_learners_file_is_found_in_its_container(self):
        code = f"import ctypes, time; ctypes.CDLL('{self.libraries}/libnccl.so.2'); time.sleep(60)"
        engine = BWRAP + ["--ro-bind", str(self.libraries), str(self.libraries)]
        done = self.start(self.learner(BWRAP) + f"engine:\n  kind: engine\n  wrapper: {self.words(engine)}\n"
                          f"  command: [python3, -c, {json.dumps(code)}]\n")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([(finding["kind"], finding["name"]) for finding in self.audit()["findings"]], [("foreign", "engine.0")])

    def test_apptainer_is_told_what_to_mount_and_to_set(self):
        venv = self.work / "venv" / "bin"
        venv.mkdir(parents=True)
        for more, inherited in (([], "yes"), (["--cleanenv"], "None")):
            with self.subTest(more):
                done = self.start(self.learner(["apptainer", "exec", "--nv", *more, "image.sif"], "  venv: venv\n"))
                self.assert_proven(done, str(self.libraries / "libnccl.so.2"))
                log = self.log("learner.0")
                for line in ("program True False", "child False False", "rank 0 of 1 in learner",
                             f"mine a $(b) 'c' inherited {inherited}", f"path {venv}:/usr/local/bin:/usr/bin:/bin", "outside False"):
                    self.assertIn(line + "\n", log)

    def test_the_preflight_runs_in_the_container(self):
        roles = self.learner(BWRAP, "  count: 2\n  gpus: 1\n") + (
            f"engine:\n  kind: engine\n  gpus: 1\n  wrapper: {self.words(['apptainer', 'exec', 'image.sif'])}\n"
            "  command: [sleep, '60']\n")
        done = self.start(roles, level="standard")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        rows = {(row["check"], row["subject"]): row for row in self.rows()}
        for role in ("learner", "engine"):
            self.assertEqual(rows["container", role]["status"], "pass", rows["container", role])
        self.assertRegex(rows["container", "learner"]["value"], r"^Debian GNU/Linux 12 \(bookworm\), glibc 2\.36$")
        for group in ("learner world", "weight sync"):
            judged = [row["status"] for (check, subject), row in rows.items() if subject == group]
            self.assertTrue(judged and set(judged) <= {"pass"}, rows)

    def test_a_container_that_does_not_start_refuses_the_run(self):
        wrapper = [word for word in BWRAP if word not in ("usr/lib64", "/lib64")]
        del wrapper[wrapper.index("usr/lib") + 2]  # the --symlink of these
        done = self.start(self.learner(wrapper, "  gpus: 1\n  count: 2\n"), level="standard")
        self.assertEqual(done.returncode, 69, done.stdout + done.stderr)
        row, = [row for row in self.rows() if row["check"] == "container"]
        self.assertEqual((row["status"], row["expected"]), ("fail", "a container that starts"))
        self.assertIn("no program starts in the container: exited with code 1: bwrap: execvp true: No such file or directory", row["value"])
        self.assertTrue(row["fix"].startswith(f"try it manually, in {self.work}: bwrap --ro-bind /usr /usr "), row["fix"])

    def test_a_probe_that_does_not_start_there_is_unknown_and_the_run_goes_on(self):
        roles = self.learner(["apptainer", "exec", "image.sif"], "  gpus: 1\n  count: 2\n").replace(
            "env: {", "env: {REFUSES: nlaunch-probe, ")
        roles += "engine: {kind: engine, count: 2, gpus: 1, command: [sleep, '60']}\n"
        done = self.start(roles, level="standard")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        row, = [row for row in self.rows() if row["check"] == "container"]
        self.assertEqual(row["status"], "unknown")
        self.assertIn("programs start in the container, but nlaunch-probe does not, so nothing is checked there: ", row["value"])
        self.assertIn("version `GLIBC_2.28' not found", row["value"])
        group, = [row for row in self.rows() if row["subject"] == "weight sync"]
        self.assertEqual((group["status"], group["value"]),
                         ("skip", "not run: nlaunch-probe does not start in the container of 'learner'"))
        self.assertEqual([row for row in self.rows() if row["status"] == "fail"], [])

    def test_stopping_asks_the_program_and_not_the_tool(self):
        code = ("import signal, sys, time\n"
                "def stop(*_): print('asked', flush=True); time.sleep(1); print('saved', flush=True); sys.exit(0)\n"
                "signal.signal(signal.SIGTERM, stop); print('up', flush=True)\n"
                "while True: time.sleep(0.1)\n")
        for wrapper in (BWRAP, BWRAP + ["--unshare-pid"], BWRAP + ["--new-session"], ["apptainer", "exec", "image.sif"]):
            with self.subTest(wrapper[-1]):
                done = self.start(
                    f"engine:\n  kind: engine\n  wrapper: {self.words(wrapper)}\n  ready: {{log: up}}\n"
                    f"  command: [python3, -c, {json.dumps(code)}]\nlearner: {{kind: learner, command: [sleep, '0.5']}}\n",
                    more="start: [[engine], [learner]]\n")
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.assertEqual(self.log("engine.0").count("asked\n"), 1)
                self.assertIn("saved\n", self.log("engine.0"))

    def test_what_does_not_stop_is_killed_with_all_that_it_started(self):
        mark = f"86{os.getpid()}"
        code = ("import os, signal, subprocess, time; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
                f"subprocess.Popen(['setsid', 'sleep', '{mark}']); print('up', flush=True); time.sleep({mark})")
        for wrapper in (BWRAP, BWRAP + ["--unshare-pid"]):
            with self.subTest(wrapper[-1]):
                done = self.start(
                    f"engine:\n  kind: engine\n  wrapper: {self.words(wrapper)}\n  ready: {{log: up}}\n  stop: {{grace: 500ms}}\n"
                    f"  command: [python3, -c, {json.dumps(code)}]\nlearner: {{kind: learner, command: [sleep, '0.2']}}\n",
                    more="start: [[engine], [learner]]\n")
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                left = subprocess.run(["pgrep", "-f", mark], capture_output=True, text=True).stdout.split()
                self.assertEqual([pid for pid in left if int(pid) != os.getpid()], [])

    def test_readiness_is_asked_for_in_the_container(self):
        ready = f"import os, sys; sys.exit(os.path.exists('{self.libraries}/empty.c'))"
        done = self.start(f"engine:\n  kind: engine\n  wrapper: {self.words(BWRAP)}\n"
                          f"  ready: {{exec: [python3, -c, {json.dumps(ready)}], timeout: 20s}}\n  command: [sleep, '60']\n"
                          "learner: {kind: learner, command: ['true']}\n", more="start: [[engine], [learner]]\n")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_what_is_missing_is_said_with_its_place_before_anything_starts(self):
        done = self.start(self.learner(["apptainer", "exec", "other.sif"]))
        self.assertEqual(done.returncode, 65, done.stderr)
        self.assertIn(f"learner: the image '{self.work}/other.sif' ({self.work}/experiment.yaml:12:15) does not exist [launch.image]\n"
                      "hint: a path that does not start with / is relative to the role's working directory\n", done.stderr)
        done = self.start(self.learner(["apptainer", "exec", "~/other.sif"]))
        self.assertIn("hint: '~' is not expanded here: write ${env.HOME}\n", done.stderr)
        done = self.start(self.learner(["enroot", "start", "pytorch"]))
        self.assertEqual(done.returncode, 65, done.stderr)
        self.assertIn("learner: program 'enroot' was not found in PATH", done.stderr)
        self.assertIn("(wrapper: ", done.stderr)
        self.assertIn("hint: if a module provides it, load that in the site profile: `modules: {load: [...]}`\n", done.stderr)


class Plans(CliTest):
    """Needs no container tool."""

    def plan(self, wrapper, *arguments, command="plan", role="kind: learner", site="local"):
        path = self.folder / "experiment.yaml"
        path.write_text("version: 1\nname: test\nweight_sync: {backend: gloo}\ncpu_slots: true\nroles:\n"
                        f"  learner: {{{role}, wrapper: {json.dumps(wrapper)}, command: [python3, t.py], env: {{A: b}}}}\n")
        return self.nlaunch(command, path, "--site", site, *arguments)

    def test_what_cannot_be_a_wrapper_is_refused_with_the_reason(self):
        for wrapper, words in (
                (["docker", "run", "image"], "'docker' cannot be a wrapper: its processes are children of another program, and nlaunch can neither stop nor inspect them [plan.wrapper]"),
                (["srun", "--container-image=x"], "hint: `scheduler: {srun: [--container-image=...]}` in the site profile runs nlaunch's whole step in the container (pyxis)"),
                (["apptainer", "shell", "image.sif"], "'apptainer' needs 'exec or run' to start a program [plan.wrapper]"),
                (["apptainer", "exec", "--nv"], "the wrapper ends without an image, at '--nv' [plan.wrapper]")):
            with self.subTest(wrapper):
                done = self.plan(wrapper)
                self.assertEqual(done.returncode, 65)
                self.assertIn(words, done.stderr)

    def test_the_plan_names_it(self):
        done = self.plan(["apptainer", "exec", "--nv", "image.sif"])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("wrapper  learner: apptainer exec --nv image.sif\n", done.stdout)

    def test_env_tells_how_a_variable_gets_through(self):
        for wrapper, words in ((["apptainer", "exec", "image.sif"], "passed through the wrapper by APPTAINERENV_A=b\n"),
                               (["singularity", "exec", "image.sif"], "passed through the wrapper by SINGULARITYENV_A=b\n"),
                               (["enroot", "start", "pytorch"], "passed through the wrapper by --env A\n")):
            with self.subTest(wrapper):
                done = self.plan(wrapper, "--role", "learner", "--explain", "A", command="env")
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn(words, done.stdout)

    def test_golden_commands(self):
        """What is started for a learner with a preload."""
        library = self.folder / "libnccl.so.2"
        library.write_text("")
        site = self.folder / "site.yaml"
        site.write_text(f"version: 1\nname: box\nscheduler: {{kind: local}}\nlibraries: {{nccl: {{path: {library}}}}}\n"
                        "env: {prepend: {PATH: /site/bin}}\n")
        for name, wrapper in (("apptainer", ["apptainer", "exec", "--nv", "image.sif"]),
                              ("singularity", ["numactl", "-N", "0", "singularity", "run", "--cleanenv", "image.sif"]),
                              ("bwrap", ["bwrap", "--dev-bind", "/", "/", "--"]),
                              ("enroot", ["enroot", "start", "--rw", "pytorch"])):
            with self.subTest(name):
                done = self.plan(wrapper, "--role", "learner", command="env", role="kind: learner, rendezvous: torch, preload: [nccl]",
                                 site=site)
                self.assertEqual(done.returncode, 0, done.stderr)
                text = self.normal(done.stdout.splitlines()[-1].replace(str(BUILD), "$BUILD")) + "\n"
                path = GOLDEN / f"{name}.txt"
                if os.environ.get("NLAUNCH_UPDATE_GOLDEN"):
                    path.write_text(text)
                self.assertEqual(text, path.read_text(), f"{path} differs; NLAUNCH_UPDATE_GOLDEN=1 rewrites it")

    def test_lint_warns_of_a_wrapper_that_takes_the_environment_away(self):
        done = self.plan(["bwrap", "--clearenv", "--dev-bind", "/", "/"], command="lint")
        self.assertIn("the wrapper of 'learner' clears the environment (--clearenv)", done.stdout + done.stderr)
        done = self.plan(["apptainer", "exec", "--cleanenv", "image.sif"], command="lint")
        self.assertNotIn("clears the environment", done.stdout + done.stderr)

    def test_lint_reads_what_a_wrapper_sets(self):
        for wrapper in (["apptainer", "exec", "--env", "NCCL_DEBUG=ERROR", "image.sif"], ["env", "NCCL_DEBUG=ERROR"],
                        ["bwrap", "--setenv", "NCCL_DEBUG", "ERROR", "--dev-bind", "/", "/"]):
            with self.subTest(wrapper):
                done = self.plan(wrapper, command="lint")
                self.assertEqual(done.returncode, 65, done.stdout + done.stderr)
                self.assertIn("NCCL_DEBUG does not know 'ERROR'", done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()

"""The scripts: shellcheck, what they say without root, and the list of skips."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ["NLAUNCH_SOURCE"])
NOBODY = 65534


def as_nobody(script):
    return subprocess.run(["bash", "-c", script], capture_output=True, text=True, user=NOBODY, group=NOBODY,
                          extra_groups=[], cwd="/")


class Scripts(unittest.TestCase):
    def test_shellcheck_finds_nothing(self):
        scripts = [*SOURCE.glob("scripts/**/*.sh"), SOURCE / ".ci" / "run"]
        done = subprocess.run(["shellcheck", "-x", *scripts], cwd=SOURCE, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_what_people_call_is_executable(self):
        for name in ("scripts/quickstart.sh", "scripts/test.sh", "scripts/check.sh", "scripts/gpu-test.sh", "scripts/release.sh", "scripts/bench/build.sh",
                     "tests/reach/untouched.sh", ".ci/run"):
            self.assertTrue(os.access(SOURCE / name, os.X_OK), name)

    @unittest.skipUnless(os.geteuid() == 0, "only root can become another user")
    def test_without_root_the_missing_packages_are_named(self):
        packages = (SOURCE / "scripts/lib/packages.sh").read_text()
        done = as_nobody(packages + "\nensure_packages bash no-such-package another-one\necho went on\n")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stdout, "")
        self.assertEqual(done.stderr,
                         "Missing packages: no-such-package another-one\n"
                         "Install them, then run this again:\n"
                         "  sudo apt-get install -y --no-install-recommends no-such-package another-one\n")

    def test_with_all_packages_nothing_is_said(self):
        script = "source scripts/lib/packages.sh; ensure_packages bash coreutils; echo went on"
        done = subprocess.run(["bash", "-c", script], cwd=SOURCE, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "went on\n", ""))

    def test_a_build_folder_of_another_place_is_noticed(self):
        with tempfile.TemporaryDirectory() as folder:
            cache = pathlib.Path(folder) / "build" / "CMakeCache.txt"
            cache.parent.mkdir()
            script = f"source {SOURCE}/scripts/lib/build.sh; stale_cache && echo stale || echo fine"
            for home, expected in ((folder, "fine"), ("/somewhere/else", "stale")):
                cache.write_text(f"CMAKE_HOME_DIRECTORY:INTERNAL={home}\n")
                done = subprocess.run(["bash", "-c", script], cwd=folder, capture_output=True, text=True)
                self.assertEqual(done.stdout, expected + "\n")

    def in_a_release(self, folder, script):
        """What a script prints that has the functions of scripts/release/, in a folder of its own."""
        files = " ".join(f"source {SOURCE}/scripts/release/{name}.sh;" for name in ("toolchain", "sources", "dependencies", "cuda", "archive"))
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", f"say() {{ echo \"$*\"; }}; {files} mkdir -p \"$RELEASE_SOURCES\" .release-cache/arch/dependencies; {script}"],
                              cwd=folder, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_a_release_is_made_anew_of_what_has_another_version(self):
        dependency = "build_zlib() { :; }; echo {0} >$RELEASE_SOURCES/zlib.version; ZIG_VERSION={1}; build_dependency arch zlib"
        program = "cmake() {{ :; }}; ninja() {{ :; }}; ZIG_VERSION={0}; build arch all; ls .release-cache/arch/build/*.o 2>/dev/null || echo anew; touch .release-cache/arch/build/a.o"
        with tempfile.TemporaryDirectory() as folder:
            for versions, said in (((1, 1), "arch: building zlib\n"), ((1, 1), ""), ((2, 1), "arch: building zlib\n"), ((2, 2), "arch: building zlib\n")):
                self.assertEqual(self.in_a_release(folder, dependency.replace("{0}", str(versions[0])).replace("{1}", str(versions[1]))), said)
            for zig, said in ((1, "anew\n"), (1, ".release-cache/arch/build/a.o\n"), (2, "anew\n")):
                self.assertEqual(self.in_a_release(folder, program.format(zig)), said)

    def test_a_release_goes_on_after_unpacking_was_broken_off(self):
        with tempfile.TemporaryDirectory() as folder:
            self.in_a_release(folder, "mkdir -p $RELEASE_SOURCES/zlib.part/tree; release_apt() { echo Version: 1 >a.dsc; }; dpkg-source() { mkdir tree; }; unpack_source zlib")
            self.assertEqual(sorted(path.name for path in pathlib.Path(folder, ".release-cache/sources").iterdir()), ["zlib", "zlib.version"])

    def test_skips_are_listed_with_their_reasons(self):
        log = ("1/2 Testing: preflight.Gpu.Identity\n"
               "[ RUN      ] Gpu.Identity\n"
               "/src/gpu_test.cpp:12: Skipped\n"
               "no GPU here\n\n"
               "2/2 Testing: configs\n"
               "test_weight_sync (__main__.Runs.test_weight_sync) ... skipped 'python3-torch is not installed'\n")
        with tempfile.NamedTemporaryFile("w", suffix=".log") as file:
            file.write(log)
            file.flush()
            done = subprocess.run([sys.executable, SOURCE / "scripts/lib/skips.py", file.name], capture_output=True, text=True)
        self.assertEqual(done.stdout, "\n2 skipped:\n"
                                      "  configs.test_weight_sync: python3-torch is not installed\n"
                                      "  preflight.Gpu.Identity: no GPU here\n")


if __name__ == "__main__":
    unittest.main()

"""The rules of a release: what scripts/release/check.py says of objects made here, and of the archives in release/."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ["NLAUNCH_SOURCE"])
sys.path.insert(0, str(SOURCE / "scripts" / "release"))
import check  # noqa: E402

MACHINE = check.MACHINES.get(os.uname().machine)


@unittest.skipIf(MACHINE is None, "releases are for x86_64 and aarch64")
class Objects(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def build(self, code, *flags):
        """A shared object of the C `code`."""
        out = self.folder / "object.so"
        source = self.folder / "object.c"
        source.write_text(code)
        subprocess.run(["cc", "-shared", "-fPIC", "-o", out, source, *flags], check=True)
        return out.read_bytes()

    def problems(self, data, newest=(2, 28), machine=MACHINE):
        return list(check.problems_of_elf("object.so", data, machine, newest))

    def test_old_symbols_pass(self):
        self.assertEqual(self.problems(self.build("#include <unistd.h>\nint f(void) { return getpid(); }\n", "-s")), [])

    def test_newer_symbol_is_named_with_its_version(self):
        # Bound to a version that a library of the test's own defines: any compiler can make it.
        (self.folder / "map").write_text("GLIBC_2.34 { global: too_new; };\n")
        library = self.folder / "libc.so.6"
        (self.folder / "new.c").write_text("int too_new(void) { return 1; }\n")
        subprocess.run(["cc", "-shared", "-fPIC", "-nostdlib", "-Wl,-soname,libc.so.6", f"-Wl,--version-script,{self.folder}/map",
                        "-o", library, self.folder / "new.c"], check=True)
        data = self.build("int too_new(void);\nint f(void) { return too_new(); }\n", "-s", "-nostdlib", str(library))
        wants = "object.so: wants GLIBC_2.34 of libc.so.6, the newest allowed is GLIBC_2."
        self.assertEqual(self.problems(data), [wants + "28"])
        self.assertEqual(self.problems(data, newest=(2, 17)), [wants + "17"])
        self.assertEqual(self.problems(data, newest=(2, 34)), [])

    def test_libraries_beyond_glibc_are_named(self):
        library = self.folder / "libother.so.3"
        (self.folder / "other.c").write_text("int other(void) { return 1; }\n")
        subprocess.run(["cc", "-shared", "-fPIC", "-Wl,-soname,libother.so.3", "-o", library, self.folder / "other.c"], check=True)
        data = self.build("int other(void);\nint f(void) { return other(); }\n", "-s", str(library))
        self.assertEqual(self.problems(data), ["object.so: needs libother.so.3"])
        data = self.build("int other(void);\nint f(void) { return other(); }\n", "-s", "-lm", "-Wl,--no-as-needed", "-lm", str(library))
        self.assertEqual(list(check.problems_of_elf("scope.so", data, MACHINE, (2, 17), check.LIBC_ALONE))[:1], ["scope.so: needs libm.so.6"])

    def test_wrong_machine_run_path_and_symbols_are_named(self):
        other = 183 if MACHINE == 62 else 62
        data = self.build("int f(void) { return 1; }\n", "-Wl,-rpath,/opt/lib")
        self.assertEqual(self.problems(data, machine=other), [
            f"object.so: is for ELF machine {MACHINE}, not {other}",
            "object.so: looks for libraries in /opt/lib",
            "object.so: has .symtab: it is not stripped"])
        self.assertEqual(self.problems(self.build("int f(void) { return 1; }\n", "-s", "-Wl,-rpath,$ORIGIN")), [])

    def test_device_code_that_is_named_after_its_path_is_named(self):
        kernel = "_ZN7nlaunch5probe44_GLOBAL__N__cc04ecce_11_gpu_gemm_cu_1416f6549hash_bitsEPKjPy"
        data = self.build(f"int {kernel}(void) {{ return 1; }}\n", "-s")
        self.assertEqual(self.problems(data), [
            "object.so: gpu_gemm.cu has device code in an anonymous namespace, whose name depends on the folder it was built in"])


class Tree(unittest.TestCase):
    def test_missing_files_and_build_paths_are_named(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name in check.FILES[1:]:
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text("text\n")
            (root / "share/nlaunch/LINKED.md").write_text("made in /build/here/src\n")
            self.assertEqual(list(check.problems_of_tree(root, "x86_64", "/build/here")), [
                "bin/nlaunch: is missing",
                "share/nlaunch/LINKED.md: names the folder that it was built in, /build/here"])


class Archives(unittest.TestCase):
    def test_archives_are_as_promised(self):
        archives = sorted((SOURCE / "release").glob("*.tar.zst"))
        if not archives:
            self.skipTest("no archives in release/: scripts/release.sh makes and checks them")
        if shutil.which("zstd") is None:
            self.skipTest("zstd is not installed")
        for archive in archives:
            with self.subTest(archive=archive.name):
                self.assertEqual(list(check.problems_of_archive(archive, str(SOURCE))), [])


if __name__ == "__main__":
    unittest.main()

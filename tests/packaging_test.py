"""The recipes in scripts/packaging name the version and the dependencies of this tree, and can be read by the tools that they are for."""
import os
import pathlib
import re
import subprocess
import sys
import types
import unittest

import yaml

SOURCE = pathlib.Path(os.environ["NLAUNCH_SOURCE"])
RECIPES = SOURCE / "scripts" / "packaging"
RATTLER = os.environ.get("NLAUNCH_TEST_RATTLER")  # a Python that has py-rattler-build
VERSION = re.search(r"^project\(nlaunch VERSION (\S+)", (SOURCE / "CMakeLists.txt").read_text(), re.M)[1]
# Of Debian's packages for the build: what conda-forge and Spack call them. None: it is not there, and not needed.
NAMES = {
    "g++": ("${{ compiler('cxx') }}", "cxx"),
    "cmake": ("cmake", "cmake"),
    "ninja-build": ("ninja", "ninja"),
    "python3": ("python", "python"),
    "libboost1.81-dev": ("boost-cpp", "boost"),
    "libcli11-dev": ("cli11", "cli11"),
    "libfmt-dev": ("fmt", "fmt"),
    "nlohmann-json3-dev": ("nlohmann_json", "nlohmann-json"),
    "libhwloc-dev": ("libhwloc", "hwloc"),
    "libyaml-cpp-dev": ("yaml-cpp", "yaml-cpp"),
    "libre2-dev": ("re2", "re2"),
    "zlib1g-dev": ("zlib", "zlib"),
    "libzstd-dev": ("zstd", "zstd"),
    "libssl-dev": ("openssl", "openssl"),
    "libseccomp-dev": ("libseccomp", "libseccomp"),
    "libncurses-dev": ("ncurses", "ncurses"),
    "libdw-dev": ("elfutils", "elfutils"),
    "libbz2-dev": (None, None),  # only Debian's static library of libdw wants it
    "libfabric-dev": ("libfabric-devel", "libfabric"),
    "libgloo-dev": (None, "gloo"),
}
ALWAYS = ({"${{ compiler('c') }}", "${{ stdlib('c') }}"}, {"c"})  # a compiler for C comes with Debian's g++


def wanted(column):
    packages = subprocess.run(["bash", "-c", 'source scripts/lib/packages.sh; printf "%s\\n" "${BUILD_PACKAGES[@]}"'], cwd=SOURCE,
                              capture_output=True, text=True, check=True).stdout.split()
    return {NAMES[package][column] for package in packages} - {None} | ALWAYS[column]


class Directives:
    """Stands for Spack: reads a package.py and keeps what it says."""

    def __init__(self, path):
        self.said = []
        base = types.ModuleType("spack_repo.builtin.build_systems.cmake")
        base.CMakePackage = type("CMakePackage", (), {"define": lambda _, name, value: f"-D{name}={value}",
                                                      "define_from_variant": lambda _, name, variant: f"-D{name}=<{variant}>"})
        package = types.ModuleType("spack.package")
        for module, name in ((base, "generator"), *((package, name) for name in ("version", "variant", "license", "depends_on", "requires"))):
            setattr(module, name, lambda *words, _name=name, **options: self.said.append((_name, words, options)))
        stubs = {"spack": types.ModuleType("spack"), "spack.package": package, "spack_repo": types.ModuleType("spack_repo"),
                 "spack_repo.builtin": types.ModuleType("builtin"), "spack_repo.builtin.build_systems": types.ModuleType("build_systems"),
                 "spack_repo.builtin.build_systems.cmake": base}
        sys.modules.update(stubs)
        names = {}
        exec(compile(path.read_text(), str(path), "exec"), names)
        for name in stubs:
            del sys.modules[name]
        self.package = names["Nlaunch"]

    def of(self, directive):
        return [(words, options) for name, words, options in self.said if name == directive]


class Packaging(unittest.TestCase):
    def test_conda(self):
        recipe = yaml.safe_load((RECIPES / "conda/recipe.yaml").read_text())
        self.assertEqual(recipe["context"]["version"], VERSION)
        self.assertEqual((RECIPES / "conda" / recipe["source"]["path"]).resolve(), SOURCE.resolve())
        named = recipe["requirements"]["build"] + recipe["requirements"]["host"]
        self.assertEqual({name if name.startswith("$") else name.split()[0] for name in named}, wanted(0))
        self.options_exist(" ".join(recipe["build"]["script"]))

    @unittest.skipUnless(RATTLER, "no py-rattler-build here: scripts/test.sh fetches it, or set NLAUNCH_TEST_RATTLER")
    def test_conda_as_rattler_build_reads_it(self):
        script = """
import sys
from rattler_build import PlatformConfig, RenderConfig, Stage0Recipe, VariantConfig
recipe = Stage0Recipe.from_file(sys.argv[1])
variants = VariantConfig.from_yaml("c_compiler: [gcc]\\ncxx_compiler: [gxx]\\nc_stdlib: [sysroot]\\n")
for platform in ("linux-64", "linux-aarch64"):
    for made in recipe.render(variants, RenderConfig(platform=PlatformConfig(target_platform=platform))):
        print(platform, made.recipe.package.name, made.recipe.package.version, len(made.recipe.requirements.to_dict()["host"]))
"""
        done = subprocess.run([RATTLER, "-c", script, RECIPES / "conda/recipe.yaml"], capture_output=True, text=True, timeout=60)
        host = len(yaml.safe_load((RECIPES / "conda/recipe.yaml").read_text())["requirements"]["host"])
        expected = "".join(f"{platform} nlaunch {VERSION} {host}\n" for platform in ("linux-64", "linux-aarch64"))
        self.assertEqual(done.stdout, expected, done.stderr)

    def test_spack(self):
        recipe = Directives(RECIPES / "spack/package.py")
        self.assertEqual([words[0] for words, _ in recipe.of("version")], [VERSION])
        named = {re.match(r"[\w-]+", words[0])[0] for words, options in recipe.of("depends_on") if not options.get("when")}
        named |= {words[0] for words, _ in recipe.of("generator")}
        self.assertEqual(named, wanted(1))
        self.options_exist(" ".join(recipe.package().cmake_args()))

    def options_exist(self, arguments):
        declared = "".join((SOURCE / path).read_text() for path in ("CMakeLists.txt", "src/probe/CMakeLists.txt"))
        for option in re.findall(r"-D(NLAUNCH_\w+)", arguments):
            self.assertIn(f"option({option} ", declared)

    def test_apptainer(self):
        text = (RECIPES / "apptainer/nlaunch.def").read_text()
        header, *sections = re.split(r"^%(\w+)\n", text, flags=re.M)
        self.assertRegex(header, r"\ABootstrap: docker\nFrom: \S+\n")
        parts = dict(zip(sections[::2], sections[1::2]))
        self.assertEqual(list(parts), ["files", "post", "environment", "runscript", "test", "labels"])
        archive, inside = parts["files"].split()
        self.assertEqual(archive, f"nlaunch-{VERSION}-linux-x86_64.tar.zst")
        self.assertIn(f"tar --zstd -xf {inside} ", parts["post"])
        for name in ("post", "environment", "runscript", "test"):
            done = subprocess.run(["sh", "-n"], input=parts[name], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main()

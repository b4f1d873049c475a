#!/usr/bin/env python3
"""Holds the archives of a release against what they promise: scripts/release/check.py ARCHIVE...

Read from the ELF files themselves: the architecture, the newest version of glibc that a symbol is wanted of, and the
libraries that the loader would look for. Then the size of the folder, its files, and that nothing names a build path.
"""
import pathlib
import re
import struct
import subprocess
import sys
import tarfile
import tempfile

MACHINES = {"x86_64": 62, "aarch64": 183}
GLIBC = re.compile(r"(libc|libm|libpthread|libdl|librt)\.so\.\d|ld-linux-(x86-64|aarch64)\.so\.\d")
# Before glibc 2.34 the others are apart; the scope library must not bring them into other people's programs.
LIBC_ALONE = re.compile(r"libc\.so\.6")
NEWEST = (2, 28)
NEWEST_OF_SCOPE = (2, 17)  # it enters other people's processes and containers
# Of an anonymous namespace in device code: nvcc makes the eight digits of the source's path, and another folder gives others.
NAMED_AFTER_PATH = re.compile(rb"_GLOBAL__N__[0-9a-f]{8}_\d+_(\w+)_cu_")
MOST_BYTES = 64 * 1024 * 1024
PROGRAMS = ["bin/nlaunch", "bin/nlaunch-probe", "lib/libnlaunch-scope.so"]
FILES = PROGRAMS + ["lib/libnlaunch-gloo.so", "share/nlaunch/sites/common.yaml", "share/nlaunch/templates/slurm.sbatch",
                    "share/nlaunch/configs/quickstart.yaml", "share/nlaunch/schema/experiment.json",
                    "share/bash-completion/completions/nlaunch", "share/nlaunch/completion/nlaunch.zsh",
                    "share/man/man1/nlaunch.1", "share/man/man1/nlaunch-run.1",
                    "share/nlaunch/docs/README.md", "share/nlaunch/LINKED.md", "share/nlaunch/LICENSE", "share/nlaunch/licences"]


class Elf:
    """A 64-bit little-endian ELF file: `machine`, `needed` (names), `wants` (library, version), `sections`, `run_paths`."""

    def __init__(self, data):
        self.data = data
        if data[:6] != b"\x7fELF\x02\x01":
            raise ValueError("not a 64-bit little-endian ELF file")
        (self.machine,) = struct.unpack_from("<H", data, 18)
        (table,) = struct.unpack_from("<Q", data, 40)
        size, count, names = struct.unpack_from("<HHH", data, 58)
        self._headers = [struct.unpack_from("<IIQQQQIIQQ", data, table + i * size) for i in range(count)]
        self.sections = [self._text(self._headers[names][4], header[0]) for header in self._headers]
        self.needed, self.run_paths = self._dynamic()
        self.wants = self._versions()

    def _text(self, start, offset):
        return self.data[start + offset:self.data.index(b"\0", start + offset)].decode()

    def _of_type(self, kind):
        for header in self._headers:
            if header[1] == kind:
                yield header, self._headers[header[6]][4]

    def _dynamic(self):
        found = {1: [], 15: [], 29: []}  # DT_NEEDED, DT_RPATH, DT_RUNPATH
        for header, strings in self._of_type(6):  # SHT_DYNAMIC
            for at in range(header[4], header[4] + header[5], 16):
                tag, value = struct.unpack_from("<QQ", self.data, at)
                if tag in found:
                    found[tag].append(self._text(strings, value))
        return found[1], found[15] + found[29]

    def _versions(self):
        wants = []
        for header, strings in self._of_type(0x6FFFFFFE):  # SHT_GNU_verneed
            at = header[4]
            for _ in range(header[7]):
                _, count, library, auxiliary, following = struct.unpack_from("<HHIII", self.data, at)
                entry = at + auxiliary
                for _ in range(count):
                    _, _, _, name, step = struct.unpack_from("<IHHII", self.data, entry)
                    wants.append((self._text(strings, library), self._text(strings, name)))
                    entry += step
                at += following
        return wants


def problems_of_elf(name, data, machine, newest, allowed=GLIBC):
    """What is wrong with the ELF file `name`, one sentence each."""
    elf = Elf(data)
    if elf.machine != machine:
        yield f"{name}: is for ELF machine {elf.machine}, not {machine}"
    for library in elf.needed:
        if not allowed.fullmatch(library):
            yield f"{name}: needs {library}"
    for library, version in sorted(set(elf.wants)):
        number = re.fullmatch(r"GLIBC_(\d+)\.(\d+)(\.\d+)?", version)
        if not number:
            yield f"{name}: wants {version} of {library}"
        elif (int(number[1]), int(number[2])) > newest:
            yield f"{name}: wants {version} of {library}, the newest allowed is GLIBC_{newest[0]}.{newest[1]}"
    for path in elf.run_paths:
        if any(part and not part.startswith("$ORIGIN") for part in path.split(":")):
            yield f"{name}: looks for libraries in {path}"
    for section in (".symtab", ".debug_info"):
        if section in elf.sections:
            yield f"{name}: has {section}: it is not stripped"
    for source in sorted({match[1].decode() for match in NAMED_AFTER_PATH.finditer(data)}):
        yield f"{name}: {source}.cu has device code in an anonymous namespace, whose name depends on the folder it was built in"


def problems_of_tree(root, arch, build_path):
    """What is wrong with the unpacked release `root` for `arch`, one sentence each."""
    for file in FILES:
        if not (root / file).exists():
            yield f"{file}: is missing"
    total = 0
    for path in sorted(root.rglob("*")):
        if path.is_symlink() or not path.is_file():
            continue
        name = str(path.relative_to(root))
        data = path.read_bytes()
        total += len(data)
        if build_path.encode() in data:
            yield f"{name}: names the folder that it was built in, {build_path}"
        if data[:4] == b"\x7fELF":
            rules = (NEWEST_OF_SCOPE, LIBC_ALONE) if "libnlaunch-scope" in name else (NEWEST, GLIBC)
            yield from problems_of_elf(name, data, MACHINES[arch], *rules)
    if total > MOST_BYTES:
        yield f"the folder has {total} bytes, at most {MOST_BYTES} are allowed"


def problems_of_archive(archive, build_path):
    arch = re.fullmatch(r"nlaunch-[\d.]+-linux-(\w+)\.tar\.zst", archive.name)
    if not arch or arch[1] not in MACHINES:
        yield f"{archive.name}: is not named nlaunch-VERSION-linux-ARCH.tar.zst"
        return
    with tempfile.TemporaryDirectory() as folder:
        unpack = subprocess.Popen(["zstd", "-dcq", archive], stdout=subprocess.PIPE)
        with tarfile.open(fileobj=unpack.stdout, mode="r|") as tar:
            tar.extractall(folder)
        if unpack.wait() != 0:
            yield "zstd cannot unpack it"
            return
        root = pathlib.Path(folder, archive.name.removesuffix(".tar.zst"))
        if not root.is_dir():
            yield f"has no folder {root.name}"
            return
        yield from problems_of_tree(root, arch[1], build_path)


def main(archives):
    found = 0
    build_path = str(pathlib.Path(__file__).resolve().parents[2])
    for archive in map(pathlib.Path, archives):
        problems = list(problems_of_archive(archive, build_path))
        for problem in problems:
            print(f"{archive}: {problem}", file=sys.stderr)
        if not problems:
            print(f"{archive}: as promised ({archive.stat().st_size} bytes)")
        found += len(problems)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

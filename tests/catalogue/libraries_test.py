#!/usr/bin/env python3
"""The catalogue against the libraries of this machine: what they read, by their own strings and words."""
import ctypes
import ctypes.util
import glob
import json
import os
import pathlib
import re
import subprocess
import unittest

SOURCE = pathlib.Path(os.environ.get("NLAUNCH_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
BUILD = pathlib.Path(os.environ.get("NLAUNCH_BUILD", SOURCE / "build"))

# Whole strings of libnccl that look like variables and are the words for constants: levels and subsystems of the log,
# kinds of network devices, tags, types of handles.
CONSTANTS = re.compile(
    r"NCCL_(LOG_\w+|NET_DEVICE_\w+|GIN_TYPE_\w+|GIN_CONNECTION_\w+|GIN_IB_\w+_TAG|IPC_(COLLECTIVE|SENDRECV)|IB_(SL|TC)_DEFAULT|"
    r"\w+_INITIALIZER|ALL|ALLOC|ALLOC_HOST|BOOTSTRAP|CALL|COLL|DESTROY|ENV|GRAPH|INIT|NET|NVLS|P2P|PROFILE|PROXY|RAS|REG|"
    r"SHM|TUNING)")


def find_nccl():
    named = os.environ.get("NLAUNCH_TEST_LIBNCCL")
    places = [named] if named else [
        "/usr/local/cuda/lib/libnccl.so.2", *glob.glob("/usr/local/cuda-*/lib*/libnccl.so.2"),
        *glob.glob("/usr/lib/*/libnccl.so.2"), *glob.glob("/usr/lib64/libnccl.so.2")]
    return next((path for path in places if os.path.exists(path)), None)


def number(release):
    return tuple(map(int, release.split(".")))


def read_by(pattern, owner, release):
    """The names that a release reads, as the catalogue has it. `release` may be shorter than those of the catalogue."""
    listed = json.loads(subprocess.run([BUILD / "bin" / "nlaunch", "env", "--list", pattern, "--json"], check=True,
                                       capture_output=True, text=True, timeout=60).stdout)
    length = len(release)
    return {variable["name"] for variable in listed if variable["owner"] == owner
            and (not variable["first"] or number(variable["first"])[:length] <= release)
            and (not variable["last"] or release <= number(variable["last"])[:length])}


def newest(table):
    text = (SOURCE / "src" / "lint" / "variables" / table).read_text()
    return number(re.search(r"^# newest: (.*)$", text, re.M)[1])


class Libraries(unittest.TestCase):
    maxDiff = None

    def test_nccl_reads_what_the_catalogue_says(self):
        library = find_nccl()
        if library is None:
            self.skipTest("no libnccl here (NLAUNCH_TEST_LIBNCCL names one)")
        code = ctypes.c_int()
        ctypes.CDLL(library).ncclGetVersion(ctypes.byref(code))
        release = (code.value // 10000, code.value // 100 % 100, code.value % 100)
        if release > newest("nccl.tsv"):
            self.skipTest(f"{library} is {release}, newer than the catalogue: scripts/update-catalogue.py")
        data = pathlib.Path(library).read_bytes()
        strings = {match[1].decode() for match in re.finditer(rb"(NCCL_[A-Z0-9_]+)\0", data) if data[match.start() - 1] == 0}
        known = read_by("NCCL_*", "NCCL", release)
        # The compiler joins NCCL_PARAM's "NCCL_" to the name, so each name is a whole string of the library.
        self.assertEqual({name for name in strings if not CONSTANTS.fullmatch(name)} - known, set(), "not in the catalogue")
        self.assertEqual(known - strings, set(), f"the catalogue says that {library} reads them")

    def test_libfabric_defines_what_the_catalogue_says(self):
        path = ctypes.util.find_library("fabric")
        if path is None:
            self.skipTest("no libfabric here")
        library = ctypes.CDLL(path)

        class Parameter(ctypes.Structure):
            _fields_ = [("name", ctypes.c_char_p), ("type", ctypes.c_int), ("help", ctypes.c_char_p), ("value", ctypes.c_char_p)]

        library.fi_version.restype = ctypes.c_uint32
        version = library.fi_version()
        release = (version >> 16, version & 0xFFFF)  # it does not tell the patch
        if release > newest("libfabric.tsv")[:2]:
            self.skipTest(f"{path} is {release}, newer than the catalogue: scripts/update-catalogue.py")
        parameters, count = ctypes.POINTER(Parameter)(), ctypes.c_int()
        self.assertEqual(library.fi_getparams(ctypes.byref(parameters), ctypes.byref(count)), 0)
        defined = {parameters[i].name.decode() for i in range(count.value)}
        library.fi_freeparams(parameters)
        known = read_by("FI_*", "libfabric", release)
        self.assertGreater(len(defined), 50)
        self.assertEqual(defined - known, set(), "not in the catalogue")
        # A build has some of the providers; of one that it has, it has every variable, but for those of debug builds.
        providers = {"FI_SOCKETS_", "FI_OFI_RXM_", "FI_MR_CACHE_", "FI_LOG_"}
        built = {p for p in providers if any(name.startswith(p) for name in defined)}
        debug = {"FI_SOCKETS_DGRAM_DROP_RATE"}
        self.assertEqual({name for name in known if name.startswith(tuple(built))} - defined - debug, set(),
                         f"the catalogue says that {path} reads them")


if __name__ == "__main__":
    unittest.main()

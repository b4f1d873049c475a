#!/usr/bin/env python3
"""scripts/update-catalogue.py on small made-up releases."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ.get("NLAUNCH_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
TITLES = "name\tfirst\tlast\ttype\tvalues\tdefault\thistory\tinstead\tmeaning\tsource\n"

NCCL_TABLE = "# owner: NCCL\n# newest: 2.30.7\n# families: NCCL_\n" + TITLES + """\
NCCL_BUFFSIZE\t\t\tinteger\t\t4194304\t4194304 (2.3.5), -2 (2.6.4)\t\tBytes.\tsrc/init.cc@2.30.7
NCCL_DEBUG\t\t\tchoice\tWARN|INFO\tnothing\t\t\tHow much.\tsrc/debug.cc@2.30.7
NCCL_GONE\t2.20.3\t\tinteger\t\t0\t\t\tGone.\tsrc/init.cc@2.30.7
NCCL_OLD\t\t2.4.8\tinteger\t\t0\t\t\tOld.\tsrc/init.cc@2.4.8
NCCL_TIMER\t2.23.4\t\tinteger\t\t20\t\t\tTime.\tsrc/init.cc@2.30.7
"""
NCCL_SOURCES = {
    "src/init.cc": """
#define TIMER_DEFAULT (1 << 5)
// NCCL_PARAM(Comment, "COMMENT", 1);
NCCL_PARAM(Buffsize, "BUFFSIZE", -2);
NCCL_PARAM(Timer, "TIMER", TIMER_DEFAULT);
NCCL_PARAM(Fresh, "FRESH", 64 * 1024);
DEFINE_NCCL_PARAM(ncclParamTyped, bool, NCCL_TYPED, false, NONE, DEFAULT, "text, with a (comma");
""",
    "src/debug.cc": 'const char* level = ncclGetEnv("NCCL_DEBUG"); INFO("NCCL_NOT_READ is a word here");',
    "src/include/nvtx3/x.h": 'getenv("NCCL_ELSEWHERE")',
}
NCCL_SAYS = """\
NCCL_FRESH is new: write its meaning, and see to its type and values (src/init.cc@2.31.1)
NCCL_TIMER has another default, 32 after 20: see what its row says (src/init.cc@2.31.1)
NCCL_TYPED is new: write its meaning, and see to its type and values (src/init.cc@2.31.1)
NCCL_GONE is not read any more: write what is to be used instead, if anything
"""
NCCL_AFTER = "# owner: NCCL\n# newest: 2.31.1\n# families: NCCL_\n" + TITLES + """\
NCCL_BUFFSIZE\t\t\tinteger\t\t4194304\t4194304 (2.3.5), -2 (2.6.4)\t\tBytes.\tsrc/init.cc@2.30.7
NCCL_DEBUG\t\t\tchoice\tWARN|INFO\tnothing\t\t\tHow much.\tsrc/debug.cc@2.30.7
NCCL_FRESH\t2.31.1\t\tinteger\t\t65536\t\t\tunwritten\tsrc/init.cc@2.31.1
NCCL_GONE\t2.20.3\t2.30.7\tinteger\t\t0\t\t\tGone.\tsrc/init.cc@2.30.7
NCCL_OLD\t\t2.4.8\tinteger\t\t0\t\t\tOld.\tsrc/init.cc@2.4.8
NCCL_TIMER\t2.23.4\t\tinteger\t\t32\t20 (2.23.4), 32 (2.31.1)\t\tTime.\tsrc/init.cc@2.31.1
NCCL_TYPED\t2.31.1\t\tboolean\t\t0\t\t\tunwritten\tsrc/init.cc@2.31.1
"""


class Update(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="nlaunch-catalogue-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.sources = self.folder / "sources"
        self.tables = self.folder / "tables"
        self.tables.mkdir()

    def write(self, files):
        for name, text in files.items():
            path = self.sources / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def table(self, name, text=None):
        path = self.tables / name
        if text is not None:
            path.write_text(text)
        return path.read_text()

    def update(self, *arguments):
        return subprocess.run([sys.executable, SOURCE / "scripts" / "update-catalogue.py", "--tables", self.tables,
                               *map(str, arguments)], capture_output=True, text=True, timeout=60)

    def git(self, *arguments):
        subprocess.run(["git", "-C", self.sources, "-c", "user.name=a", "-c", "user.email=a@b", *arguments], check=True,
                       capture_output=True)

    def test_a_folder_of_sources(self):
        self.table("nccl.tsv", NCCL_TABLE)
        self.write(NCCL_SOURCES)
        result = self.update("nccl", self.sources, "2.31.1")
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, NCCL_SAYS, ""))
        self.assertEqual(self.table("nccl.tsv"), NCCL_AFTER)
        again = self.update("nccl", self.sources, "2.31.1")
        self.assertEqual((again.returncode, again.stdout), (0, ""))
        self.assertEqual(self.table("nccl.tsv"), NCCL_AFTER)

    def test_the_newest_tag_of_a_repository(self):
        self.table("nccl.tsv", NCCL_TABLE)
        self.write(NCCL_SOURCES)
        subprocess.run(["git", "init", "-q", self.sources], check=True)
        self.git("commit", "-q", "--allow-empty", "-m", "before")
        self.git("tag", "v2.9.9-1")
        self.git("add", ".")
        self.git("commit", "-q", "-m", "sources")
        self.git("tag", "v2.31.1-1")
        self.git("tag", "nccl4py-v9.9.9")
        result = self.update("nccl", self.sources)
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, NCCL_SAYS, ""))
        self.assertEqual(self.table("nccl.tsv"), NCCL_AFTER)

    def test_libfabric_names_are_those_of_their_providers(self):
        self.table("libfabric.tsv", "# owner: libfabric\n# newest: 2.6.0\n" + TITLES)
        self.write({
            "include/ofi_util.h": '#define OFI_UTIL_PREFIX "ofi_"\n',
            "src/fabric.c": 'fi_param_define(NULL, "universe_size", FI_PARAM_SIZE_T, "Help (default: 1)");',
            "prov/rxm/src/rxm_init.c": 'fi_param_define(&rxm_prov, "tx_size", FI_PARAM_SIZE_T, "Help");\n'
                                       'struct fi_provider rxm_prov = {\n\t.name = OFI_UTIL_PREFIX "rxm",\n};\n',
            "prov/cxi/include/cxip.h": "#define CXIP_DEFAULT 1024U\n",
            "prov/cxi/src/cxip_info.c": 'char cxip_prov_name[] = "cxi";\nstruct cxip_environment cxip_env = {\n'
                                        '\t.tx_size = CXIP_DEFAULT,\n\t.odp = false,\n};\n'
                                        'struct fi_provider cxip_prov = {\n\t.name = cxip_prov_name,\n};\n'
                                        'fi_param_define(&cxip_prov, "tx_size", FI_PARAM_SIZE_T, "Help, %d", cxip_env.tx_size);\n'
                                        'fi_param_define(&cxip_prov, "odp", FI_PARAM_BOOL, "Help");\n',
            "prov/cxi/test/odp.c": 'getenv("FI_CXI_TEST_ONLY");',
        })
        result = self.update("libfabric", self.sources, "v2.7.0")
        self.assertEqual(result.returncode, 0, result.stderr)
        rows = [line.split("\t")[:6] for line in self.table("libfabric.tsv").splitlines()[3:]]
        self.assertEqual(rows, [["FI_CXI_ODP", "2.7.0", "", "boolean", "", "0"],
                                ["FI_CXI_TX_SIZE", "2.7.0", "", "integer", "", "1024"],
                                ["FI_OFI_RXM_TX_SIZE", "2.7.0", "", "integer", "", ""],
                                ["FI_UNIVERSE_SIZE", "2.7.0", "", "integer", "", ""]])

    def test_the_plugin_for_aws(self):
        self.table("aws-ofi-nccl.tsv", "# owner: aws-ofi-nccl\n# newest: 1.21.1\n" + TITLES)
        self.write({"include/nccl_ofi_param.h": 'OFI_NCCL_PARAM_VALUE_SET(PROTOCOL, (SENDRECV)(RDMA))\n'
                                                'OFI_NCCL_PARAM(PROTOCOL, protocol, "PROTOCOL", PROTOCOL::SENDRECV)\n'
                                                'OFI_NCCL_PARAM(bool, flush, "FLUSH",\n#if X\ntrue\n#else\nfalse\n#endif\n);\n'
                                                'OFI_NCCL_PARAM_INT(count, "COUNT", (2 * 8));\n'})
        result = self.update("aws-ofi-nccl", self.sources, "v1.22.0-aws")
        self.assertEqual(result.returncode, 0, result.stderr)
        rows = [line.split("\t")[:6] for line in self.table("aws-ofi-nccl.tsv").splitlines()[3:]]
        self.assertEqual(rows, [["OFI_NCCL_COUNT", "1.22.0", "", "integer", "", "16"],
                                ["OFI_NCCL_FLUSH", "1.22.0", "", "boolean", "", ""],
                                ["OFI_NCCL_PROTOCOL", "1.22.0", "", "choice", "SENDRECV|RDMA", "SENDRECV"]])

    def test_what_cannot_be_done_is_said(self):
        self.table("nccl.tsv", NCCL_TABLE)
        self.write(NCCL_SOURCES)
        empty = self.folder / "empty"
        empty.mkdir()
        for arguments, said in (
                (("nccl", self.sources, "2.29.2"), "nccl.tsv knows 2.30.7; 2.29.2 is older\n"),
                (("nccl", self.sources, "newest"), "'newest' names no release: 2.31.1 or v2.31.1-1 would\n"),
                (("nccl", empty, "2.31.1"), f"{empty} has no variable of nccl: is it the right folder?\n")):
            result = self.update(*arguments)
            self.assertEqual((result.returncode, result.stderr), (1, said))
        result = self.update("nccl", self.sources)
        self.assertIn("a folder of sources does not say which release it is: name it", result.stderr)
        self.assertEqual(self.table("nccl.tsv"), NCCL_TABLE)


if __name__ == "__main__":
    unittest.main()

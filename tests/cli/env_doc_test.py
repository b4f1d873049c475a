#!/usr/bin/env python3
"""`nlaunch env --doc` and `--list`: what is known of variables, as whole outputs."""
import json
import unittest

from harness import CliTest

CROSS_NIC = """\
NCCL_CROSS_NIC: Whether a ring or tree may use different NICs on different nodes: 0 never (rails), 1 yes, 2 where that is \
faster.
read by   NCCL
releases  since 2.5.6; newest known: 2.30.7
value     one of 0, 1, 2
default   2
source    src/graph/search.cc@2.30.7
"""

MATCH_MODE = """\
FI_CXI_RX_MATCH_MODE: Who matches messages with receives: the NIC, the CPU, or the NIC until it has no room; any other \
word is treated as hardware.
read by   libfabric
releases  all; newest known: 2.6.0
value     one of hardware, software, hybrid (case-sensitive)
default   hardware
source    prov/cxi/src/cxip_info.c@2.6.0
"""

CUMEM = """\
NCCL_CUMEM_ENABLE: Whether GPU memory is allocated with the cuMem calls: 0 no, 1 yes, -2 where the driver can; it must be the \
same on all ranks of a communicator.
read by   NCCL
releases  since 2.18.1; newest known: 2.30.7
value     one of -2, 0, 1
default   -2
defaults  0 (2.18.1), -2 (2.19.1)
source    src/misc/cudawrap.cc@2.30.7
"""

TWO_READERS = """\
CUDA_LAUNCH_BLOCKING: 1 makes every launch wait for completion, which shows where an error is and hides races.
read by  CUDA
value    0 or 1
default  0
source   docs.nvidia.com/cuda/cuda-programming-guide, environment variables

CUDA_LAUNCH_BLOCKING: Read to know whether CUDA launches block: with 1 NCCL does not overlap what it would otherwise overlap.
read by   NCCL
releases  since 2.17.1; newest known: 2.30.7
value     0 or 1
source    src/misc/cudawrap.cc@2.30.7
"""


class EnvDoc(CliTest):
    def says(self, arguments, code, stdout, stderr=""):
        result = self.nlaunch("env", *arguments)
        self.assertEqual((result.returncode, result.stdout, result.stderr), (code, stdout, stderr))

    def test_all_that_is_known_of_a_variable(self):
        for name, text in (("NCCL_CROSS_NIC", CROSS_NIC), ("nccl_cross_nic", CROSS_NIC), ("FI_CXI_RX_MATCH_MODE", MATCH_MODE),
                           ("NCCL_CUMEM_ENABLE", CUMEM), ("CUDA_LAUNCH_BLOCKING", TWO_READERS)):
            with self.subTest(name):
                self.says(["--doc", name], 0, text)

    def test_what_replaced_a_variable(self):
        self.says(["--doc", "NCCL_TREE_THRESHOLD"], 0, """\
NCCL_TREE_THRESHOLD: Bytes up to which trees were used; the tuning model decides now.
read by   NCCL
releases  2.4.2 to 2.4.8 (removed)
value     a number
default   -2
instead   NCCL_ALGO
source    src/init.cc@2.4.8
""")

    def test_a_name_that_nothing_reads(self):
        self.says(["--doc", "NCCL_NVLINK_DISABLE"], 65, "", """\
nlaunch env: nothing reads NCCL_NVLINK_DISABLE: no release of NCCL has ever read it
instead: NCCL_P2P_DISABLE, or NCCL_P2P_LEVEL
source: the sources of NCCL 2.3.5 to 2.30.7 do not have the name
""")
        self.says(["--doc", "NCCL_DEBGU"], 65, "",
                  "nlaunch env: unknown variable NCCL_DEBGU; no NCCL up to 2.30.7 reads it: did you mean NCCL_DEBUG?\n")
        self.says(["--doc", "MY_OWN\x1b"], 65, "", "nlaunch env: unknown variable MY_OWN\\x1b\n")

    def test_json_of_a_variable(self):
        result = self.nlaunch("env", "--doc", "NCCL_LAUNCH_MODE", "--json")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertEqual(json.loads(result.stdout), [{
            "name": "NCCL_LAUNCH_MODE", "owner": "NCCL", "first": None, "last": None, "type": "choice",
            "values": [{"value": "PARALLEL", "since": None}, {"value": "GROUP", "since": None}], "any_case": True,
            "default": "PARALLEL", "history": "", "instead": "",
            "meaning": "How kernels on several GPUs of one process start: each by itself, or GROUP for all at once.",
            "source": "src/init.cc@2.30.7"}])
        result = self.nlaunch("env", "--doc", "NCCL_DEBGU", "--json")
        self.assertEqual((result.returncode, json.loads(result.stdout)),
                         (65, {"name": "NCCL_DEBGU", "mistake": None, "nearest": "NCCL_DEBUG"}))
        result = self.nlaunch("env", "--doc", "NCCL_FORCE_FLUSH", "--json")
        self.assertEqual((result.returncode, json.loads(result.stdout)["mistake"]["instead"]), (65, "NCCL_NET_FORCE_FLUSH"))

    def test_a_list(self):
        self.says(["--list", "nvb_"], 0, """\
variable             read by  releases     meaning
NCCL_NVB_DISABLE     NCCL     since 2.9.9  1 keeps data from going over NVLink through a third GPU.
NCCL_NVB_PRECONNECT  NCCL     since 2.9.9  1 connects GPUs that reach each other through a third one when the communicator \
is created.
""")
        self.says(["--list", "NCCL_R?NGS"], 0, """\
variable    read by  releases               meaning
NCCL_RINGS  NCCL     up to 2.4.8 (removed)  Rings to use, as lists of ranks; replaced by a graph file.
""")
        self.says(["--list", "no such thing"], 65, "", "nlaunch env: no known variable matches 'no such thing'\n")

    def test_a_list_of_all(self):
        result = self.nlaunch("env", "--list")
        names = [line.split()[0] for line in result.stdout.splitlines()[1:]]
        self.assertEqual((result.returncode, names), (0, sorted(names)))
        self.assertGreater(len(names), 1000)
        listed = self.nlaunch("env", "--list", "*", "--json")
        self.assertEqual([variable["name"] for variable in json.loads(listed.stdout)], names)

    def test_what_is_missing_and_what_is_too_much(self):
        for arguments, said in (
                ([], "EXPERIMENT (or --doc NAME, --list for known variables) is required"),
                (["--role", "learner"], "EXPERIMENT (or --doc NAME, --list for known variables) is required"),
                (["configs/grpo.yaml"], "--role is required"),
                (["--doc", "NCCL_DEBUG", "--role", "learner"], "--doc excludes --role"),
                (["--list", "--explain", "NCCL_DEBUG"], "--list excludes --explain"),
                (["--doc", "NCCL_DEBUG", "--list"], "--doc excludes --list")):
            with self.subTest(arguments):
                self.says(arguments, 64, "", f"nlaunch env: {said}\nsee nlaunch env --help\n")


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/env python3
"""The shipped profiles: what each overlay sets on each of them, where files of NCCL and PyTorch go, who tried them; and the
profiles of others: `sites check` and `sites init`."""
import json
import os
import re
import unittest

from harness import SOURCE, CliTest

PROFILES = sorted(path.stem for path in (SOURCE / "site-profiles").glob("*.yaml"))
NCCL_FILE = "${run.attempt_dir}/nccl/${self.name}.%h.%p.log"
RECORDER = {
    "TORCH_FR_BUFFER_SIZE": "2000", "TORCH_NCCL_TRACE_BUFFER_SIZE": "2000",
    "TORCH_FR_DUMP_ON_TIMEOUT": "1", "TORCH_NCCL_DUMP_ON_TIMEOUT": "1",
    "TORCH_FR_DUMP_TEMP_FILE": "${run.attempt_dir}/nccl/flight-recorder.",
    "TORCH_NCCL_DEBUG_INFO_TEMP_FILE": "${run.attempt_dir}/nccl/flight-recorder.",
}
TORCH = {"TORCH_CPP_LOG_LEVEL": "INFO", "TORCH_SHOW_CPP_STACKTRACES": "1"}
# For every role, and for learners in addition; the same on every profile.
OVERLAYS = {
    "nccl-debug": ({"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,NET,ENV", "NCCL_DEBUG_FILE": NCCL_FILE}, {}),
    "nccl-tuning": ({"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,ENV,GRAPH,TUNING", "NCCL_DEBUG_FILE": NCCL_FILE}, {}),
    "flight-recorder": ({}, RECORDER),
    "torch-debug": ({**TORCH, "TORCH_DISTRIBUTED_DEBUG": "DETAIL"}, {}),
    "timeout-hunt": ({"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,BOOTSTRAP,ENV,NET,COLL", "NCCL_DEBUG_FILE": NCCL_FILE,
                      **TORCH, "TORCH_DISTRIBUTED_DEBUG": "INFO"},
                     {**RECORDER, "TORCH_NCCL_DESYNC_DEBUG": "1", "TORCH_NCCL_ENABLE_TIMING": "1"}),
    "gloo": ({}, {}),
    "safe-protocols": ({"NCCL_PROTO": "Simple"}, {}),
    "no-ll128": ({"NCCL_PROTO": "^LL128"}, {}),
    "ray-large": ({}, {}),
}
OWN_OVERLAYS = {"alps": {"p2p-channels"}, "efa": {"no-huge-pages", "libfabric-debug"}, "pcie-box": {"no-p2p"},
                "slingshot11": {"no-gdrcopy", "libfabric-debug"}}
EXPERIMENT = """version: 1
name: probe
nodes: {nodes}
weight_sync: {{backend: {backend}}}
roles:
  learner: {{kind: learner, command: [sync, "${{weight_sync.backend}}"], env: {{TORCH_NCCL_BLOCKING_WAIT: "1"}}}}
  engine: {{kind: engine, command: ["true"]}}
"""


class Profiles(CliTest):
    def experiment(self, nodes=1):
        path = self.folder / f"experiment-{nodes}.yaml"
        path.write_text(EXPERIMENT.format(nodes=nodes, backend="gloo"))
        return path

    def environment(self, site, role, *arguments, nodes=1):
        """What a role gets of NCCL's, PyTorch's and libfabric's variables."""
        done = self.nlaunch("env", self.experiment(nodes), "--site", site, "--role", role, "--json", *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return {name: value for name, value in json.loads(done.stdout).items()
                if name.startswith(("NCCL_", "TORCH_", "FI_", "GLOO_", "MPICH_"))}

    def operations(self, site, nodes=1):
        done = self.nlaunch("plan", self.experiment(nodes), "--site", site, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)["roles"][0]["env"]

    def test_each_overlay_sets_the_same_everywhere(self):
        for site in PROFILES:
            plain = {role: self.environment(site, role) for role in ("learner", "engine")}
            self.assertEqual(plain["engine"]["NCCL_DEBUG"], "WARN", site)
            for overlay, (for_all, for_learners) in OVERLAYS.items():
                unset = {"TORCH_NCCL_BLOCKING_WAIT"} if for_learners else set()
                for role, added in (("learner", {**for_all, **for_learners}), ("engine", for_all)):
                    with self.subTest(site=site, overlay=overlay, role=role):
                        wanted = {**plain[role], **added}
                        for name in unset if role == "learner" else ():
                            del wanted[name]
                        self.assertEqual(self.environment(site, role, "--with", overlay), wanted)

    def test_every_profile_has_them_and_those_of_its_own(self):
        inherited = {"isambard": "slingshot11", "alps": "slingshot11"}
        for site in PROFILES:
            own = OWN_OVERLAYS.get(site, set()) | OWN_OVERLAYS.get(inherited.get(site), set())
            shown = self.nlaunch("sites", site).stdout
            self.assertEqual(set(re.findall(r"^overlay +(\S+)$", shown, re.M)), set(OVERLAYS) | own, site)

    def test_overlays_of_one_profile(self):
        cases = {("alps", "p2p-channels"): {"NCCL_NCHANNELS_PER_NET_PEER": "4"},
                 ("efa", "no-huge-pages"): {"FI_EFA_USE_HUGE_PAGE": "0"},
                 ("efa", "libfabric-debug"): {"FI_LOG_LEVEL": "info", "FI_LOG_PROV": "efa"},
                 ("pcie-box", "no-p2p"): {"NCCL_P2P_DISABLE": "1"},
                 ("slingshot11", "no-gdrcopy"): {"NCCL_GDRCOPY_ENABLE": "0", "FI_HMEM_CUDA_USE_GDRCOPY": "0"},
                 ("slingshot11", "libfabric-debug"): {"FI_LOG_LEVEL": "info", "FI_LOG_PROV": "cxi"}}
        self.assertEqual({site: {o for s, o in cases if s == site} for site, _ in cases}, OWN_OVERLAYS)
        for (site, overlay), added in cases.items():
            with self.subTest(site=site, overlay=overlay):
                self.assertEqual(self.environment(site, "engine", "--with", overlay),
                                 {**self.environment(site, "engine"), **added})

    def test_gloo_reaches_the_program(self):
        path = self.folder / "experiment.yaml"
        path.write_text(EXPERIMENT.format(nodes=1, backend="nccl"))
        for site in PROFILES:
            done = self.nlaunch("plan", path, "--site", site, "--json", "--with", "gloo")
            plan = json.loads(done.stdout)
            self.assertEqual((plan["weight_sync"]["backend"], plan["roles"][0]["command"]), ("gloo", ["sync", "gloo"]), site)
            again = self.nlaunch("plan", path, "--site", site, "--json", "--with", "gloo", "--set", "weight_sync.backend=nccl")
            self.assertEqual(json.loads(again.stdout)["weight_sync"]["backend"], "nccl", "the command line wins")

    def test_what_several_nodes_want(self):
        for site in ("slingshot11", "isambard", "alps", "efa"):
            self.assertNotIn("NCCL_NET", self.environment(site, "learner"), site)
            self.assertEqual(self.environment(site, "learner", nodes=2)["NCCL_NET"], "AWS Libfabric", site)

    def test_ll128_is_left_out_where_the_version_wants_it(self):
        for site in ("slingshot11", "isambard", "alps"):
            rows = [op for op in self.operations(site, 2) if op["name"] == "NCCL_PROTO"]
            self.assertEqual([(op["value"], op["when"]) for op in rows],
                             [("^LL128", {"nodes": ">1", "library": {"nccl": ">=2.27.3"}})], site)
        self.assertNotIn("NCCL_PROTO", [op["name"] for op in self.operations("efa", 2)], "the plugin decides there")

    def test_the_sites_of_cscs_and_aws_differ_where_they_say_so(self):
        base = self.environment("slingshot11", "learner", nodes=2)
        self.assertEqual(self.environment("alps", "learner", nodes=2), {**base, "FI_CXI_DEFAULT_TX_SIZE": "16384"})
        efa = self.environment("efa", "learner", nodes=2)
        self.assertEqual({name: efa[name] for name in efa if name.startswith(("NCCL_", "FI_"))},
                         {"NCCL_DEBUG": "WARN", "NCCL_NET": "AWS Libfabric", "NCCL_SOCKET_IFNAME": "^docker,lo,veth,virbr",
                          "FI_PROVIDER": "efa"})

    def test_a_shadowed_profile_is_listed_only_if_it_says_something_else(self):
        for folder, text in (("one", "a"), ("two", "a"), ("three", "b")):
            (self.folder / folder).mkdir()
            (self.folder / folder / "ours.yaml").write_text(f"# {text}\nversion: 1\nname: ours\nextends: common\n")
        dirs = [f"--site-dir={self.folder / folder}" for folder in ("one", "two", "three")]
        rows = [line.split()[:3] for line in self.nlaunch("sites", *dirs).stdout.splitlines() if line.startswith("ours ")]
        self.assertEqual(rows, [["ours", "local", str(self.folder / "one/ours.yaml")], ["ours", str(self.folder / "three/ours.yaml"), "shadowed"]])

    def test_what_nobody_tried_says_so(self):
        done = self.nlaunch("sites")
        said = {line.split()[0]: "(not tested on its machine)" in line for line in done.stdout.splitlines()[1:]
                if "shadowed by the profile of the same name" not in line}
        tried = {"common", "local", "nvlink-box", "h200-nvlink"}
        self.assertEqual(said, {site: site not in tried for site in PROFILES})
        self.assertIn("base for AWS p4d and p5 with EFA, under Slurm (not tested on its machine)", self.nlaunch("sites", "efa").stdout)

    def test_every_profile_gives_sources(self):
        for site in PROFILES:
            text = (SOURCE / "site-profiles" / f"{site}.yaml").read_text()
            self.assertRegex(text, r"docs/measurements\.md|github\.com/|\(nccl, |\(gloo, ", site)

    def test_every_profile_expects_something_of_its_gpus(self):
        for site in sorted(set(PROFILES) - {"common", "local", "slingshot11"}):
            done = self.nlaunch("plan", self.experiment(), "--site", site, "--json")
            self.assertTrue(json.loads(done.stdout)["expected"]["all_reduce_busbw"], site)


class Check(CliTest):
    def check(self, text, *arguments):
        path = self.folder / "mine.yaml"
        path.write_text(text)
        done = self.nlaunch("sites", "check", path, *arguments)
        return done.returncode, done.stdout, self.normal(done.stderr)

    def test_what_comes_out_of_it(self):
        code, shown, said = self.check("version: 1\nname: mine\nextends: alps\nlibraries: {nccl: {path: /no/libnccl.so.2}}\n")
        self.assertEqual((code, said), (
            0, "note: on this machine library 'nccl' ($FOLDER/mine.yaml:4:26): no file matches '/no/libnccl.so.2'\n"))
        self.assertRegex(shown, r"(?m)^site +mine$")
        self.assertRegex(shown, r"(?m)^extends +alps → slingshot11 → common$")
        self.assertRegex(shown, r"(?m)^overlay +timeout-hunt$")
        self.assertEqual(self.check("version: 1\nextends: local\n", "--quiet"), (0, "", ""))

    def test_all_mistakes_in_one_pass(self):
        code, shown, said = self.check("version: 1\nnode: {gpus: four}\nmodules: {reset: maybe}\nscheduler: {kind: pbs}\n")
        self.assertEqual((code, shown, said), (
            65, "", "$FOLDER/mine.yaml:2:14: error: 'node.gpus' must be a whole number, found 'four' [config.type]\n"
                    "   2 | node: {gpus: four}\n     |              ^^^^\n\n"
                    "$FOLDER/mine.yaml:3:18: error: 'modules.reset' must be true or false, found 'maybe' [config.type]\n"
                    "   3 | modules: {reset: maybe}\n     |                  ^^^^^\n\n"
                    "$FOLDER/mine.yaml:4:19: error: 'scheduler.kind' must be one of slurm, beaker, flux, local, found 'pbs' [config.choice]\n"
                    "   4 | scheduler: {kind: pbs}\n     |                   ^^^\n\n3 errors\n"))

    def test_what_a_plan_would_refuse(self):
        code, shown, said = self.check(
            "version: 1\nscheduler: {kind: slurm, directives: {nodes: 4}}\n"
            "env: {set: {A: '${site.nme}'}}\noverlays: {b: {env: {B: '${run.folder}'}}}\n")
        self.assertEqual((code, shown), (65, ""))
        self.assertIn("mine.yaml:2:39: error: 'nodes' is set by nlaunch and cannot be set here [plan.slurm-owned]", said)
        self.assertIn("error: unknown name '${site.nme}': did you mean '${site.name}'? [plan.reference]", said)
        self.assertIn("error: unknown name '${run.folder}'", said)
        self.assertIn("3 errors\n", said)

    def test_what_is_legal_and_hardly_meant(self):
        cases = {
            "match: {hostname: '*'}": ["'match' matches every machine that has the named properties [plan.match]"],
            "match: {hostname: 'a '}": ["'match.hostname' is 'a ', which matches nothing [plan.match]"],
            "match: {slurm_cluster: a, beaker_cluster: b}": ["'match' requires a Slurm job that is also a Beaker job [plan.match]"],
            "scheduler: {kind: slurm, directives: {partion: a}}": ["sbatch has no known option --partion [plan.slurm-unknown]"],
            "scheduler: {directives: {partition: a}}": ["directives are for sbatch, but the scheduler is local [plan.site-scheduler]"],
            "node: {gpus: 4, bus_ids: [a, b]}": ["'node.bus_ids' has 2 bus ids, but 'node.gpus' is 4 [plan.site-gpus]"],
            "node: {gpus: 2}\nexpect: {all_reduce_busbw: [{gpus_per_node: 4, size: 1GiB, min: 1GB/s}]}": [
                "this expectation never applies: it is for 4 GPUs on each node, but a node has 2 [plan.expectation]"],
            "expect: {all_reduce_busbw: [{nodes: '>1', size: 1GiB, min: 1GB/s}]}": [
                "this expectation never applies: it is for >1 nodes, but this site is one machine [plan.expectation]"],
            "scheduler: {kind: slurm}\nexpect: {all_reduce_busbw: [{nodes: '>4,<2', size: 1GiB, min: 1GB/s}]}": [
                "this expectation never applies: no number of nodes is >4,<2 [plan.expectation]"],
            "expect: {all_reduce_busbw: [{size: 1GiB, min: 0GB/s}]}": ["this expectation has no effect: 'min' is 0 [plan.expectation]"],
            "env: {set: {A: 1, B: 2}}\noverlays: {x: {env: {A: 1, B: 3}}}": ["the overlay 'x' sets A=1, which the site already sets [plan.overlay]"],
            "overlays: {x: {}}": ["the overlay 'x' sets nothing [plan.overlay]"],
            "extends: local\nenv: {set: {NCCL_PROTO: Simple}}": [],  # that safe-protocols is the same now is no fault of this file
        }
        for text, wanted in cases.items():
            with self.subTest(text):
                code, shown, said = self.check(f"version: 1\n{text}\n")
                self.assertEqual((code, re.findall(r"warning: (.*)", said)), (0, wanted), said)
                self.assertIn("scheduler", shown)

    def test_every_shipped_profile_is_clean(self):
        for site in PROFILES:
            done = self.nlaunch("sites", "check", SOURCE / "site-profiles" / f"{site}.yaml")
            self.assertEqual((done.returncode, re.findall("warning|error", done.stderr)), (0, []), done.stderr)

    def test_wrong_usage(self):
        for words, said in ((("check",), "nlaunch sites check: FILE is required\nsee nlaunch sites check --help\n"),
                            (("check", "a", "b"), "nlaunch sites check: unexpected argument 'b'\nsee nlaunch sites check --help\n"),
                            (("init", "a"), "nlaunch sites init: unexpected argument 'a'\nsee nlaunch sites init --help\n"),
                            (("init", "--name", "Our Box"), "nlaunch sites init: --name: 'Our Box' is not a valid profile name; use our-box\n"
                                                            "see nlaunch sites init --help\n")):
            done = self.nlaunch("sites", *words)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (64, "", said))
        done = self.nlaunch("sites", "check", "nope.yaml")
        self.assertEqual((done.returncode, done.stderr), (65, "error: cannot open 'nope.yaml': No such file or directory [file.open]\n"))

    def test_a_profile_may_be_called_check(self):
        (self.folder / "check.yaml").write_text("version: 1\nname: check\n")
        for words in (("--site-dir", self.folder, "--", "check"), (self.folder / "check.yaml",)):
            self.assertRegex(self.nlaunch("sites", *words).stdout, r"(?m)^site +check$")


class Init(CliTest):
    def test_of_machines_that_are_not_here(self):
        golden = sorted((SOURCE / "tests" / "golden" / "sites").glob("*.yaml"))
        self.assertEqual(len(golden), 6)
        for path in golden:
            with self.subTest(path.name):
                self.usable(path)

    def test_of_this_machine(self):
        path = self.folder / "here.yaml"
        done = self.nlaunch("sites", "init", "--name", "here", "--output", path)
        self.assertEqual((done.returncode, done.stdout, self.normal(done.stderr)), (
            0, "", "review it, answer the questions in its comments, then run: nlaunch sites check $FOLDER/here.yaml\n"))
        text = path.read_text()
        self.assertIn("\nname: here\n", text)
        self.assertIn(f'  arch: "{os.uname().machine}"\n', text)
        self.usable(path)
        again = self.nlaunch("sites", "init", "--output", path)
        self.assertEqual((again.returncode, self.normal(again.stderr)), (
            64, "nlaunch sites init: '$FOLDER/here.yaml' already exists: remove it, or choose another --output\n"))
        self.assertEqual(path.read_text(), text)

    def test_of_a_cluster_that_slurm_tells_of(self):
        programs = self.folder / "bin"
        programs.mkdir()
        for name, said in (("sinfo", "gpu*|12:00:00|6|96|gpu:a100:4\n"), ("scontrol", "KillWait = 30 sec\nClusterName             = tower\n")):
            (programs / name).write_text(f"#!/bin/sh\nprintf '%s' '{said}'\n")
            (programs / name).chmod(0o755)
        done = self.nlaunch("sites", "init", env={"PATH": f"{programs}:{self.env['PATH']}", "LOADEDMODULES": "cuda/12:nccl"})
        path = self.folder / "tower.yaml"
        path.write_text(done.stdout)
        self.assertIn("  #   gpu* 12:00:00 6 96 gpu:a100:4\n", done.stdout)
        self.assertIn('match: {slurm_cluster: "tower"}\n', done.stdout)
        self.usable(path)

    def usable(self, path):
        done = self.nlaunch("sites", "check", path)
        self.assertEqual((done.returncode, re.findall("warning|error", done.stderr)), (0, []), done.stderr)
        done = self.nlaunch("plan", "configs/quickstart.yaml", "--site", path)
        self.assertEqual(done.returncode, 0, done.stderr)


class Files(CliTest):
    """A real run: what NCCL and PyTorch are told to write lies where it should."""

    PROGRAM = """
import ctypes, glob, os, sys
for name in ("TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE"):
    open(os.environ[name] + os.environ["RANK"], "w").write(name)
if len(sys.argv) > 1:  # a whole libnccl: making an id needs no GPU, and is what opens NCCL's file
    nccl = ctypes.CDLL(sys.argv[1])
    assert nccl.ncclGetUniqueId(ctypes.create_string_buffer(128)) == 0
else:
    folder, pattern = os.path.split(os.environ["NCCL_DEBUG_FILE"])
    open(os.path.join(folder, pattern.replace("%h", "host").replace("%p", str(os.getpid()))), "w").write("NCCL_DEBUG")
"""

    def run_one(self, *library, options=()):
        (self.folder / "program.py").write_text(self.PROGRAM)
        words = ", ".join(map(str, ["python3", self.folder / "program.py", *library]))
        done = self.run_experiment(f"roles: {{learner: {{kind: learner, per_node: 2, rendezvous: torch, command: [{words}]}}}}\n",
                                   "--with", "timeout-hunt", *options)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        folder = self.run_folder / "attempt-0" / "nccl"
        files = sorted(path.name for path in folder.iterdir())
        self.assertEqual(files[:2], ["flight-recorder.0", "flight-recorder.1"])
        self.assertEqual(len(files), 4, files)
        for name in files[2:]:
            self.assertRegex(name, r"^learner\.[01]\.[\w-]+\.\d+\.log$")
        return done, [(folder / name).read_text() for name in files[2:]]

    def library(self):
        found = next((path for path in (os.environ.get("NLAUNCH_TEST_LIBNCCL"), "/usr/local/cuda/lib/libnccl.so.2",
                                        "/usr/lib/x86_64-linux-gnu/libnccl.so.2") if path and os.path.exists(path)), None)
        if found is None:
            self.skipTest("no libnccl here (NLAUNCH_TEST_LIBNCCL names one)")
        return found

    def test_the_folder_is_there(self):
        self.run_one()

    def test_nccl_writes_into_it(self):
        done, logs = self.run_one(self.library())
        for log in logs:
            self.assertIn("NCCL INFO", log)
        self.assertNotIn("NCCL INFO", done.stdout, "none of it went to standard output")

    def test_what_nccl_read_is_compared_with_what_was_set(self):
        conf = self.folder / "nccl.conf"
        conf.write_text("NCCL_SOCKET_FAMILY=AF_INET\n")
        done, _ = self.run_one(self.library(), options=["--env", f"NCCL_CONF_FILE={conf}", "--env", "NCCL_MIN_CTAS=4"])
        said = ["NCCL read NCCL_SOCKET_FAMILY=AF_INET, which nlaunch did not set: it comes from an nccl.conf or the program itself",
                "set but not read by NCCL in this run: NCCL_MIN_CTAS"]
        summary = json.loads((self.run_folder / "summary.json").read_text())
        self.assertEqual(summary["nccl_environment"], {"learner": said})
        for line in said:
            self.assertIn(f"NCCL in learner: {line}\n", done.stderr)


if __name__ == "__main__":
    unittest.main()

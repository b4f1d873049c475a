"""`nlaunch preflight --node`: what it says, how it ends, and what it leaves behind."""
import json
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

from harness import NLAUNCH, CliTest

FAILS = "fail limits open files: 200 (expected at least 4096)"
NAME = os.uname().nodename.split(".")[0]


def few_files():
    resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200))


class NodeCheck(CliTest):
    def check(self, *arguments, level="quick", preexec_fn=None, env=None, cwd=None):
        return subprocess.run([NLAUNCH, "preflight", "--node", "--level", level, *map(str, arguments)], capture_output=True,
                              text=True, timeout=60, env=self.env if env is None else env, preexec_fn=preexec_fn,
                              stdin=subprocess.DEVNULL, cwd=cwd or self.folder)

    def site(self, text):
        path = self.folder / "our.yaml"
        path.write_text("version: 1\nname: our\n" + text)
        return path

    def fake(self, name, text):
        """A program that is found before any other of that name."""
        folder = self.folder / "bin"
        folder.mkdir(exist_ok=True)
        (folder / name).write_text("#!/bin/bash\n" + text)
        (folder / name).chmod(0o755)
        return {**self.env, "PATH": f"{folder}:{self.env['PATH']}"}

    # --- what it says ---

    def test_a_person_sees_the_rows(self):
        done = self.check("--site", "local")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("pass  limits", done.stdout)
        self.assertRegex(done.stdout, r"\npreflight pass: level quick in \d\.\d s \(\d+ passed, \d+ skipped\)\n$")

    def test_a_program_gets_json(self):
        done = self.check("--site", "local", "--json", preexec_fn=few_files)
        self.assertEqual((done.returncode, done.stderr), (2, ""))
        report = json.loads(done.stdout)
        self.assertEqual((report["verdict"], [r["subject"] for r in report["rows"] if r["status"] == "fail"]), ("fail", ["open files"]))

    def test_a_prolog_that_passes_says_nothing(self):
        for level in ("quick", "standard"):
            done = self.check("--site", "local", "--prolog", level=level)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    def test_a_prolog_that_fails_says_one_line_and_nothing_to_slurm(self):
        done = self.check("--site", "local", "--prolog", preexec_fn=few_files)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (2, "", f"nlaunch: {NAME}: {FAILS}\n"))
        done = self.check("--site", "local", "--prolog", preexec_fn=few_files, env={**self.env, "SLURMD_NODENAME": "nid007"})
        self.assertEqual(done.stderr, f"nlaunch: nid007: {FAILS}\n")

    def test_it_asks_nothing_of_the_environment(self):
        gone = tempfile.mkdtemp()
        done = self.check("--site", "local", "--prolog", env={}, cwd=gone, preexec_fn=lambda: (few_files(), os.rmdir(gone)))
        self.assertEqual((done.returncode, done.stdout, done.stderr), (2, "", f"nlaunch: {NAME}: {FAILS}\n"))
        self.assertEqual(self.check("--site", "local", "--prolog", env={}, cwd="/proc").returncode, 0)

    def test_a_prolog_is_of_one_machine_whatever_the_job_has(self):
        site = self.site("scheduler: {kind: slurm}\n")
        for job in ({"SLURM_JOB_ID": "7"}, {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "nid[001-512]"}):
            done = self.check("--site", site, "--prolog", preexec_fn=few_files, env={**self.env, **job})
            self.assertEqual((done.returncode, done.stdout, done.stderr), (2, "", f"nlaunch: {NAME}: {FAILS}\n"))

    def test_what_cannot_be_determined_blames_no_node(self):
        site = self.site("node: {gpus: 4}\n")
        done = self.check("--site", site)
        if "unknown" not in done.stdout:
            self.skipTest("this machine has NVML")
        self.assertEqual(done.returncode, 3, done.stdout)
        done = self.check("--site", site, "--prolog")
        self.assertEqual((done.returncode, done.stdout), (0, ""))
        self.assertRegex(done.stderr, rf"^nlaunch: {NAME}: unknown gpus number: .*libnvidia-ml\.so\.1.*\n$")
        done = self.check("--site", site, preexec_fn=few_files)
        self.assertEqual(done.returncode, 2, done.stdout)  # a fault stays one

    def test_a_node_that_has_lost_a_gpu_fails(self):
        # This machine need not have any: a probe beside a copy of nlaunch says what NVML would show.
        folder = self.folder / "installed"
        folder.mkdir()
        shutil.copy(NLAUNCH, folder / "nlaunch")
        gpus = [{"index": k, "uuid": f"GPU-{k}", "bus_id": f"0000:0{k}:00.0", "name": "H100"} for k in range(3)]
        facts = json.dumps({"hostname": "nid7", "arch": "x86_64", "nvml_error": "", "gpus": gpus})
        (folder / "nlaunch-probe").write_text(f"#!/bin/bash\necho '{facts}'\n")
        (folder / "nlaunch-probe").chmod(0o755)
        given = "CUDA_VISIBLE_DEVICES=0,3 is set, but '3' is not a GPU of this machine, which has 3 GPUs"
        for text, variables, said in (
                ("node: {gpus: 4}\n", {}, "fail gpus number: 3 GPUs (expected 4, as the profile says)"),
                ("", {"CUDA_VISIBLE_DEVICES": "0,3"}, f"fail gpus CUDA_VISIBLE_DEVICES: {given} (expected GPUs of this machine)")):
            done = subprocess.run([folder / "nlaunch", "preflight", "--node", "--prolog", "--site", self.site(text)],
                                  capture_output=True, text=True, env={**self.env, **variables, "SLURMD_NODENAME": "nid7"})
            self.assertEqual((done.returncode, done.stdout, done.stderr), (2, "", f"nlaunch: nid7: {said}\n"))

    def test_a_profile_that_is_wrong_blames_no_node(self):
        site = self.site("node: {gpus: many}\n")
        done = self.check("--site", site)
        self.assertEqual((done.returncode, done.stdout), (65, ""))
        self.assertEqual(done.stderr.splitlines()[1:3], ["   3 | node: {gpus: many}", "     |              ^^^^"])
        done = self.check("--site", site, "--prolog")
        self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (0, "", 1))
        self.assertIn(f"nlaunch: {NAME}: unknown node this machine: {site}:3:14: error: ", done.stderr)

    def test_what_does_not_go_together_is_refused(self):
        for arguments, said in (
                (("--prolog",), "--prolog requires --node"), (("--drain",), "--drain requires --node"),
                (("--node", "--prolog", "--json"), "--json excludes --prolog"),
                (("--node", "--prolog", "--strict"), "--strict excludes --prolog"),
                (("--node", "--timeout", "5"), "5"), (("--node", "--timeout", "2s"), "at least 5s"),
                (("--node", "experiment.yaml"), "--node checks the machine, whatever will run there: omit the experiment")):
            done = self.nlaunch("preflight", *arguments)
            self.assertEqual(done.returncode, 64, done.stderr)
            self.assertIn(said, done.stderr)

    # --- how it ends ---

    def test_it_ends_in_time_whatever_hangs(self):
        # The profile's modules are loaded in a shell, which waits for ever and ignores that somebody wants it to end.
        script = self.folder / "modules.sh"
        script.write_text(f"trap '' TERM INT HUP\nsetsid sleep 1000 &\necho $! > {self.folder}/pid\nwait\n")
        site = self.site(f"modules: {{init: {script}, load: [x]}}\n")
        begin = time.monotonic()
        done = self.check("--site", site, "--prolog", "--timeout", "5s")
        self.assertLess(time.monotonic() - begin, 6)
        self.assertEqual((done.returncode, done.stdout, done.stderr),
                         (0, "", f"nlaunch: {NAME}: unknown node this machine: the checks did not finish within 5s\n"))
        pid = int((self.folder / "pid").read_text())
        self.assertFalse(pathlib.Path(f"/proc/{pid}").exists())

    def test_one_that_is_killed_leaves_no_process(self):
        script = self.folder / "modules.sh"
        script.write_text(f"echo $$ > {self.folder}/pid\nexec sleep 1000\n")
        site = self.site(f"modules: {{init: {script}, load: [x]}}\n")
        process = subprocess.Popen([NLAUNCH, "preflight", "--node", "--site", site], env=self.env)
        deadline = time.monotonic() + 10
        while not (self.folder / "pid").exists() or not (self.folder / "pid").read_text():
            if time.monotonic() > deadline:
                self.fail(subprocess.run(["ps", "-eo", "pid,ppid,stat,wchan:32,args", "--forest"], capture_output=True, text=True).stdout)
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        process.wait()
        command = pathlib.Path("/proc", (self.folder / "pid").read_text().strip(), "cmdline")
        while command.exists() and command.read_text():  # a zombie has none
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.02)

    def test_what_the_script_around_it_started_goes_on(self):
        script = f'exec "{NLAUNCH}" preflight --node --prolog --level quick --site local 2> >(sleep 0.3; cat > {self.folder}/log)'
        done = subprocess.run(["bash", "-c", script], env=self.env, preexec_fn=few_files)
        self.assertEqual(done.returncode, 2)
        deadline = time.monotonic() + 10
        while not (self.folder / "log").exists() or not (self.folder / "log").read_text():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.02)
        self.assertEqual((self.folder / "log").read_text(), f"nlaunch: {NAME}: {FAILS}\n")

    def test_two_at_a_time_both_pass_and_leave_nothing(self):
        scratch = self.folder / "scratch"
        site = self.site(f"node: {{scratch: {scratch}}}\n")
        scratch.mkdir()
        command = [NLAUNCH, "preflight", "--node", "--prolog", "--site", site]
        all_of_them = [subprocess.Popen(command, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                       for _ in range(6)]
        self.assertEqual([(p.communicate(timeout=50)[0], p.returncode) for p in all_of_them], [("", 0)] * 6)
        left = [str(path.relative_to(scratch)) for path in scratch.rglob("*")]
        self.assertEqual(sorted(left), [f"nlaunch-{os.getuid()}-node", f"nlaunch-{os.getuid()}-node/lock"])

    def test_a_folder_that_is_somebody_elses_is_passed_over(self):
        scratch = self.folder / "scratch"
        scratch.mkdir()
        (scratch / f"nlaunch-{os.getuid()}-node").symlink_to(self.folder)
        done = self.check("--site", self.site(f"node: {{scratch: {scratch}}}\n"), "--prolog")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        self.assertFalse((self.folder / "attempt-0").exists())

    # --- --drain ---

    def scontrol(self, state, update="exit 0"):
        return self.fake("scontrol", f'printf "%s\\n" "$@" >> {self.folder}/said\n[[ $1 == -o ]] && '
                                     f'echo "NodeName=$4 State={state} Reason=x" && exit 0\n{update}\n')

    def said(self):
        try:
            return (self.folder / "said").read_text().splitlines()
        except FileNotFoundError:
            return []

    def test_a_node_that_fails_is_drained_where_that_is_asked_for(self):
        env = {**self.scontrol("IDLE"), "SLURMD_NODENAME": "nid007"}
        self.check("--site", "local", "--prolog", preexec_fn=few_files, env=env)
        self.assertEqual(self.said(), [])
        done = self.check("--site", "local", "--prolog", "--drain", preexec_fn=few_files, env=env)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (2, "", f"nlaunch: nid007: {FAILS}\n"))
        self.assertEqual(self.said(), ["-o", "show", "node", "nid007", "update", "NodeName=nid007", "State=DRAIN",
                                       f"Reason=nlaunch: {FAILS}"])

    def test_who_drained_it_before_is_not_overruled(self):
        done = self.check("--site", "local", "--drain", "--prolog", preexec_fn=few_files, env=self.scontrol("IDLE+DRAIN"))
        self.assertEqual((done.returncode, done.stderr), (2, f"nlaunch: {NAME}: {FAILS}\nnlaunch: {NAME} is already drained\n"))
        self.assertEqual(self.said(), ["-o", "show", "node", NAME])

    def test_only_a_failure_drains(self):
        env = self.scontrol("IDLE")
        self.check("--site", "local", "--drain", env=env)
        self.check("--site", self.site("node: {gpus: 4}\n"), "--drain", env=env)
        self.check("--site", self.site("node: {gpus: many}\n"), "--drain", env=env)
        self.assertEqual(self.said(), [])

    def test_slurm_that_refuses_or_does_not_answer_changes_no_verdict(self):
        env = self.scontrol("IDLE", 'echo "slurm_update error: Invalid user id" >&2; exit 1')
        done = self.check("--site", "local", "--drain", "--prolog", preexec_fn=few_files, env=env)
        self.assertEqual((done.returncode, done.stderr), (
            2, f"nlaunch: {NAME}: {FAILS}\nnlaunch: cannot drain {NAME}: scontrol exited with code 1: slurm_update error: "
               "Invalid user id\n"))
        begin = time.monotonic()
        done = self.check("--site", "local", "--drain", "--prolog", "--timeout", "6s", preexec_fn=few_files,
                          env=self.fake("scontrol", "exec sleep 100\n"))
        self.assertLess(time.monotonic() - begin, 7)
        self.assertEqual((done.returncode, done.stderr.splitlines()[1:]), (
            2, [f"nlaunch: cannot drain {NAME}: scontrol did not answer within 750ms"]))


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/env python3
"""`nlaunch run` and what looks at a run: real processes, whole runs."""
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import unittest

from harness import NLAUNCH, SOURCE, CliTest


class Run(CliTest):
    def summary(self):
        return json.loads((self.run_folder / "summary.json").read_text())

    def test_a_run_that_ends_well(self):
        result = self.run_experiment("roles: {learner: {kind: learner, count: 2, rendezvous: torch, command: [sh, -c, 'echo rank $RANK of $WORLD_SIZE']}}\n")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(sorted(result.stdout.splitlines()), ["learner.0 │ rank 0 of 2", "learner.1 │ rank 1 of 2"])
        self.assertEqual((self.run_folder / "attempt-0/logs/learner.1.log").read_text(), "rank 1 of 2\n")
        summary = self.summary()
        self.assertEqual((summary["outcome"], summary["exit_code"], summary["preflight"]["verdict"]), ("finished", 0, "skipped"))
        self.assertEqual(os.stat(self.run_folder).st_mode & 0o777, 0o700)
        for name in ("plan.json", "lock.json", "events.jsonl", "attempt-0/audit.json"):
            self.assertTrue((self.run_folder / name).exists(), name)

    def test_the_first_failure_decides_and_is_explained(self):
        result = self.run_experiment("""roles:
  learner: {kind: learner, command: [sh, -c, 'echo the cause >&2; sleep 0.3; exit 7']}
  engine: {kind: engine, command: [sleep, "100"]}
""")
        self.assertEqual(result.returncode, 7)
        self.assertRegex(result.stderr, r"last lines of learner\.0 \(.*learner\.0\.log\):\n  the cause\n")
        self.assertRegex(result.stderr, r"learner\.0 exited with code 7 after \d+ms\n")
        self.assertEqual(self.summary()["outcome"], "failed")

    def test_a_signal_is_128_and_its_number(self):
        result = self.run_experiment("roles: {learner: {kind: learner, command: [sh, -c, 'kill -9 $$']}}\n")
        self.assertEqual(result.returncode, 137)
        self.assertRegex(result.stderr, r"learner\.0 was killed by SIGKILL after \d+ms\nnlaunch did not send this SIGKILL; the usual cause is the "
                                        r"kernel's OOM killer: check `dmesg -T` or `journalctl -k` on the node\n")

    def test_why_a_replica_starts_again_is_said_with_the_child_that_was_killed(self):
        result = self.run_experiment("""cpu_slots: true
roles:
  engine:
    kind: engine
    replica: {per_node: 2}
    gpus: 1
    command:
    - bash
    - -c
    - |
      [[ ${self.replica.rank} = 0 || -e ${run.dir}/once ]] && exec sleep 1000
      touch ${run.dir}/once
      sleep 1000 & (sleep 4; kill -9 $!) &
      exec sleep 6  # it does not wait for its children: how they ended stays to be seen
    restart: {policy: on-failure, max: 2, backoff: 100ms}
    stop: {grace: 1s}
  learner: {kind: learner, command: [sleep, "8"]}
""")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout + result.stderr, r"nlaunch: engine\.0\.1 exited with code 0 after sleep \(pid \d+\) was killed by SIGKILL; "
                                        r"engine\.0 restarts in 100ms, all 2 of its processes \(restart 1 of 2\)\n")

    def test_a_disk_that_is_full_from_the_beginning_is_70(self):
        path = self.folder / "experiment.yaml"
        path.write_text('version: 1\nname: test\nroles: {learner: {kind: learner, command: ["true"]}}\n')
        # A limit on file sizes stands for the full disk: both are an error of write(2).
        script = f"ulimit -f 0; exec {NLAUNCH} run {path} --site local --no-preflight --runs-dir {self.folder}/runs 2>&1 | cat"
        done = subprocess.run(["bash", "-o", "pipefail", "-c", script], capture_output=True, text=True, timeout=60, env=self.env, cwd=SOURCE)
        said = [line for line in done.stdout.splitlines() if "cannot write" in line]
        self.assertEqual((done.returncode, len(said)), (70, 1), done.stdout)
        self.assertRegex(said[0], r"^error: cannot write '.*/plan\.json': File too large; nothing was started$")

    def limited(self, limits, text, *arguments):
        """A run under limits of bash's ulimit."""
        path = self.folder / "experiment.yaml"
        path.write_text("version: 1\nname: test\nweight_sync: {backend: gloo}\n" + text)
        run = [NLAUNCH, "run", path, "--site", "local", "--no-preflight", "--runs-dir", self.folder / "runs", *arguments]
        return subprocess.run(["bash", "-c", f'ulimit {limits}; "$@" | cat; exit ${{PIPESTATUS[0]}}', "-", *map(str, run)], capture_output=True,
                              text=True, timeout=60, env=self.env, cwd=self.folder)

    def test_a_log_over_the_limit_of_file_sizes_is_cut_and_the_run_goes_on(self):
        done = self.limited("-f 20", "roles: {learner: {kind: learner, command: [sh, -c, 'seq 10000; echo the end']}}\n")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(done.stdout.endswith("learner.0 │ the end\n"))
        self.assertRegex(done.stdout + done.stderr, r"cannot write '.*/learner\.0\.log': File too large; the run continues\n")
        self.assertEqual(self.summary()["outcome"], "finished")
        self.assertGreater(self.summary()["log_bytes_lost"], 20000)

    def test_the_limit_of_file_sizes_ends_a_program_as_it_would_without_nlaunch(self):
        done = self.limited("-f 20", "roles: {learner: {kind: learner, command: [dd, if=/dev/zero, of=big, bs=65536, count=1]}}\n")
        self.assertEqual(done.returncode, 128 + signal.SIGXFSZ, done.stderr)
        self.assertIn("learner.0 was terminated by SIGXFSZ", done.stderr)

    def test_open_files_are_raised_to_the_hard_limit_for_nlaunch_alone(self):
        done = self.limited("-Sn 8", "roles: {learner: {kind: learner, command: [sh, -c, 'ulimit -Sn']}}\n")
        self.assertEqual((done.returncode, done.stdout), (0, "learner.0 │ 8\n"), done.stderr)

    def test_too_few_open_files_are_said_before_anything_starts(self):
        text = "roles: {learner: {kind: learner, count: 20, command: [touch, started]}}\n"
        done = self.limited("-n 8", text)
        self.assertEqual((done.returncode, done.stderr), (
            65, "nlaunch: limited to 8 open files, but needs at least 64: raise the hard limit (ulimit -Hn)\n"))
        done = self.limited("-n 100", text)
        self.assertEqual(done.returncode, 65, done.stderr)
        self.assertIn("nlaunch is limited to 100 open files here, but needs 224 for 20 processes: raise the hard limit (ulimit -Hn) [session.files]\n", done.stderr)
        self.assertFalse((self.folder / "started").exists())

    def test_a_folder_that_cannot_be_written_is_70_and_no_mistake_of_the_experiment(self):
        # In place of the file there is a folder once the run has begun: the same error as any other of the disk's.
        result = self.run_experiment("""roles:
  learner: {kind: learner, command: [sh, -c, 'mkdir ${run.dir}/attempt-1 && touch ${run.dir}/attempt-1/addrs; exit 1']}
restart: {policy: on-failure, max: 1, backoff: 10ms}
""")
        self.assertEqual(result.returncode, 70, result.stderr)
        self.assertEqual(self.summary()["outcome"], "internal")

    def test_a_summary_that_cannot_be_written_is_said(self):
        result = self.run_experiment("""roles:
  learner: {kind: learner, command: [sh, -c, 'mkdir ${run.dir}/summary.json ${run.dir}/attempt-0/audit.json']}
""")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stderr, r"nlaunch: cannot write '.*/summary\.json': .*; this run has no summary\n")

    def test_an_engine_that_never_becomes_ready_is_72(self):
        result = self.run_experiment("""roles:
  engine: {kind: engine, command: [sleep, "100"], ports: [http], ready: {tcp: "127.0.0.1:${self.ports.http}", timeout: 500ms}}
  learner: {kind: learner, command: ["true"]}
start: [[engine], [learner]]
""")
        self.assertEqual(result.returncode, 72, result.stderr)
        self.assertIn("engine.0", result.stderr)

    def test_a_role_that_is_ready_is_said_once(self):
        experiment = """roles:
  engine:
    kind: engine
    count: 2
    command: [sh, -c, 'if mkdir died; then sleep 0.3; exit 1; fi; exec sleep 100']
    ready: {delay: 100ms}
    restart: {policy: on-failure, max: 1, backoff: 10ms}
  learner: {kind: learner, command: [sleep, "1"]}
start: [[engine], [learner]]
"""
        result = self.run_experiment(experiment)
        self.assertEqual(result.returncode, 0, result.stderr)
        said = [line for line in result.stderr.splitlines() if line.startswith("nlaunch: engine: ")]
        self.assertEqual(len(said), 1, result.stderr)
        self.assertRegex(result.stderr, r"\nnlaunch: engine\.[01] exited with code 1; it restarts in 10ms\n")
        self.assertRegex(said[0], r"^nlaunch: engine: 2 of 2 ready after \d\d\dms$")
        shutil.rmtree(self.folder / "died")
        self.assertEqual(self.run_experiment(experiment, "--quiet").stdout, "")

    def test_a_missing_program_starts_nothing(self):
        result = self.run_experiment("""roles:
  learner: {kind: learner, command: [touch, started]}
  engine: {kind: engine, command: [no-such-engine]}
""")
        self.assertEqual(result.returncode, 65)
        self.assertIn("engine: program 'no-such-engine' was not found in PATH", result.stderr)
        self.assertFalse((self.folder / "started").exists())

    def test_what_is_not_utf8_reaches_the_program_as_it_is(self):
        result = self.run_experiment("""roles: {learner: {kind: learner, env: {ODD: "${env.ODD}"}, command: [sh, -c, 'printf %s "$0$ODD" | od -An -tx1', "${env.ODD}"]}}
""", env={"ODD": "a\udcff"})
        self.assertEqual((result.returncode, result.stdout), (0, "learner.0 │  61 ff 61 ff\n"), result.stderr)
        plan = json.loads((self.run_folder / "plan.json").read_text())
        self.assertEqual(plan["roles"][0]["command"][3], "a\ufffd")

    def test_a_missing_workdir_is_said_with_where_it_was_asked_for(self):
        path = self.folder / "experiment.yaml"
        missing = f"the working directory '{self.folder}/%s' ({path}:%s) does not exist [launch.workdir]\n"
        for text, said in (("workdir: gone\nroles: {learner: {kind: learner, command: ['true']}}\n", missing % ("gone", "4:10")),
                           ("roles: {learner: {kind: learner, workdir: away, command: ['true']}}\n", missing % ("away", "4:43"))):
            result = self.run_experiment(text)
            self.assertEqual((result.returncode, result.stderr.split("run directory")[0]), (65, "error: learner: " + said))

    def test_a_missing_venv_is_warned_of_and_then_refused(self):
        path = self.folder / "e.yaml"
        path.write_text("version: 1\nname: test\nvenv: .venv\nroles: {learner: {kind: learner, count: 3, command: ['true']}}\n")
        message = (f"learner: the venv '{self.folder}/.venv' ({path}:3:7) does not exist [launch.venv]\n"
                   f"hint: create it: python3 -m venv {self.folder}/.venv\n")
        for command, code, severity in (("plan", 0, "warning"), ("run", 65, "error"), ("preflight", 65, "error")):
            with self.subTest(command):
                runs = [] if command == "plan" else ["--runs-dir", self.folder / "runs"]
                result = self.nlaunch(command, path, "--site", "local", *runs)
                self.assertEqual(result.returncode, code, result.stderr)
                self.assertEqual(result.stderr.split("run directory")[0], f"{severity}: {message}")

    def test_the_job_is_tried_again(self):
        result = self.run_experiment("""restart: {policy: on-failure, max: 2, backoff: 50ms}
roles: {learner: {kind: learner, command: [sh, -c, 'echo x >> tries; [ $(wc -l < tries) = 3 ]']}}
""")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertTrue((self.run_folder / "attempt-2/logs/learner.0.log").exists())

    def test_logs_of_an_earlier_attempt(self):
        self.run_experiment("""restart: {policy: on-failure, max: 1, backoff: 50ms}
roles: {learner: {kind: learner, command: [sh, -c, 'echo try >> tries; wc -l < tries; [ $(wc -l < tries) = 2 ]']}}
""")
        logs = lambda *options: self.nlaunch("logs", "test", "--runs-dir", self.folder / "runs", *options)
        self.assertEqual([logs(*options).stdout for options in ([], ["--attempt", "0"], ["--attempt", "1"])],
                         ["learner.0 │ 2\n", "learner.0 │ 1\n", "learner.0 │ 2\n"])
        none = logs("--attempt", "2")
        self.assertEqual(none.returncode, 64)
        self.assertRegex(none.stderr, r"^nlaunch logs: run \S+ has no attempt 2; the last one is 1\n$")

    def test_logs_by_time_and_their_ends(self):
        talk = "import sys, time; [print(sys.argv[1], i, flush=True) or time.sleep(0.4) for i in range(3)]"
        self.run_experiment("cpu_slots: true\nroles:\n"
                            f"  learner: {{kind: learner, command: [{sys.executable}, -c, '{talk}', l]}}\n"
                            f"  engine: {{kind: engine, command: [{sys.executable}, -c, 'import time; time.sleep(0.2); {talk}; time.sleep(60)', e]}}\n"
                            "start: [[engine, learner]]\n")
        logs = lambda *options: self.nlaunch("logs", "test", "--runs-dir", self.folder / "runs", *options).stdout
        merged = [line.split(" ", 1) for line in logs("-t").splitlines()]
        self.assertEqual([time for time, _ in merged], sorted(time for time, _ in merged))
        self.assertRegex(merged[0][0], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
        self.assertEqual(sorted(line for _, line in merged), sorted(logs().splitlines()))
        self.assertNotEqual([line for _, line in merged], logs().splitlines())
        self.assertEqual(logs("learner.0", "-n", "2"), "learner.0 │ l 1\nlearner.0 │ l 2\n")
        self.assertEqual(logs("learner", "-n", "100"), logs("--role", "learner"))
        self.assertEqual(logs("--since", "1h"), logs())
        self.assertEqual(logs("--since", "0s"), "")

    def test_ps_lists_the_runs(self):
        runs = self.folder / "runs"
        self.assertEqual(self.nlaunch("ps", "--runs-dir", runs).stdout, f"no runs in '{runs}'; look elsewhere with --runs-dir\n")
        for end in ("true", "false"):
            self.run_experiment(f"roles: {{learner: {{kind: learner, command: ['{end}']}}}}\n")
        lines = self.nlaunch("ps", "--runs-dir", runs).stdout.splitlines()
        self.assertRegex(lines[0], r"^name +run +state +exit +age +duration +site +nodes$")
        self.assertEqual([line.split()[0:4:2] + line.split()[3:4] for line in lines[1:]], [["test", "failed", "1"], ["test", "finished", "0"]])
        listed = json.loads(self.nlaunch("ps", "--json", "--runs-dir", runs).stdout)
        self.assertEqual([(run["name"], run["state"], run["alive"]) for run in listed], [("test", "failed", False), ("test", "finished", False)])

    def test_ctrl_c_stops_gracefully(self):
        path = self.folder / "e.yaml"
        path.write_text("version: 1\nname: test\nroles: {learner: {kind: learner, command: [sh, -c, 'trap \"echo saved; exit 0\" TERM; echo up; sleep 100 & wait']}}\n")
        process = subprocess.Popen([NLAUNCH, "run", path, "--site", "local", "--no-preflight", "--runs-dir", self.folder / "runs"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.env)
        self.assertEqual(process.stdout.readline(), "learner.0 │ up\n")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
        self.assertEqual(process.returncode, 130, err)
        self.assertIn("learner.0 │ saved", out)
        self.assertEqual(self.summary()["outcome"], "interrupted")

    def test_secrets_are_in_no_file_and_no_output(self):
        secret = "s3cr3t-value-0815"
        result = self.run_experiment("""secrets: {HUSH: env}
roles: {learner: {kind: learner, env: {MY_API_KEY: another-hidden-one}, command: [sh, -c, 'echo "$HUSH"; sleep 0.1; printf %s "$HUSH" | sed s/x/x/; test -n "$MY_API_KEY"']}}
""", "--level", "quick", env={"HUSH": secret})
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("learner.0 │ ***", result.stdout)
        texts = {path: path.read_bytes() for path in self.folder.rglob("*") if path.is_file() and path.name != "experiment.yaml"}
        texts["output"] = (result.stdout + result.stderr).encode()
        for path, text in texts.items():
            self.assertNotIn(secret.encode(), text, path)
            self.assertNotIn(b"another-hidden-one", text, path)

    def test_scratch_is_there_for_the_run_alone(self):
        result = self.run_experiment("roles: {learner: {kind: learner, command: [sh, -c, 'test -d \"$0\" && echo \"$0\"', '${node.scratch}']}}\n")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertFalse(os.path.exists(result.stdout.split("│ ")[1].strip()))

    def test_scratch_does_not_stay_when_nothing_starts(self):
        scratch = self.folder / "scratch"
        scratch.mkdir()
        site = self.folder / "site.yaml"
        site.write_text(f"version: 1\nname: here\nextends: local\nnode: {{scratch: {scratch}}}\n")
        experiment = self.folder / "e.yaml"
        for command in ("no-such-program", "cat, '${newest:/no/such/*.pt}'"):
            experiment.write_text(f"version: 1\nname: test\nweight_sync: {{backend: gloo}}\ncpu_slots: true\nroles: {{learner: {{kind: learner, command: [{command}]}}}}\n")
            done = self.nlaunch("run", experiment, "--site", site, "--no-preflight", "--runs-dir", self.folder / "runs")
            self.assertEqual(done.returncode, 65, done.stderr)
            self.assertEqual(os.listdir(scratch), [], done.stderr)

    def test_a_folder_that_is_gone_is_said_in_words(self):
        gone = self.folder / "gone"
        done = subprocess.run(["bash", "-c", f"mkdir {gone}; cd {gone}; rmdir {gone}; exec {NLAUNCH} run {SOURCE}/configs/quickstart.yaml --site local"],
                              capture_output=True, text=True, env=self.env, timeout=60)
        self.assertEqual((done.returncode, done.stderr),
                         (65, "nlaunch: cannot access the current directory: No such file or directory; run nlaunch in another directory\n"))

    def test_uncommitted_changes_are_kept_without_secrets(self):
        def git(*arguments):
            subprocess.run(["git", "-C", self.folder, "-c", "user.name=n", "-c", "user.email=e", *arguments], check=True, capture_output=True)
        role = "roles: {learner: {kind: learner, env: {MY_API_KEY: VALUE}, command: ['true']}}\n"
        git("init", "-q")
        self.run_experiment(role)
        git("add", "experiment.yaml")
        git("commit", "-qm", "first")
        result = self.run_experiment(role.replace("VALUE", "uncommitted-one"))
        self.assertEqual(result.returncode, 0, result.stderr)
        lock = json.loads((self.run_folder / "lock.json").read_text())
        self.assertTrue(lock["git"]["dirty"])
        self.assertRegex(lock["git"]["diff"], r"\+roles: .*MY_API_KEY: \*\*\*\}")
        self.assertRegex(lock["files"][0]["sha256"], "^[0-9a-f]{64}$")

    def test_a_frozen_plan_runs(self):
        self.run_experiment("roles: {learner: {kind: learner, command: [sh, -c, 'echo frozen']}}\n")
        plan = self.run_folder / "plan.json"
        result = self.nlaunch("run", "--plan", plan, "--no-preflight", "--runs-dir", self.folder / "again")
        self.assertEqual((result.returncode, result.stdout), (0, "learner.0 │ frozen\n"), result.stderr)

    def test_a_slurm_site_is_not_run_by_surprise(self):
        result = self.nlaunch("run", "configs/grpo.yaml", "--site", "isambard", "--runs-dir", self.folder / "runs",
                              env={"PATH": "/nowhere"})
        self.assertEqual(result.returncode, 64)
        self.assertEqual(result.stderr.splitlines()[0], "error: site 'isambard' submits with isambard_sbatch or sbatch, "
                         "which is not on PATH here [launch.no-slurm]")
        self.assertFalse((self.folder / "runs").exists())

    def test_a_slurm_site_is_not_checked_by_surprise(self):
        result = self.nlaunch("preflight", "configs/grpo.yaml", "--site", "isambard", "--runs-dir", self.folder / "runs")
        self.assertEqual((result.returncode, result.stderr.split("nlaunch preflight: ")[1]),
                         (64, "site 'isambard' is reached through Slurm, and this is not an allocation: to check nodes, use salloc -N 2 nlaunch preflight ...; "
                              "nlaunch run checks the nodes of its job before it starts anything there; nlaunch preflight --site isambard (without the "
                              "experiment) checks this machine\n"))
        self.assertFalse((self.folder / "runs").exists())

    def test_a_folder_that_cannot_be_written_is_said_with_what_else(self):
        (self.folder / "runs").touch()
        result = self.run_experiment("roles: {learner: {kind: learner, command: ['true']}}\n")
        self.assertEqual(result.returncode, 65)
        self.assertRegex(result.stderr, rf"^error: cannot create the directory '{self.folder}/runs/test/\S+': Not a directory \[\S+\]\n"
                                        r"hint: --runs-dir DIR puts run directories elsewhere\n$")

    def test_inherited_launcher_variables_are_dropped_and_named(self):
        result = self.run_experiment("roles: {learner: {kind: learner, command: [sh, -c, 'echo [$TORCH_NCCL_TRACE]']}}\n",
                                     env={"TORCH_NCCL_TRACE": "1"})
        self.assertEqual(result.stdout, "learner.0 │ []\n")
        self.assertIn("not passed on from the calling environment: TORCH_NCCL_TRACE", result.stderr)

    def test_gloo_preflight_runs_for_real(self):
        result = self.run_experiment("""cpu_slots: true
roles:
  learner: {kind: learner, count: 2, gpus: 1, rendezvous: torch, command: ["true"]}
  engine: {kind: engine, count: 1, gpus: 1, command: [sleep, "100"]}
""", "--level", "standard", timeout=120)
        self.assertEqual(result.returncode, 0, result.stderr)
        report = json.loads((self.run_folder / "attempt-0/preflight.json").read_text())
        self.assertEqual(report["verdict"], "pass", report)
        measured = {(m["group"], m["op"], m["backend"]) for m in report["measurements"]}
        self.assertIn(("learner world", "all_reduce", "gloo"), measured)
        self.assertIn(("weight sync", "broadcast", "gloo"), measured)

    def test_a_preflight_that_passed_a_moment_ago_is_not_repeated(self):
        (self.folder / "fails").write_text("0")
        path = self.folder / "experiment.yaml"
        path.write_text("version: 1\nname: test\nweight_sync: {backend: none}\ncpu_slots: true\nroles:\n"
                        f"  learner: {{kind: learner, count: 2, gpus: 1, rendezvous: torch, command: [sh, -c, 'exit $(cat {self.folder}/fails)']}}\n")

        def check(command, *arguments, code=0, level, said=None, env=None):
            result = self.nlaunch(command, path, "--site", "local", "--runs-dir", self.folder / "runs", *arguments, timeout=120, env=env)
            self.assertEqual(result.returncode, code, result.stderr)
            sentences = [line for line in result.stderr.splitlines() if "--fresh" in line]
            self.assertEqual(len(sentences), 0 if said is None else 1, result.stderr)
            for sentence in sentences:
                self.assertRegex(sentence, rf"^preflight: level quick, because level standard passed \d+m?s ago \(run {said}\) with the same plan, nodes, "
                                           r"GPUs, libraries and environment; --fresh repeats it$")
            run = max((self.folder / "runs/test").glob("2*"), key=lambda run: run.stat().st_mtime_ns)
            self.assertEqual(json.loads((run / "attempt-0/preflight.json").read_text())["level"], level)
            if command == "run":
                asked = json.loads((run / "summary.json").read_text())["preflight"]
                self.assertEqual(asked.get("passed_before"), said and {"run": said, "level": "standard"})
            return run.name

        first = check("preflight", level="standard")
        check("run", level="quick", said=first)
        check("run", "--level", "standard", level="standard")
        fresh = check("run", "--fresh", level="standard")
        check("run", level="standard", env={"DATA": "another"})
        check("run", level="standard", env={"SLURM_JOB_ID": "17"})
        check("run", level="quick", said=fresh, env={"SHLVL": "7"})
        (self.folder / "fails").write_text("3")
        check("run", level="quick", said=fresh, code=3)
        check("run", level="standard", code=3)


class Quickstart(CliTest):
    def test_it_runs_to_its_end(self):
        result = self.nlaunch("run", "configs/quickstart.yaml", "--runs-dir", self.folder / "runs", timeout=120)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, r"learner\.0 │ weight sync took [\d.]+s")
        self.assertRegex(result.stderr, r"run directory: .*/runs/quickstart/\d{8}-\d{6}-\d+\n$")

    def test_a_learner_that_fails_is_named(self):
        result = self.nlaunch("run", "configs/quickstart.yaml", "--runs-dir", self.folder / "runs", "--set", "vars.fail_rank=1", timeout=120)
        self.assertEqual(result.returncode, 3, result.stderr)
        self.assertIn("learner.1 exited with code 3", result.stderr)

    def test_ps_logs_exec_and_stop_from_another_terminal(self):
        runs = self.folder / "runs"
        process = subprocess.Popen([NLAUNCH, "run", "configs/quickstart.yaml", "--runs-dir", runs, "--no-preflight", "--set", "vars.hang_rank=1"],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=self.env, cwd=SOURCE)
        self.addCleanup(process.kill)
        deadline = time.monotonic() + 30
        while "learner.1" not in (ps := self.nlaunch("ps", "quickstart", "--runs-dir", runs)).stdout:
            self.assertLess(time.monotonic(), deadline, ps.stdout + ps.stderr)
            time.sleep(0.1)
        self.assertRegex(ps.stdout, r"run \S+ \(pid \d+, attempt 0\): running")
        log = runs / "quickstart/latest/attempt-0/logs/learner.0.log"
        while not log.exists() or not log.read_text():
            self.assertLess(time.monotonic(), deadline, "learner.0 says nothing")
            time.sleep(0.1)
        inside = self.nlaunch("exec", "quickstart", "learner.1", "--runs-dir", runs, "--", "sh", "-c", "echo $NLAUNCH_ROLE $RANK")
        self.assertEqual(inside.stdout, "learner 1\n", inside.stderr)
        follow = subprocess.Popen([NLAUNCH, "logs", "-f", "--role", "learner", "quickstart", "--runs-dir", runs], stdout=subprocess.PIPE, text=True, env=self.env)
        stopped = self.nlaunch("stop", "quickstart", "--runs-dir", runs)
        self.assertRegex(stopped.stdout, r"^run \S+ stopped: interrupted\n$")
        self.assertEqual(process.wait(timeout=10), 130)
        followed, _ = follow.communicate(timeout=10)
        self.assertIn("learner.0 │ ", followed)
        self.assertNotIn("engine", followed.split("│")[0])
        self.assertRegex(self.nlaunch("ps", "quickstart", "--runs-dir", runs).stdout, r": interrupted\n")


if __name__ == "__main__":
    unittest.main()

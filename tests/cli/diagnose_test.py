#!/usr/bin/env python3
"""nlaunch diagnose: what it reads, what it says, how it ends, and that no input can hurt it."""
import gzip
import io
import json
import os
import pathlib
import pty
import subprocess
import tarfile
import threading
import time
import unittest

from harness import NLAUNCH, CliTest

FULL = "OSError: [Errno 28] No space left on device\n"


class Diagnose(CliTest):
    def diagnose(self, *arguments, **options):
        return self.nlaunch("diagnose", *arguments, cwd=self.folder, **options)

    def findings(self, *arguments):
        done = self.diagnose("--json", *arguments)
        return done, json.loads(done.stdout)

    def write(self, name, content):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return name

    def test_the_cause_with_its_place_culprit_and_fix(self):
        self.write("job.log", "fine\n[rank3]: " + FULL)
        done = self.diagnose("job.log")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, r"""\Ajob\.log:2: error: a disk is full \[disk-full\]
  2 \| \[rank3\]: OSError: \[Errno 28\] No space left on device
culprit: rank 3
fix: free some space or use another directory: .*
confidence: sure \(errno 28, ENOSPC\)
read: 1 file, 2 lines, 58 bytes; \d+ signatures checked, \d analyses run
\Z""")

    def test_nothing_wrong_says_what_was_looked_at(self):
        self.write("job.log", "step 1\nstep 2\n")
        done = self.diagnose("job.log")
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stdout, r"\Ano problems found\nread: 1 file, 2 lines, 14 bytes; \d+ signatures checked, \d analyses run\n\Z")

    def test_json(self):
        self.write("job.log", "[rank3]: " + FULL + "srun: error: n7: task 3: Exited with exit code 1\n")
        done, said = self.findings("job.log")
        self.assertEqual(done.returncode, 1)
        first, second = said["findings"]
        self.assertEqual({key: first[key] for key in ("class", "severity", "role", "file", "line", "text", "culprit", "confidence", "lines")},
                         {"class": "disk-full", "severity": "error", "role": "cause", "file": "job.log", "line": 1, "text": "[rank3]: " + FULL.strip(),
                          "culprit": "rank 3", "confidence": "sure", "lines": 1})
        self.assertEqual((second["class"], second["severity"], second["role"]), ("process-exited", "warning", "consequence"))
        self.assertEqual(said["read"]["files"], [{"file": "job.log", "bytes": 102, "lines": 2}])

    MISSING = "/var/spool/slurmd/job123/slurm_script: line 12: vllm: command not found\n"

    def test_a_program_that_is_not_there_is_the_cause_where_nothing_comes_behind_it(self):
        self.write("job.log", "fine\n" + self.MISSING + "\n")
        done, said = self.findings("job.log")
        self.assertEqual(done.returncode, 1)
        self.assertEqual([(one["class"], one["role"], one["line"], one["confidence"]) for one in said["findings"]],
                         [("entrypoint-missing", "cause", 2, "likely")])
        self.assertEqual(said["notes"], [])
        self.write("job.log", self.MISSING + "step 1\n")  # the script went on
        done, said = self.findings("job.log")
        self.assertEqual((done.returncode, said["findings"], [one["class"] for one in said["notes"]]), (0, [], ["entrypoint-missing"]))

    def run_with(self, summary, **logs):
        for name, text in logs.items():
            self.write(f"run/attempt-0/logs/{name.replace('_', '.')}.log", text)
        self.write("run/plan.json", "{}")
        self.write("run/summary.json", json.dumps({"format": "nlaunch summary", "version": 1, **summary}))
        return self.findings("run")

    def test_a_run_whose_process_ended_with_127_lacks_the_program(self):
        def summary(code):
            return {"exit_code": code, "first": "learner.0", "sentence": "learner.0 exited", "processes": [{"name": "learner.0", "end": {"code": code}}]}
        told = "/usr/bin/bash: line 1: vlm: command not found\n"
        done, said = self.run_with(summary(127), learner_0=told + "cleaned up\n", learner_1=told)
        self.assertEqual(done.returncode, 1)
        self.assertEqual([(one["class"], one["file"], one["line"], one["culprit"], one["confidence"]) for one in said["findings"]],
                         [("entrypoint-missing", "run/attempt-0/logs/learner.0.log", 1, "learner.0", "sure")])
        _, said = self.run_with(summary(1), learner_0=told + "cleaned up\n", learner_1="fine\n")
        self.assertEqual([(one["class"], one["role"]) for one in said["findings"]], [("process-exited", "cause"), ("entrypoint-missing", "consequence")])
        done, said = self.run_with(summary(0), learner_0=told)
        self.assertEqual((done.returncode, said["findings"]), (0, []))

    def test_a_loss_that_is_no_number_counts_in_a_run_that_finished(self):
        summary = {"exit_code": 0, "outcome": "finished", "sentence": "finished", "processes": [{"name": "learner.0", "end": {"code": 0}}]}
        step = "{'loss': '0', 'grad_norm': 'nan', 'learning_rate': '1e+30'}\n"
        done, said = self.run_with(summary, learner_0=FULL + step * 4)
        self.assertEqual(done.returncode, 1)
        self.assertEqual([(one["class"], one["line"], one["culprit"], one["confidence"]) for one in said["findings"]],
                         [("nan-loss", 2, "learner.0", "likely")])
        self.assertIn("learning rate", said["findings"][0]["fix"])
        done, said = self.run_with(summary, learner_0=FULL + step)
        self.assertEqual((done.returncode, said["findings"]), (0, []))

    def test_an_oom_kill_that_the_cgroup_counted_explains_a_sigkill(self):
        for kills, said_of_it in ((0, ("process-killed", "sure")), (1, ("host-oom", "likely"))):
            summary = {"exit_code": 137, "first": "learner.0", "sentence": "learner.0 was killed by SIGKILL", "oom_kills": kills,
                       "processes": [{"name": "learner.0", "program": "train.py", "pid": 7, "end": {"signal": "SIGKILL"}}]}
            _, said = self.run_with(summary, learner_0="step 3\n")
            found = said["findings"][0]
            self.assertEqual((found["class"], found["confidence"], found["culprit"]), (*said_of_it, "learner.0 (train.py, pid 7)"))

    # vLLM 0.22.1: an API server that was asked to end asks its core to, kills it at once (often before it has said a word), and ends in good order.
    def test_of_a_server_and_its_part_the_one_is_named_that_was_asked_to_end(self):
        core = "(EngineCore pid=8) INFO 11-23 21:33:17 [core.py:1266] Shutdown initiated (timeout=0)\n"
        died = "(APIServer pid=7) ERROR 11-23 21:33:20 [async_llm.py:704] vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue.\n"
        server = "(APIServer pid=7) INFO 11-23 21:33:20 [launcher.py:137] Shutting down FastAPI HTTP server.\n"
        lost = "[rank0]: IndexError: list index out of range\n"

        def summary(first, end):
            return {"exit_code": 1, "first": first, "sentence": "it ended", "decided_ms": 10,
                    "lost_child": {"process": "engine.0", "name": "VLLM::EngineCore", "pid": 8, "end": end},
                    "processes": [{"name": "learner.0", "ended_ms": 10, "end": {"code": 1}},
                                  {"name": "engine.0", "ended_ms": 15, "log_when_decided": 10000, "end": {"signal": "SIGTERM"}}]}
        for log, first, end, who in ((core + died + server, "learner.0", {"code": 0}, "engine.0 (EngineCore, pid 8)"),
                                     (core + server, "engine.0", {"signal": "SIGKILL"}, "engine.0 (APIServer, pid 7)"),
                                     (server, "engine.0", {"signal": "SIGKILL"}, "engine.0 (APIServer, pid 7)")):
            with self.subTest(who):
                _, said = self.run_with(summary(first, end), engine_0=log, learner_0=lost)
                found = said["findings"][0]
                self.assertEqual((found["class"], found["confidence"], found["culprit"]), ("process-terminated", "likely", who))

    def test_a_summary_that_is_damaged_is_named_and_the_logs_are_judged(self):
        self.write("run/attempt-0/logs/learner.0.log", "[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has\n")
        self.write("run/plan.json", "{}")
        for text, problem in (("{", "it is not JSON"), ("[]", "it is not a JSON object"),
                              ('{"processes": [{"name": 7}]}', "'processes[0].name' must be a string, found: number")):
            self.write("run/summary.json", text)
            done = self.diagnose("run")
            self.assertEqual((done.returncode, done.stderr), (65, f"error: run/summary.json: {problem} [run.damaged]\n"))
            self.assertIn("[cuda-oom]", done.stdout)

    def test_usage(self):
        done = self.diagnose()
        self.assertEqual((done.returncode, done.stdout), (64, ""))
        self.assertEqual(done.stderr, "nlaunch diagnose: missing PATH: logs, directories, archives, a run of nlaunch, or - for standard input\n")
        done = self.diagnose("missing.log")
        self.assertEqual((done.returncode, done.stdout), (65, ""))
        self.assertIn("cannot read missing.log: No such file or directory", done.stderr)
        self.assertEqual(self.diagnose("--patience", "soon", "-").returncode, 64)

    def test_what_cannot_be_read_does_not_hide_what_can(self):
        self.write("job.log", FULL)
        done, said = self.findings("missing.log", "job.log")
        self.assertEqual(done.returncode, 65)
        self.assertEqual(said["findings"][0]["class"], "disk-full")

    def test_the_signatures_are_listed(self):
        listed = json.loads(self.diagnose("--list", "--json").stdout)
        self.assertGreaterEqual(len(listed), 200)
        self.assertEqual(set(listed[0]), {"id", "class", "kind", "weight", "pattern", "literals", "why", "fix", "source"})
        self.assertIn("disk.full", self.diagnose("--list").stdout)

    def test_folders_archives_and_packed_files(self):
        self.write("logs/b/rank3.log", FULL)
        self.write("logs/a.log", "fine\n")
        (self.folder / "logs/b/round").symlink_to(self.folder / "logs")
        (self.folder / "logs/gone").symlink_to("nowhere")
        done, said = self.findings("logs")
        self.assertEqual([one["file"] for one in said["read"]["files"]], ["logs/a.log", "logs/b/rank3.log"])
        self.assertEqual((said["findings"][0]["file"], said["findings"][0]["culprit"]), ("logs/b/rank3.log", "rank 3"))
        self.write("job.log.gz", gzip.compress(FULL.encode()))
        self.assertEqual(self.findings("job.log.gz")[1]["findings"][0]["line"], 1)
        with tarfile.open(self.folder / "all.tar.gz", "w:gz") as archive:
            archive.add(self.folder / "logs", "logs")
        _, said = self.findings("all.tar.gz")
        self.assertEqual(said["findings"][0]["file"], "all.tar.gz/logs/b/rank3.log")
        subprocess.run(["tar", "--use-compress-program=zstd", "-cf", "all.tar.zst", "logs"], cwd=self.folder, check=False)
        if (self.folder / "all.tar.zst").exists():
            self.assertEqual(self.findings("all.tar.zst")[1]["findings"][0]["class"], "disk-full")

    def test_standard_input(self):
        done = subprocess.run([NLAUNCH, "diagnose", "--json", "-"], input=FULL, capture_output=True, text=True, timeout=60, env=self.env)
        self.assertEqual(json.loads(done.stdout)["findings"][0]["file"], "(standard input)")

    def test_a_fifo_without_an_end_is_left_in_time(self):
        os.mkfifo(self.folder / "fifo")
        stop = threading.Event()

        def write():
            with open(self.folder / "fifo", "wb", buffering=0) as fifo:
                try:
                    while not stop.is_set():
                        fifo.write(FULL.encode())
                        time.sleep(0.01)
                except BrokenPipeError:
                    pass

        writer = threading.Thread(target=write)
        writer.start()
        began = time.monotonic()
        done, said = self.findings("--patience", "1s", "fifo")
        stop.set()
        writer.join()
        self.assertLess(time.monotonic() - began, 10)
        self.assertEqual((done.returncode, said["findings"][0]["class"]), (1, "disk-full"))
        self.assertEqual(said["read"]["files"][0]["remark"], "no end of input within 1 s")

    def test_ctrl_c_ends_the_reading_and_not_the_diagnosis(self):
        process = subprocess.Popen([NLAUNCH, "diagnose", "--json", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=self.env)
        process.stdin.write(FULL.encode())
        process.stdin.flush()
        time.sleep(1)
        process.send_signal(2)
        said = json.loads(process.stdout.read())
        self.assertEqual(process.wait(10), 1)
        process.stdin.close()
        process.stdout.close()
        self.assertEqual(said["read"]["files"][0]["remark"], "reading was stopped")
        self.assertEqual(said["findings"][0]["class"], "disk-full")

    def test_a_truncated_gzip_is_judged_as_far_as_it_goes(self):
        packed = gzip.compress(FULL.encode() + os.urandom(200_000))
        self.write("job.log.gz", packed[:len(packed) // 2])
        done, said = self.findings("job.log.gz")
        self.assertEqual(said["findings"][0]["class"], "disk-full")
        self.assertEqual(said["read"]["files"][0]["remark"], "truncated gzip: the part before that was read")

    def test_a_broken_archive_is_judged_as_far_as_it_goes(self):
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as archive:
            for name in ("a.log", "b.log"):
                member = tarfile.TarInfo(name)
                member.size = len(FULL)
                archive.addfile(member, io.BytesIO(FULL.encode()))
        self.write("all.tar", buffer.getvalue()[:1300])
        done = self.diagnose("all.tar")
        self.assertEqual(done.returncode, 1)
        self.assertIn("all.tar: truncated archive: the part before that was read", done.stderr)

    def test_binary_and_broken_text(self):
        self.write("core", os.urandom(3_000_000))
        self.write("job.log", b"\x00\x00\xff\xfe\x80\n" + FULL.encode() + b"\xc3(\n")
        done, said = self.findings("core", "job.log")
        self.assertEqual((said["findings"][0]["class"], said["findings"][0]["line"]), ("disk-full", 2))

    def test_a_line_of_100_mb_is_cut(self):
        with open(self.folder / "job.log", "wb") as file:
            for _ in range(100):
                file.write(b"x" * 1_000_000)
            file.write(FULL.encode())
        began = time.monotonic()
        process = subprocess.Popen([NLAUNCH, "diagnose", "--json", "job.log"], cwd=self.folder, stdout=subprocess.PIPE, env=self.env)
        said = json.loads(process.stdout.read())
        _, _, usage = os.wait4(process.pid, 0)
        process.returncode = 0
        process.stdout.close()
        self.assertLess(time.monotonic() - began, 30)
        if not os.environ.get("NLAUNCH_SANITIZE"):  # a sanitizer's own memory is larger
            self.assertLess(usage.ru_maxrss, 64 * 1024)
        self.assertLess(len(said["findings"][0]["text"]), 1000)
        self.assertEqual(said["findings"][0]["line"], 1)

    def test_escape_sequences_do_not_reach_a_terminal(self):
        self.write("job.log", "\x1b[2J\x1b]0;owned\x07[rank3]: OSError: [Errno 28] No space left on device \x9b31m\n")
        done = self.diagnose("--all", "job.log")
        self.assertNotIn("\x1b", done.stdout)
        self.assertNotIn("\x07", done.stdout)
        self.assertIn(r"\x1b[2J\x1b]0;owned\x07[rank3]", done.stdout)
        name = "evil\x1b[31m.log"
        self.write(name, FULL)
        self.assertNotIn("\x1b", self.diagnose(name).stdout)

    def test_colour_on_a_terminal_alone(self):
        self.write("job.log", FULL)
        leader, follower = pty.openpty()
        subprocess.run([NLAUNCH, "diagnose", "job.log"], cwd=self.folder, stdout=follower, env={**self.env, "TERM": "xterm"}, check=False)
        os.close(follower)
        self.assertIn(b"\x1b[1;31merror:", os.read(leader, 4096))
        os.close(leader)

    def test_a_run_that_failed_says_why(self):
        done = self.run_experiment("""roles:
  learner:
    kind: learner
    count: 2
    command: [bash, -c, "if [ ${self.index} = 1 ]; then echo 'OSError: [Errno 28] No space left on device'; exit 3; fi; sleep 60"]
""")
        self.assertEqual(done.returncode, 3)
        self.assertRegex(done.stderr, r"logs/learner\.1\.log:1: error: a disk is full \[disk-full\]\n.*\nculprit: learner\.1\nfix: ")
        self.assertIn(f"for details: nlaunch diagnose {self.run_folder}\n", done.stderr)
        said = json.loads((self.run_folder / "attempt-0/diagnosis.json").read_text())
        self.assertEqual(said["findings"][0]["class"], "disk-full")
        done, said = self.findings(self.run_folder)
        self.assertEqual((said["findings"][0]["class"], said["findings"][0]["culprit"]), ("disk-full", "learner.1"))
        self.assertEqual(sorted(pathlib.Path(one["file"]).name for one in said["read"]["files"]), ["learner.0.log", "learner.1.log"])

    def test_a_run_that_failed_without_a_known_word_names_who_ended(self):
        self.run_experiment("""roles:
  learner:
    kind: learner
    command: [bash, -c, "echo so it is; exit 3"]
""")
        _, said = self.findings(self.run_folder)
        self.assertEqual((said["findings"][0]["class"], said["findings"][0]["culprit"]), ("process-exited", "learner.0"))
        self.assertIn("learner.0 exited with code 3", said["findings"][0]["why"])
        self.assertEqual((said["findings"][0]["line"], said["findings"][0]["text"]), (1, "so it is"))


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/env python3
"""nlaunch bundle of real runs: one that finished, that failed, whose nlaunch was killed, that goes on, with secrets and hostile files."""
import hashlib
import io
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import tarfile
import time
import unittest

from harness import NLAUNCH, SOURCE, CliTest

TOKEN = "hf_" + "a1B2" * 8
LEARNER = """roles:
  learner: {kind: learner, count: 2, rendezvous: torch, command: [sh, -c, '%s'], stop: {grace: 1s}}
"""


class BundleTest(CliTest):
    def setUp(self):
        super().setUp()
        self.env.update(USER="alice", HOME=str(self.folder / "home" / "alice"))

    def finished(self, script="echo working", *arguments, **options):
        done = self.run_experiment(LEARNER % script, *arguments, **options)
        return done, self.run_folder

    def bundle(self, run, *arguments, **options):
        done = self.nlaunch("bundle", run, "--runs-dir", self.folder / "runs", *arguments, **options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def unpack(self, path):
        """{name without the folder: bytes} of a bundle, whose manifest is held against it."""
        data = subprocess.run(["zstd", "-dc", path], capture_output=True, check=True).stdout
        with tarfile.open(fileobj=io.BytesIO(data)) as tar:
            members = tar.getmembers()
            files = {member.name: tar.extractfile(member).read() for member in members}
        self.assertEqual(len(files), len(members), "a name comes twice")
        folders = {name.split("/")[0] for name in files}
        self.assertEqual(len(folders), 1, folders)
        files = {name.split("/", 1)[1]: content for name, content in files.items()}
        manifest = json.loads(files["MANIFEST.json"])
        for row in manifest["files"]:
            content = files[row["path"].encode("utf-8", "surrogateescape").decode("utf-8", "replace")] if row["path"] in files else None
            if content is not None:
                self.assertEqual((row["size"], row["sha256"]), (len(content), hashlib.sha256(content).hexdigest()), row["path"])
        self.assertEqual(len(manifest["files"]), len(files) - 1)
        return files, manifest

    def of(self, run, *arguments, **options):
        done = self.bundle(run, *arguments, **options)
        return (*self.unpack(pathlib.Path(done.stdout.split(" (")[0])), done)


class Bundles(BundleTest):
    def test_a_run_that_finished_is_whole_and_the_same_each_time(self):
        done, run = self.finished()
        self.assertEqual(done.returncode, 0, done.stderr)
        files, manifest, said = self.of("test")
        path = run.parent / f"test-{run.name}.tar.zst"
        self.assertRegex(said.stdout, rf"^{re.escape(str(path))} \([\d.]+ \w+: \d+ files, [\d.]+ \w+ unpacked\)\n$")
        for name in ("README.txt", "MANIFEST.json", "plan.json", "lock.json", "events.jsonl", "summary.json", "versions.json",
                     "environment/learner.env", "attempt-0/logs/learner.0.log", "attempt-0/logs/learner.1.log", "attempt-0/audit.json"):
            self.assertIn(name, files)
        self.assertEqual(files["attempt-0/logs/learner.0.log"], b"working\n")
        self.assertEqual((manifest["left_out"], manifest["secrets_masked"], manifest["names_taken_out"]), ([], [], []))
        self.assertTrue(all(row["whole"] for row in manifest["files"]))
        self.assertEqual(path.stat().st_mode & 0o777, 0o600)
        again, _, _ = self.of(run.name)
        self.assertEqual([name for name in files if files[name] != again[name] and not name.startswith(("machine/", "MANIFEST"))], [])
        self.assertEqual(list(files), list(again))
        self.assertEqual([entry for entry in os.listdir(run) if entry.startswith(".")], [])
        listed = subprocess.run(["tar", "tf", path], capture_output=True, text=True, check=True).stdout.splitlines()
        self.assertEqual(listed[0], f"test-{run.name}/README.txt")
        self.assertEqual(listed[-1], f"test-{run.name}/MANIFEST.json")

    def test_the_readme_of_a_failure(self):
        done, run = self.finished('echo "step 1 of $RANK"; [ $RANK = 0 ] || exit 3; sleep 30')
        self.assertEqual(done.returncode, 3, done.stderr)
        files, _, _ = self.of("test")
        text = files["README.txt"].decode()
        text = self.normal(text).replace(run.name, "RUN").replace(socket.gethostname(), "HOST")
        text = re.sub(r"after [\d.]+m?s", "after TIME", text)
        text = re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z", "DATE", text)
        text = re.sub(r"(?m)^(Versions      ).*\n(?: {14}.*\n)*", r"\1...\n", text)
        golden = SOURCE / "tests" / "golden" / "bundle" / "README.txt"
        if os.environ.get("NLAUNCH_UPDATE_GOLDEN"):
            golden.parent.mkdir(exist_ok=True)
            golden.write_text(text)
        self.assertEqual(text, golden.read_text())

    def test_of_a_long_log_head_and_tail(self):
        done, _ = self.finished("[ $RANK = 1 ] || seq -f \"line %.0f of many, many words\" 1 2000000")
        self.assertEqual(done.returncode, 0, done.stderr)
        files, manifest, said = self.of("test", "--limit", "1MiB")
        row = next(row for row in manifest["files"] if row["path"].endswith("learner.0.log"))
        self.assertFalse(row["whole"])
        lines = files[row["path"]].decode().splitlines()
        self.assertEqual((lines[0], lines[-1]), ("line 1 of many, many words", "line 2000000 of many, many words"))
        middle = [number for number, line in enumerate(lines) if not line.startswith("line ")]
        self.assertEqual([lines[number] for number in middle], [f"[nlaunch bundle: {row['cut_out']} bytes left out here]"])
        self.assertTrue(all(re.fullmatch(r"line \d+ of many, many words", line) for line in lines if not line.startswith("[")))
        self.assertLess(row["size"], (1 << 20) + 100)  # with the line between
        self.assertIn("truncated to head and tail: attempt-0/logs/learner.0.log", said.stderr)
        files, manifest, _ = self.of("test", "--limit", "1GiB")
        self.assertEqual(files[row["path"]].count(b"\n"), 2_000_000)

    def test_secrets_are_masked_and_named_but_never_shown(self):
        password, api_key = "correct-horse-battery", "0123456789abcdef" * 2 + "01234567"
        done, run = self.finished(f"echo one; echo \"token is {TOKEN}\"; env; echo WANDB_API_KEY={api_key}; echo https://bob:{password}@example.org/x",
                                  "--env", "DB_PASSWORD=swordfish-7")
        self.assertEqual(done.returncode, 0, done.stderr)
        nccl = run / "attempt-0" / "nccl"
        (nccl / "dump.pickle").write_bytes(b"\0\1" * 40 + TOKEN.encode() + b"\0")
        (nccl / "said.txt").write_text("the caller's is horse-staple-9\n")
        files, manifest, said = self.of("test", env={"MY_API_TOKEN": "horse-staple-9"})
        for name, content in files.items():
            for secret in (TOKEN, password, api_key, "swordfish-7", "horse-staple-9"):
                self.assertNotIn(secret.encode(), content, name)
                self.assertNotIn(secret, said.stdout + said.stderr)
        rows = {(row["path"], row["what"]): row for row in manifest["secrets_masked"]}
        log = "attempt-0/logs/learner.0.log"
        self.assertEqual(rows[log, "a Hugging Face token"]["lines"], [2])
        for what in ("WANDB_API_KEY", "DB_PASSWORD", "a password in a URL"):
            self.assertIn((log, what), rows)
        self.assertIn(("attempt-0/nccl/said.txt", "MY_API_TOKEN"), rows)
        self.assertIn({"path": "attempt-0/nccl/dump.pickle", "why": "binary, and contains what looks like a secret (a Hugging Face token)"},
                      manifest["left_out"])
        self.assertIn(f"masked: {log}:2: a Hugging Face token\n", said.stderr)
        self.assertIn("left out: attempt-0/nccl/dump.pickle: binary, and contains what looks like a secret", said.stderr)

    def test_redact_takes_out_who_and_where(self):
        host = socket.gethostname()
        done, run = self.finished(f"echo $USER at {host} in $HOME and 10.20.30.40; echo 10.20.30.40 127.0.0.1",
                                  env={"SLURM_JOB_ACCOUNT": "brics.u5x"})
        self.assertEqual(done.returncode, 0, done.stderr)
        evidence = run / "attempt-0" / "evidence" / "20260131T120000Z" / host
        evidence.mkdir(parents=True)
        (evidence / "blob.bin").write_bytes(b"\0" + host.encode())
        files, manifest, said = self.of("test", "--redact", env={"SLURM_JOB_ACCOUNT": "brics.u5x"})
        for name, content in files.items():
            for word in (host, "alice", "10.20.30.40", "brics.u5x"):
                self.assertIsNone(re.search(rb"(?<![0-9A-Za-z])" + re.escape(word.encode()) + rb"(?![0-9A-Za-z])", name.encode() + b"\n" + content), (name, word))
        log = files["attempt-0/logs/learner.0.log"].decode()
        self.assertRegex(log, r"^user-1 at node-1 in /home-1 and ip-1\nip-1 127.0.0.1\n$")
        self.assertIn("attempt-0/bound.node-1.json", files)
        json.loads(files["attempt-0/bound.node-1.json"])
        self.assertIn({"path": "attempt-0/evidence/20260131T120000Z/node-1/blob.bin", "why": "binary, and contains names"}, manifest["left_out"])
        counted = {row["kind"]: row for row in manifest["names_taken_out"]}
        self.assertEqual((counted["host names"]["names"], counted["user names"]["names"], counted["addresses"]["names"]), (1, 1, 1))
        self.assertIn("redacted: 1 host names", said.stderr)

    def test_what_is_no_file_is_left_out_with_its_reason(self):
        done, run = self.finished()
        logs = run / "attempt-0" / "logs"
        (run / "link.log").symlink_to("/etc/passwd")
        (run / "elsewhere").symlink_to("/etc")
        os.mkfifo(logs / "pipe.log")
        with socket.socket(socket.AF_UNIX) as listener:
            os.chdir(logs)
            self.addCleanup(os.chdir, SOURCE)
            listener.bind("socket.log")
            (run / "checkpoint.pt").write_bytes(bytes(2 << 20))
            (run / "notes").write_text("small\n")
            os.chdir(SOURCE)
            files, manifest, said = self.of("test")
        why = {row["path"]: row["why"] for row in manifest["left_out"]}
        self.assertEqual(why, {
            "attempt-0/logs/pipe.log": "a FIFO",
            "attempt-0/logs/socket.log": "a socket",
            "checkpoint.pt": "a file of the run's programs (2.0 MiB); only those up to 1.0 MiB are included",
            "elsewhere": "a symlink, which is not followed",
            "link.log": "a symlink, which is not followed",
        })
        self.assertEqual(files["notes"], b"small\n")
        for path in why:
            self.assertIn(f"left out: {path}: ", said.stderr)

    @unittest.skipIf(os.geteuid() == 0, "root may read everything")
    def test_a_file_that_cannot_be_read_is_left_out(self):
        _, run = self.finished()
        (run / "attempt-0" / "audit.json").chmod(0)
        _, manifest, _ = self.of("test")
        self.assertIn({"path": "attempt-0/audit.json", "why": "cannot be read: Permission denied"}, manifest["left_out"])

    def test_names_of_any_bytes(self):
        _, run = self.finished()
        logs = os.fsencode(run / "attempt-0" / "logs")
        names = [b"new\nline.log", b"esc\x1b[31m.log", b"\xff\xfe.log", b"l" * 240 + b".log", b" .log", "häß.log".encode()]
        for name in names:
            with open(os.path.join(logs, name), "wb") as file:
                file.write(b"content " + name[:4] + b"\n")
        done = self.bundle("test")
        self.assertNotIn("\x1b", done.stdout + done.stderr)
        data = subprocess.run(["zstd", "-dc", run.parent / f"test-{run.name}.tar.zst"], capture_output=True, check=True).stdout
        with tarfile.open(fileobj=io.BytesIO(data), encoding="utf-8", errors="surrogateescape") as tar:
            members = {os.fsencode(member.name).split(b"/logs/")[-1]: tar.extractfile(member).read() for member in tar.getmembers()}
        for name in names:
            self.assertEqual(members[name], b"content " + name[:4] + b"\n", name)

    def test_of_a_run_whose_nlaunch_was_killed(self):
        path = self.folder / "experiment.yaml"
        path.write_text("version: 1\nname: test\nweight_sync: {backend: gloo}\n" + LEARNER % "echo begun; sleep 60")
        process = subprocess.Popen([NLAUNCH, "run", path, "--site", "local", "--runs-dir", self.folder / "runs", "--no-preflight"],
                                   env=self.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, cwd=SOURCE)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not all(log.exists() and log.read_text() for log in self.logs()):
            time.sleep(0.1)
        with self.subTest("while it goes on"):
            files, _, _ = self.of("test")
            self.assertIn("How it ended  running\n", files["README.txt"].decode())
        for event in (self.run_folder / "events.jsonl").read_text().splitlines():
            event = json.loads(event)
            if event["event"] == "attempt-started":
                os.kill(event["supervisor"], signal.SIGSTOP)
                os.kill(event["guardian"], signal.SIGKILL)
                os.kill(event["supervisor"], signal.SIGKILL)
        process.wait()
        for event in (self.run_folder / "events.jsonl").read_text().splitlines():
            event = json.loads(event)
            if event["event"] == "process-started":
                try:
                    os.killpg(event["pid"], signal.SIGKILL)
                except ProcessLookupError:
                    pass
        (self.run_folder / "summary.json").unlink(missing_ok=True)
        with (self.run_folder / "events.jsonl").open("a") as events:
            events.write('{"mono_ms":1,"time":"2026')  # half a line
        files, _, _ = self.of("test")
        self.assertIn("How it ended  died without writing a summary (nlaunch was killed)\n", files["README.txt"].decode())
        self.assertTrue(files["events.jsonl"].endswith(b'"2026'))
        self.assertNotIn("summary.json", files)

    def logs(self):
        return [self.folder / "runs" / "test" / "latest" / "attempt-0" / "logs" / f"learner.{rank}.log" for rank in (0, 1)]

    def test_of_a_run_that_was_refused(self):
        done = self.run_experiment(LEARNER % "true", "--set", "roles.learner.command=[nowhere-to-be-found]")
        self.assertNotEqual(done.returncode, 0)
        run, = (path for path in (self.folder / "runs" / "test").iterdir() if not path.is_symlink())
        files, _, _ = self.of(run)
        self.assertIn("README.txt", files)

    def test_a_disk_that_is_full_leaves_nothing(self):
        _, run = self.finished()
        with open(run / "attempt-0" / "logs" / "noise.log", "wb") as noise:
            noise.write(os.urandom(4 << 20).hex().encode())
        before = sorted(os.listdir(run) + os.listdir(run.parent))
        done = subprocess.run(["sh", "-c", f"ulimit -f 1024; trap '' XFSZ; exec '{NLAUNCH}' bundle '{run}'"], env=self.env, capture_output=True,
                              text=True, cwd=SOURCE, timeout=60)
        self.assertEqual(done.returncode, 70, done.stderr)
        self.assertEqual(self.normal(done.stderr), f"error: cannot write '{self.normal(str(run.parent))}/test-{run.name}.tar.zst': File too large [bundle.write]\n")
        self.assertEqual(sorted(os.listdir(run) + os.listdir(run.parent)), before)

    def test_where_it_goes(self):
        _, run = self.finished()
        out = self.folder / "mine.tar.zst"
        self.bundle("test", "-o", out)
        self.unpack(out)
        self.assertFalse((run.parent / f"test-{run.name}.tar.zst").exists())
        for arguments, code, message in ((("-o", self.folder), 64, "is a directory: -o expects a file"),
                                         (("-o", self.folder / "no" / "x"), 70, "No such file or directory"),
                                         (("--limit", "9"), 64, "--limit 9: "),
                                         (("--limit", "1kB"), 64, "--limit 1kB: must be at least 4kB")):
            with self.subTest(arguments):
                done = self.nlaunch("bundle", "test", "--runs-dir", self.folder / "runs", *arguments)
                self.assertEqual((done.returncode, message in done.stderr), (code, True), done.stderr)
        done = self.nlaunch("bundle", "nobody", "--runs-dir", self.folder / "runs")
        self.assertEqual(done.returncode, 65)


if __name__ == "__main__":
    unittest.main()

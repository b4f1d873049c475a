#!/usr/bin/env python3
"""The exception that ends a rank, as PyTorch's `@record` leaves it: real processes, and PyTorch's own @record where Debian's PyTorch is installed."""
import json
import subprocess
import sys
import unittest

from harness import CliTest

DEBIAN = "/usr/bin/python3"  # has Debian's PyTorch

# What @record writes (torch/distributed/elastic/multiprocessing/errors/error_handler.py).
RECORD = """
import json, os, sys, time, traceback

def record(error):
    with open(os.environ["TORCHELASTIC_ERROR_FILE"], "w") as file:
        json.dump({"message": {"message": f"{type(error).__name__}: {error}", "extraInfo": {
            "py_callstack": traceback.format_exc(), "timestamp": str(int(time.time()))}}}, file)
"""

# Rank 1 fails, and takes its time to exit. Rank 0 loses its connection to it, and exits at once.
TWO_RANKS = RECORD + """
rank, raised = int(os.environ["RANK"]), os.path.join(os.environ["NLAUNCH_RUN_DIR"], "raised")
def loss():
    if rank == 1:
        raise ValueError("a NaN in the loss")
    while not os.path.exists(raised):
        time.sleep(0.02)
    time.sleep(0.2)
    raise RuntimeError("Connection closed by peer")
try:
    loss()
except Exception as error:
    record(error)
    if rank == 1:
        open(raised, "w").close()
        time.sleep(60)
    print("the log says nothing of it", flush=True)
    sys.exit(1)
"""


def roles(program, more="", python=sys.executable, count=1):
    return (f"roles: {{learner: {{kind: learner, count: {count}, rendezvous: torch, command: [{python}, -c, {json.dumps(program)}], "
            f"stop: {{grace: 1s}}{more}}}}}\n")


class ErrorFile(CliTest):
    def summary(self):
        return json.loads((self.run_folder / "summary.json").read_text())

    def events(self, name):
        events = [json.loads(line) for line in (self.run_folder / "events.jsonl").read_text().splitlines()]
        return [event for event in events if event["event"] == name]

    def test_the_rank_that_raised_first_failed_first(self):
        done = self.run_experiment("cpu_slots: true\n" + roles(TWO_RANKS, count=2))
        self.assertEqual(done.returncode, 1, done.stderr)
        sentence = r"learner\.1 raised ValueError \S+ into the run, \d+ms before learner\.0 exited with code 1: a NaN in the loss"
        self.assertRegex(done.stderr, r"learner\.0 exited with code 1 after .*; learner\.0 raised RuntimeError: Connection closed by peer; stopping the others\n")
        self.assertRegex(done.stderr, rf"\n{sentence}\n")
        summary = self.summary()
        self.assertEqual(summary["first"], "learner.1")
        self.assertRegex(summary["sentence"], f"^{sentence}$")
        exceptions = [process["exception"] for process in summary["processes"]]
        self.assertEqual([(one["type"], one["message"]) for one in exceptions],
                         [("RuntimeError", "Connection closed by peer"), ("ValueError", "a NaN in the loss")])
        self.assertLess(exceptions[1]["raised_ms"], exceptions[0]["raised_ms"])
        self.assertEqual([event["exception"] for event in self.events("process-raised")],
                         ["RuntimeError: Connection closed by peer", "ValueError: a NaN in the loss"])
        record = self.run_folder / "attempt-0/errors/learner.1.log"
        self.assertRegex(record.read_text(), r"(?s)^Traceback \(most recent call last\):\n.*, in loss\n.*ValueError: a NaN in the loss\n$")
        cause = json.loads((self.run_folder / "attempt-0/diagnosis.json").read_text())["findings"][0]
        self.assertEqual((cause["class"], cause["file"], cause["text"]), ("python-exception", str(record), "ValueError: a NaN in the loss"))
        self.assertIn("error: Python raised ValueError in loss (<string>:", self.nlaunch("diagnose", self.run_folder).stdout)

    def test_the_record_of_an_earlier_start_does_not_count(self):
        program = RECORD + """
once = os.path.join(os.environ["NLAUNCH_RUN_DIR"], "once")
if os.path.exists(once):
    os.kill(os.getpid(), 11)
open(once, "w").close()
try:
    1 / 0
except Exception as error:
    record(error)
    sys.exit(3)
"""
        done = self.run_experiment(roles(program, ", restart: {policy: on-failure, max: 1, backoff: 10ms}"))
        self.assertEqual(done.returncode, 139, done.stderr)
        self.assertRegex(done.stderr, r"\nlearner\.0 was terminated by SIGSEGV after \S+\n")
        self.assertEqual([event["exception"] for event in self.events("process-raised")], ["ZeroDivisionError: division by zero"])
        self.assertNotIn("exception", self.summary()["processes"][0])
        self.assertEqual(list((self.run_folder / "attempt-0/errors").iterdir()), [])

    def test_what_is_no_record_is_left_alone(self):
        for content in ("", "{", "[1]", '{"message": 7}', "x" * (2 << 20)):
            program = RECORD + f"open(os.environ['TORCHELASTIC_ERROR_FILE'], 'w').write({content[:20]!r} * {max(1, len(content) // 20)})\nsys.exit(4)"
            done = self.run_experiment(roles(program))
            self.assertEqual(done.returncode, 4, done.stderr)
            self.assertRegex(done.stderr, r"\nlearner\.0 exited with code 4 after \S+\n")
        link = "os.symlink('/etc/hostname', os.environ['TORCHELASTIC_ERROR_FILE']); sys.exit(4)"
        self.assertEqual(self.run_experiment(roles(RECORD + link)).returncode, 4)
        self.assertFalse((self.run_folder / "attempt-0/errors").exists())

    def test_a_secret_in_it_is_in_no_file_and_no_output(self):
        secret = "s3cr3t-value-0815"
        program = RECORD + """
try:
    raise ValueError("no access with " + os.environ["HUSH"])
except Exception as error:
    record(error)
    sys.exit(1)
"""
        done = self.run_experiment("secrets: {HUSH: env}\n" + roles(program), env={"HUSH": secret})
        self.assertEqual(done.returncode, 1)
        self.assertIn("; learner.0 raised ValueError: no access with ***\n", done.stderr)
        self.assertTrue((self.run_folder / "attempt-0/errors/learner.0.log").read_text().endswith("ValueError: no access with ***\n"))
        texts = {path: path.read_bytes() for path in self.folder.rglob("*") if path.is_file()}
        texts["output"] = (done.stdout + done.stderr).encode()
        for path, text in texts.items():
            self.assertNotIn(secret.encode(), text, path)

    def test_env_says_where_it_is_from(self):
        def explain(more=""):
            path = self.folder / "experiment.yaml"
            path.write_text("version: 1\nname: test\nweight_sync: {backend: gloo}\n" + roles("pass", more))
            return self.nlaunch("env", path, "--site", "local", "--role", "learner", "--explain", "TORCHELASTIC_ERROR_FILE").stdout
        ours = "${node.scratch}/errors/learner.0.json"
        self.assertRegex(explain(), rf"(?m)^nlaunch += \(if unset\) +{ours.replace('$', '[$]')} +nlaunch's default +← wins$")
        self.assertTrue(explain(", env: {TORCHELASTIC_ERROR_FILE: /mine}").endswith("\nTORCHELASTIC_ERROR_FILE=/mine\n"))

    def test_the_decorator_of_pytorch(self):
        if subprocess.run([DEBIAN, "-c", "import torch.distributed"], capture_output=True, check=False).returncode != 0:
            self.skipTest("Debian's PyTorch is not installed (python3-torch)")
        (self.folder / "train.py").write_text("""
from torch.distributed.elastic.multiprocessing.errors import record

def loss():
    raise ValueError("a NaN in the loss")

@record
def main():
    loss()

main()
""")
        done = self.run_experiment("roles: {learner: {kind: learner, rendezvous: torch, "
                                   f"command: [{DEBIAN}, {self.folder}/train.py]}}}}\n", timeout=120)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, r"\nlearner\.0 exited with code 1 after \S+; learner\.0 raised ValueError: a NaN in the loss\n")
        record = (self.run_folder / "attempt-0/errors/learner.0.log").read_text()
        self.assertRegex(record, r"(?s)^Traceback \(most recent call last\):\n.*train\.py\", line \d+, in loss\n.*\nValueError: a NaN in the loss\n$")
        self.assertIn("Python raised ValueError in loss (train.py:5)", done.stderr)


if __name__ == "__main__":
    unittest.main()

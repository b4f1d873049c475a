#!/usr/bin/env python3
"""What a run outlives: engines that hang, that crash for ever, that are lost, while a learner counts its steps and stays the same process."""
import json
import unittest

from harness import CliTest

# Serves /health; the first one of an index stops itself when it is told to.
ENGINE = r"""
import http.server, os, pathlib, signal, sys, threading, time
port, index, how = int(sys.argv[1]), sys.argv[2], sys.argv[3]
class Health(http.server.BaseHTTPRequestHandler):
    def do_GET(self): self.send_response(200); self.end_headers()
    def log_message(self, *words): pass
seen = pathlib.Path(os.environ["NLAUNCH_RUN_DIR"]) / f"seen-{index}"
first = not seen.exists()
seen.touch()
def fail():
    time.sleep(0.5)
    if how == "hang" and first: os.kill(os.getpid(), signal.SIGSTOP)
    if how == "die": os._exit(9)
threading.Thread(target=fail, daemon=True).start()
http.server.ThreadingHTTPServer(("", port), Health).serve_forever()
"""

LEARNER = r"""
import os, sys, time
print("learner", os.getpid(), flush=True)
time.sleep(float(sys.argv[1]))
"""

EXPERIMENT = """
cpu_slots: true
roles:
  engine:
    kind: engine
    count: {count}
    gpus: 1
    ports: [http]
    command: [python3, -c, {engine}, "${{self.ports.http}}", "${{self.index}}", {how}]
    ready: {{http: "http://${{self.host}}:${{self.ports.http}}/health", timeout: 20s}}
    alive: {{http: "http://${{self.host}}:${{self.ports.http}}/health", every: 200ms, timeout: 300ms, failures: 3}}
    restart: {restart}
    {more}
  learner: {{kind: learner, gpus: 1, command: [python3, -c, {learner}, "{seconds}"]}}
start: [[engine], [learner]]
"""


class Survive(CliTest):
    def run_of(self, how, restart, more="", count=1, seconds=4):
        return self.run_experiment(EXPERIMENT.format(
            count=count, engine=json.dumps(ENGINE), learner=json.dumps(LEARNER), how=json.dumps(how), restart=restart, more=more, seconds=seconds))

    def summary(self):
        return json.loads((self.run_folder / "summary.json").read_text())

    def process(self, name):
        return next(one for one in self.summary()["processes"] if one["name"] == name)

    def test_an_engine_that_hangs_is_replaced(self):
        result = self.run_of("hang", "{policy: on-failure, max: 2, backoff: 100ms}")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout + result.stderr, r"nlaunch: engine\.0 stopped responding \(http://\S+/health: .*, 3 times in a row\)\n")
        self.assertIn("nlaunch: engine.0 restarts in 100ms (restart 1 of 2)\n", result.stdout + result.stderr)
        self.assertEqual(self.process("engine.0")["restarts"], 1)
        learner = self.process("learner.0")
        self.assertEqual((learner["restarts"], (self.run_folder / "attempt-0/logs/learner.0.log").read_text()), (0, f"learner {learner['pid']}\n"))
        events = [json.loads(line) for line in (self.run_folder / "events.jsonl").read_text().splitlines()]
        at = {one["event"]: one["mono_ms"] for one in events if one.get("process") == "engine.0" and one["event"] != "process-started"}
        self.assertIn("process-unresponsive", at)
        self.assertIn({"event": "process-killed", "process": "engine.0", "why": "it no longer serves requests"},
                      [{key: one.get(key) for key in ("event", "process", "why")} for one in events])

    def test_without_a_restart_a_hang_ends_the_run(self):
        result = self.run_of("hang", "{policy: never}", seconds=30)
        self.assertEqual(result.returncode, 124, result.stderr)
        self.assertEqual((self.summary()["outcome"], self.summary()["first"]), ("unresponsive", "engine.0"))
        self.assertRegex(self.summary()["what"], r"^engine\.0 stopped responding \(http://\S+/health: .*, 3 times in a row\) \S+ into the run$")

    def test_the_run_goes_on_with_enough_engines(self):
        result = self.run_of("hang", "{policy: never}", "tolerate: {min: 0}", count=2)
        self.assertEqual(result.returncode, 0, result.stderr)
        summary = self.summary()
        self.assertEqual(summary["outcome"], "finished")
        for name, left in (("engine.0", 1), ("engine.1", 0)):
            self.assertRegex(self.process(name)["lost"], rf"^{name} stopped responding")
        self.assertEqual(sorted(one.rpartition("; ")[2] for one in summary["troubles"] if "continues" in one)[-1][:29], "the run continues without eng")

    def test_what_dies_in_the_same_way_at_once_is_not_started_for_ever(self):
        result = self.run_of("die", "{policy: on-failure, max: 50, backoff: {from: 10ms, to: 40ms}}", seconds=60)
        self.assertEqual(result.returncode, 9, result.stderr)
        self.assertEqual(self.process("engine.0")["restarts"], 2)
        self.assertRegex(self.summary()["what"], r"^engine\.0 exited with code 9 after .*; crash loop: it failed the same way 3 times in a row, each time soon after its start, and is not restarted$")
        for wait in ("10ms (restart 1 of 50)", "20ms (restart 2 of 50)"):
            self.assertIn(f"nlaunch: engine.0 exited with code 9; it restarts in {wait}\n", result.stdout + result.stderr)

    def test_too_few_engines_end_the_run(self):
        result = self.run_of("die", "{policy: never}", "tolerate: {min: 1}", count=2, seconds=60)
        self.assertEqual(result.returncode, 9, result.stderr)
        self.assertEqual(len([one for one in self.summary()["processes"] if one["lost"]]), 1)

    def test_what_no_run_can_do_without(self):
        path = self.folder / "experiment.yaml"
        path.write_text("""version: 1
name: demo
roles:
  learner: {kind: learner, tolerate: {min: 0}, command: [sh]}
  ranks: {kind: service, count: 2, rendezvous: torch, tolerate: {min: 1}, command: [sh]}
  all: {kind: engine, count: 2, tolerate: {min: 2}, command: [sh]}
  one: {kind: engine, tolerate: {min: 1}, command: [sh]}
""")
        result = self.nlaunch("plan", path, "--site", "local", "--set", "weight_sync.backend=gloo")
        self.assertEqual(result.returncode, 65)
        self.assertEqual([line.partition("error: ")[2] for line in result.stderr.splitlines() if "error: " in line], [
            "the run ends with role 'learner', so none of its processes can be lost [plan.tolerate]",
            "the processes of role 'ranks' share one communicator, which fails when one of them ends [plan.tolerate]",
            "2 of role 'all' must remain, but there are 2: none can be lost [plan.tolerate]",
            "1 of role 'one' must remain, but there are 1: none can be lost [plan.tolerate]"])


if __name__ == "__main__":
    unittest.main()

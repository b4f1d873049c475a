#!/usr/bin/env python3
"""Who uses engines is told which of them there are; and what a run is asked for while it goes on: restart, scale, drain, update."""
import json
import re
import subprocess
import time
import unittest

from harness import NLAUNCH, SOURCE, CliTest

# Serves anything; says that it has weights half a second after its start, and dies when its file says so.
ENGINE = r"""
import http.server, os, pathlib, sys, threading, time
port, index = int(sys.argv[1]), sys.argv[2]
class All(http.server.BaseHTTPRequestHandler):
    tokens = 0
    def do_GET(self):
        stuck = (pathlib.Path(os.environ["NLAUNCH_RUN_DIR"]) / f"stuck-{index}").exists()
        All.tokens += 0 if stuck else 1
        self.send_response(200); self.end_headers()
        self.wfile.write(f"# TYPE tokens counter\ntokens{{model=\"a\"}} {All.tokens}\nrunning 1\n".encode())
    def log_message(self, *words): pass
def watch():
    time.sleep(0.5)
    print("loaded weights of step 7", flush=True)
    die = pathlib.Path(os.environ["NLAUNCH_RUN_DIR"]) / f"die-{index}"
    while True:
        if die.exists():
            die.unlink()
            os._exit(9)
        time.sleep(0.05)
threading.Thread(target=watch, daemon=True).start()
http.server.ThreadingHTTPServer(("", port), All).serve_forever()
"""

# Counts until a file says that it is enough; prints each signal and each POST.
LEARNER = r"""
import http.server, os, pathlib, signal, sys, threading, time
class Told(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        print("posted", self.rfile.read(int(self.headers["Content-Length"])).decode(), flush=True)
        self.send_response(200); self.end_headers()
    def log_message(self, *words): pass
threading.Thread(target=http.server.HTTPServer(("", int(sys.argv[1])), Told).serve_forever, daemon=True).start()
signal.signal(signal.SIGUSR1, lambda *_: print("told", pathlib.Path(sys.argv[2]).read_text().split(), flush=True))
print("learner", os.getpid(), flush=True)
while not (pathlib.Path(os.environ["NLAUNCH_RUN_DIR"]) / "enough").exists(): time.sleep(0.05)
"""

EXPERIMENT = """
version: 1
name: steered
cpu_slots: true
weight_sync: {{backend: none}}
roles:
  engine:
    kind: engine
    count: 3
    ports: [http]
    command: [python3, -c, {engine}, "${{self.ports.http}}", "${{self.index}}"]
    ready: {{http: "http://${{self.host}}:${{self.ports.http}}/", timeout: 20s}}
    restart: {{policy: on-failure, max: 2, backoff: 100ms}}
    fresh: {{log: 'weights of step \\d+'}}
    stop: {{grace: 2s}}
    {more}
  learner:
    kind: learner
    ports: [admin]
    command: [python3, -c, {learner}, "${{self.ports.admin}}", "${{role.engine.addrs_file}}"]
    on_change: {on_change}
start: [[engine], [learner]]
"""


class Steer(CliTest):
    def begin(self, on_change, more=""):
        path = self.folder / "steered.yaml"
        path.write_text(EXPERIMENT.format(engine=json.dumps(ENGINE), learner=json.dumps(LEARNER), on_change=on_change, more=more))
        self.process = subprocess.Popen([NLAUNCH, "run", path, "--site", "local", "--no-preflight", "--runs-dir", self.folder / "runs"], cwd=SOURCE, env=self.env,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.process.communicate)
        self.addCleanup(self.process.kill)
        self.wait_until(lambda: "learner " in self.log("learner.0"))

    def wait_until(self, true, seconds=20):
        deadline = time.monotonic() + seconds
        while not true():
            self.assertLess(time.monotonic(), deadline, "it did not come to that")
            time.sleep(0.02)

    @property
    def run_folder(self):
        return (self.folder / "runs" / "steered" / "latest").resolve()

    def log(self, process):
        try:
            return (self.run_folder / "attempt-0" / "logs" / f"{process}.log").read_text()
        except OSError:
            return ""

    def events(self, name):
        events = [json.loads(line) for line in (self.run_folder / "events.jsonl").read_text().splitlines()]
        return [event for event in events if event["event"] == name]

    def addresses(self):
        return (self.run_folder / "attempt-0" / "addrs" / "engine").read_text().split()

    def generation(self):
        return int((self.run_folder / "attempt-0" / "addrs" / "engine.generation").read_text())

    def nlaunch(self, *arguments):
        done = subprocess.run([NLAUNCH, *arguments, "--runs-dir", self.folder / "runs"], capture_output=True, text=True, timeout=60, env=self.env, cwd=SOURCE)
        return done.returncode, done.stdout.replace(self.run_folder.name, "ID") if self.run_folder.exists() else done.stdout, done.stderr

    def end(self):
        (self.run_folder / "enough").touch()
        out, err = self.process.communicate(timeout=30)
        self.assertEqual(self.process.returncode, 0, err)
        return out + err

    def states(self):
        _, out, _ = self.nlaunch("ps", self.run_folder.name)
        return dict(re.findall(r"^ *((?:engine|learner)\.\d) .*?(ready, stale|ready|running|lost|exited with code \d+)", out, re.M))

    def test_a_restart_is_two_changes_that_the_trainer_is_told_of(self):
        self.begin("{of: engine, signal: USR1}")
        every = self.addresses()
        self.assertEqual((len(every), self.generation()), (3, 1))
        (self.run_folder / "die-1").touch()
        self.wait_until(lambda: self.generation() == 3)
        self.assertEqual(self.addresses(), every)
        changes = [{key: event[key] for key in ("role", "generation", "addresses", "added", "removed")} for event in self.events("addresses")]
        self.assertEqual(changes, [
            {"role": "engine", "generation": 2, "addresses": [every[0], every[2]], "added": [], "removed": [every[1]]},
            {"role": "engine", "generation": 3, "addresses": every, "added": [every[1]], "removed": []}])
        self.assertEqual(self.states()["engine.1"], "ready, stale")
        self.wait_until(lambda: self.events("process-fresh"))
        self.assertEqual(self.states()["engine.1"], "ready")
        said = self.end()
        self.assertIn("nlaunch: engine.1 has the current weights\n", said)
        told = re.findall(r"^told (.*)$", self.log("learner.0"), re.M)
        self.assertEqual(told, [str([every[0], every[2]]), str(every)])
        self.assertEqual([event["process"] for event in self.events("process-stale")], ["engine.1"])

    def test_a_server_is_told_by_post(self):
        self.begin('{of: [engine], post: "http://${self.host}:${self.ports.admin}/engines"}')
        every = self.addresses()
        (self.run_folder / "die-0").touch()
        self.wait_until(lambda: self.log("learner.0").count("posted") == 2)
        posted = [json.loads(text) for text in re.findall(r"^posted (.*)$", self.log("learner.0"), re.M)]
        self.assertEqual(posted[0], {"role": "engine", "generation": 2, "addresses": every[1:], "added": [], "removed": every[:1]})
        self.assertEqual(posted[1], {"role": "engine", "generation": 3, "addresses": every, "added": every[:1], "removed": []})
        self.end()

    def test_a_program_is_told_by_its_environment(self):
        self.begin('{of: engine, exec: [bash, -c, \'echo "$NLAUNCH_CHANGE_ROLE $NLAUNCH_CHANGE_GENERATION +$NLAUNCH_CHANGE_ADDED -$NLAUNCH_CHANGE_REMOVED" >> ${run.dir}/told\']}')
        every = self.addresses()
        (self.run_folder / "die-2").touch()
        self.wait_until(lambda: (self.run_folder / "told").exists() and len((self.run_folder / "told").read_text().splitlines()) == 2)
        self.assertEqual((self.run_folder / "told").read_text(), f"engine 2 + -{every[2]}\nengine 3 +{every[2]} -\n")
        self.end()

    def test_who_cannot_be_told_is_said_and_the_run_goes_on(self):
        self.begin("{of: engine, exec: [bash, -c, 'echo no such router >&2; exit 3']}")
        (self.run_folder / "die-2").touch()
        self.wait_until(lambda: self.generation() == 3)
        self.assertIn("nlaunch: the on_change program of learner.0 did not accept the new addresses of 'engine': "
                      "exited with code 3: no such router\n", self.end())

    def test_one_that_stands_by_takes_the_place_at_once(self):
        self.begin("{of: engine, signal: USR1}", "standby: 1")
        used = self.addresses()
        self.assertEqual(len(used), 2)
        self.wait_until(lambda: len(self.events("process-ready")) == 3)
        (self.run_folder / "die-0").touch()
        self.wait_until(lambda: self.generation() == 2)
        self.assertEqual((len(self.addresses()), self.addresses()[0]), (2, used[1]))
        self.assertNotIn(used[0], self.addresses())
        self.wait_until(lambda: len(self.events("process-ready")) == 4)
        self.assertEqual(self.generation(), 2)
        self.end()
        self.assertEqual(len(re.findall("^told ", self.log("learner.0"), re.M)), 1)

    def test_an_engine_that_answers_and_does_nothing_is_replaced(self):
        self.begin("{of: engine, signal: USR1}", 'throughput: {metrics: "http://${self.host}:${self.ports.http}/metrics", counter: tokens, while: running, every: 200ms, within: 1s}')
        (self.run_folder / "stuck-1").touch()
        self.wait_until(lambda: self.events("process-unresponsive"))
        self.wait_until(lambda: self.generation() == 3)
        said = self.end()
        self.assertRegex(said, r"nlaunch: engine\.1 stopped responding \(tokens has been stuck at \d+ for 1s while running is 1\)\n")
        self.assertEqual({event["process"] for event in self.events("process-unresponsive")}, {"engine.1"})

    def test_a_restart_that_is_requested_counts_as_none(self):
        self.begin("{of: engine, signal: USR1}")
        pids = {event["process"]: event["pid"] for event in self.events("process-started")}
        self.assertEqual(self.nlaunch("restart", self.run_folder.name, "engine.2"), (0, "run ID: restarting engine.2\n", ""))
        self.wait_until(lambda: self.generation() == 3)
        self.assertEqual(self.nlaunch("restart", "steered", "engine"), (0, "run ID: restarting engine.0, engine.1, engine.2\n", ""))
        self.wait_until(lambda: len(self.events("process-ready")) == 3 + 1 + 3)
        starts = [event["process"] for event in self.events("process-started")]
        self.assertEqual([starts.count(name) for name in ("engine.0", "engine.1", "engine.2", "learner.0")], [2, 2, 3, 1])
        said = self.end()
        self.assertIn("nlaunch: as requested: restarting engine.2\n", said)
        self.assertNotIn("restarts in", said)
        self.assertIn(f"learner {pids['learner.0']}\n", self.log("learner.0"))

    def test_fewer_engines_and_again_all_of_them(self):
        self.begin("{of: engine, signal: USR1}")
        every = self.addresses()
        self.assertEqual(self.nlaunch("scale", "steered", "engine=1"), (0, "run ID: scaling 'engine' to 1: stopping engine.1, engine.2\n", ""))
        self.wait_until(lambda: self.addresses() == every[:1] and len(self.events("process-ended")) == 2)
        self.assertEqual(self.nlaunch("scale", "steered", "engine=1"), (0, "run ID: 'engine' already has 1\n", ""))
        self.assertEqual(self.nlaunch("scale", "steered", "engine=2"), (0, "run ID: scaling 'engine' to 2: starting engine.1\n", ""))
        self.wait_until(lambda: self.addresses() == every[:2])
        self.assertEqual(self.nlaunch("scale", "steered", "engine=3"), (0, "run ID: scaling 'engine' to 3: starting engine.2\n", ""))
        # The last signal must not come while Python exits, which takes its handlers away.
        self.wait_until(lambda: f"told {every}\n" in self.log("learner.0"))
        self.end()
        self.assertEqual(json.loads((self.run_folder / "summary.json").read_text())["outcome"], "finished")

    def update(self, *more):
        return self.nlaunch("update", "steered", str(self.folder / "steered.yaml"), "--site", "local", *more)

    def test_a_role_gets_other_settings(self):
        self.begin("{of: engine, signal: USR1}")
        every = self.addresses()
        self.assertEqual(self.update(), (0, "", f"run {self.run_folder.name} already has this plan; if only code changed, use `nlaunch restart {self.run_folder.name} ROLE`\n"))
        file = self.folder / "steered.yaml"
        file.write_text(file.read_text().replace("loaded weights of step 7", "loaded weights of step 8").replace("    ports: [http]\n", "    ports: [http]\n    env: {EXTRA: \"1\"}\n"))
        code, out, err = self.update()
        self.assertEqual((code, err), (0, "nothing has changed yet: restart these roles with --yes\n"))
        self.assertRegex(out, r"^engine\n  command\n    - python3 -c .*step 7.*\n    \+ python3 -c .*step 8.*\n  env EXTRA\n    \+ 1\n$")
        self.assertEqual(self.update("--yes")[::2], (0, ""))
        self.wait_until(lambda: all("step 8" in self.log(f"engine.{index}") for index in range(3)))
        self.wait_until(lambda: len(self.events("process-ready")) >= 6)
        self.assertEqual(len([event for event in self.events("process-started") if event["process"] == "learner.0"]), 1)
        self.assertEqual(self.addresses(), every)
        self.assertEqual(self.update()[0], 0)
        said = self.end()
        self.assertIn("nlaunch: as requested: restarting engine.0, engine.1, engine.2\n", said)
        plan = json.loads((self.run_folder / "plan.json").read_text())
        self.assertIn("step 8", json.dumps(plan["roles"]))

    def test_an_update_that_cannot_be_changes_nothing(self):
        self.begin("{of: engine, signal: USR1}")
        file = self.folder / "steered.yaml"
        before = file.read_text()
        file.write_text(before.replace("count: 3", "count: 2"))
        code, _, err = self.update("--yes")
        self.assertEqual((code, err), (65, "nlaunch update: processes, engine count cannot change during the run\n"))
        file.write_text(before.replace("command: [python3, -c", "command: [no-such-python3, -c", 1))
        code, _, err = self.update("--yes")
        self.assertEqual(code, 65)
        self.assertRegex(err, r"^nlaunch update: engine: [^\n]*no-such-python3")
        self.assertEqual(len(self.events("process-started")), 4)
        self.end()

    def test_what_cannot_be_is_refused_with_the_reason(self):
        self.begin("{of: engine, signal: USR1}")
        for words, why in (
                (("restart", "steered", "engin"), "'engin' not found in the run; it has engine (engine.0 to engine.2), learner"),
                (("restart", "steered", "engine.3"), "'engine.3' not found in the run; it has engine (engine.0 to engine.2), learner"),
                (("scale", "steered", "engine=4"), "the plan has room for 3 of 'engine', not for 4"),
                (("scale", "steered", "engine=0"), "'engine' needs at least 1, and 0 would be left"),
                (("scale", "steered", "learner=1"), "role 'learner' cannot be scaled: only engines and services can"),
                (("drain", "steered", "node7"), "the run is on one machine: its processes cannot move to another node")):
            self.assertEqual(self.nlaunch(*words), (65, "", f"nlaunch {words[0]}: {why}\n"))
        self.assertEqual(self.nlaunch("scale", "steered", "engine"), (64, "", "nlaunch scale: expected ROLE=N, got 'engine'\n"))
        self.end()
        code, _, err = self.nlaunch("restart", "steered", "engine")
        self.assertEqual((code, err), (65, f"nlaunch restart: run {self.run_folder.name} is not running: finished\n"))
        self.assertFalse(list((self.run_folder / "attempt-0" / "requests").iterdir()))

    def test_what_is_no_request_is_removed(self):
        self.begin("{of: engine, signal: USR1}")
        requests = self.run_folder / "attempt-0" / "requests"
        requests.mkdir(mode=0o700)
        for number, text in enumerate(("", "{", "[]", '{"kind": "eat", "what": "engine", "count": 0}', '{"kind": 1, "what": [], "count": -1}', "x" * 10000)):
            (requests / f"{number}.request").write_text(text)
        (requests / "link.request").symlink_to("/etc/passwd")
        self.wait_until(lambda: not list(requests.iterdir()))
        self.end()

    def test_what_makes_no_sense_is_refused(self):
        path = self.folder / "wrong.yaml"
        path.write_text("""version: 1
name: wrong
cpu_slots: true
weight_sync: {backend: none}
roles:
  learner: {kind: learner, standby: 1, count: 2, command: [sh], on_change: {of: [engines, learner, mute], signal: USR1}}
  ranks: {kind: service, count: 2, rendezvous: torch, standby: 1, ports: [a], command: [sh]}
  mute: {kind: engine, count: 2, standby: 1, command: [sh]}
  all: {kind: engine, count: 2, standby: 2, ports: [a], command: [sh]}
""")
        done = subprocess.run([NLAUNCH, "plan", path, "--site", "local"], capture_output=True, text=True, env=self.env, cwd=SOURCE)
        self.assertEqual((done.returncode, re.findall(r"error: (.*) \[", done.stderr)), (65, [
            "unknown role 'engines'", "role 'learner' cannot be notified of its own changes",
            "role 'mute' has no ports, so it has no address that could change"]), done.stderr)
        path.write_text(path.read_text().replace(", on_change: {of: [engines, learner, mute], signal: USR1}", ""))
        done = subprocess.run([NLAUNCH, "plan", path, "--site", "local"], capture_output=True, text=True, env=self.env, cwd=SOURCE)
        self.assertEqual((done.returncode, re.findall(r"error: (.*) \[", done.stderr)), (65, [
            "role 'learner' cannot have standbys", "role 'ranks' cannot have standbys",
            "role 'mute' has no ports: no other role gets the addresses of its processes, standby or not",
            "2 of role 'all' would be on standby, but there are 2: none would be used"]), done.stderr)
        path.write_text("version: 1\nname: wrong\nroles: {engine: {kind: engine, throughput: vllm, command: [vllm]}, learner: {kind: learner, command: [sh]}}\n")
        done = subprocess.run([NLAUNCH, "plan", path, "--site", "local"], capture_output=True, text=True, env=self.env, cwd=SOURCE)
        self.assertIn("error: vllm is checked on port 'http', which role 'engine' does not have [plan.ready]", done.stderr)


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/env python3
"""The metrics of a run: on a port and in a file while it runs and after its end; whatever becomes of them, the run goes on."""
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import unittest
import urllib.error
import urllib.request

from harness import NLAUNCH, CliTest

try:
    from prometheus_client import parser
    from prometheus_client.openmetrics import parser as openmetrics_parser
except ImportError:
    parser = None

# Serves a metric of its own once it says that it is ready, and exits when the file `fail` appears.
ENGINE = """
import http.server, os, pathlib, sys, threading, time
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"engine_metric 1\\n")
    def log_message(self, *_):
        pass
server = http.server.HTTPServer((sys.argv[1], int(sys.argv[2])), Page)
threading.Thread(target=server.serve_forever, daemon=True).start()
print("serving", flush=True)
fail = pathlib.Path(sys.argv[3])
while not fail.exists():
    time.sleep(0.1)
fail.unlink()
sys.exit(3)
"""
# Trains until the file that is its argument appears.
LEARNER = """
import pathlib, sys, time
step = 0
while not pathlib.Path(sys.argv[1]).exists():
    step += 1
    print("step", step, "reward", step / 100, flush=True)
    time.sleep(0.3)
"""
OPENMETRICS = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.2"


class Metrics(CliTest):
    def experiment(self, more=""):
        path = self.folder / "experiment.yaml"
        engine = [sys.executable, "-c", ENGINE, "${self.host}", "${self.ports.http}", str(self.folder / "fail")]
        learner = [sys.executable, "-c", LEARNER, str(self.folder / "enough")]
        path.write_text(f"""version: 1
name: test
cpu_slots: true
weight_sync: {{backend: none}}
roles:
  engine: {{kind: engine, ports: [other, http], metrics: http, command: {json.dumps(engine)}, ready: {{log: serving}},
           restart: {{policy: on-failure, backoff: 100ms}}, tolerate: {{min: 0}}}}
  learner: {{kind: learner, command: {json.dumps(learner)}}}
start: [[engine], [learner]]
watch: {{progress: 'step (\\d+)', metrics: {{reward: 'reward (\\S+)'}}}}
{more}
""")
        return path

    def run_in_background(self, *arguments, more=""):
        """A run whose messages go to the file `said`."""
        with (self.folder / "said").open("w") as said:
            process = subprocess.Popen([NLAUNCH, "run", self.experiment(more), "--site", "local", "--no-preflight",
                                        "--runs-dir", self.folder / "runs", *map(str, arguments)],
                                       env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=said)
        self.addCleanup(process.wait)
        self.addCleanup(process.terminate)
        return process

    def wait_for(self, condition, seconds=40):
        until = time.monotonic() + seconds
        while not (value := condition()):
            self.assertLess(time.monotonic(), until, self.said())
            time.sleep(0.1)
        return value

    def said(self):
        return (self.folder / "said").read_text()

    def end(self, process):
        (self.folder / "enough").touch()
        self.assertEqual(process.wait(timeout=60), 0, self.said())

    def url(self):
        return self.wait_for(lambda: re.search(r"^nlaunch: metrics: (http://127\.0\.0\.1:\d+/metrics)$", self.said(), re.M))[1]

    @staticmethod
    def get(url, accept=""):
        """(Content-Type, body)"""
        request = urllib.request.Request(url, headers={"Accept": accept} if accept else {})
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=20) as answer:
            return answer.headers["Content-Type"], answer.read().decode()

    @staticmethod
    def value(text, sample):
        """The value of a sample, which is named without the label `run`: 'nlaunch_run_up', 'a{b="c"}'."""
        found = re.search(rf"^{re.escape(sample)} (\S+)$", re.sub(r'run="[^"]*",?', "", text).replace("{}", ""), re.M)
        return None if found is None else float(found[1])

    def targets(self):
        try:
            return json.loads((self.folder / "runs" / f"file_sd.test.{self.run_folder.name}.json").read_text())
        except FileNotFoundError:
            return []

    def exporters(self):
        """The pids of the processes that export metrics of runs in this test's folder."""
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0") if entry.name.isdigit() else []
            except OSError:
                continue
            if words[1:2] == [b"exporter"] and words[2].startswith(os.fsencode(self.folder)):
                found.append(int(entry.name))
        return found

    def test_a_run_is_scraped_while_it_runs_and_read_after_its_end(self):
        file = self.folder / "run.prom"
        process = self.run_in_background("--metrics-file", file, "--metrics-port", 0)
        url = self.url()
        self.wait_for(lambda: (self.value(self.get(url)[1], "nlaunch_run_step") or 0) >= 3)
        kind, text = self.get(url)
        self.assertEqual(kind, "text/plain; version=0.0.4; charset=utf-8")
        run = self.run_folder.name
        self.assertIn(f'nlaunch_run_info{{run="{run}",name="test",site="local"}} 1\n', text)
        for sample, value in (("nlaunch_run_up", 1), ('nlaunch_run_state{state="running"}', 1), ("nlaunch_run_attempt", 0),
                              ('nlaunch_process_up{process="engine.0",role="engine"}', 1), ('nlaunch_process_ready{process="engine.0",role="engine"}', 1),
                              ('nlaunch_process_restarts_total{process="learner.0",role="learner"}', 0)):
            self.assertEqual(self.value(text, sample), value, sample)
        self.assertGreaterEqual(self.value(text, "nlaunch_run_steps_total"), 3)
        self.assertGreater(self.value(text, 'nlaunch_run_step_seconds{stat="median"}'), 0.1)
        self.assertGreater(self.value(text, 'nlaunch_run_phase_seconds{phase="productive"}'), 0)
        self.assertGreaterEqual(self.value(text, 'nlaunch_run_metric{metric="reward"}'), 0.03)
        self.assertGreaterEqual(self.value(text, 'nlaunch_process_step{process="learner.0",role="learner"}'), 3)
        self.assertNotIn("DCGM", text)

        kind, text = self.get(url, OPENMETRICS)
        self.assertEqual(kind, "application/openmetrics-text; version=1.0.0; charset=utf-8")
        self.assertIn("# TYPE nlaunch_run_steps counter\nnlaunch_run_steps_total{", text)
        self.assertTrue(text.endswith("\n# EOF\n"))
        with self.assertRaises(urllib.error.HTTPError) as other:
            self.get(url.replace("/metrics", "/"))
        self.assertEqual(other.exception.code, 404)

        self.wait_for(lambda: file.exists() and self.value(file.read_text(), "nlaunch_run_step"))
        self.assertEqual(self.value(file.read_text(), "nlaunch_run_up"), 1)
        self.assertEqual(len(self.exporters()), 1)

        self.end(process)
        text = file.read_text()
        for sample, value in (("nlaunch_run_up", 0), ('nlaunch_run_state{state="finished"}', 1),
                              ('nlaunch_process_up{process="learner.0",role="learner"}', 0)):
            self.assertEqual(self.value(text, sample), value, sample)
        self.assertEqual(sorted(path.name for path in (self.folder / "runs").iterdir()), ["test"])
        self.assertEqual(self.exporters(), [])
        with self.assertRaises(urllib.error.URLError):
            self.get(url)
        self.assertEqual([path.name for path in self.folder.glob("run.prom*")], ["run.prom"])
        summary = json.loads((self.run_folder / "summary.json").read_text())
        self.assertEqual(summary.get("left_behind", []), [])

    @unittest.skipIf(parser is None, "prometheus_client is not installed")
    def test_the_parsers_of_prometheus_client_take_it(self):
        process = self.run_in_background("--metrics-port", 0)
        url = self.url()
        self.wait_for(lambda: self.value(self.get(url)[1], "nlaunch_run_step"))
        plain = list(parser.text_string_to_metric_families(self.get(url)[1]))
        other = list(openmetrics_parser.text_string_to_metric_families(self.get(url, OPENMETRICS)[1]))
        self.assertIn("nlaunch_run_step", [family.name for family in plain])
        self.assertEqual([family.name for family in plain], [family.name for family in other])
        self.end(process)

    @unittest.skipUnless(shutil.which("promtool"), "promtool is not installed")
    def test_promtool_finds_nothing_wrong(self):
        process = self.run_in_background("--metrics-file", self.folder / "run.prom", "--metrics-port", 0)
        url = self.url()
        self.wait_for(lambda: self.value(self.get(url)[1], "nlaunch_run_step"))
        self.end(process)
        done = subprocess.run(["promtool", "check", "metrics"], input=(self.folder / "run.prom").read_text(), capture_output=True,
                              text=True, timeout=60, check=False)
        self.assertEqual((done.returncode, done.stdout + done.stderr), (0, ""))

    def test_targets_are_the_servers_that_are_ready(self):
        process = self.run_in_background("--metrics-port", 0)
        own = self.url().removeprefix("http://").removesuffix("/metrics")
        first, engine = self.wait_for(lambda: len(found := self.targets()) == 2 and found)
        self.assertEqual(first, {"targets": [own]})
        self.assertEqual(engine["labels"], {"run": self.run_folder.name, "role": "engine", "process": "engine.0", "replica": "0"})
        self.assertEqual(self.get(f"http://{engine['targets'][0]}/metrics")[1], "engine_metric 1\n")
        (self.folder / "fail").touch()
        self.wait_for(lambda: self.value(self.get(f"http://{own}/metrics")[1], 'nlaunch_process_restarts_total{process="engine.0",role="engine"}') == 1)
        self.wait_for(lambda: len(self.targets()) == 2)
        self.end(process)

    def test_a_file_that_cannot_be_written_is_said_once(self):
        """Also when nothing else happens in the run any more."""
        (self.folder / "none").mkdir()
        file = self.folder / "none" / "run.prom"
        process = self.run_in_background("--metrics-file", file)
        self.wait_for(lambda: file.exists() and self.value(file.read_text(), "nlaunch_run_step"))
        shutil.rmtree(file.parent)
        trouble = f"nlaunch: metrics: cannot write '{self.folder}/none/run.prom': No such file or directory; the run continues\n"
        self.wait_for(lambda: trouble in self.said())
        self.end(process)
        self.assertEqual(self.said().count("nlaunch: metrics:"), 1)

    @unittest.skipUnless(shutil.which("promtool"), "promtool is not installed")
    def test_promtool_finds_the_targets_of_all_runs(self):
        process = self.run_in_background("--metrics-port", 0)
        self.wait_for(lambda: len(self.targets()) == 2)
        config = self.folder / "prometheus.yml"
        config.write_text(f"scrape_configs: [{{job_name: nlaunch, file_sd_configs: [{{files: ['{self.folder}/runs/file_sd.*.json']}}]}}]\n")
        done = subprocess.run(["promtool", "check", "service-discovery", config, "nlaunch", "--timeout=5s"], capture_output=True, text=True, timeout=60, check=False)
        found = json.loads(done.stdout[done.stdout.index("[\n"):])
        self.assertEqual(sorted(target["labels"].get("process", "") for target in found), ["", "engine.0"])
        self.end(process)

    def test_a_port_in_use_is_said(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            process = self.run_in_background("--metrics-port", port)
            self.wait_for(lambda: f"nlaunch: metrics: cannot listen on 127.0.0.1:{port}: Address already in use; the run continues\n" in self.said())
            self.end(process)
        self.assertEqual(self.targets(), [])

    def test_a_file_that_blocks_does_not_block_the_run(self):
        os.mkfifo(self.folder / "run.prom")
        (self.folder / "enough").touch()
        begin = time.monotonic()
        done = self.nlaunch("run", self.experiment(), "--site", "local", "--no-preflight", "--runs-dir", self.folder / "runs",
                            "--metrics-file", self.folder / "run.prom")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("nlaunch: metrics: the last figures could not be written in time; the run continues\n", done.stderr)
        self.assertLess(time.monotonic() - begin, 40)
        self.assertEqual(self.exporters(), [])

    def test_a_run_whose_nlaunch_was_killed_is_down(self):
        file = self.folder / "run.prom"
        process = self.run_in_background("--metrics-file", file)
        self.wait_for(lambda: file.exists() and self.value(file.read_text(), "nlaunch_run_up"))
        self.wait_for(lambda: "learner.0" in (self.run_folder / "events.jsonl").read_text())
        started = next(event for line in (self.run_folder / "events.jsonl").read_text().splitlines()
                       if (event := json.loads(line))["event"] == "attempt-started")
        os.kill(started["supervisor"], signal.SIGKILL)
        self.assertEqual(process.wait(timeout=60), 70)
        self.wait_for(lambda: not self.exporters())
        self.assertEqual(self.value(file.read_text(), "nlaunch_run_up"), 0)
        self.assertEqual(self.value(file.read_text(), 'nlaunch_process_up{process="engine.0",role="engine"}'), 0)
        self.assertRegex(self.said(), r"the supervisor was killed by SIGKILL; \d process(es)? of the run (was|were) killed\n")

    def test_an_experiment_says_where_they_go_and_an_option_says_otherwise(self):
        (self.folder / "enough").touch()
        more = 'metrics: {file: "${run.dir}/own.prom", port: 0}'
        path = self.experiment(more)
        done = self.nlaunch("run", path, "--site", "local", "--no-preflight", "--runs-dir", self.folder / "runs")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, r"nlaunch: metrics: http://127\.0\.0\.1:\d+/metrics\n")
        self.assertEqual(self.value((self.run_folder / "own.prom").read_text(), "nlaunch_run_up"), 0)
        plan = self.folder / "plan.json"
        plan.write_text(self.nlaunch("plan", path, "--site", "local", "--json").stdout)
        self.assertEqual(json.loads(plan.read_text())["metrics"], {"file": "${run.dir}/own.prom", "listen": "127.0.0.1:0"})
        done = self.nlaunch("run", "--plan", plan, "--no-preflight", "--runs-dir", self.folder / "runs", "--metrics-file", "${run.name}-${run.id}.prom",
                            "--quiet", cwd=self.folder)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertTrue((self.folder / f"test-{self.run_folder.name}.prom").exists())
        self.assertFalse((self.run_folder / "own.prom").exists())

    def test_signals_for_the_run_do_not_end_the_exporter(self):
        file = self.folder / "run.prom"
        process = self.run_in_background("--metrics-file", file, "--metrics-port", 0)
        url = self.url()
        self.wait_for(lambda: self.value(self.get(url)[1], "nlaunch_run_step"))
        self.wait_for(self.targets)
        exporter, = self.exporters()
        for one in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
            os.kill(exporter, one)
        self.wait_for(lambda: self.value(self.get(url)[1], "nlaunch_run_step") >= 5)
        self.end(process)
        self.assertEqual(self.said().count("nlaunch: metrics:"), 1)  # where it listens
        self.assertEqual(self.value(file.read_text(), "nlaunch_run_up"), 0)
        self.assertGreaterEqual(self.value(file.read_text(), 'nlaunch_process_step{process="learner.0",role="learner"}'), 5)
        self.assertEqual(self.targets(), [])

    def test_a_page_of_another_name_is_refused(self):
        process = self.run_in_background("--metrics-port", 0)
        with self.assertRaises(urllib.error.HTTPError) as refused:
            urllib.request.build_opener(urllib.request.ProxyHandler({})).open(urllib.request.Request(self.url(), headers={"Host": "evil.example"}), timeout=20)
        self.assertEqual(refused.exception.code, 403)
        self.end(process)

    def test_a_trouble_that_nobody_reads_does_not_hold_up_the_run(self):
        reader, writer = os.pipe()
        self.addCleanup(os.close, reader)
        process = subprocess.Popen([NLAUNCH, "run", self.experiment(), "--site", "local", "--no-preflight", "--runs-dir", self.folder / "runs",
                                    "--metrics-file", self.folder / "run.prom"],
                                   env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=writer)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.wait_for_quietly(lambda: (self.folder / "runs" / "test" / "latest").exists())
        events = self.run_folder / "events.jsonl"
        self.wait_for_quietly(lambda: "learner.0" in events.read_text())
        # Another description of the pipe: nlaunch's own stays blocking.
        full = os.open(f"/proc/self/fd/{writer}", os.O_WRONLY | os.O_NONBLOCK)
        with self.assertRaises(BlockingIOError):
            while True:
                os.write(full, b"x" * 4096)
        with self.assertRaises(BlockingIOError):
            while True:
                os.write(full, b"x")
        os.close(full)
        os.close(writer)
        os.kill(self.exporters()[0], signal.SIGKILL)
        (self.folder / "enough").touch()
        self.wait_for_quietly(lambda: '"attempt-ended"' in events.read_text())
        while os.read(reader, 65536):
            pass
        self.assertEqual(process.wait(timeout=60), 0)

    def wait_for_quietly(self, condition, seconds=30):
        until = time.monotonic() + seconds
        while not condition():
            self.assertLess(time.monotonic(), until, "not in time")
            time.sleep(0.1)

    def test_what_is_wrong_is_said(self):
        for words, said in (
                (("--metrics-port", "n1:80"), "--metrics-port: 'n1:80' is not a port from 0 to 65535, or ADDRESS:PORT with a numeric address"),
                (("--metrics-file", "${node.scratch}/a"), "--metrics-file: the name of the file cannot contain '${node.scratch}'")):
            done = self.nlaunch("run", self.experiment(), *words)
            self.assertEqual((done.returncode, done.stderr), (64, f"nlaunch run: {said}\nsee nlaunch run --help\n"))
        done = self.nlaunch("exporter", self.folder)
        self.assertEqual((done.returncode, done.stderr), (64, "nlaunch exporter: nlaunch itself starts this command\n"))


SITE = """version: 1
name: box
scheduler: {kind: slurm, submit: [sbatch]}
node: {gpus: 2}
"""
GPU_EXPERIMENT = """version: 1
name: test
weight_sync: {backend: none}
roles:
  learner: {kind: learner, gpus: 1, command: [sh, -c, "true"]}
watch: {progress: 'step (\\d+)'}
"""


class Exporter(CliTest):
    """`nlaunch exporter` alone: it reads a run directory that the test writes, of a run that is led on another host."""

    value = staticmethod(Metrics.value)

    def setUp(self):
        super().setUp()
        (self.folder / "site.yaml").write_text(SITE)
        (self.folder / "experiment.yaml").write_text(GPU_EXPERIMENT)
        plan = self.nlaunch("plan", self.folder / "experiment.yaml", "--site", self.folder / "site.yaml", "--json")
        self.assertEqual(plan.returncode, 0, plan.stderr)
        self.run = self.folder / "runs" / "test" / "20260131-120000-1"
        self.attempt = self.run / "attempt-0"
        for name in ("gpu-use", "logs"):
            (self.attempt / name).mkdir(parents=True)
        (self.run / "plan.json").write_text(plan.stdout)
        self.tell("run", id=self.run.name, name="test", site="box", host="another-host", pid=1, start_ticks=0)
        self.tell("attempt-started", attempt=0)
        self.file = self.folder / "run.prom"
        self.targets = self.folder / "runs" / f"file_sd.test.{self.run.name}.json"
        self.targets.write_text("[]")  # of an exporter that was killed
        self.channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.addCleanup(self.channel.close)
        self.exporter = subprocess.Popen([NLAUNCH, "exporter", self.run, "--file", self.file], stdin=theirs, stdout=subprocess.DEVNULL, env=self.env)
        self.addCleanup(self.exporter.wait)
        self.addCleanup(self.exporter.kill)
        theirs.close()

    def tell(self, event, **fields):
        now = time.time()
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now * 1000) % 1000:03}Z"
        with (self.run / "events.jsonl").open("a") as events:
            events.write(json.dumps({"mono_ms": int(time.monotonic() * 1000), "time": stamp, "event": event, **fields}) + "\n")

    def sample(self, name, least=None, seconds=9):
        """The value of a sample in the file; by then it has it, before the next file is due."""
        until = time.monotonic() + seconds
        while not self.file.exists() or (got := self.value(self.file.read_text(), name)) is None or (least is not None and got < least):
            self.assertLess(time.monotonic(), until, self.file.read_text() if self.file.exists() else "no file")
            time.sleep(0.05)
        return got

    def test_the_file_is_there_at_once_and_has_what_is_new_soon(self):
        learner = '{process="learner.0",role="learner"}'
        self.assertEqual(self.sample("nlaunch_run_up", seconds=3), 1)
        self.assertEqual(self.value(self.file.read_text(), "nlaunch_process_up" + learner), 0)
        self.assertFalse(self.targets.exists())
        self.tell("process-started", process="learner.0", pid=1, restarts=0)
        self.sample("nlaunch_process_ready" + learner, least=1)
        self.assertNotIn("DCGM", self.file.read_text())
        (self.attempt / "bound.n1.json").write_text(json.dumps({"gpus": [{"bus_id": "A", "uuid": "GPU-1"}, {"bus_id": "B", "uuid": "GPU-2"}]}))
        (self.attempt / "gpu-use" / "n1.jsonl").write_text(json.dumps({"at": time.time(), "gpus": [{"bus_id": "A", "busy": 93}]}) + "\n")
        gpu = 'gpu="0",UUID="GPU-1",pci_bus_id="A",Hostname="n1",'
        self.assertEqual(self.sample("DCGM_FI_DEV_GPU_UTIL{" + gpu + "}"), 93)
        (self.attempt / "logs" / "learner.0.log").write_text("step 7\n")
        self.tell("process-ended", process="learner.0", pid=1, how="exited with code 0")
        self.tell("end", outcome="finished", exit_code=0)
        self.channel.close()
        self.assertEqual(self.exporter.wait(timeout=20), 0)
        text = self.file.read_text()
        for name, value in (("nlaunch_run_up", 0), ('nlaunch_run_state{state="finished"}', 1), ("nlaunch_process_step" + learner, 7)):
            self.assertEqual(self.value(text, name), value, name)

    def test_what_another_leader_exports_is_left_to_it(self):
        self.sample("nlaunch_run_up", seconds=3)
        self.file.write_text("of another exporter\n")
        self.targets.write_text("[]")
        self.channel.close()
        self.assertEqual(self.exporter.wait(timeout=20), 0)
        self.assertEqual((self.file.read_text(), self.targets.read_text()), ("of another exporter\n", "[]"))


if __name__ == "__main__":
    unittest.main()

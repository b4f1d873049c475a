"""What `nlaunch collect` takes from where, and that it leaves everybody as it was."""
import http.server
import json
import os
import pathlib
import pickle
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from fake_ras import FakeRas
from hangs import NLAUNCH, states


class Ras(unittest.TestCase):
    """Processes of no framework, and a server that speaks as NCCL's RAS does."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="nlaunch-ras-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.processes = [subprocess.Popen(["sleep", "600"]) for _ in range(3)]
        for process in self.processes:
            self.addCleanup(process.wait)
            self.addCleanup(process.kill)

    def collect(self, **of_each):
        subjects = [{"name": f"learner.{rank}", "rank": rank, "pid": process.pid, **of_each}
                    for rank, process in enumerate(self.processes)]
        spec = {"folder": str(self.folder / "evidence"), "host": "node0", "deadline_s": 8, "processes": subjects}
        ran = subprocess.run([NLAUNCH, "collect", "-"], input=json.dumps(spec), env={"PATH": "/nowhere"}, text=True,
                             capture_output=True, timeout=30, check=True)
        return json.loads(ran.stdout)

    def verdict(self):
        ran = subprocess.run([NLAUNCH, "evidence", self.folder / "evidence", "--json"], text=True, capture_output=True,
                             timeout=30, check=True)
        return json.loads(ran.stdout)

    def analysis(self, source):
        return next(one for one in self.verdict()["sources"] if one["source"] == source)

    def counts(self, *launched):
        return {rank: (process.pid, count) for (rank, process), count in zip(enumerate(self.processes), launched)}

    def test_json(self):
        with FakeRas(self.counts(120, 119, 120)) as ras:
            self.collect(ras=ras.address)
            self.assertEqual(sorted(ras.heard)[::3], ["CLIENT PROTOCOL 2", "SET FORMAT json", "TIMEOUT 5", "VERBOSE STATUS"])
        self.assertEqual(self.analysis("NCCL RAS"), {
            "source": "NCCL RAS", "sure": True, "accused": ["learner.1"],
            "says": ["communicator 0xd1f2: learner.1 has launched 119 AllReduce, most ranks 120"]})

    def test_json_with_a_rank_that_does_not_answer(self):
        with FakeRas(self.counts(120, None, 120)) as ras:
            self.collect(ras=ras.address)
        self.assertEqual(self.analysis("NCCL RAS")["says"], ["communicator 0xd1f2: learner.1 does not answer"])

    def test_text_of_a_release_before_json(self):
        with FakeRas(self.counts(120, 120, 7), knows_json=False) as ras:
            self.collect(ras=ras.address)
        self.assertTrue((self.folder / "evidence/node0/learner.0/ras.txt").exists())
        self.assertEqual(self.analysis("NCCL RAS")["accused"], ["learner.2"])

    def test_a_server_that_says_nothing_holds_up_nobody(self):
        with FakeRas({}, mute=True) as ras:
            began = time.monotonic()
            said = self.collect(ras=ras.address)
            self.assertLess(time.monotonic() - began, 12)
        why = [one["why"] for one in said["processes"]["learner.0"]["missing"] if one["what"] == "NCCL RAS"]
        self.assertIn(why, ([f"{ras.address} did not answer in time"], ["it did not answer in time"]))

    def test_nobody_listens(self):
        said = self.collect(ras="127.0.0.1:1")
        missing = [one for one in said["processes"]["learner.0"]["missing"] if one["what"] == "NCCL RAS"]
        self.assertEqual(missing, [{"what": "NCCL RAS", "why": "127.0.0.1:1: Connection refused",
                                    "install": "NCCL 2.24 or newer listens there once a communicator exists"}])

    def test_the_flight_recorder_is_triggered_by_its_pipe(self):
        """Ranks that dump as PyTorch 2.5 does, when somebody writes into their pipe."""
        for rank, done in enumerate((8, 7, 8)):
            self.play_recorder(rank, done)
        prefix = str(self.folder / "trace_")
        said = self.collect(recorder_pipe=prefix, recorder_dump=prefix)
        self.assertIn("flight-recorder.1", said["processes"]["learner.1"]["got"])
        analysis = self.analysis("flight recorder")
        self.assertEqual(analysis["accused"], ["learner.1"])
        self.assertEqual(analysis["says"], ["group 0 (default_pg), collective 8 (all_reduce): ranks 0 and 2 entered it, "
                                           "rank 1 never did"])

    def play_recorder(self, rank, last):
        entries = [{"record_id": number, "pg_id": 0, "process_group": ("0", "default_pg"), "collective_seq_id": number,
                    "p2p_seq_id": 0, "op_id": number, "profiling_name": "nccl:all_reduce", "time_created_ns": 1000 * number,
                    "input_sizes": [[1024]], "input_dtypes": ["Float"], "output_sizes": [[1024]], "output_dtypes": ["Float"],
                    "state": "completed" if number < 8 else "started", "time_discovered_started_ns": None,
                    "time_discovered_completed_ns": None, "retired": number < 8, "timeout_ms": 600000, "is_p2p": False,
                    "frames": [{"name": "step", "filename": "train.py", "line": 12}]}
                   for number in range(1, last + 1)]
        dump = {"version": "2.4", "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1, 2]"}},
                "pg_status": {"0": {"last_enqueued_collective": last, "last_started_collective": last,
                                    "last_completed_collective": 7}}, "entries": entries}
        pipe = self.folder / f"trace_{rank}.pipe"
        os.mkfifo(pipe)
        reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)

        def serve():
            end = time.monotonic() + 20
            while time.monotonic() < end:
                try:
                    if os.read(reader, 1):
                        (self.folder / f"trace_{rank}").write_bytes(pickle.dumps(dump, protocol=2))
                        break
                except BlockingIOError:
                    pass
                time.sleep(0.05)
            os.close(reader)
        thread = threading.Thread(target=serve)
        thread.start()
        self.addCleanup(thread.join)


class Engine(http.server.BaseHTTPRequestHandler):
    """Answers as vLLM's API server does, with the state of its server."""

    def do_GET(self):
        state = self.server.state
        if self.path in state["mute"]:
            time.sleep(4)
            return
        if self.path == "/metrics":
            state["looks"] += 1
        body = {
            "/health": "",
            "/is_paused": json.dumps({"is_paused": state["paused"]}),
            "/metrics": 'vllm:num_requests_running{engine="0"} %d\nvllm:num_requests_waiting{engine="0"} 1\n'
                        'vllm:prompt_tokens_total{engine="0"} 10\nvllm:generation_tokens_total{engine="0"} %d\n'
                        'python_info{secret="a"} 1\n' % (state["running"], state["looks"] * state["rate"]),
        }[self.path].encode()
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for chunk in (body, b"") if body else (b"",):
            self.wfile.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass


class Servers(unittest.TestCase):
    """What an engine says of itself over HTTP."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="nlaunch-server-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.process = subprocess.Popen(["sleep", "600"])
        self.addCleanup(self.process.wait)
        self.addCleanup(self.process.kill)
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Engine)
        self.server.state = {"paused": False, "running": 3, "rate": 0, "looks": 0, "mute": ()}
        thread = threading.Thread(target=self.server.serve_forever)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)

    def collect(self, **state):
        self.server.state.update(state)
        host, port = self.server.server_address
        spec = {"folder": str(self.folder / "evidence"), "host": "node0", "deadline_s": 10,
                "processes": [{"name": "engine.0", "pid": self.process.pid, "url": f"http://{host}:{port}/health"}]}
        began = time.monotonic()
        subprocess.run([NLAUNCH, "collect", "-"], input=json.dumps(spec), env={"PATH": "/nowhere"}, text=True,
                       capture_output=True, timeout=30, check=True)
        self.assertLess(time.monotonic() - began, 6)
        return json.loads((self.folder / "evidence/node0/engine.0/server.json").read_text())

    def sentence(self):
        ran = subprocess.run([NLAUNCH, "evidence", self.folder / "evidence", "--json"], text=True, capture_output=True,
                             timeout=30, check=True)
        return json.loads(ran.stdout)["sentence"]

    def test_one_that_generates_nothing(self):
        said = self.collect()
        self.assertEqual((said["health"]["status"], said["is_paused"]["paused"]), (200, False))
        self.assertEqual([look["counters"] for look in said["metrics"]], 2 * [{
            "vllm:num_requests_running": 3, "vllm:num_requests_waiting": 1, "vllm:prompt_tokens_total": 10,
            "vllm:generation_tokens_total": 0}])
        self.assertGreaterEqual(said["metrics"][1]["at"], said["metrics"][0]["at"] + 0.9)
        self.assertEqual(self.sentence(), "engine.0 on node0 is the culprit: it has 4 requests in flight and generates nothing")

    def test_one_that_generates(self):
        self.collect(rate=7)
        self.assertEqual(self.sentence(), "unsure: nothing shows which process is to blame")

    def test_one_that_is_paused(self):
        self.assertTrue(self.collect(paused=True)["is_paused"]["paused"])
        self.assertEqual(self.sentence(),
                         "unsure: engine.0 on node0 may be the culprit: it is paused (GET /is_paused), and nothing has resumed it")

    def test_one_that_does_not_answer(self):
        said = self.collect(mute=("/health", "/is_paused", "/metrics"))
        self.assertEqual(said["health"]["error"], "no answer in time")
        self.assertEqual(self.sentence(), "unsure: engine.0 on node0 may be the culprit: it does not answer on its "
                                          "health path: no answer in time")

    def test_nobody_listens(self):
        self.server.shutdown()
        self.server.server_close()
        self.assertEqual(self.collect()["health"]["error"], "Connection refused")


class Stops(unittest.TestCase):
    """Whoever reads the stacks of a process, and however that ends, the process goes on."""
    THREADS = 200
    PROGRAM = f"""
import threading, time
for _ in range({THREADS}): threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
print("ready", flush=True)
time.sleep(600)
"""

    def setUp(self):
        self.target = subprocess.Popen([sys.executable, "-c", self.PROGRAM], stdout=subprocess.PIPE, text=True)
        self.addCleanup(self.target.wait)
        self.addCleanup(self.target.kill)
        self.addCleanup(self.target.stdout.close)
        self.assertEqual(self.target.stdout.readline(), "ready\n")
        self.folder = tempfile.mkdtemp(prefix="nlaunch-stops-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def collect(self):
        spec = {"folder": self.folder + "/evidence", "host": "node0", "deadline_s": 20,
                "processes": [{"name": "learner.0", "pid": self.target.pid}]}
        process = subprocess.Popen([NLAUNCH, "collect", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        process.stdin.write(json.dumps(spec))
        process.stdin.close()
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def tracers(self):
        """Who traces its threads: 0 for nobody."""
        found = set()
        for status in pathlib.Path(f"/proc/{self.target.pid}/task").glob("*/status"):
            found.add(int(status.read_text().split("TracerPid:")[1].split()[0]))
        return found

    def test_all_threads_are_read_and_go_on(self):
        said = json.loads(self.collect().stdout.read())
        self.assertIn("native-stacks.txt", said["processes"]["learner.0"]["got"])
        text = pathlib.Path(self.folder, "evidence", "node0", "learner.0", "native-stacks.txt").read_text()
        threads = text.split("\nTID ")[1:]
        self.assertEqual(len(threads), self.THREADS + 1)
        self.assertTrue(threads[0].startswith(f"{self.target.pid} ("), threads[0])
        for thread in threads:
            self.assertIn("#0  0x", thread)
        self.assertEqual((states(self.target.pid), self.tracers()), ({"S"}, {0}))

    def test_a_collector_that_is_killed_leaves_nobody_stopped(self):
        was_traced = 0
        for _ in range(10):
            process = self.collect()
            end = time.monotonic() + 15
            while process.poll() is None and time.monotonic() < end:
                if self.tracers() != {0}:
                    was_traced += 1
                    break
            process.kill()
            process.wait()
            end = time.monotonic() + 5
            while (states(self.target.pid), self.tracers()) != ({"S"}, {0}) and time.monotonic() < end:
                time.sleep(0.01)
            self.assertEqual((states(self.target.pid), self.tracers()), ({"S"}, {0}))
        self.assertGreater(was_traced, 0, "no collector was killed while it read stacks")

    def test_one_that_was_stopped_before_stays_so(self):
        os.kill(self.target.pid, signal.SIGSTOP)
        said = json.loads(self.collect().stdout.read())
        self.assertEqual(states(self.target.pid), {"T"})
        self.assertIn({"what": f"native stacks of pid {self.target.pid}", "why": "it is stopped (state T), and was left stopped",
                       "install": ""}, said["processes"]["learner.0"]["missing"])


if __name__ == "__main__":
    unittest.main()

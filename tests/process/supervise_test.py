"""Supervision of real processes, awkward ones above all: how a run ends, and that nothing survives it."""
import contextlib
import os
import pathlib
import resource
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest

from driver import BIN, Run, alive, wait_until_gone

SH = "/bin/sh"


def shell(script):
    return [SH, "-c", script]


class SuperviseCase(unittest.TestCase):
    def run_of(self, roles, **spec):
        run = Run(roles, **spec)
        self.addCleanup(run.close)
        return run

    def finished(self, roles, **spec):
        run = self.run_of(roles, **spec).start().finish()
        self.assertEqual(alive(run.tag), [], "processes have survived the run")
        return run


class HowARunEnds(SuperviseCase):
    def test_learners_end_it_well_and_the_rest_is_stopped(self):
        run = self.finished([{"name": "learner", "count": 2, "ends_run": True, "command": shell("sleep 0.1")},
                             {"name": "engine", "command": "sleep"}])
        self.assertEqual(run.code, 0, run.err)
        self.assertEqual(run.summary()["outcome"], "finished")
        self.assertEqual(run.summary()["processes"][2]["end"], {"signal": "SIGTERM"})

    def test_exit_9_and_sigkill_are_told_apart(self):
        run = self.finished([{"name": "learner", "ends_run": True, "command": "exit9"}])
        self.assertEqual((run.code, run.summary()["processes"][0]["end"]), (9, {"code": 9}))
        run = self.finished([{"name": "learner", "ends_run": True, "command": "kill9"}])
        self.assertEqual((run.code, run.summary()["processes"][0]["end"]), (137, {"signal": "SIGKILL"}))

    def test_the_first_failure_decides_and_is_explained(self):
        script = "echo starting; sleep 0.2; echo 'out of memory' >&2; exit 3"
        run = self.finished([{"name": "learner", "ends_run": True, "command": shell(script)},
                             {"name": "engine", "command": "deaf", "grace_ms": 200}])
        summary = run.summary()
        self.assertEqual(run.code, 3)
        self.assertEqual((summary["outcome"], summary["first"]), ("failed", "learner.0"))
        self.assertEqual(summary["last_lines"], ["starting", "out of memory"])
        self.assertRegex(summary["what"], r"^learner\.0 exited with code 3 after \d+ms$")
        self.assertIn(b"\nnlaunch: killed after the grace period: engine.0\n", run.out)

    def test_a_second_failure_of_its_own_is_named_and_an_end_that_nlaunch_brought_about_is_not(self):
        # The engine's stage is stopped after the deaf tool's, so it ends by itself before that.
        run = self.finished([{"name": "engine", "stage": 0, "command": shell("sleep 1; exit 4")},
                             {"name": "learner", "stage": 1, "ends_run": True, "command": shell("sleep 0.2; exit 3")},
                             {"name": "polite", "stage": 1, "command": "sleep"},
                             {"name": "tool", "stage": 1, "command": "deaf", "grace_ms": 4000}])
        self.assertRegex(run.summary()["what"], r"^learner\.0 exited with code 3 after \S+, \S+ before engine\.0 exited with code 4$")

    def test_an_engine_that_ends_is_a_failure_even_with_0(self):
        roles = [{"name": "learner", "ends_run": True, "command": "sleep"}, {"name": "engine", "command": shell("exit 0")}]
        run = self.finished(roles)
        self.assertEqual((run.code, run.summary()["first"]), (1, "engine.0"))
        self.assertIn("engine.0 exited with code 0 but was expected to keep running, after", run.summary()["what"])

    # A part is watched once it was seen twice, a second apart or, on a loaded machine, more. A parent that does not ask at once how its
    # part ended leaves nlaunch the time to ask; before Linux 6.15 a parent that does is the only one that knows.
    PART = ("import subprocess, sys, time\n"
            "part = subprocess.Popen(['VLLM::EngineCore', '60'], executable='/usr/bin/sleep')\n"
            "time.sleep(8); part.kill(); time.sleep(2)\n")
    KILLED = r"VLLM::EngineCore \(pid \d+\) of engine\.0 was killed by SIGKILL \d+\.\d+s into the run"

    def loses_a_part(self, then: str) -> list:
        return ["/usr/bin/python3", "-c", self.PART + then]

    def test_a_server_that_goes_on_without_one_of_its_parts_has_failed(self):
        run = self.finished([{"name": "learner", "ends_run": True, "command": "sleep"}, {"name": "engine", "command": self.loses_a_part("time.sleep(60)")}])
        summary = run.summary()
        self.assertEqual((run.code, summary["outcome"], summary["first"]), (1, "failed", "engine.0"))
        self.assertRegex(summary["what"], f"^{self.KILLED}, and engine\\.0 did not exit within 5\\.0s$")
        self.assertEqual(summary["processes"][1]["children"][0]["name"], "VLLM::EngineCore")

    def test_a_part_that_was_killed_explains_the_end_of_its_server(self):
        run = self.finished([{"name": "learner", "ends_run": True, "command": "sleep"}, {"name": "engine", "command": self.loses_a_part("sys.exit(3)")}])
        summary = run.summary()
        self.assertEqual((run.code, summary["first"]), (3, "engine.0"))
        self.assertRegex(summary["what"], f"^engine\\.0 exited with code 3 after \\d+\\.\\d+s; before that, {self.KILLED}$")
        self.assertEqual((summary["lost_child"]["process"], summary["lost_child"]["name"]), ("engine.0", "VLLM::EngineCore"))

    def test_a_learner_goes_on_without_an_engine_of_its_own(self):
        run = self.finished([{"name": "learner", "ends_run": True, "command": self.loses_a_part("time.sleep(5)")}])
        self.assertEqual((run.code, run.summary()["outcome"]), (0, "finished"))

    def test_shared_memory_of_the_run_is_removed_and_no_other(self):
        name = "/dev/shm/" + tempfile.mktemp(prefix="nlaunch-test-", dir="")
        self.addCleanup(lambda: [pathlib.Path(name + end).unlink(missing_ok=True) for end in (".run", ".before")])
        maps = ("import mmap, sys, time\n"
                "files = [open(path, 'a+b') for path in sys.argv[1:]]\n"
                "[file.truncate(4096) for file in files]\n"
                "kept = [mmap.mmap(file.fileno(), 4096) for file in files]\n"
                "print('mapped', flush=True); time.sleep(100)")
        pathlib.Path(name + ".before").write_bytes(bytes(4096))
        run = self.finished([{"name": "engine", "stage": 0, "ready": {"log": "mapped"},
                              "command": ["/usr/bin/python3", "-c", maps, name + ".run", name + ".before"]},
                             {"name": "learner", "stage": 1, "ends_run": True, "command": shell(f"test -e {name}.run")}])
        self.assertEqual(run.code, 0, run.err)
        self.assertFalse(pathlib.Path(name + ".run").exists())
        self.assertTrue(pathlib.Path(name + ".before").exists())

    def test_a_program_that_does_not_exist(self):
        run = self.finished([{"name": "learner", "ends_run": True, "command": ["/no/such/program"]}])
        self.assertEqual((run.code, run.summary()["outcome"]), (127, "not-started"))
        self.assertEqual(run.summary()["what"], "learner.0: '/no/such/program' does not exist")

    def test_a_role_is_restarted_max_times(self):
        run = self.finished([{"name": "learner", "ends_run": True, "restarts": 2, "command": shell("echo try; exit 5")}])
        self.assertEqual(run.code, 5)
        self.assertEqual(run.summary()["processes"][0]["restarts"], 2)
        self.assertEqual(run.log("learner.0"), b"try\n" * 3)
        self.assertEqual(len([e for e in run.events() if e["event"] == "process-started"]), 3)

    def test_a_watcher_may_end_it(self):
        run = self.finished([{"name": "learner", "ends_run": True, "command": "sleep"}], abort_after_ms=100)
        self.assertEqual((run.code, run.summary()["outcome"]), (70, "aborted"))
        self.assertRegex(run.summary()["what"], r"^1 alive and not wanted \(\d+ms into the run\)$")

    def test_64_processes(self):
        run = self.finished([{"name": "tool", "count": 64, "command": ["/bin/true"]}], quiet=True)
        self.assertEqual(run.code, 0, run.err)
        self.assertEqual(len(run.events()), 2 + 64 * 2 + 1)


class Processes(SuperviseCase):
    def test_has_its_own_session_null_input_and_no_inherited_descriptor(self):
        script = "ps -o sid= -p $$; echo $$; readlink /proc/self/fd/0; ls /proc/$$/fd; grep -E 'Sig(Blk|Ign)' /proc/self/status"
        with tempfile.TemporaryFile() as leaked:
            os.set_inheritable(leaked.fileno(), True)
            run = self.run_of([{"name": "learner", "ends_run": True, "command": shell(script)}])
            run.start(close_fds=False).finish()
        lines = run.log("learner.0").decode().split("\n")
        self.assertEqual(lines[0].strip(), lines[1])
        self.assertEqual(lines[2], "/dev/null")
        self.assertEqual(lines[3:6], ["0", "1", "2"])
        self.assertEqual([line.split()[1] for line in lines[6:8]], ["0" * 16] * 2)

    def test_what_is_left_behind_is_swept_while_the_run_goes_on(self):
        for what in ("grandchild", "daemon", "hops", "holds-pipe"):
            with self.subTest(what):
                run = self.run_of([{"name": "learner", "ends_run": True, "command": shell("sleep 0.8")},
                                   {"name": "tool", "exit_ok": True, "command": what}])
                run.start().wait_for("leftovers-killed")
                self.assertEqual(wait_until_gone(run.tag + "\0", 0.2), [])
                run.finish()
                self.assertEqual(run.code, 0, run.err)
                self.assertTrue(run.summary()["processes"][1]["left_behind"])

    def test_leave_keeps_it_until_the_run_ends(self):
        run = self.run_of([{"name": "learner", "ends_run": True, "command": shell("sleep 0.5")},
                           {"name": "tool", "exit_ok": True, "leave": True, "command": "daemon"}])
        run.start().wait_for("process-ended")
        time.sleep(0.1)
        self.assertEqual(len(alive(run.tag + "\0")), 1)
        run.finish()
        self.assertEqual(run.code, 0, run.err)
        self.assertEqual(alive(run.tag), [])
        self.assertEqual(len(run.summary()["left_behind"]), 1)

    def test_a_daemon_of_another_process_is_not_swept(self):
        run = self.run_of([{"name": "learner", "ends_run": True,
                            "command": shell("setsid sleep 1.2345 & sleep 0.5; pgrep -fx 'sleep 1.2345' >/dev/null")},
                           {"name": "tool", "exit_ok": True, "command": "grandchild"}])
        run.start().finish()
        self.assertEqual(run.code, 0, "the tool's sweep has hit the learner's daemon")

    def test_a_daemon_that_holds_the_pipe_does_not_hold_the_run(self):
        run = self.run_of([{"name": "learner", "ends_run": True, "command": "holds-pipe"}]).start().finish(10)
        self.assertEqual(run.code, 0)
        self.assertEqual(run.log("learner.0"), b"last words")
        self.assertEqual(run.out, "learner.0 │ last words\n".encode())

    def test_every_awkward_one_at_once(self):
        run = self.run_of([{"name": "engine", "command": "everything", "grace_ms": 100},
                           {"name": "learner", "ends_run": True, "command": shell("sleep 0.3; exit 4")}], quiet=True)
        run.start().finish(30)
        self.assertEqual(run.code, 4)
        self.assertEqual(alive(run.tag), [])

    def test_output_that_is_closed_is_no_end(self):
        run = self.finished([{"name": "learner", "ends_run": True, "command": "closes-output"}])
        self.assertEqual((run.code, run.log("learner.0")), (0, b"closing\n"))


class Readiness(SuperviseCase):
    SERVER = ("import http.server, time, sys; time.sleep(0.3)\n"
              "class H(http.server.BaseHTTPRequestHandler):\n"
              "  def do_GET(self):\n"
              "    self.send_response({'/health': 200, '/health/': 307, '/loads': 503}.get(self.path, 404))\n"
              "    self.send_header('Location', '/health')\n"
              "    self.end_headers()\n"
              "  def log_message(self, *a): pass\n"
              "http.server.HTTPServer(('127.0.0.1', int(sys.argv[1])), H).serve_forever()")

    def staged(self, ready, command):
        return self.finished([{"name": "engine", "stage": 0, "command": command, "ready": ready},
                              {"name": "learner", "stage": 1, "ends_run": True, "command": shell("exit 0")}])

    @staticmethod
    def free_port():
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            return s.getsockname()[1]

    def test_each_kind(self):
        port = self.free_port()
        server = ["/usr/bin/python3", "-c", self.SERVER, str(port)]
        flag = pathlib.Path(tempfile.mkdtemp()) / "ready"
        self.addCleanup(shutil.rmtree, flag.parent)
        kinds = [({"http": f"http://127.0.0.1:{port}/health"}, server),
                 ({"http": f"http://127.0.0.1:{port}/health/"}, server),
                 ({"http": f"http://localhost:{port}/health"}, server),
                 ({"tcp": f"127.0.0.1:{port}"}, server),
                 ({"log": r"step \d+ done"}, shell("sleep 0.3; echo step 12 done; sleep 100")),
                 ({"file": str(flag)}, shell(f"sleep 0.3; touch {flag}; sleep 100")),
                 ({"exec": ["/bin/sh", "-c", f"test -e {flag}.2"]}, shell(f"sleep 0.3; touch {flag}.2; sleep 100")),
                 ({"exec": ["/bin/sh", "-c", "sleep 0.3"]}, shell("sleep 100")),
                 ({"delay_ms": 300}, shell("sleep 100")),
                 ({"exited": True}, shell("sleep 0.3"))]
        for ready, command in kinds:
            with self.subTest(ready):
                run = self.staged(ready, command)
                engine, learner = run.summary()["processes"]
                self.assertEqual(run.code, 0, run.err)
                self.assertGreaterEqual(engine["ready_ms"], 290)
                self.assertGreaterEqual(learner["started_ms"], engine["ready_ms"])

    def test_a_program_that_prepares_and_fails_ends_the_run(self):
        run = self.staged({"exited": True}, shell("echo no space left; exit 3"))
        self.assertEqual(run.code, 3)
        self.assertRegex(run.summary()["what"], r"^engine\.0 exited with code 3 after \S+$")
        self.assertIsNone(run.summary()["processes"][1]["started_ms"])

    def test_a_task_is_tried_again_and_its_last_lines_are_kept(self):
        flag = pathlib.Path(tempfile.mkdtemp()) / "tried"
        self.addCleanup(shutil.rmtree, flag.parent)
        script = f"test -e {flag} && {{ echo converted; exit 0; }}; touch {flag}; echo first try; %s"
        for how in ("exit 3", "sleep 100"):
            with self.subTest(how):
                flag.unlink(missing_ok=True)
                run = self.finished([{"name": "task", "stage": 0, "command": shell(script % how), "restarts": 1,
                                      "ready": {"exited": True, "timeout_ms": 1000}},
                                     {"name": "learner", "stage": 1, "ends_run": True, "command": shell("exit 0")}])
                self.assertEqual(run.code, 0, run.err)
                task, learner = run.summary()["processes"]
                self.assertEqual((task["restarts"], task["last_lines"]), (1, ["first try", "converted"]))
                self.assertEqual(learner["last_lines"], [])
                self.assertGreaterEqual(learner["started_ms"], task["ready_ms"])

    def test_a_task_that_takes_too_long_ends_the_run(self):
        run = self.staged({"exited": True, "timeout_ms": 300}, shell("echo half; sleep 100"))
        self.assertEqual(run.code, 72)
        self.assertEqual(run.summary()["what"], "engine.0 was not ready in time (its exit: it took longer than its timeout of 300ms)")
        self.assertEqual(run.summary()["processes"][0]["last_lines"], ["half"])
        self.assertIsNone(run.summary()["processes"][1]["started_ms"])

    def test_what_ends_before_it_was_ready_was_not_ready(self):
        flag = "/nonexistent/ready"
        for how, code, said in (("exit 0", 72, r"engine\.0 exited with code 0 after \S+, before it was ready"),
                                ("exit 4", 4, r"engine\.0 exited with code 4 after \S+"),
                                ("kill -SEGV $$", 139, r"engine\.0 was terminated by SIGSEGV after \S+")):
            with self.subTest(how):
                run = self.finished([{"name": "engine", "stage": 0, "command": shell(how), "ready": {"file": flag}, "exit_ok": True},
                                     {"name": "learner", "stage": 1, "ends_run": True, "command": shell("exit 0")}])
                self.assertEqual(run.code, code)
                self.assertRegex(run.summary()["what"], f"^{said}$")
                self.assertIsNone(run.summary()["processes"][1]["started_ms"])

    def test_a_file_from_before_the_start_does_not_count(self):
        flag = pathlib.Path(tempfile.mkdtemp()) / "ready"
        self.addCleanup(shutil.rmtree, flag.parent)
        flag.touch()
        run = self.staged({"file": str(flag)}, shell(f"sleep 0.5; touch {flag}; sleep 100"))
        self.assertEqual(run.code, 0, run.err)
        self.assertGreaterEqual(run.summary()["processes"][0]["ready_ms"], 490)
        run = self.staged({"file": str(flag), "timeout_ms": 300}, "sleep")
        self.assertEqual(run.summary()["what"], f"engine.0 was not ready in time (file '{flag}': has not changed since the process started)")

    def test_never_ready_is_72_and_says_what_was_seen(self):
        port = self.free_port()
        url = f"http://127.0.0.1:{port}/loads"
        run = self.staged({"http": url, "timeout_ms": 5000}, ["/usr/bin/python3", "-c", self.SERVER, str(port)])
        self.assertEqual((run.code, run.summary()["outcome"]), (72, "not-ready"))
        self.assertEqual(run.summary()["what"], f"engine.0 was not ready in time ({url}: answered 503)")
        run = self.staged({"tcp": f"127.0.0.1:{self.free_port()}", "timeout_ms": 300}, "sleep")
        self.assertIn("Connection refused", run.summary()["what"])

    def test_an_answer_that_waiting_does_not_change_is_said_while_the_run_waits(self):
        port = self.free_port()
        url = f"http://127.0.0.1:{port}/healthz"
        run = self.run_of([{"name": "engine", "command": ["/usr/bin/python3", "-c", self.SERVER, str(port)],
                            "ready": {"http": url, "timeout_ms": 60000}}]).start()
        said = "engine is not ready: GET /healthz answered 404; nlaunch waits for 2xx: check the path in its `ready`"
        self.assertEqual([event["what"] for event in run.wait_for("trouble")], [said])
        run.process.send_signal(signal.SIGTERM)
        run.finish()
        self.assertIn(f"\nnlaunch: {said}\n".encode(), b"\n" + run.out)
        self.assertEqual(run.summary()["troubles"], [said])

    def stranger(self, port):
        """A server that the run did not start."""
        server = subprocess.Popen(["/usr/bin/python3", "-c", self.SERVER, str(port)])
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        end = time.monotonic() + 20
        while time.monotonic() < end:
            with contextlib.suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port)):
                return server
        self.fail("the server does not answer")

    def test_a_strangers_server_is_not_this_roles(self):
        port = self.free_port()
        stranger = self.stranger(port)
        for address in ({"http": f"http://127.0.0.1:{port}/health"}, {"http": f"http://localhost:{port}/nothing"}, {"tcp": f"127.0.0.1:{port}"}):
            with self.subTest(address):
                run = self.staged({**address, "timeout_ms": 2000}, "sleep")
                who = rf"python3 -c \(pid {stranger.pid}\), which this run did not start"
                self.assertEqual(run.code, 72)
                self.assertRegex(run.summary()["what"], rf"^engine\.0 was not ready in time \(\S+: answered by {who}\)$")
                self.assertEqual(len(run.summary()["troubles"]), 1)
                self.assertRegex(run.summary()["troubles"][0], rf"^engine is not ready: port {port} is held by {who}$")

    def test_the_role_is_ready_once_its_own_server_answers(self):
        port = self.free_port()
        stranger = self.stranger(port)
        script = f"while kill -0 {stranger.pid} 2>/dev/null; do sleep 0.1; done; exec /usr/bin/python3 -c \"$0\" {port}"
        run = self.run_of([{"name": "engine", "stage": 0, "command": [*shell(script), self.SERVER], "ready": {"tcp": f"127.0.0.1:{port}", "timeout_ms": 20000}},
                           {"name": "learner", "stage": 1, "ends_run": True, "command": shell("exit 0")}]).start()
        run.wait_for("trouble")
        stranger.kill()
        stranger.wait()
        self.assertEqual(run.finish().code, 0, run.err)

    def test_a_server_that_a_container_has_started_elsewhere_is_believed(self):
        port = self.free_port()
        self.stranger(port)
        run = self.staged({"tcp": f"127.0.0.1:{port}"}, shell("docker() { sleep 100; }; docker") + ["docker"])
        self.assertEqual(run.code, 0)
        self.assertEqual(run.summary()["troubles"], [f"engine is not verified: nlaunch cannot see from here which process listens on port {port}"])

    def test_a_server_that_says_nothing_has_not_answered(self):
        with socket.create_server(("127.0.0.1", 0)) as silent:
            url = f"http://127.0.0.1:{silent.getsockname()[1]}/health"
            run = self.staged({"http": url, "timeout_ms": 300}, "sleep")
        self.assertEqual(run.summary()["what"], f"engine.0 was not ready in time ({url}: no answer yet)")

    def test_what_a_program_that_is_asked_said_last(self):
        for script, said in (("echo 1; echo 2 of 4; exit 3", "exited with code 3: 2 of 4"), ("echo 2 of 4; sleep 100", "2 of 4"),
                             ("sleep 100 & sleep 100", "it has not exited yet")):
            with self.subTest(script):
                run = self.staged({"exec": ["/bin/sh", "-c", script], "timeout_ms": 300}, "sleep")
                self.assertEqual((run.code, run.summary()["what"]),
                                 (72, f"engine.0 was not ready in time (/bin/sh -c {script}: {said})"))
        run = self.staged({"exec": ["/no/such"], "timeout_ms": 300}, "sleep")
        self.assertRegex(run.summary()["what"], r"^engine\.0 was not ready in time \(/no/such: .*/no/such.*\)$")


class Output(SuperviseCase):
    AWKWARD = ("import sys; w = sys.stdout.buffer.write; w(bytes(range(256))); w(b'\\n' + b'y' * %d + b'\\n');"
               "w('\\x1b[2Jgrün\\tok\\n'.encode()); w(b'no end')")

    def awkward(self, size):
        """A run that prints all bytes, a line of this size, an escape sequence, and a line without an end."""
        run = self.finished([{"name": "learner", "ends_run": True, "command": ["/usr/bin/python3", "-c", self.AWKWARD % size]}])
        self.assertEqual(run.log("learner.0"), bytes(range(256)) + b"\n" + b"y" * size +
                         "\n\x1b[2Jgrün\tok\nno end".encode())
        return run

    def test_every_byte_of_a_very_long_line_is_in_the_log(self):
        self.awkward(10_000_000)

    def test_awkward_bytes_do_no_harm_on_the_terminal(self):
        # Less than what is queued for a terminal, however slowly this test reads.
        size = 3_000_000
        lines = self.awkward(size).out.decode().split("\n")
        for line in lines[:-1]:
            self.assertRegex(line, "^learner.0 [│┆] ")
            self.assertNotRegex(line, "[\x00-\x08\x0b-\x1f\x7f]")
        self.assertEqual(sum(line.count("y") for line in lines), size + 1)
        self.assertGreater(sum(line.startswith("learner.0 ┆") for line in lines), 40)
        self.assertEqual(lines[-3:], ["learner.0 │ grün\tok", "learner.0 │ no end", ""])

    def test_colour_only_on_the_prefix(self):
        run = self.finished([{"name": "a", "ends_run": True, "command": shell("echo one")}], color=True)
        self.assertEqual(run.out.decode(), "\x1b[36ma.0 │\x1b[0m one\n")

    def test_a_terminal_that_blocks_stops_nobody(self):
        script = "import sys\nfor i in range(200_000): sys.stdout.write('%06d %s\\n' % (i, 'z' * 93))"
        run = self.run_of([{"name": "learner", "ends_run": True, "command": ["/usr/bin/python3", "-c", script]}])
        reader, writer = os.pipe()
        run.start(stdout=writer)
        os.close(writer)
        run.process.wait(20)
        os.close(reader)
        self.assertEqual(run.process.returncode, 0)
        self.assertEqual(len(run.log("learner.0")), 101 * 200_000)
        self.assertGreater(run.summary()["terminal_skipped"]["lines"], 100_000)

    def test_what_was_skipped_is_said_when_the_terminal_goes_on(self):
        script = "import sys,time\nfor i in range(200_000): sys.stdout.write('%06d %s\\n' % (i, 'z' * 93))\nsys.stdout.flush(); time.sleep(1); print('end')"
        run = self.run_of([{"name": "learner", "ends_run": True, "command": ["/usr/bin/python3", "-c", script]}])
        run.start()
        run.wait_for("process-started")
        while len(run.log("learner.0")) < 20_000_000:
            time.sleep(0.05)
        run.finish()
        self.assertRegex(run.out.decode(), r"nlaunch: \d+ lines \([\d.]+\w+\) skipped: the terminal was too slow; the "
                                           r"log files have them\n")
        self.assertTrue(run.out.endswith("learner.0 │ end\n".encode()))

    def test_secrets_are_in_no_file_and_no_output_even_in_pieces(self):
        script = "printf 'a hun'; sleep 0.2; printf 'ter2 b'; sleep 0.2; echo; echo xhunter2hunter2; printf hunt"
        run = self.finished([{"name": "learner", "ends_run": True, "command": shell(script)}], secrets=["hunter2"])
        self.assertEqual(run.log("learner.0"), b"a *** b\nx******\nhunt")
        self.assertEqual(run.out.decode(), "learner.0 │ a *** b\nlearner.0 │ x******\nlearner.0 │ hunt\n")
        for file in run.folder.rglob("*"):
            self.assertFalse(file.is_file() and b"hunter2" in file.read_bytes(), file)

    def test_a_full_disk_is_said_once_and_kills_nobody(self):
        # A limit on file sizes stands for the full disk: both are an error of write(2).
        limit = lambda: (signal.signal(signal.SIGXFSZ, signal.SIG_IGN),
                         resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192)))
        run = self.run_of([{"name": "learner", "count": 2, "ends_run": True,
                            "command": shell("i=0; while [ $i -lt 3000 ]; do echo line $i; i=$((i+1)); done")}])
        run.start(preexec_fn=limit).finish()
        self.assertEqual(run.code, 0)
        said = [line for line in run.out.decode().split("\n") if line.startswith("nlaunch:")]
        self.assertEqual(len(said), 1, said)
        self.assertRegex(said[0], r"^nlaunch: cannot write '.*/learner\.\d\.log': File too large; the run continues$")
        self.assertGreater(run.summary()["log_bytes_lost"], 10000)

    def test_a_folder_that_vanishes_kills_nobody(self):
        run = self.run_of([{"name": "learner", "ends_run": True, "command": shell("sleep 3; echo end")}])
        run.start().wait_for("process-started")
        shutil.rmtree(run.folder)
        run.finish()
        self.assertEqual(run.code, 0)
        self.assertIn(b"the file was removed; the run continues", run.out)
        self.assertIn("learner.0 │ end".encode(), run.out)


class Signals(SuperviseCase):
    TRAP = "trap 'echo got usr1' USR1; echo up; while :; do sleep 0.05; done"

    def started(self, roles, **spec):
        run = self.run_of(roles, **spec).start()
        run.wait_for("process-started", len(roles))
        time.sleep(0.2)
        return run

    def test_sigint_once_is_graceful(self):
        run = self.started([{"name": "learner", "ends_run": True, "command": shell("trap 'echo saved; exit 0' TERM; while :; do sleep 0.05; done")}])
        run.process.send_signal(signal.SIGINT)
        run.finish()
        self.assertEqual((run.code, run.summary()["outcome"]), (130, "interrupted"))
        self.assertTrue(run.log("learner.0").endswith(b"saved\n"))

    def test_sigint_twice_kills(self):
        run = self.started([{"name": "learner", "ends_run": True, "command": "deaf", "grace_ms": 60000}])
        run.process.send_signal(signal.SIGINT)
        run.wait_for("signal")
        run.process.send_signal(signal.SIGINT)
        run.finish(5)
        self.assertEqual(run.code, 130)
        self.assertEqual(alive(run.tag), [])

    def test_who_is_awaited_is_said_after_two_seconds(self):
        run = self.started([{"name": "learner", "count": 3, "ends_run": True, "command": "deaf", "grace_ms": 60000}])
        run.process.send_signal(signal.SIGINT)
        run.wait_for("signal")
        time.sleep(2.5)
        run.process.send_signal(signal.SIGINT)
        run.finish(10)
        self.assertRegex(run.out.decode(), r"\nnlaunch: stopped by SIGINT after \S+; stopping the others\n"
                                           r"nlaunch: waiting up to 1m for learner\.0 and 2 more; press Ctrl-C again to kill\n$")

    def test_sigterm_is_143(self):
        run = self.started([{"name": "learner", "ends_run": True, "command": "sleep"}])
        run.process.terminate()
        run.finish()
        self.assertEqual((run.code, run.summary()["outcome"]), (143, "terminated"))

    def test_sigusr1_is_forwarded_as_the_experiment_says(self):
        run = self.started([{"name": "learner", "ends_run": True, "command": shell(self.TRAP)},
                            {"name": "engine", "command": shell(self.TRAP)}], forward={"USR1": ["learner"]})
        run.process.send_signal(signal.SIGUSR1)
        run.process.send_signal(signal.SIGUSR2)
        run.wait_for("signal-forwarded")
        time.sleep(0.2)
        run.process.terminate()
        run.finish()
        self.assertEqual(run.log("learner.0"), b"up\ngot usr1\n")
        self.assertEqual(run.log("engine.0"), b"up\n")

    def test_ctrl_z_stops_the_guardian_alone(self):
        run = self.started([{"name": "learner", "ends_run": True, "command": shell("sleep 1; echo went on")}])
        run.process.send_signal(signal.SIGTSTP)
        time.sleep(0.2)
        state = pathlib.Path(f"/proc/{run.process.pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        self.assertEqual(state, "T")
        run.wait_for("attempt-ended")
        run.process.send_signal(signal.SIGCONT)
        run.finish()
        self.assertEqual((run.code, run.log("learner.0")), (0, b"went on\n"))


class OwnDeath(SuperviseCase):
    ROLES = [{"name": "engine", "command": "everything"}, {"name": "learner", "ends_run": True, "command": "deaf"}]

    def started(self):
        run = self.run_of(self.ROLES, quiet=True).start()
        run.wait_for("process-started", 2)
        time.sleep(0.1)
        return run

    def test_the_guardian_is_killed(self):
        run = self.started()
        run.process.kill()
        self.assertEqual(wait_until_gone(run.tag, 2), [])
        self.assertEqual(run.summary()["outcome"], "killed")
        self.assertEqual([e["event"] for e in run.events() if e["event"] in ("guardian-lost", "attempt-ended")],
                         ["guardian-lost", "attempt-ended"])

    def test_the_supervisor_is_killed(self):
        run = self.started()
        os.kill(run.supervisor(), signal.SIGKILL)
        run.finish(5)
        self.assertEqual(run.code, 70)
        self.assertEqual(alive(run.tag), [])
        self.assertRegex(run.err.decode(), r"^run_driver: the supervisor was killed by SIGKILL; \d+ processes were killed\n$")
        self.assertEqual(run.summary()["what"], "nlaunch's supervisor was killed by SIGKILL; the guardian ended the run")

    def test_children_from_before_are_left_alone(self):
        run = self.run_of(self.ROLES, quiet=True)
        script = f"sleep 57.25 & echo $!; exec {BIN}/run_driver {run.spec_file}"
        process = subprocess.Popen([SH, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        before = int(process.stdout.readline())
        self.addCleanup(lambda: os.kill(before, signal.SIGKILL))
        run.wait_for("process-started", 2)
        os.kill(run.supervisor(), signal.SIGKILL)
        self.assertEqual(process.wait(5), 70)
        process.stdout.close()
        process.stderr.close()
        self.assertEqual(wait_until_gone(run.tag, 1), [])
        self.assertEqual(pathlib.Path(f"/proc/{before}/comm").read_text(), "sleep\n")


if __name__ == "__main__":
    unittest.main()

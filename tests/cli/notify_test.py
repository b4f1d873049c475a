#!/usr/bin/env python3
"""Who is notified of a run gets it, and whatever becomes of the notice, the run goes on."""
import http.server
import json
import shutil
import sys
import threading
import unittest

from harness import SOURCE, CliTest

EXPERIMENT = """
version: 1
name: told
cpu_slots: true
weight_sync: {{backend: none}}
roles:
  learner: {{kind: learner, command: [{python}, -c, {learner}]}}
watch: {{progress: 'step (\\d+)'}}
notify: {notify}
"""
# Appends what it gets to the file that is its argument.
KEEP = "import sys; open(sys.argv[1], 'a').write(sys.stdin.read())"


class Notifications(CliTest):
    def run_told(self, notify, learner="print('step 1')", **environment):
        path = self.folder / "told.yaml"
        path.write_text(EXPERIMENT.format(python=sys.executable, learner=json.dumps(learner), notify=json.dumps(notify)))
        return self.nlaunch("run", path, "--site", "local", "--no-preflight", "--runs-dir", self.folder / "runs", env={**self.env, **environment})

    def kept(self):
        return [json.loads(line) for line in (self.folder / "kept").read_text().splitlines()]

    def test_a_program_gets_each_notice_as_json(self):
        done = self.run_told({"on": ["start", "ready", "end"], "exec": [sys.executable, "-c", KEEP, str(self.folder / "kept")]})
        self.assertEqual(done.returncode, 0, done.stderr)
        notices = sorted(self.kept(), key=lambda notice: ["start", "ready", "end"].index(notice["event"]))
        self.assertEqual([notice["text"] for notice in notices[:2]], ["told on local: started", "told on local: all processes are ready"])
        self.assertRegex(notices[2]["text"], r"^told on local: finished after \S+$")
        self.assertEqual(notices[0]["folder"], str((self.folder / "runs" / "told" / "latest").resolve()))

    def test_a_program_that_fails_is_said_and_the_run_goes_on(self):
        done = self.run_told({"on": "end", "exec": ["sh", "-c", "echo no such channel >&2; exit 3"]})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("nlaunch: notify: sh: exit code 3: no such channel\n", done.stderr)

    @unittest.skipUnless(shutil.which("curl"), "curl is not installed")
    def test_a_webhook_gets_the_notice_and_nobody_sees_its_url(self):
        got = []

        class Channel(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                got.append((self.path, self.headers["Content-Type"], self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_):
                pass

        server = http.server.HTTPServer(("127.0.0.1", 0), Channel)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        url = f"http://127.0.0.1:{server.server_address[1]}/services/T0/hidden-part"
        done = self.run_told({"on": "end", "webhook": {"env": "CHANNEL"}}, "import os, sys; print(os.environ); sys.exit(4)", CHANNEL=url, no_proxy="127.0.0.1")
        self.assertEqual(done.returncode, 4)
        self.assertEqual([(path, kind) for path, kind, _ in got], [("/services/T0/hidden-part", "application/json")])
        self.assertRegex(json.loads(got[0][2])["text"], r"^told on local: failed: learner\.0.* exited with code 4 after .*$")
        self.assertNotIn("hidden-part", done.stdout + done.stderr)
        for file in (self.folder / "runs").rglob("*"):
            if file.is_file():
                self.assertNotIn(b"hidden-part", file.read_bytes(), file)

    def test_a_webhook_that_is_not_there_is_said(self):
        done = self.run_told({"on": "end", "webhook": {"env": "CHANNEL"}})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, r"warning: no notification goes to the webhook: secret webhook \(\S+told\.yaml:\d+:\d+\): the variable CHANNEL is not set")


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/env python3
"""The report of a run: how it went, and where its time went."""
import html.parser
import json
import shutil
import sys
import unittest

from harness import SOURCE, CliTest

LEARNER = """
import sys, time
first = 3 if sys.argv[1] == "again" else 1
for step in range(first, 7):
    time.sleep(0.5)
    print("step", step, "reward", step / 10, flush=True)
sys.exit(int(sys.argv[2]))
"""


def experiment(code=0, more=""):
    return f"""
cpu_slots: true
roles:
  engine: {{kind: engine, command: [{sys.executable}, -c, "import time; time.sleep(0.5); print('serving', flush=True); time.sleep(60)"], ready: {{log: serving}}}}
  learner: {{kind: learner, command: [{sys.executable}, -c, {json.dumps(LEARNER)}, once, "{code}"]}}
start: [[engine], [learner]]
watch: {{progress: 'step (\\d+)', metrics: {{reward: 'reward (\\S+)'}}}}
{more}"""


class Tags(html.parser.HTMLParser):
    """Fails where tags are not closed in their order; keeps what a page would fetch."""
    VOID = {"meta", "br", "link", "img", "rect", "path", "circle"}

    def __init__(self):
        super().__init__()
        self.open, self.fetched = [], []

    def handle_starttag(self, tag, attrs):
        if tag not in self.VOID:
            self.open.append(tag)
        self.fetched += [value for name, value in attrs if name in ("src", "href") and not value.startswith("https://arxiv.org/")]

    def handle_endtag(self, tag):
        if tag in self.VOID:
            return
        while self.open and self.open[-1] != tag and self.open[-1] in ("tr", "td", "th", "p"):
            self.open.pop()
        assert self.open and self.open[-1] == tag, (tag, self.open)
        self.open.pop()


class Reports(CliTest):
    def report(self, *arguments):
        return self.nlaunch("report", *arguments, "--runs-dir", self.folder / "runs")

    def test_a_run_that_finished(self):
        self.assertEqual(self.run_experiment(experiment()).returncode, 0)
        done = self.report("test")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"(?s)^test \S+\n"
                                      r"finished after \d\.\d s: 6 steps, 0\.\d\d s/step \(p90 0\.\d\d\), reward 0\.1 → 0\.6, engines ready after \S+ m?s\n"
                                      r"ETTR: \d+\.\d %\n"
                                      r"step time: median \d+ ms, p90 \d+ ms, longest \d+ ms, 0 slow\n\n"
                                      r"where the time went +time +share\n.*"
                                      r"loading +\S+ m?s +\S+ %\n.*first step .*\nproductive .*\nshutdown .*\n\n"
                                      r"metric +first → last +median +least – most +values\n"
                                      r"reward +0\.1 → 0\.6 +0\.35 +0\.1 – 0\.6 +6\n\n"
                                      r"process +ready after +starts +end\n"
                                      r"engine\.0 +\S+ m?s +1 +was terminated by SIGTERM\n"
                                      r"learner\.0 +1 +exited with code 0\n\n"
                                      r"run directory: \S+\n$")

    def test_a_run_that_failed_says_why_and_is_compared_with_the_one_before(self):
        self.run_experiment(experiment())
        self.assertEqual(self.run_experiment(experiment(code=5)).returncode, 5)
        lines = self.report("test").stdout.splitlines()
        self.assertRegex(lines[1], r"^failed after \d\.\d s: 6 steps, ")
        self.assertRegex(lines[2], r"^what: learner\.0 .*exited with code 5 after ")
        self.assertTrue(any(line.startswith("the run before: finished, 0.") for line in lines), lines)

    def test_json_and_all(self):
        for _ in range(2):
            self.run_experiment(experiment())
        told = json.loads(self.report("test", "--json").stdout)
        self.assertEqual((told["format"], told["state"], told["steps"]["count"]), ("nlaunch report", "finished", 6))
        self.assertAlmostEqual(sum(phase["seconds"] for phase in told["phases"]), told["seconds"], places=3)
        self.assertEqual([process["name"] for process in told["processes"]], ["engine.0", "learner.0"])
        rows = self.report("--all").stdout.splitlines()
        self.assertRegex(rows[0], r"^name +run +state +time +steps +s/step +ETTR$")
        self.assertEqual(sum(row.startswith("test ") for row in rows), 2)
        self.assertIn("no run in", self.report("--all", "--since", "0s").stdout)

    def test_the_page_is_whole_and_fetches_nothing(self):
        self.run_experiment(experiment(more="restart: {policy: never}\n"))
        page = self.folder / "report.html"
        self.assertEqual(self.report("test", "--html", page).returncode, 0)
        text = page.read_text()
        tags = Tags()
        tags.feed(text)
        self.assertEqual((tags.open, tags.fetched), ([], []))
        for part in ("<h1>finished after ", "Where the time went", "What happened when", "Time of each training step", "<figcaption>reward</figcaption>",
                     "Effective training time ratio"):
            self.assertIn(part, text)

    def test_a_run_of_an_older_version(self):
        shutil.copytree(SOURCE / "tests" / "runs" / "version-1", self.folder / "runs" / "quickstart" / "20261122-063549-8918")
        done = self.report("quickstart")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("what: learner.1 exited with code 3 after 2.7s\n", done.stdout)

    def test_what_cannot_be_reported(self):
        for arguments, message in ((["nothing"], "no run 'nothing'"), ([], "RUN (or --all)"), (["x", "--since", "1d"], "--since needs --all"),
                                   (["--all", "--since", "soon"], "soon")):
            done = self.report(*arguments)
            self.assertIn(done.returncode, (64, 65))
            self.assertIn(message, done.stderr)


if __name__ == "__main__":
    unittest.main()

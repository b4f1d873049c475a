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
# Runs out of memory in its first attempt, is killed in its second one, and finishes in its third.
UNLUCKY = """
import os, pathlib, sys, time
folder = pathlib.Path(sys.argv[1])
attempt = len(list(folder.glob("began-*")))
(folder / f"began-{attempt}").touch()
for step in range(1 if attempt == 0 else 3, 8 if attempt == 2 else 6):
    time.sleep(0.3)
    print("step", step, flush=True)
time.sleep(0.3)
if attempt == 0:
    sys.exit("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.")
if attempt == 1:
    os.kill(os.getpid(), 9)
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
                                      r"what cost time +time +of this\nfirst start +\S+ m?s +[^\n]*loading [^\n]*\n"
                                      r"end of the run +\S+ m?s +shutdown \S+ m?s\n\n"
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

    def test_each_restart_is_charged_with_what_it_cost(self):
        done = self.run_experiment(f"""
cpu_slots: true
roles:
  learner: {{kind: learner, command: [{sys.executable}, -c, {json.dumps(UNLUCKY)}, {json.dumps(str(self.folder))}]}}
watch: {{progress: 'step (\\d+)'}}
restart: {{policy: on-failure, max: 2, backoff: 10ms}}
""")
        self.assertEqual(done.returncode, 0, done.stderr)
        told = json.loads(self.report("test", "--json").stdout)
        causes = {cause["cause"].split(":")[0]: cause for cause in told["causes"]}
        self.assertEqual(set(causes), {"restart 1", "restart 2", "first start", "end of the run"})
        first, second = causes["restart 1"], causes["restart 2"]
        self.assertRegex(first["cause"], r"^restart 1: learner\.0 exited with code 1 after .*: a GPU had no memory left for one more tensor$")
        self.assertRegex(second["cause"], r"^restart 2: learner\.0 was killed by SIGKILL after ")
        for number, cause in enumerate((first, second)):
            self.assertEqual((cause["kind"], cause["attempt"], cause["restart"]), ("failure", number, number + 1))
            spent = {phase["phase"]: phase["seconds"] for phase in cause["phases"]}
            self.assertLess(0.2, spent["lost"], cause)  # at least the step in progress
            self.assertLess(0, spent["restart"])
            self.assertLess(0.2, spent["first step"])
        productive, = [phase["seconds"] for phase in told["phases"] if phase["phase"] == "productive"]
        self.assertAlmostEqual(productive + sum(cause["seconds"] for cause in told["causes"]), told["seconds"], places=3)
        lines = self.report("--all").stdout.splitlines()
        self.assertTrue(any(line.startswith("failure ") and line.split()[1] == "2" for line in lines), lines)

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
        for part in ("<h1>finished after ", "Where the time went", "Time by cause", "What happened when", "Time of each training step", "<figcaption>reward</figcaption>",
                     "Effective training time ratio"):
            self.assertIn(part, text)

    def test_the_pages_of_trackers_are_kept_and_shown(self):
        url = "https://wandb.ai/acme/grpo/runs/x1y2z3"
        lines = ["wandb: 🚀 View run at https://me:hunter2@wandb.ai/acme/grpo/runs/x1y2z3?apiKey=0123&theme=dark",
                 "wandb: 🚀 View run at " + url, "TensorBoard 2.20.0 at http://localhost:6006/ (Press CTRL+C to quit)",
                 "wandb: 🚀 View run brisk-fox-7 at: " + url, "wandb: ⭐️ View project at https://wandb.ai/acme/grpo"]
        done = self.run_experiment(f"roles: {{learner: {{kind: learner, command: [{sys.executable}, -c, {json.dumps(f'print(*{lines!r}, sep=chr(10))', ensure_ascii=False)}]}}}}\n")
        shown = [f"wandb: {url}?theme=dark (learner.0)", f"wandb: {url} (learner.0)", "tensorboard: http://localhost:6006/ (learner.0)"]
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("\n".join(shown) + "\nrun directory: ", done.stderr)
        links = [dict(zip(("kind", "url", "process"), (*line[:-1].replace(" (", ": ").split(": "),))) for line in shown]
        self.assertEqual(json.loads((self.run_folder / "summary.json").read_text())["links"], links)
        events = [json.loads(line) for line in (self.run_folder / "events.jsonl").read_text().splitlines()]
        self.assertEqual([{key: event[key] for key in ("kind", "url", "process")} for event in events if event["event"] == "link"], links)
        runs = ("--runs-dir", self.folder / "runs")
        self.assertEqual(self.nlaunch("ps", "test", *runs).stdout.splitlines()[1:4], shown)
        self.assertEqual(json.loads(self.nlaunch("ps", "test", "--json", *runs).stdout)["links"], links)
        self.assertEqual(self.report("test").stdout.splitlines()[2:5], shown)
        self.assertEqual(json.loads(self.report("test", "--json").stdout)["links"], links)
        top = self.nlaunch("top", "test", "--once", *runs, env={"COLUMNS": "160"}).stdout
        self.assertEqual(top.splitlines()[1], " · ".join(line.replace(": ", " ", 1).split(" (")[0] for line in shown))
        tags = Tags()
        tags.feed((self.run_folder / "report.html").read_text())
        self.assertEqual((tags.open, tags.fetched), ([], [link["url"] for link in links]))
        # Somebody has changed the file.
        with open(self.run_folder / "events.jsonl", "a", encoding="utf-8") as file:
            for bad in ("javascript:alert(1)", 'https://h/"><script>', "https://h/\x1b[2J", 7, None):
                file.write(json.dumps({"event": "link", "time": "2026-01-01T00:00:00.000Z", "process": "learner.0", "kind": "wandb", "url": bad}) + "\n")
        self.assertEqual(self.nlaunch("ps", "test", *runs).stdout.splitlines()[1:5][:3], shown)
        self.assertEqual(json.loads(self.report("test", "--json").stdout)["links"], links)

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

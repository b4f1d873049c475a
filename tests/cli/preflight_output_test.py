"""What `nlaunch preflight` makes of a report besides the table: a page, metrics, a baseline. From saved reports, and once for real."""
import copy
import html.parser
import json
import os
import pty
import select
import shutil
import subprocess
import time
import unittest

from prometheus_client.parser import text_string_to_metric_families

from harness import NLAUNCH, SOURCE, CliTest

HOSTILE = '<script>document.title="x"</script>\'"&'
VOID = {"meta", "input", "link", "br", "img"}
OPTIONAL = {"td", "th", "tr", "tbody", "thead", "li"}  # whose end may be left out


def report(nodes=3, gpus=4):
    hosts = [f"nid{number:03}" for number in range(1, nodes + 1)]
    rows = [{"check": "limits", "status": "pass", "subject": "open files", "value": "65536", "expected": "", "fix": "", "who": "", "hosts": [host]}
            for host in hosts]
    rows.append({"check": "gpu-health", "status": "fail", "subject": "GPU 1", "value": HOSTILE, "expected": "no " + HOSTILE,
                 "fix": "reset it", "who": "admin", "hosts": hosts[-1:]})
    figures = [{"what": "p2p", "host": host, "from": f"GPU {a}", "to": f"GPU {b}", "value": 390e9 - a * 1e9, "unit": "B/s"}
               for host in hosts for a in range(gpus) for b in range(gpus) if a != b]
    measurements = [{"group": f"node {number}", "kind": "node", "op": "all_reduce", "backend": "nccl", "ranks": gpus, "bytes": size,
                     "seconds": 1e-4, "busbw": rate, **({"floor": 164e9} if size == 1 << 27 else {}), "limit": 478e9}
                    for number in range(nodes) for size, rate in ((8, 4e5), (1 << 20, 4e10), (1 << 27, 3.3e11))]
    return {"format": "nlaunch preflight", "version": 1, "level": "deep", "verdict": "fail", "elapsed": 12.5, "cancelled": False, "plan": HOSTILE, "site": "ours", "time": 1795284000, "job": "17",
            "fail_count": 1, "rows": rows, "measurements": measurements, "figures": figures,
            "nodes": [{"host": host, "arch": "x86_64", "gpu": "NVIDIA H200", "gpus": gpus, "driver": "580.1", "nccl": "2.28.9"} for host in hosts]}


TWO_RANKS = """version: 1
name: two
weight_sync: {backend: gloo}
cpu_slots: true
roles:
  learner: {kind: learner, count: 2, gpus: 1, rendezvous: torch, command: ["true"]}
"""


class Page(html.parser.HTMLParser):
    """Checks that what is opened is closed, and keeps what a reader would see."""

    def __init__(self, text):
        super().__init__()
        self.open, self.faults, self.text, self.ids, self.outside, self.scripts = [], [], [], [], [], 0
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.scripts += tag == "script"
        for name, value in attrs:
            if name == "id":
                self.ids.append(value)
            if name in ("src", "href") and not value.startswith("#"):
                self.outside.append(value)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        while self.open and self.open[-1] != tag and self.open[-1] in OPTIONAL:
            self.open.pop()
        if not self.open or self.open.pop() != tag:
            self.faults.append((tag, self.getpos()))

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("script", "style"):
            self.text.append(data)


class Output(CliTest):
    def show(self, what, *arguments):
        saved = self.folder / "saved.json"
        saved.write_text(json.dumps(what))
        return self.nlaunch("preflight", "--from", saved, *arguments)

    def test_a_saved_report_is_shown_again(self):
        done = self.show(report())
        self.assertEqual((done.returncode, done.stderr), (2, ""))
        self.assertIn("fail gpu-health GPU 1 on nid003: ", done.stdout)
        self.assertRegex(done.stdout, r"\npreflight fail: level deep in 12\.5 s \(3 passed, 1 failed\)\n$")
        done = self.show(report(), "--json")
        self.assertEqual(json.loads(done.stdout), report())

    def test_what_is_no_report_is_an_error_with_what_to_type(self):
        saved = self.folder / "saved.json"
        for text in ("", "[]", "{}", '{"level": "deep"}'):
            saved.write_text(text)
            done = self.nlaunch("preflight", "--from", saved)
            self.assertEqual((done.returncode, done.stdout), (65, ""))
            self.assertIn(f"'{saved}' is not a preflight report: ", done.stderr)
            self.assertIn("hint: use attempt-0/preflight.json of a run directory, or the output of nlaunch preflight --json\n", done.stderr)
        done = self.nlaunch("preflight", "configs/quickstart.yaml", "--from", saved)
        self.assertEqual((done.returncode, done.stderr),
                         (64, "nlaunch preflight: --from shows a saved report and checks nothing: omit the experiment\n"))

    def test_a_file_that_cannot_be_written_is_said_before_anything_is_checked(self):
        for option in ("--html", "--prometheus"):
            done = self.nlaunch("preflight", "--site", "local", option, self.folder / "none" / "x", "--runs-dir", self.folder / "runs")
            self.assertEqual((done.returncode, done.stdout, self.normal(done.stderr)),
                             (65, "", "error: cannot write '$FOLDER/none/x': directory '$FOLDER/none' does not exist [preflight.output]\n"))
        self.assertFalse((self.folder / "runs").exists())

    # --- metrics ---

    def test_metrics_are_read_by_prometheus(self):
        path = self.folder / "nlaunch.prom"
        self.assertEqual(self.show(report(), "--prometheus", path).returncode, 2)
        self.assertEqual(path.stat().st_mode & 0o777, 0o644)
        families = {family.name: family for family in text_string_to_metric_families(path.read_text())}
        value = {(sample.name, *sorted(sample.labels.items())): sample.value for family in families.values() for sample in family.samples}
        self.assertTrue(all(family.documentation and family.type == "gauge" for family in families.values()))
        self.assertEqual(value[("nlaunch_preflight_verdict", ("verdict", "fail"))], 1)
        self.assertEqual(sum(number for key, number in value.items() if key[0] == "nlaunch_preflight_verdict"), 1)
        self.assertEqual(value[("nlaunch_preflight_check", ("check", "limits"), ("status", "pass"))], 3)
        self.assertEqual(value[("nlaunch_preflight_busbw_bytes_per_second", ("backend", "nccl"), ("group", "node 2"), ("op", "all_reduce"),
                                ("size", "134217728"))], 3.3e11)
        self.assertEqual(value[("nlaunch_preflight_timestamp_seconds",)], 1795284000)
        self.assertIn(HOSTILE, [dict(key[1:]).get("plan") for key in value if key[0] == "nlaunch_preflight_info"])

    # --- the page ---

    def page(self, what, *arguments):
        path = self.folder / "report.html"
        self.show(what, "--html", path, *arguments)
        return path.read_text()

    def test_the_page_is_whole_and_needs_nothing_else(self):
        for what in (report(), report(nodes=1), report(nodes=40), {**report(), "rows": [], "figures": [], "measurements": [], "nodes": []}):
            text = self.page(what)
            page = Page(text)
            self.assertEqual((page.faults, [tag for tag in page.open if tag not in OPTIONAL]), ([], []))
            self.assertEqual((page.outside, page.scripts, len(page.ids)), ([], 2, len(set(page.ids))))
            self.assertNotRegex(text, r"https?://|@import|url\(")
            self.assertNotIn("{{", text)

    def test_the_verdict_stands_first_and_names_the_node(self):
        words = " ".join(" ".join(Page(self.page(report())).text).split())
        self.assertLess(words.index("A run would fail here or produce wrong results, on nid003."), words.index("What to do"))
        self.assertLess(words.index("reset it"), words.index("Pairs"))
        self.assertIn("2 identical nodes", words)

    def test_text_of_others_is_text(self):
        text = self.page(report())
        self.assertNotIn("<script>document", text)
        self.assertIn(HOSTILE, Page(text).text)

    def test_1024_nodes_stay_a_page(self):
        text = self.page(report(nodes=1024, gpus=8))
        self.assertLess(len(text), 5_000_000)
        self.assertIn("1,023 identical nodes", text)

    @unittest.skipUnless(shutil.which("chromium"), "no chromium: the page is not looked at in a browser")
    def test_a_browser_shows_it_without_running_what_is_in_it(self):
        path = self.folder / "report.html"
        self.show(report(), "--html", path)
        done = subprocess.run(["chromium", "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={self.folder}/chromium", "--dump-dom",
                               f"file://{path}#checks"], capture_output=True, text=True, timeout=120, env=self.env, check=False)
        self.assertIn("<title>fail: preflight of &lt;script&gt;", done.stdout)

    # --- the baseline ---

    def well(self):
        what = report()
        what["rows"].pop()
        return {**what, "verdict": "pass", "fail_count": 0}

    def test_a_baseline_is_saved_and_compared(self):
        path = self.folder / "good.json"
        self.assertEqual(self.show(self.well(), "--baseline", "save", path).returncode, 0)
        self.assertEqual(self.show(self.well(), "--baseline", "compare", path).returncode, 0)
        slow = copy.deepcopy(self.well())
        slow["measurements"][-1]["busbw"] = 2e11
        done = self.show(slow, "--baseline", "compare", path)
        self.assertEqual(done.returncode, 2)
        self.assertIn(f"fail baseline all_reduce of node 2 at 128MiB: 200.0 GB/s, 39 % less than in the baseline (expected 330.0 GB/s ({path}))\n"
                      "     fix (admin): if nothing was changed on purpose, report the node\n", done.stdout)
        other = copy.deepcopy(self.well())
        other["nodes"].pop()
        done = self.show(other, "--baseline", "compare", path)
        self.assertEqual(done.returncode, 3)
        self.assertIn(f"unknown baseline {path}: not compared: the baseline is from 3 nodes with 4 × NVIDIA H200 (x86_64), but this is 2 nodes with "
                      "4 × NVIDIA H200 (x86_64)\n", done.stdout)

    def test_what_fails_is_no_baseline(self):
        path = self.folder / "good.json"
        done = self.show(report(), "--baseline", "save", path)
        self.assertEqual((done.returncode, done.stderr), (2, f"nlaunch preflight: the baseline '{path}' was not saved: a check failed\n"))
        done = self.show({**self.well(), "measurements": [], "figures": []}, "--baseline", "save", path)
        self.assertEqual((done.returncode, done.stderr),
                         (65, f"nlaunch preflight: the baseline '{path}' was not saved: nothing was measured; --level standard measures "
                              "groups of GPUs, --level deep also links and GPUs\n"))
        self.assertFalse(path.exists())

    def test_a_baseline_that_is_none_stops_before_anything_is_checked(self):
        path = self.folder / "none.json"
        done = self.nlaunch("preflight", "--site", "local", "--baseline", "compare", path, "--runs-dir", self.folder / "runs")
        self.assertEqual((done.returncode, done.stdout, done.stderr),
                         (65, "", f"error: cannot open '{path}': No such file or directory [preflight.baseline]\n"
                                  f"hint: create one with: nlaunch preflight --baseline save {path}\n"))
        self.assertFalse((self.folder / "runs").exists())

    def test_another_word_is_a_usage_error_that_names_both(self):
        done = self.nlaunch("preflight", "--baseline", "keep", "x")
        self.assertEqual((done.returncode, done.stderr),
                         (64, "nlaunch preflight: --baseline: expected 'save' or 'compare' before FILE, got 'keep'\n"
                              "see nlaunch preflight --help\n"))

    # --- for real ---

    def test_of_this_machine(self):
        page, metrics = self.folder / "report.html", self.folder / "n.prom"
        path = self.folder / "two.yaml"
        path.write_text(TWO_RANKS)
        done = self.nlaunch("preflight", path, "--site", "local", "--html", page, "--prometheus", metrics, "--baseline", "save",
                            self.folder / "good.json", "--runs-dir", self.folder / "runs", timeout=120)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        saved = json.loads(next((self.folder / "runs").glob("*/*/attempt-0/preflight.json")).read_text())
        self.assertEqual((saved["plan"], saved["site"]), ("two", "local"))
        self.assertLess(abs(saved["time"] - time.time()), 300)
        self.assertLessEqual({one["kind"] for one in saved["measurements"]}, {"node", "world", "weight-sync"})
        self.assertEqual(Page(page.read_text()).faults, [])
        self.assertTrue(list(text_string_to_metric_families(metrics.read_text())))
        self.assertEqual([one["name"] for one in json.loads((self.folder / "good.json").read_text())["values"]],
                         ["all_reduce of node (gloo, 2 ranks) at 21600KiB"])

    def test_a_node_by_itself_writes_them_too(self):
        page, metrics = self.folder / "report.html", self.folder / "n.prom"
        done = self.nlaunch("preflight", "--node", "--site", "local", "--level", "quick", "--html", page, "--prometheus", metrics)
        self.assertEqual((done.returncode, page.exists(), metrics.exists()), (0, True, True), done.stdout + done.stderr)
        metrics.unlink()
        done = self.nlaunch("preflight", "--node", "--site", "local", "--level", "quick", "--prolog", "--prometheus", metrics)
        self.assertEqual((done.returncode, done.stdout, done.stderr, metrics.exists()), (0, "", "", True))


class Progress(CliTest):
    def on_a_terminal(self, *arguments, env=None):
        """Standard error of a preflight as a terminal gets it."""
        main, other = pty.openpty()
        path = self.folder / "two.yaml"
        path.write_text(TWO_RANKS)
        command = [str(word) for word in (NLAUNCH, "preflight", path, "--site", "local", "--runs-dir", self.folder / "runs", *arguments)]
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=other,
                                 env={**self.env, "TERM": "xterm", **(env or {})}, cwd=SOURCE)
        os.close(other)
        out = b""
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            if select.select([main], [], [], 0.1)[0]:
                try:
                    block = os.read(main, 65536)
                except OSError:
                    break
                out += block
        self.assertEqual(child.wait(timeout=60), 0)
        os.close(main)
        return out.decode()

    def test_a_terminal_sees_what_goes_on_and_is_left_clean(self):
        seen = self.on_a_terminal()
        self.assertIn("\r\x1b[K   0 s  checking this machine", seen)
        self.assertTrue(seen.endswith("\r\x1b[K"), seen)
        self.assertNotIn("\n", seen.replace("\r\n", "\n").strip("\n"), seen)

    def test_nobody_else_does(self):
        for arguments, env in ((("--quiet",), {}), ((), {"NO_COLOR": "1"}), ((), {"TERM": "dumb"})):
            self.assertNotIn("\x1b", self.on_a_terminal(*arguments, env=env))


if __name__ == "__main__":
    unittest.main()

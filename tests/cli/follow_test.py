"""`nlaunch run` on a login node follows its job: here one whose Slurm went away. Jobs of a real Slurm are in tests/cluster."""
import fcntl
import os
import pty
import select
import shutil
import subprocess
import termios
import textwrap
import threading
import time
import unittest

from harness import NLAUNCH, SOURCE, CliTest


class Follow(CliTest):
    def setUp(self):
        super().setUp()
        tools = self.folder / "tools"
        tools.mkdir()
        for name, script in (("sbatch", "echo Submitted batch job 17"),
                             ("scontrol", "echo 'slurm_load_jobs error: Unable to contact slurm controller' >&2; exit 1")):
            (tools / name).write_text(f"#!/bin/sh\n{script}\n")
            (tools / name).chmod(0o755)
        (self.folder / "site.yaml").write_text(textwrap.dedent("""\
            version: 1
            name: gone
            scheduler: {kind: slurm, submit: [sbatch]}
            node: {gpus: 4}
            """))
        self.env |= {"PATH": f"{tools}:{self.env['PATH']}"}

    def follow(self, then):
        """The end of a run that is followed; `then` is called with its folder once it is there."""
        runs = self.folder / "runs"

        def wait():
            while not (found := list(runs.glob("quickstart/latest/job.json"))):
                time.sleep(0.05)
            then(found[0].parent.resolve())

        threading.Thread(target=wait, daemon=True).start()
        return subprocess.run([NLAUNCH, "run", SOURCE / "configs" / "quickstart.yaml", "--site", self.folder / "site.yaml", "--runs-dir",
                               runs], capture_output=True, text=True, timeout=90, env=self.env, cwd=self.folder, stdin=subprocess.DEVNULL)

    def test_the_summary_of_the_run_is_enough(self):
        done = self.follow(lambda run: (run / "summary.json").write_text('{"exit_code": 3}'))
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("Unable to contact slurm controller; retrying\n", done.stderr)

    def test_without_slurm_and_folder_nothing_is_waited_for(self):
        done = self.follow(shutil.rmtree)
        self.assertEqual(done.returncode, 70, done.stderr)
        self.assertRegex(done.stderr, r"nlaunch: Slurm does not report the state of job 17, and \S+/runs/quickstart/\S+ no longer exists; its log: unknown\n")

    def test_on_a_terminal_its_log_cannot_disturb_the_footer(self):
        log, over = self.folder / "job.log", self.folder / "over"
        scontrol = self.folder / "tools" / "scontrol"
        scontrol.write_text(f"#!/bin/sh\n[ -e {over} ] && state=COMPLETED || state=RUNNING\n"
                            f"echo JobId=17 JobState=$state Reason=None NodeList=n1 StdOut={log}\n")
        log.write_text("one\n\x1b[31mred\x1b[0m\x1b[2J\n 10%\r 20%\r 30%")
        terminal, inside = pty.openpty()
        self.addCleanup(os.close, terminal)

        def begin():
            os.setsid()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        process = subprocess.Popen([NLAUNCH, "run", SOURCE / "configs" / "quickstart.yaml", "--site", self.folder / "site.yaml", "--runs-dir",
                                    self.folder / "runs"], env={**self.env, "TERM": "xterm"}, cwd=self.folder, stdin=inside, stdout=inside,
                                   stderr=inside, preexec_fn=begin)
        os.close(inside)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        got, until = b"", time.monotonic() + 30
        while process.poll() is None or select.select([terminal], [], [], 0)[0]:
            self.assertLess(time.monotonic(), until, got)
            if select.select([terminal], [], [], 0.1)[0]:
                try:
                    got += os.read(terminal, 65536)
                except OSError:  # nobody has its other end
                    break
            if b" 20%\r\n" in got and not over.exists():
                (self.folder / "runs" / "quickstart" / "latest" / "summary.json").write_text('{"exit_code": 3}')
                over.touch()
        self.assertEqual(process.wait(timeout=30), 3, got)
        self.assertIn(b"one\r\nred\r\n 20%\r\n", got)
        self.assertIn(b" 30%\r\n", got)

    def test_a_site_without_a_scheduler_cannot_be_detached_from(self):
        for option in ("--detach", "--submit"):
            done = self.nlaunch("run", "configs/quickstart.yaml", "--site", "local", option)
            self.assertEqual((done.returncode, done.stderr), (64, f"nlaunch run: site 'local' has no scheduler to submit to, which {option} requires\n"))


if __name__ == "__main__":
    unittest.main()

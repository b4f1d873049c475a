"""Runs of run_driver, for the process tests and the kill trials. Standard library only."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import uuid

BIN = pathlib.Path(os.environ.get("NLAUNCH_BUILD", pathlib.Path(__file__).resolve().parents[2] / "build")) / "bin"
AWKWARD = str(BIN / "awkward")


def awkward(what, tag):
    """The command of an awkward process. Forks keep the tag in their command line, whatever they do to themselves."""
    return [AWKWARD, what, tag]


def alive(tag):
    """The pids of processes with this tag in their command line or environment, and those forked by the supervisor but not exec'ed yet."""
    found = []
    for folder in pathlib.Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            said = (folder / "cmdline").read_bytes() + (folder / "environ").read_bytes()
            state = (folder / "stat").read_text().rsplit(")", 1)[1].split()[0]
        except (OSError, IndexError):
            continue
        if tag.encode() in said and state not in "ZX":
            found.append(int(folder.name))
    return found


def wait_until_gone(tag, limit):
    """Those that are still alive after `limit` seconds."""
    end = time.monotonic() + limit
    while (left := alive(tag)) and time.monotonic() < end:
        time.sleep(0.01)
    return left


class Run:
    """One run of run_driver. Its tag is in the environment of each of its processes, nlaunch's own included, and in the command line of the
    awkward ones."""

    def __init__(self, roles, folder=None, **spec):
        self.tag = "tag-" + uuid.uuid4().hex
        self.folder = pathlib.Path(folder or tempfile.mkdtemp(prefix=self.tag))
        self.spec = dict(spec, folder=str(self.folder), roles=[dict(role) for role in roles])
        for role in self.spec["roles"]:
            if isinstance(role["command"], str):
                role["command"] = awkward(role["command"], self.tag)
        self.spec_file = pathlib.Path(tempfile.gettempdir()) / (self.tag + ".json")
        self.spec_file.write_text(json.dumps(self.spec))

    def start(self, **options):
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        options["env"] = {**options.get("env", os.environ), "NLAUNCH_TEST_RUN": self.tag + ".run"}
        self.process = subprocess.Popen([BIN / "run_driver", self.spec_file], **options)
        return self

    def finish(self, timeout=60):
        """Waits for the end; self.code, self.out and self.err then say how it was."""
        self.out, self.err = self.process.communicate(timeout=timeout)
        self.code = self.process.returncode
        return self

    def wait_for(self, event, count=1, limit=20):
        """Waits until the run has recorded an event `count` times."""
        end = time.monotonic() + limit
        while time.monotonic() < end:
            found = [e for e in self.events() if e["event"] == event]
            if len(found) >= count:
                return found
            time.sleep(0.005)
        raise AssertionError(f"no {event} within {limit} s")

    def events(self):
        try:
            lines = (self.folder / "events.jsonl").read_text().split("\n")
        except FileNotFoundError:
            return []
        return [json.loads(line) for line in lines[:-1]]

    def summary(self):
        return json.loads((self.folder / "summary.json").read_text())

    def log(self, name):
        return (self.folder / "attempt-0" / "logs" / f"{name}.log").read_bytes()

    def supervisor(self):
        """The pid of the supervisor: the guardian's first child."""
        return self.wait_for("attempt-started")[0]["supervisor"]

    def close(self):
        if getattr(self, "process", None) and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for stream in (self.process.stdout, self.process.stderr) if getattr(self, "process", None) else ():
            if stream:
                stream.close()
        for pid in wait_until_gone(self.tag, 2):
            os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self.folder, ignore_errors=True)
        self.spec_file.unlink(missing_ok=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

"""What the fault matrix is made of: runs of nlaunch with real programs, what is done to them, and what it says."""

import contextlib
import dataclasses
import json
import os
import pathlib
import re
import shutil
import signal
import stat
import subprocess
import tempfile
import threading
import time
import typing

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parents[1]
NLAUNCH = pathlib.Path(os.environ.get("NLAUNCH_BUILD", SOURCE / "build")) / "bin" / "nlaunch"
PATIENCE = 300  # seconds for whatever a run is expected to come to


@dataclasses.dataclass
class Row:
    """A fault, and the truth about it. `{pid}` in an expression is the process to which it was done."""

    what: str
    fault: typing.Callable = None  # called with the run; the time counts from its return
    first: str = ""  # expression for who failed first, as in summary.json
    culprit: str = ""  # for the sentence in which nlaunch names the process
    cause: str = ""  # for the class of the finding that is the cause
    text: str = ""  # for the line of a log that is quoted as the cause
    fix: str = r"\w"  # for the advice
    code: int | tuple = 0  # of nlaunch; several where it depends on the moment
    seconds: float = 10  # from the fault until it is said, at most
    blameless: bool = False  # nobody is to be accused
    experiment: str = "faults.yaml"
    settings: dict = dataclasses.field(default_factory=dict)
    env: dict = dataclasses.field(default_factory=dict)
    within: typing.Callable = None  # called with the run: a context, which gives words to put before nlaunch's


def processes():
    """Of all processes: parent and command line, by pid."""
    found = {}
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        except OSError:
            continue
        found[int(entry.name)] = (parent, command)
    return found


def below(pid):
    """The tree under a process, itself included: command lines by pid."""
    table = processes()
    tree, grown = {pid} & table.keys(), True
    while grown:
        grown = {child for child, (parent, _) in table.items() if parent in tree} - tree
        tree |= grown
    return {member: table[member][1] for member in sorted(tree)}


def shared_memory(pids):
    """The inodes of the files in /dev/shm that these processes have mapped; a semaphore has got its name later."""
    found = set()
    for pid in pids:
        try:
            maps = pathlib.Path(f"/proc/{pid}/maps").read_text()
        except OSError:
            continue
        found.update(map(int, re.findall(r" (\d+) +/dev/shm/", maps)))
    return found


class Run:
    """`nlaunch run` of a row; what it prints is kept with the seconds since its start."""

    def __init__(self, row, folder, env, settings):
        self.row, self.folder = row, folder
        self.temporary = pathlib.Path(tempfile.mkdtemp(prefix="nl-"))  # short: a socket's path has 107 bytes
        self.pid, self.tree, self.memory = None, {}, set()
        self.settings, self.env = settings, {**env, "TMPDIR": str(self.temporary)}
        self.holds = contextlib.ExitStack()  # until the end
        before = self.holds.enter_context(row.within(self)) if row.within else []
        self.lines, self.start = [], time.monotonic()
        self.nlaunch = subprocess.Popen(
            [*before, *self.command()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=self.env,
            text=True,
            errors="replace",
            cwd=folder,
            start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )  # a shell's background job ignores it
        self.threads = [threading.Thread(target=self.read), threading.Thread(target=self.remember)]
        for thread in self.threads:
            thread.start()

    def command(self, runs="runs", **more):
        settings = [f"{key}={value}" for key, value in {**self.settings, **more}.items()]
        return [
            str(NLAUNCH),
            "run",
            str(HERE / self.row.experiment),
            "--site",
            "local",
            "--no-preflight",
            "--runs-dir",
            str(self.folder / runs),
            *[word for setting in settings for word in ("--set", setting)],
        ]

    def read(self):
        with self.nlaunch.stdout as output:
            for line in output:
                self.lines.append((time.monotonic() - self.start, line.rstrip("\n")))

    @property
    def path(self):
        return next((self.folder / "runs").glob("*/2*"), self.folder / "runs/none")

    def log(self, process):
        path = self.path / f"attempt-0/logs/{process}.log"
        return path.read_text(errors="replace") if path.exists() else ""  # a bar's \r is a line's end here

    def json(self, name):
        path = self.path / name
        return json.loads(path.read_text()) if path.exists() else {}

    def events(self, name):
        path = self.path / "events.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        return [event for event in map(json.loads, lines) if event["event"] == name]

    def wait(self, what, true):
        """Until it is true, or the run has ended: then a fault has no object."""
        deadline = time.monotonic() + PATIENCE
        while not (result := true()):
            if self.nlaunch.poll() is not None:
                raise RuntimeError(f"the run ended before {what}")
            if time.monotonic() > deadline:
                raise RuntimeError(f"it did not come to {what}")
            time.sleep(0.1)
        return result

    def progress(self, process="learner.0", step=2, pattern=r"^\s*\d+%\|.*?\| (\d+)/\d+ \["):
        """Until a process says that it has done a step. The default is the trainer's bar, not that of loading."""
        self.wait(
            f"step {step}",
            lambda: any(int(number) >= step for number in re.findall(pattern, self.log(process), re.MULTILINE)),
        )

    def find(self, process, pattern):
        """The pid in a role's process tree whose command line begins like that; "" is the role's own process."""
        root = self.wait(
            f"the start of {process}",
            lambda: [event["pid"] for event in self.events("process-started") if event["process"] == process],
        )[-1]
        return (
            self.wait(
                pattern, lambda: next((pid for pid, command in below(root).items() if re.match(pattern, command)), None)
            )
            if pattern
            else root
        )

    def kill(self, pid, number):
        os.kill(pid, number)

    def remember(self):
        """What belongs to the run, for as long as it is there."""
        while self.nlaunch.poll() is None:
            tree = below(self.nlaunch.pid)
            self.tree.update(tree)
            self.memory |= shared_memory(tree)
            time.sleep(0.5)

    def finish(self):
        """Waits for the end, and cleans up what nlaunch should have; what that was is in `left`."""
        said_nothing = False
        try:
            self.nlaunch.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            said_nothing = True
            self.nlaunch.send_signal(signal.SIGTERM)  # SIGQUIT is ignored by what a shell starts in the background
            try:
                self.nlaunch.wait(60)
            except subprocess.TimeoutExpired:
                self.nlaunch.kill()
                self.nlaunch.wait()
        self.ended = time.monotonic() - self.start
        time.sleep(0.5)
        alive = processes()
        left = [
            f"{command} (pid {pid})"
            for pid, command in self.tree.items()
            if alive.get(pid, (0, ""))[1] == command != ""
        ]
        for pid, command in self.tree.items():
            if alive.get(pid, (0, ""))[1] == command != "":
                os.kill(pid, signal.SIGKILL)
        for thread in self.threads:
            thread.join()
        for path in pathlib.Path("/dev/shm").iterdir():
            if path.stat().st_ino in self.memory:
                left.append(str(path))
                path.unlink()
        files = [path for path in self.temporary.rglob("*") if not path.is_dir()]
        left += [str(path) for path in files if stat.S_ISSOCK(path.lstat().st_mode)]
        self.other_files = sorted(
            str(path.relative_to(self.temporary)) for path in files if not stat.S_ISSOCK(path.lstat().st_mode)
        )
        shutil.rmtree(self.temporary)
        self.holds.close()
        self.left = left
        return said_nothing

    def own_lines(self):
        """What nlaunch says itself: neither what processes print, nor their last lines, nor which libnccl they have."""
        return [
            (when, line)
            for when, line in self.lines
            if line and not re.match(r"\S+ +│|  |note: |run \d", line) and ": libnccl " not in line
        ]


def carry_out(run):
    """Makes the fault, waits for the end, and judges what nlaunch said."""
    trouble = None
    try:
        if run.row.fault:
            run.row.fault(run)
    except RuntimeError as error:
        trouble = error
    when = time.monotonic() - run.start if run.row.fault else 0
    result = judge(run, when, run.finish())
    if trouble:
        result["wrong"].insert(0, f"the fault could not be made: {trouble}")
    return result


def judge(run, when, said_nothing):
    """What nlaunch said, and which of it is not the truth."""
    row, wrong = run.row, []
    summary, diagnosis = run.json("summary.json"), run.json("attempt-0/diagnosis.json")
    cause = next((finding for finding in diagnosis.get("findings", []) if finding["role"] == "cause"), {})
    first = summary.get("first") or ""
    mine = run.own_lines()
    advice = [line for _, line in mine if line.startswith("fix: ")]

    def expression(pattern):
        return re.compile(pattern.replace("{pid}", str(run.pid)))

    hit = next((at for at, line in mine if row.culprit and expression(row.culprit).search(line)), None)
    took = None if hit is None else round(max(hit - when, 0), 1)
    if said_nothing:
        wrong.append(f"said nothing within {PATIENCE} s")
    if run.nlaunch.returncode not in (row.code if isinstance(row.code, tuple) else (row.code,)):
        wrong.append(f"exit code {run.nlaunch.returncode}, not {row.code}")
    if row.blameless:
        accused = [line for _, line in mine if re.match(r"culprit:|fix:|verdict:|unsure|\S+ may be", line)] + (
            [cause["class"]] if cause else []
        )
        wrong += [f"accuses: {line}" for line in accused]
    else:
        if not re.fullmatch(row.first, first):
            wrong.append(f"first: {first!r}, not {row.first}")
        if hit is None:
            wrong.append(f"culprit: not named as {expression(row.culprit).pattern}")
        elif took > row.seconds:
            wrong.append(f"named after {took} s, not {row.seconds}")
        if not re.fullmatch(row.cause, cause.get("class", "")):
            wrong.append(f"cause: {cause.get('class', '')!r}, not {row.cause}")
        elif not re.search(row.text, cause.get("text", "")):
            wrong.append(f"line: {cause['text']!r}, not {row.text}")
        if not any(re.search(row.fix, line) for line in advice):
            wrong.append(f"fix: {advice}, not {row.fix}")
    wrong += [f"left: {what}" for what in run.left]
    return {
        "what": row.what,
        "wrong": wrong,
        "pid": run.pid,
        "expected": {
            "first": row.first,
            "culprit": expression(row.culprit).pattern,
            "cause": row.cause,
            "text": row.text,
            "fix": row.fix,
            "code": row.code,
            "seconds": row.seconds,
            "blameless": row.blameless,
        },
        "said": {
            "sentence": summary.get("sentence", ""),
            "first": first,
            "cause": cause.get("class", ""),
            "culprit": cause.get("culprit", ""),
            "text": cause.get("text", ""),
            "code": run.nlaunch.returncode,
            "seconds": took,
        },
        "fault_at": round(when, 1),
        "ended_after_fault": round(run.ended - when, 1),
        "whole": round(run.ended, 1),
        "left": run.left,
        "other_temporary_files": run.other_files,
        "own_lines": [f"{at - when:+.1f} {line}" for at, line in mine],
    }


def keep(name, run, result):
    """Keeps the output and the judgement beside the run directory, and writes a part of INDEX.md."""
    target = run.folder
    for folder in ("weights", "checkpoints"):
        shutil.rmtree(run.path / folder, ignore_errors=True)
    (target / "output.txt").write_text("".join(f"{at:8.2f} {line}\n" for at, line in run.lines))
    (target / "tree.txt").write_text("".join(f"{pid} {command[:200]}\n" for pid, command in run.tree.items()))
    (target / "result.json").write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")
    said, expected = result["said"], result["expected"]
    text = [
        f"## {name}: {'WRONG' if result['wrong'] else 'right'}",
        f"- done: {result['what']}" + (f" (pid {run.pid})" if run.pid else ""),
        f"- said: {said['sentence']} | first {said['first'] or '-'} | cause [{said['cause'] or '-'}] "
        f"culprit {said['culprit'] or '-'} | "
        f"code {said['code']} | named after {said['seconds']} s, ended after {result['ended_after_fault']} s",
        "- should: "
        + (
            "accuse nobody"
            if expected["blameless"]
            else f"first {expected['first']} | cause [{expected['cause']}] culprit "
            f"/{expected['culprit']}/ | within {expected['seconds']} s"
        )
        + f" | code {expected['code']}",
    ]
    text += [f"- wrong: {line}" for line in result["wrong"]] + [f"- path: {target}", ""]
    with open(target.parent / "INDEX.md", "a") as index:
        index.write("\n".join(text) + "\n")

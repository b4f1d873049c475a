"""Run directories whose files are damaged at random: every command says what it can, and none crashes.

NLAUNCH_MUTATIONS=7000 tries so many; the suite a few hundred, of a fixed seed.
"""
import concurrent.futures
import json
import os
import pathlib
import random
import shutil
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ["NLAUNCH_SOURCE"])
NLAUNCH = pathlib.Path(os.environ["NLAUNCH_BUILD"]) / "bin" / "nlaunch"
RECORDED = SOURCE / "tests/runs/version-1"
MUTATIONS = int(os.environ.get("NLAUNCH_MUTATIONS", "300"))
SEED = 20260131
COMMANDS_OF_EACH = 3

COMMANDS = (
    ("ps",), ("ps", "--json"), ("ps", "RUN"), ("top", "RUN", "--once"), ("report", "RUN"), ("report", "--all"), ("logs", "RUN"), ("stop", "RUN"), ("restart", "RUN", "engine"), ("drain", "RUN", "node1"), ("scale", "RUN", "engine=1"), ("resume", "RUN"), ("update", "RUN", "RUN/plan.yaml"), ("evidence", "RUN"), ("exec", "RUN", "learner.0", "--", "true"),
    ("diagnose", "RUN"), ("diagnose", "--json", "RUN"), ("diff", "RUN", "OTHER"), ("diff", "OTHER", "RUN", "--json"),
    ("bundle", "RUN", "-o", "bundle.tar.gz"), ("plan", "--plan", "RUN/plan.json"),
)
VALUES = (None, True, -1, 0, 1, 0.5, 1e300, 2**63, 2**64, -(2**63), "", "x" * 5000, "\x1b[31m", "\0", "../../etc/passwd", "-rf",
          [], {}, [[]], [1], ["x"], {"a": 1})
PIECES = (b"[", b"{", b'"', b"\n", b"[" * 5000, b"null", b"-", b"\xff", b"\x1b[31m")


def places(value, place=()):
    yield place
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        yield from places(one, (*place, key))


def with_other_values(chance, text):
    """JSON in which one to three members are of another type, or not there."""
    root = json.loads(text)
    for _ in range(chance.randint(1, 3)):
        *outer, key = chance.choice([place for place in places({"": root}) if place])
        holder = {"": root}
        for step in outer:
            holder = holder[step]
        if outer and chance.random() < 0.2:
            del holder[key]
        elif outer:
            holder[key] = chance.choice(VALUES)
        else:
            root = chance.choice(VALUES)
    return json.dumps(root)


def with_other_bytes(chance, data):
    data = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(data) + 1)
        kind = chance.randrange(4)
        if kind == 0:
            del data[at:at + chance.randint(1, 200)]
        elif kind == 1:
            data[at:at] = data[at:at + 200]
        elif kind == 2:
            del data[at:]
        else:
            data[at:at] = chance.choice((*PIECES, chance.randbytes(8)))
    return bytes(data)


def damaged(chance, path):
    data = path.read_bytes()
    if path.suffix not in (".json", ".jsonl") or chance.random() < 0.3:
        return with_other_bytes(chance, data)
    if path.suffix == ".json":
        return with_other_values(chance, data.decode()).encode()
    lines = data.decode().splitlines()
    at = chance.randrange(len(lines))
    lines[at] = with_other_values(chance, lines[at])
    return "".join(line + "\n" for line in lines).encode()


def problem_with(done):
    said = done.stdout + done.stderr
    if done.returncode < 0:
        return f"ended by signal {-done.returncode}"
    if b"please report" in said or b"json.exception" in said:
        return "an error of nlaunch's own"
    return "a terminal's escape sequence" if b"\x1b" in said else ""


def try_one(number):
    """What went wrong with one damaged run."""
    chance = random.Random(SEED + number)
    with tempfile.TemporaryDirectory(prefix="nlaunch-mutated-") as folder:
        runs = pathlib.Path(folder) / "runs/quickstart"
        for name in ("damaged", "other"):
            shutil.copytree(RECORDED, runs / name)
        file = chance.choice(sorted(path for path in (runs / "damaged").rglob("*") if path.is_file()))
        file.write_bytes(damaged(chance, file))
        wrong = []
        for command in chance.sample(COMMANDS, COMMANDS_OF_EACH):
            words = [word.replace("RUN", str(runs / "damaged")).replace("OTHER", str(runs / "other")) for word in command]
            try:
                problem = problem_with(subprocess.run([NLAUNCH, *words], cwd=folder, capture_output=True, timeout=60))
            except subprocess.TimeoutExpired:
                problem = "no end of input within 60 s"
            if problem:
                wrong.append(f"mutation {number} of {file.name}, nlaunch {' '.join(command)}: {problem}")
        return wrong


class MutatedRuns(unittest.TestCase):
    def test_no_command_crashes(self):
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            wrong = [problem for problems in pool.map(try_one, range(MUTATIONS)) for problem in problems]
        self.assertEqual(wrong, [])


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/env python3
"""Kills nlaunch's guardian, its supervisor or the guardian's process group with SIGKILL at a random moment of a run
of children that are hard to stop, and counts the processes alive two seconds later. None may be. `kill_trials.py [COUNT] [SEED]`;
exits with 1 if a process survived."""
import os
import pathlib
import random
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "process"))
from driver import Run, wait_until_gone  # noqa: E402

ROLES = [{"name": "everything", "count": 2, "command": "everything"},
         {"name": "daemon", "exit_ok": True, "command": "daemon"},
         {"name": "hops", "exit_ok": True, "command": "hops"},
         {"name": "flood", "command": "flood"},
         {"name": "learner", "ends_run": True, "command": "deaf"}]
LIMIT = 2.0


def children(pid):
    """Returns the children of a process."""
    found = []
    for folder in pathlib.Path("/proc").iterdir():
        try:
            if folder.name.isdigit() and int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1]) == pid:
                found.append(int(folder.name))
        except (OSError, IndexError):
            continue
    return found


def shoot(run, victim):
    guardian = run.process.pid
    if victim == "group":
        os.killpg(guardian, signal.SIGKILL)
        return
    supervisor = next(iter(children(guardian)), guardian)
    os.kill(supervisor if victim == "supervisor" else guardian, signal.SIGKILL)


def trial(source):
    """Returns what was killed, after how many milliseconds, how many processes survived, and how long the last one lived."""
    victim, delay = source.choice(["guardian", "supervisor", "group"]), source.uniform(0, 0.3)
    with Run(ROLES, quiet=True) as run:
        run.start(start_new_session=True)
        time.sleep(delay)
        shoot(run, victim)
        start = time.monotonic()
        left = wait_until_gone(run.tag, LIMIT)
        took = time.monotonic() - start
        run.finish()
    return victim, delay * 1000, len(left), took * 1000


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(1 << 30)
    source, worst, bad = random.Random(seed), 0.0, 0
    for _ in range(count):
        victim, delay, survivors, took = trial(source)
        worst, bad = max(worst, took), bad + (survivors > 0)
        if survivors:
            print(f"{victim} killed after {delay:.0f} ms: {survivors} alive {LIMIT:.0f} s later")
    print(f"{count} trials (seed {seed}): survivors in {bad}; the last process gone after {worst:.0f} ms at most")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())

"""Runs a command and stops (SIGSTOP) one rank of its preflight as soon as that rank is there, so that it never joins.

    stop_probe.py INDEX COMMAND..."""
import os
import pathlib
import signal
import subprocess
import sys
import time


def descendants(root):
    """The process ids of all that `root` started, by way of their parents."""
    parents = {}
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            continue  # it has ended
    found, grown = {root}, True
    while grown:
        grown = {pid for pid, parent in parents.items() if parent in found} - found
        found |= grown
    return found


def is_rank(pid, index):
    try:
        words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return words[0].endswith(b"nlaunch-probe") and b"rank" in words and words[words.index(b"--index") + 1] == index.encode()


def main():
    index, command = sys.argv[1], sys.argv[2:]
    child = subprocess.Popen(command)
    while child.poll() is None:
        victims = [pid for pid in descendants(child.pid) if is_rank(pid, index)]
        if victims:
            os.kill(victims[0], signal.SIGSTOP)
            break
        time.sleep(0.005)
    sys.exit(child.wait())


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""How fast nlaunch diagnose reads NCCL INFO output, compared with `grep -F -c -f` with the same literals, in turns, on a generated
file that ends in a failure: medians and the largest resident memory. Also prints whether the failure was found.

Prints a table for docs/measurements.md. Usage: scripts/bench/diagnose.py [--gigabytes 1] [--rounds 5] [--folder DIR]"""
import argparse
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
LAST = "node1:4011:4900 [1] transport/net_ib.cc:789 NCCL WARN NET/IB : Got completion with error 12, opcode 1, len 0, vendor err 129\n"


def chatter(ranks=64):
    """Returns some megabytes of what NCCL writes with NCCL_DEBUG=INFO and NCCL_DEBUG_SUBSYS=INIT,GRAPH,NET,COLL."""
    lines = []
    for rank in range(ranks):
        who = f"node{rank // 8}:{4000 + rank}:{5000 + rank} [{rank % 8}] NCCL INFO"
        lines += [f"{who} Setting affinity for GPU {rank % 8} to ffffffff,ffff0000",
                  f"{who} NVLS multicast support is available on dev {rank % 8}",
                  f"{who} Trees [0] {rank - 1}->{rank}->{rank + 1}/-1/-1 [1] {rank + 1}->{rank}->{rank - 1}/-1/-1"]
        for channel in range(32):
            lines += [f"{who} Channel {channel:02}/0 : {rank}[{rank % 8}] -> {(rank + 1) % ranks}[{(rank + 1) % 8}] via P2P/CUMEM",
                      f"{who} Channel {channel:02}/0 : {rank}[{rank % 8}] -> {(rank + 8) % ranks}[{rank % 8}] [send] via NET/IB/{rank % 4}/GDRDMA"]
        for call in range(200):
            lines.append(f"{who} AllReduce: opCount {call:x} sendbuff 0x7f3a{call * 4096:08x} recvbuff 0x7f3a{call * 4096:08x} count 22118400 "
                         f"datatype 9 op 0 root 0 comm 0x55d0{rank:08x} [nranks={ranks}] stream 0x55d1{rank:08x}")
    return ("\n".join(lines) + "\n").encode()


def write(path, size):
    block = chatter()
    with open(path, "wb") as file:
        while file.tell() < size:
            file.write(block)
        file.write(LAST.encode())


def peak(pid):
    """Returns the peak resident memory of a process so far, in MiB."""
    try:
        return int(re.search(r"VmHWM:\s+(\d+) kB", pathlib.Path(f"/proc/{pid}/status").read_text())[1]) / 1024
    except (OSError, TypeError):
        return 0


def timed(command):
    """Returns (seconds, CPU seconds, peak resident MiB, output) of a command."""
    began = time.monotonic()
    memory = 0
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, stdout=output, env={**os.environ, "LC_ALL": "C"})
        while True:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            memory = max(memory, peak(process.pid))
            time.sleep(0.02)
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        return time.monotonic() - began, usage.ru_utime + usage.ru_stime, memory, output.read()


def copies(log, count):
    """Returns so many names of the same file."""
    names = [log.with_name(f"copy{i}.log") for i in range(count)]
    for name in names:
        os.link(log, name)
    return list(map(str, names))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nlaunch", default=str(ROOT / "build/bin/nlaunch"))
    parser.add_argument("--gigabytes", type=float, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", help="where the file is written; a folder in memory, such as /dev/shm, leaves the disk aside")
    options = parser.parse_args()
    known = json.loads(subprocess.run([options.nlaunch, "diagnose", "--list", "--json"], stdout=subprocess.PIPE, check=True).stdout)
    literals = sorted({literal for signature in known for literal in signature["literals"]})
    folder = pathlib.Path(tempfile.mkdtemp(dir=options.folder))
    try:
        log, patterns = folder / "chatter.log", folder / "literals"
        write(log, int(options.gigabytes * 1e9))
        patterns.write_text("".join(f"{literal}\n" for literal in literals))
        cores = len(os.sched_getaffinity(0))
        several = "nlaunch diagnose, several files"
        commands = {"nlaunch diagnose": [options.nlaunch, "diagnose", "--json", str(log)],
                    several: [options.nlaunch, "diagnose", "--json", *copies(log, 2 * cores)],
                    "grep -F -c -f": ["grep", "-F", "-c", "-f", str(patterns), str(log)],
                    "wc -l": ["wc", "-l", str(log)]}
        runs = {name: [] for name in commands}
        for _ in range(options.rounds):
            for name, command in commands.items():
                runs[name].append(timed(command))
        megabytes = log.stat().st_size / 1e6
        print(f"{megabytes:.0f} MB, {len(known)} signatures, {len(literals)} literals, {options.rounds} rounds in turns; several files: {2 * cores} such files on {cores} cores\n")
        print("| | time | of the processor | MB a second of it | MB a second | memory |\n|---|---|---|---|---|---|")
        for name, all_runs in runs.items():
            wall, busy = (statistics.median(run[i] for run in all_runs) for i in (0, 1))
            read = megabytes * (2 * cores if name == several else 1)
            print(f"| {name} | {wall:.2f} s | {busy:.2f} s | {read / busy:.0f} | {read / wall:.0f} | {max(run[2] for run in all_runs):.0f} MiB |")
        found = json.loads(runs["nlaunch diagnose"][0][3])["findings"]
        print(f"\nfound: {found[0]['class'] if found else 'nothing'}")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()

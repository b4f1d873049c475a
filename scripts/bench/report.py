#!/usr/bin/env python3
"""How long it takes to write JSON, page and metrics of a preflight of many nodes, and how large the page is: `nlaunch preflight --from` with a
generated report that has rows for every node and GPU, p2p results of every pair, and a few faults. Prints a table for docs/measurements.md.
Usage: scripts/bench/report.py [--nodes 1024] [--gpus 8] [--rounds 5] [--keep FOLDER]"""
import argparse
import json
import pathlib
import random
import statistics
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
NLAUNCH = ROOT / "build" / "bin" / "nlaunch"
SIZES = [8 << (2 * step) for step in range(15)]  # 8 B to 2 GiB


def row(check, subject, value, host=None, status="pass", expected="", fix="", who=""):
    out = {"check": check, "status": status, "subject": subject, "value": value, "expected": expected, "fix": fix, "who": who}
    return {**out, "hosts": [host]} if host else out


def rows_of_node(number, host, gpus, rng):
    for gpu in range(gpus):
        rank = number * gpus + gpu
        bus = f"00000000:{0x19 + gpu * 16:02X}:00.0"
        yield row("gpus", f"learner rank {rank} ({host} GPU {gpu})", f"GPU {gpu} at {bus}", host)
        yield row("gpu-health", f"GPU {gpu} ({bus})", "no uncorrected errors, 18 NVLinks up", host)
    yield row("nccl", "learner", "2.28.9 by the NCCL wheel", host)
    yield row("limits", "locked memory", "unlimited", host)
    yield row("limits", "open files", "65536", host)
    yield row("ports", "learner.0", "29500 is free", host)
    yield row("space", "scratch", f"{rng.uniform(500, 900):.1f} GiB free", host)
    yield row("space", "run directory", "8123.4 GiB free", host)


def busbw(size, ceiling, latency, rng):
    return size / (latency + size / ceiling) * rng.gauss(1, 0.01)


def faults(hosts):
    sick = hosts[len(hosts) // 3]
    yield row("gpu-health", "GPU 3 (00000000:49:00.0)", "a row remap is pending", sick, "fail", "none",
              "reset the GPU: nvidia-smi -r, or reboot the node", "admin")
    yield row("peers", "p2p GPU 2 → GPU 5", "38.2 GB/s, 10 % of the median", sick, "fail", "at least 70 % of the median of 1024 (390.1 GB/s)",
              "nvidia-smi topo -m and nvidia-smi nvlink -s show its links; report the node", "admin")
    for host in hosts[-3:]:
        yield row("clock", host, "212 ms behind the first node", host, "warn", "at most 50 ms", "chronyc tracking says why", "admin")
    yield row("kernel-log", "Xid", "no right to read the kernel log: kernel.dmesg_restrict", hosts[0], "unknown")


def report(nodes, gpus, seed=1):
    rng = random.Random(seed)
    hosts = [f"nid{number:06}" for number in range(1, nodes + 1)]
    rows = list(faults(hosts))
    figures, measurements = [], []
    sick = hosts[len(hosts) // 3]
    for number, host in enumerate(hosts):
        rows += rows_of_node(number, host, gpus, rng)
        for a in range(gpus):
            figures.append({"what": "gemm", "host": host, "from": f"GPU {a}", "value": rng.gauss(702e12, 4e12), "unit": "FLOP/s"})
            for b in range(gpus):
                if a != b:
                    slow = (host, a, b) == (sick, 2, 5)
                    figures.append({"what": "p2p", "host": host, "from": f"GPU {a}", "to": f"GPU {b}",
                                    "value": 38.2e9 if slow else rng.gauss(390e9, 3e9), "unit": "B/s"})
        for size in SIZES:
            rate = busbw(size, 440e9, 22e-6, rng)
            measurements.append({"group": f"node {number}", "kind": "node", "op": "all_reduce", "ranks": gpus, "backend": "nccl",
                                 "bytes": size, "busbw": rate, "seconds": size * 2 * (gpus - 1) / gpus / rate,
                                 "limit": 478e9, **({"floor": 164e9} if size == 134217728 else {})})
    for size in SIZES:
        rate = busbw(size, 180e9, 90e-6, rng)
        measurements.append({"group": "learner world", "kind": "world", "op": "all_reduce", "ranks": nodes * gpus, "backend": "nccl",
                             "bytes": size, "busbw": rate, "seconds": size * 2 / rate, **({"floor": 50e9} if size == 134217728 else {})})
    return {"level": "deep", "verdict": "fail", "elapsed": 61.4, "cancelled": False, "plan": "grpo", "site": "our-site", "time": 1795284000,
            "fail_count": 2, "rows": rows, "measurements": measurements, "figures": figures,
            "nodes": [{"host": host, "arch": "x86_64", "gpu": "NVIDIA H200", "gpus": gpus, "driver": "580.159.03", "nccl": "2.28.9"}
                      for host in hosts]}


def seconds(command):
    start = time.monotonic()
    done = subprocess.run([str(word) for word in command], stdout=subprocess.DEVNULL, check=False)
    assert done.returncode == 2, done
    return time.monotonic() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=1024)
    parser.add_argument("--gpus", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--keep", type=pathlib.Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.keep or pathlib.Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        saved, page, metrics = folder / "preflight.json", folder / "report.html", folder / "nlaunch.prom"
        saved.write_text(json.dumps(report(args.nodes, args.gpus)))
        show = [NLAUNCH, "preflight", "--from", saved]
        commands = {"table": show, "JSON": [*show, "--json"], "JSON and page": [*show, "--json", "--html", page],
                    "JSON and metrics": [*show, "--json", "--prometheus", metrics]}
        times = {name: [] for name in commands}
        for _ in range(args.rounds):
            for name, command in commands.items():
                times[name].append(seconds(command))
        print(f"{args.nodes} nodes × {args.gpus} GPUs: report {saved.stat().st_size / 1e6:.1f} MB, page {page.stat().st_size / 1e6:.2f} MB, "
              f"metrics {metrics.stat().st_size / 1e6:.2f} MB\n")
        print("| reading the report and writing | median | worst |\n|---|---|---|")
        for name, taken in times.items():
            print(f"| {name} | {statistics.median(taken):.2f} s | {max(taken):.2f} s |")


if __name__ == "__main__":
    main()

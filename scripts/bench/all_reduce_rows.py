"""Prints table rows, one per size, from the measurements of floor.cu, torch_allreduce.py and nlaunch's preflight.

    all_reduce_rows.py FLOOR.out TORCH.out PREFLIGHT.json"""
import json
import sys


def from_lines(path):
    """Returns {bytes: (microseconds, GB/s)} from the lines that consist of three numbers."""
    rows = {}
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            words = line.split()
            if len(words) == 3 and words[0].isdigit():
                rows[int(words[0])] = (float(words[1]), float(words[2]))
    return rows


def from_preflight(path):
    with open(path, encoding="utf-8") as file:
        measurements = json.load(file)["measurements"]
    return {one["bytes"]: (one["seconds"] * 1e6, one["busbw"] / 1e9)
            for one in measurements if one["op"] == "all_reduce"}


def cell(row):
    return f"{row[0]:.1f} µs, {row[1]:.1f}" if row else "–"


def main():
    floor, torch, own = from_lines(sys.argv[1]), from_lines(sys.argv[2]), from_preflight(sys.argv[3])
    for size in sorted(floor):
        apart = f" ({(own[size][0] / floor[size][0] - 1) * 100:+.1f} %)" if size in own else ""
        print(f"| {size} | {cell(floor[size])} | {cell(torch.get(size))} | {cell(own.get(size))}{apart} |")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Random hangs over Gloo on this machine: one of several ranks sleeps, spins, is stopped, dies silently, enters another
collective or sends another size. Evidence is collected, and the verdict is compared with the truth.
`hang_trials.py [COUNT] [SEED] [--path PATH] [--detail] [--ranks N --tensor-parallel N]`; PATH is where tools are looked up; --detail sets
TORCH_DISTRIBUTED_DEBUG=DETAIL as `--with torch-debug` does, so PyTorch compares the collectives of the ranks. Exits with 1 if a
verdict was wrong and sure."""
import argparse
import collections
import os
import pathlib
import random
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "evidence"))
from hangs import FAULTS, Ranks  # noqa: E402


def trial(source, arguments, env):
    """Returns the fault, how good the verdict was, and how long collecting evidence took."""
    fault = source.choice(FAULTS)
    # With two ranks in two collectives, nothing shows which of them is wrong.
    world = arguments.ranks or source.randint(3 if fault.startswith("other") else 2, 5)
    group = source.choice(["tensor", "data"]) if arguments.tensor_parallel > 1 else "data"
    size = source.choice([10, 1000, 100_000, 1_000_000])
    wrong_size = max(1, int(size * source.choice([0.1, 0.5, 2, 10])))
    bad = source.randrange(world)
    with Ranks(fault, bad, world, source.randint(0, 5), size, wrong_size, source.random() < 0.3, env,
               arguments.tensor_parallel, group) as ranks:
        ranks.wait_for_the_fault()
        began = time.monotonic()
        ranks.collect(arguments.path)
        took = time.monotonic() - began
        verdict = ranks.verdict()
    where = f" in its {group} group" if arguments.tensor_parallel > 1 else ""
    named = [culprit["rank"] for culprit in verdict["culprits"]]
    if verdict["sure"]:
        how = "right" if named == [bad] else "WRONG"
    else:
        how = "unsure, among the candidates" if bad in named else "unsure, not among the candidates"
    return fault, how, took, f"{fault} on rank {bad} of {world}{where}: {verdict['sentence']}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("count", nargs="?", type=int, default=100)
    parser.add_argument("seed", nargs="?", type=int, default=1)
    parser.add_argument("--path", default=os.environ["PATH"])
    parser.add_argument("--detail", action="store_true")
    parser.add_argument("--ranks", type=int, help="always as many, not 2 to 5")
    parser.add_argument("--tensor-parallel", type=int, default=1, metavar="N", help="ranks of a tensor-parallel group; the others are data parallel")
    arguments = parser.parse_args()
    env = {"TORCH_DISTRIBUTED_DEBUG": "DETAIL"} if arguments.detail else {}
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the ranks are killed on exit
    source = random.Random(arguments.seed)
    counts, took = collections.defaultdict(collections.Counter), []
    for number in range(arguments.count):
        fault, how, seconds, sentence = trial(source, arguments, env)
        counts[fault][how] += 1
        took.append(seconds)
        print(f"{number}: {how}: {sentence}", flush=True)
    total = collections.Counter()
    for fault in FAULTS:
        print(f"{fault}: {dict(counts[fault])}")
        total.update(counts[fault])
    print(f"all: {dict(total)}; evidence took at most {max(took):.1f} s, {sorted(took)[len(took) // 2]:.1f} s in the middle")
    return 1 if total["WRONG"] else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Do the unit tests notice? Changes one operator, constant or condition at a time in the layers that decide, builds, and runs the
unit tests of that layer alone. A change that no test notices is printed with its place.

The tree is copied, so the working tree stays as it is; the copy and its build are kept for the next call.
"""
import argparse
import collections
import pathlib
import random
import re
import subprocess
import sys
import time

SOURCE = pathlib.Path(__file__).resolve().parents[1]
LAYERS = ("plan", "supervise", "watch", "lint", "preflight", "diagnose", "evidence")
TEST_LIMIT = 180  # seconds: a change that makes a test wait for ever is noticed
REPLACED = {
    "==": "!=", "!=": "==", "<": "<=", "<=": "<", ">": ">=", ">=": ">", "&&": "||", "||": "&&", "+": "-", "-": "+",
    "true": "false", "false": "true", "+=": "-=", "-=": "+=", "std::min": "std::max", "std::max": "std::min",
    "all_of": "any_of", "any_of": "all_of", "none_of": "any_of", "front": "back", "back": "front",
}
# Operators have a blank on both sides as clang-format leaves them; a template's brackets have none.
OPERATOR = re.compile(r"(?<= )(==|!=|<=|>=|<|>|&&|\|\||\+=|-=|\+|-)(?= )")
WORD = re.compile(r"\b(true|false|std::min|std::max)\b|(?<=ranges::)(all_of|any_of|none_of)\b|(?<=\.)(front|back)(?=\(\))")
NOT = re.compile(r"(?<=[ (])!(?=[a-z(])")
NUMBER = re.compile(r"(?<![\w.\"'])(\d+)(?=[;,) ])(?!\s*[.\w])")
# What has no effect on a decision: preprocessor, assertions of the compiler, texts for people, includes.
LEFT_OUT = re.compile(r"^\s*(#|//|static_assert|template|using |namespace|case )")


def without_texts(line):
    """The line with its strings and its comment blanked, of the same length."""
    line = re.sub(r'"(\\.|[^"\\])*"', lambda text: '"' + " " * (len(text[0]) - 2) + '"', line)
    return re.sub(r"//.*", lambda text: " " * len(text[0]), line)


def changes_of(path):
    """(line number, begin, end, new text) of every change of a file."""
    raw = False
    for number, line in enumerate(path.read_text().splitlines()):
        if 'R"(' in line or 'R"' in line:
            raw = ')"' not in line.split('R"', 1)[1]
            continue
        if raw:
            raw = ')"' not in line
            continue
        if LEFT_OUT.match(line):
            continue
        code = without_texts(line)
        for found in (*OPERATOR.finditer(code), *WORD.finditer(code)):
            yield number, found.start(), found.end(), REPLACED[found[0]]
        for found in NOT.finditer(code):
            yield number, found.start(), found.end(), ""
        for found in NUMBER.finditer(code):
            yield number, found.start(), found.end(), str(int(found[1]) + 1)


class Tree:
    """A copy of what is committed, with a build of its own."""

    def __init__(self, folder):
        self.folder = folder
        self.build = folder / "build-mutate"
        commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=SOURCE, check=True, capture_output=True, text=True).stdout.strip()
        if not (folder / ".git").exists():
            self.do("git", "clone", "--quiet", "--shared", SOURCE, folder, cwd=SOURCE)
        self.do("git", "fetch", "--quiet", SOURCE, commit)
        self.do("git", "checkout", "--quiet", "--force", "--detach", commit)
        self.do("cmake", "--preset", "dev", "-B", self.build)

    def do(self, *words, cwd=None):
        subprocess.run([*map(str, words)], cwd=cwd or self.folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def builds(self, target):
        return subprocess.run(["cmake", "--build", self.build, "--target", target], cwd=self.folder, capture_output=True).returncode == 0

    def passes(self, target):
        try:
            words = [self.build / "bin" / target, "--gtest_fail_fast", "--gtest_brief=1"]
            return subprocess.run(words, cwd=self.build, capture_output=True, timeout=TEST_LIMIT).returncode == 0
        except subprocess.TimeoutExpired:
            return False


def try_change(tree, layer, path, change):
    """"noticed", "missed", or "no program" where it does not compile."""
    number, begin, end, new = change
    text = path.read_text()
    lines = text.splitlines(keepends=True)
    lines[number] = lines[number][:begin] + new + lines[number][end:]
    path.write_text("".join(lines))
    try:
        if not tree.builds(f"{layer}_test"):
            return "no program"
        return "missed" if tree.passes(f"{layer}_test") else "noticed"
    finally:
        path.write_text(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("layers", nargs="*", metavar="LAYER", help=f"of {', '.join(LAYERS)}; else all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=60, help="for all layers together, after the first build")
    parser.add_argument("--count", type=int, default=200, help="changes of each layer, at most")
    parser.add_argument("--tree", type=pathlib.Path, default=SOURCE / "build-mutated", help="where the copy is kept")
    options = parser.parse_args()
    layers = options.layers or list(LAYERS)
    if unknown := set(layers) - set(LAYERS):
        parser.error(f"no such layers: {', '.join(sorted(unknown))}")
    tree = Tree(options.tree.resolve())
    for layer in layers:
        if not tree.builds(f"{layer}_test") or not tree.passes(f"{layer}_test"):
            sys.exit(f"the unit tests of {layer} do not pass as they are")
    counts = {layer: collections.Counter() for layer in layers}
    for layer in layers:
        deadline = time.monotonic() + 60 * options.minutes / len(layers)
        files = sorted((tree.folder / "src" / layer).rglob("*.cpp"))
        changes = [(path, change) for path in files for change in changes_of(path)]
        random.Random(f"{options.seed} {layer}").shuffle(changes)
        for path, change in changes:
            if time.monotonic() > deadline or counts[layer]["noticed"] + counts[layer]["missed"] >= options.count:
                break
            number, begin, end, new = change
            line = path.read_text().splitlines()[number]
            outcome = try_change(tree, layer, path, change)
            counts[layer][outcome] += 1
            if outcome == "missed":
                place = f"{path.relative_to(tree.folder)}:{number + 1}:{begin + 1}"
                print(f"missed {place}: '{line[begin:end]}' -> '{new}' in: {line.strip()}", flush=True)
    for layer in layers:
        tried = counts[layer]["noticed"] + counts[layer]["missed"]
        share = f"{100 * counts[layer]['noticed'] / tried:.0f} %" if tried else "none tried"
        print(f"{layer}: {counts[layer]['noticed']} of {tried} changes noticed ({share}), {counts[layer]['no program']} do not compile")


if __name__ == "__main__":
    main()

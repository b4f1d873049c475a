#!/usr/bin/env python3
"""Do the unit tests notice? Changes one operator, constant or condition at a time in the layers that decide, and runs the unit
tests of that layer alone. A change that no test notices is printed with its place.

All changes are compiled into one build, each behind its number (scripts/lib/change.h), and NLAUNCH_CHANGE picks one: a change
costs a run of the tests, not a build. What does not compile so (a constant of a type, say) is left out and counted. The tree is
copied, so the working tree stays as it is; the copy and its build are kept for the next call.
"""
import argparse
import collections
import concurrent.futures
import os
import pathlib
import random
import re
import resource
import shutil
import subprocess
import sys
import time

SOURCE = pathlib.Path(__file__).resolve().parents[1]
HEADER = SOURCE / "scripts/lib/change.h"
LAYERS = ("plan", "supervise", "watch", "lint", "preflight", "diagnose", "evidence")
MEMORY = 8 << 30  # bytes of a test program: a changed limit may ask for any
CHANGED = {
    "==": "!=", "!=": "==", "<": "<=", "<=": "<", ">": ">=", ">=": ">", "+": "-", "-": "+", "+=": "-=", "-=": "+=",
    "true": "false", "false": "true", "min": "max", "max": "min", "all_of": "any_of", "any_of": "all_of", "none_of": "any_of",
}
TEXT = re.compile(r'R"\((.*?)\)"|"((?:\\.|[^"\\\n])*)"|\'((?:\\.|[^\'\\\n])+)\'|(//[^\n]*)', re.DOTALL)
# What decides nothing: the preprocessor, checks of the compiler, declarations of types.
LEFT_OUT = re.compile(r"^\s*(#|static_assert|template|using |namespace |case |requires )")
# An operator has a blank on both sides as clang-format leaves it; the brackets of a template have none.
PLACE = re.compile(
    r"(?P<operator>(?<= )(?:==|!=|<=|>=|<|>|\+=|-=|\+|-)(?= ))|(?P<chain>(?<= )(?:&&|\|\|)(?= ))"
    r"|\bstd::(?P<extreme>min|max)(?=\()|\bstd::ranges::(?P<quantifier>all_of|any_of|none_of)(?=\()"
    r"|\b(?P<word>true|false)\b|(?P<not>(?<=[ (])!(?=[A-Za-z(*]))|(?<![\w.])(?P<number>\d+)(?![\w.'])")


def without_texts(source):
    """The source with its strings and comments blanked, of the same length."""
    return TEXT.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), source)


def end_of_operand(code, begin, chain):
    """Where the right side of && or || ends, which begins at `begin`."""
    depth = 0
    for at in range(begin, len(code)):
        letter = code[at]
        if letter in "([{":
            depth += 1
        elif letter in ")]}":
            depth -= 1
        if depth < 0:
            return at
        pair = code[at:at + 2]
        if depth == 0 and (letter in ";,?" or pair == "||" or (pair == "&&" and chain == "&&") or code[at:at + 3] == " : "):
            return at
    return len(code)


class Change:
    """One place: `said` for people, and what is written there as [(position, letters replaced, new text)]."""

    def __init__(self, number, path, line, found, code):
        self.number, self.path, self.line = number, path, line
        kind, text, begin = found.lastgroup, found[0], found.start()
        old = found[kind]
        self.column = begin - code.rfind("\n", 0, begin)
        self.said = f"'{text}' -> '{CHANGED.get(old, '')}'"
        if kind == "chain":
            self.said = f"'{text} ...' -> '{text} {'true' if old == '&&' else 'false'}'"
            here = re.compile(r"\s*").match(code, found.end()).end()
            opening = f"(change::on({number}) || (" if old == "&&" else f"(!change::on({number}) && ("
            self.edits = [(here, 0, opening), (end_of_operand(code, here, old), 0, "))")]
        elif kind == "operator":
            self.edits = [(begin, len(text), f"{text} change::{'Step' if old in ('+=', '-=') else 'At'}{{{number}}} {text}")]
        elif kind == "not":
            self.said = "'!' -> ''"
            self.edits = [(begin, 1, f"change::Not{{{number}}}->*")]
        elif kind == "number":
            self.said = f"'{text}' -> '{int(text) + 1}'"
            self.edits = [(begin, len(text), f"change::number({number}, {text})")]
        else:
            made = {"word": f"change::flag({number}, {old})", "extreme": f"change::Extreme{{{number}, {str(old == 'min').lower()}}}",
                    "quantifier": f"change::Quantifier{{{number}, change::Of::{old[:-3]}, change::Of::{CHANGED.get(old, 'all_of')[:-3]}}}"}
            self.edits = [(begin, len(text), made[kind])]


class File:
    """A source with all its changes."""

    def __init__(self, path, first):
        self.path, self.text = path, path.read_text()
        self.lines = self.text.splitlines()
        code = without_texts(self.text)
        self.changes = []
        for found in PLACE.finditer(code):
            line = code.count("\n", 0, found.start())
            if not LEFT_OUT.match(self.lines[line]):
                self.changes.append(Change(first + len(self.changes), path, line + 1, found, code))
        self.constants = {number + 1 for number, line in enumerate(self.lines) if re.match(r"\s*(static )?constexpr \w", line)}

    def write(self):
        text = self.text
        # Of two at one place the one that encloses the other stands first.
        edits = [edit for change in self.changes for edit in change.edits]
        for begin, length, new in sorted(edits, key=lambda edit: (edit[0], edit[1]), reverse=True):
            text = text[:begin] + new + text[begin + length:]
        lines = text.splitlines(keepends=True)
        changed = {change.line for change in self.changes}
        for line in self.constants & changed:
            lines[line - 1] = lines[line - 1].replace("constexpr ", "const ", 1)
        new = f'#include "{HEADER.name}"\n#line 1\n' + "".join(lines) if self.changes else self.text
        if new != self.path.read_text():
            self.path.write_text(new)

    def leave_out(self, wrong):
        """Takes back what stands on lines that do not compile; with no such line, constants, and then all of the file."""
        kept = [change for change in self.changes if change.line not in wrong]
        if len(kept) == len(self.changes):
            kept = [change for change in self.changes if change.line not in self.constants]
        if len(kept) == len(self.changes):
            kept = []
        dropped = len(self.changes) - len(kept)
        self.changes = kept
        return dropped


class Tree:
    """A copy of what is committed, with a build of its own."""

    def __init__(self, folder):
        self.folder, self.build = folder, folder / "build-mutate"
        commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=SOURCE, check=True, capture_output=True, text=True).stdout.strip()
        if not (folder / ".git").exists():
            self.do("git", "clone", "--quiet", "--shared", SOURCE, folder, cwd=SOURCE)
        self.do("git", "fetch", "--quiet", SOURCE, commit)
        self.do("git", "checkout", "--quiet", "--force", "--detach", commit)
        shutil.copy(HEADER, folder / "src")
        self.do("cmake", "--preset", "dev", "-B", self.build, "-DNLAUNCH_UNITY=0", "-DCMAKE_CXX_FLAGS_DEBUG=-O1 -w")

    def do(self, *words, cwd=None):
        subprocess.run([*map(str, words)], cwd=cwd or self.folder, check=True, stdout=subprocess.DEVNULL)

    def make(self, layers):
        words = ["ninja", "-C", self.build, "-k", "0", *(f"{layer}_test" for layer in layers)]
        return subprocess.run([*map(str, words)], capture_output=True, text=True)

    def lines_that_do_not_compile(self, output):
        wrong = collections.defaultdict(set)
        for path, line in re.findall(r"(src/\w[\w/]*\.cpp):(\d+):", output):
            wrong[self.folder / path].add(int(line))
        return wrong


def run_tests(tree, layer, change, limit):
    """True if all pass. A changed signal must reach nothing but the tests: they have a PID namespace of their own."""
    apart = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
    if os.geteuid() != 0:
        apart[1:1] = ["--user", "--map-root-user"]
    words = [*apart, str(tree.build / "bin" / f"{layer}_test"), "--gtest_fail_fast", "--gtest_brief=1"]
    try:
        done = subprocess.run(words, cwd=tree.build, capture_output=True, timeout=limit, start_new_session=True,
                              env=dict(os.environ, NLAUNCH_CHANGE=str(change)),
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY)))
        return done.returncode == 0
    except subprocess.TimeoutExpired:
        return False


def compile_all(tree, layers):
    """The files of each layer, and how many changes of each do not compile."""
    files = collections.defaultdict(list)
    left_out = collections.Counter()
    first = 0
    for layer in layers:
        for path in sorted((tree.folder / "src" / layer).rglob("*.cpp")):
            files[layer].append(File(path, first))
            first += len(files[layer][-1].changes)
    while True:
        for layer in layers:
            for file in files[layer]:
                file.write()
        done = tree.make(layers)
        if done.returncode == 0:
            return files, left_out
        wrong = tree.lines_that_do_not_compile(done.stdout)
        dropped = 0
        for layer in layers:
            for file in files[layer]:
                if file.path in wrong and file.changes:
                    here = file.leave_out(wrong[file.path])
                    left_out[layer] += here
                    dropped += here
        if dropped == 0:
            sys.exit(f"the changed tree cannot be built:\n{done.stdout[-4000:]}")
        print(f"{dropped} changes do not compile and are left out", file=sys.stderr, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("layers", nargs="*", metavar="LAYER", help=f"of {', '.join(LAYERS)}; else all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=60, help="for all layers together, after the build")
    parser.add_argument("--count", type=int, default=200, help="changes of each layer, at most")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--tree", type=pathlib.Path, default=SOURCE / "build-mutated", help="where the copy is kept")
    options = parser.parse_args()
    layers = options.layers or list(LAYERS)
    if unknown := set(layers) - set(LAYERS):
        parser.error(f"no such layers: {', '.join(sorted(unknown))}")
    tree = Tree(options.tree.resolve())
    files, left_out = compile_all(tree, layers)
    results = []
    for layer in layers:
        began = time.monotonic()
        if not run_tests(tree, layer, -1, 600):
            sys.exit(f"the unit tests of {layer} do not pass as they are")
        limit = 10 + 5 * (time.monotonic() - began)
        changes = [(file, change) for file in files[layer] for change in file.changes]
        random.Random(f"{options.seed} {layer}").shuffle(changes)
        deadline = time.monotonic() + 60 * options.minutes / len(layers)

        def missed(one):
            return None if time.monotonic() > deadline else run_tests(tree, layer, one[1].number, limit)

        counts = collections.Counter()
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            for (file, change), passed in zip(changes[:options.count], pool.map(missed, changes[:options.count])):
                counts[passed] += 1
                if passed:
                    place = f"{file.path.relative_to(tree.folder)}:{change.line}:{change.column}"
                    print(f"missed {place}: {change.said} in: {file.lines[change.line - 1].strip()}", flush=True)
        tried = counts[True] + counts[False]
        share = f"{100 * counts[False] / tried:.0f} %" if tried else "none tried"
        results.append(f"{layer}: {counts[False]} of {tried} changes noticed ({share}), of {len(changes)}; {left_out[layer]} do not compile")
    print("\n".join(results))


if __name__ == "__main__":
    main()

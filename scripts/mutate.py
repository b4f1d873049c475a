#!/usr/bin/env python3
"""Mutation testing of the unit tests. Changes one operator, constant or condition at a time in the layers that make decisions, and
runs only the unit tests of that layer. Prints each change that no test notices, with its position.

All changes are compiled into one build, each guarded by its number (scripts/lib/change.h), and NLAUNCH_CHANGE selects one: a change
costs a test run, not a build. Changes that do not compile this way (a constant in a type, for example) are left out and counted. The
working tree is copied and not modified. The copy, its build and the list of changes that do not compile are kept for the next call.
"""
import argparse
import collections
import concurrent.futures
import fcntl
import json
import os
import pathlib
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time

SOURCE = pathlib.Path(__file__).resolve().parents[1]
HEADER = SOURCE / "scripts/lib/change.h"
LAYERS = ("plan", "supervise", "watch", "lint", "preflight", "diagnose", "evidence")
MEMORY = 8 << 30  # address space of a test program, in bytes: a changed limit can request any amount
CHANGED = {
    "==": "!=", "!=": "==", "<": "<=", "<=": "<", ">": ">=", ">=": ">", "+": "-", "-": "+", "+=": "-=", "-=": "+=",
    "true": "false", "false": "true", "min": "max", "max": "min", "all_of": "any_of", "any_of": "all_of", "none_of": "any_of",
}
TEXT = re.compile(r'R"\((.*?)\)"|"((?:\\.|[^"\\\n])*)"|\'((?:\\.|[^\'\\\n])+)\'|(//[^\n]*)', re.DOTALL)
# Lines without decisions: preprocessor, static assertions, type declarations, the order of a table.
LEFT_OUT = re.compile(r"^\s*(#|static_assert|template|using |namespace |case |requires |\.(order|lane|bound) = )")
# clang-format puts a space on both sides of an operator; template brackets have none.
PLACE = re.compile(
    r"(?P<operator>(?<= )(?:==|!=|<=|>=|<|>|\+=|-=|\+|-)(?= ))|(?P<chain>(?<= )(?:&&|\|\|)(?= ))"
    r"|\bstd::(?P<extreme>min|max)(?=\()|\bstd::ranges::(?P<quantifier>all_of|any_of|none_of)(?=\()"
    r"|\b(?P<word>true|false)\b|(?P<not>(?<=[ (])!(?=[A-Za-z(*]))|(?<![\w.])(?P<number>\d+)(?![\w.'])")


def without_texts(source):
    """Returns the source with its strings and comments replaced by spaces, at the same length."""
    return TEXT.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), source)


def end_of_operand(code, begin, chain):
    """Returns where the right operand of && or || ends that starts at `begin`."""
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
    """One change: `said` describes it, and the edits are [(position, characters replaced, new text)]."""

    def __init__(self, number, file, line, found, code):
        self.number, self.file, self.line = number, file, line
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

    def text(self):
        return self.file.lines[self.line - 1].strip()

    def key(self):
        """Identifies the change as long as its line stays the same."""
        return f"{self.file.path}:{self.column}: {self.text()}"


class File:
    """A source file of the working tree, and its copy with all changes except those that do not compile."""

    def __init__(self, source, copy, first, left_out):
        self.copy, self.text = copy, source.read_text()
        self.path = source.relative_to(SOURCE)
        self.lines = self.text.splitlines()
        code = without_texts(self.text)
        found = [one for one in PLACE.finditer(code) if not LEFT_OUT.match(self.lines[code.count("\n", 0, one.start())])]
        made = [Change(first + i, self, code.count("\n", 0, one.start()) + 1, one, code) for i, one in enumerate(found)]
        self.changes = [change for change in made if change.key() not in left_out]
        self.count = len(made)
        self.constants = {number + 1 for number, line in enumerate(self.lines) if re.match(r"\s*(static )?constexpr \w", line)}

    def write(self):
        text = self.text
        # At the same position, the enclosing change comes first.
        edits = [edit for change in self.changes for edit in change.edits]
        for begin, length, new in sorted(edits, key=lambda edit: (edit[0], edit[1]), reverse=True):
            text = text[:begin] + new + text[begin + length:]
        lines = text.splitlines(keepends=True)
        for line in self.constants & {change.line for change in self.changes}:
            lines[line - 1] = lines[line - 1].replace("constexpr ", "const ", 1)
        write(self.copy, (f'#include "{HEADER.name}"\n#line 1\n' + "".join(lines) if self.changes else self.text).encode())

    def leave_out(self, wrong):
        """Reverts the changes on lines that do not compile; if there are none, the constants, and then the whole file."""
        dropped = [change for change in self.changes if change.line in wrong]
        dropped = dropped or [change for change in self.changes if change.line in self.constants] or self.changes
        self.changes = [change for change in self.changes if change not in dropped]
        return [change.key() for change in dropped]


def write(path, content):
    """Writes the file only if it differs, because its modification time decides what is recompiled."""
    if not path.exists() or path.read_bytes() != content:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


class Tree:
    """A copy of the working tree with all changes of all layers, and its build. Only one call uses it at a time."""

    def __init__(self, folder):
        self.folder, self.build = folder, folder / "build"
        folder.mkdir(parents=True, exist_ok=True)
        self.lock = open(folder / "lock", "w")
        self.left_out_file = folder / "left-out.json"
        self.files = {layer: [] for layer in LAYERS}

    def copy(self):
        self.left_out = set(json.loads(self.left_out_file.read_text())) if self.left_out_file.exists() else set()
        listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=SOURCE, check=True,
                                capture_output=True, text=True).stdout.splitlines()
        there = {path for path in listed if (SOURCE / path).is_file()}
        for path in self.folder.rglob("*.cpp"):
            if self.build not in path.parents and str(path.relative_to(self.folder)) not in there:
                path.unlink()
        first = 0
        for path in sorted(there):
            parts = pathlib.Path(path).parts
            if parts[0] == "src" and parts[1] in LAYERS and path.endswith(".cpp"):
                self.files[parts[1]].append(File(SOURCE / path, self.folder / path, first, self.left_out))
                self.files[parts[1]][-1].write()
                first += self.files[parts[1]][-1].count
            else:
                write(self.folder / path, (SOURCE / path).read_bytes())
        write(self.folder / "src" / HEADER.name, HEADER.read_bytes())
        subprocess.run(["cmake", "--preset", "dev", "-B", self.build, "-DNLAUNCH_UNITY=0", "-DCMAKE_CXX_FLAGS_DEBUG=-O1 -w"],
                       cwd=self.folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def compile(self, layers):
        """Builds the tests of these layers, and reverts changes until that succeeds."""
        files = {file.copy: file for layer in LAYERS for file in self.files[layer]}
        failed = collections.Counter()
        while True:
            for file in files.values():
                file.write()
            words = ["ninja", "-C", self.build, "-k", "0", *(f"{layer}_test" for layer in layers)]
            done = subprocess.run([*map(str, words)], capture_output=True, text=True)
            if done.returncode == 0:
                return
            wrong = collections.defaultdict(set)
            for path, line in re.findall(r"(src/\w[\w/]*\.cpp):(\d+):", done.stdout):
                # An error in deduced types hides others, so each attempt also reverts more of the lines around it.
                around = failed[self.folder / path]
                wrong[self.folder / path].update(range(int(line) - around, int(line) + around + 1))
            failed.update(wrong.keys())
            dropped = [key for path, lines in wrong.items() if path in files for key in files[path].leave_out(lines)]
            if not dropped:
                sys.exit(f"the changed tree cannot be built:\n{done.stdout[-4000:]}")
            self.left_out.update(dropped)
            self.left_out_file.write_text(json.dumps(sorted(self.left_out), indent=1))

    def prepare(self, layers):
        fcntl.flock(self.lock, fcntl.LOCK_EX)
        self.copy()
        self.compile(layers)
        # Builds of other calls in the meantime do not affect this one.
        self.programs = pathlib.Path(tempfile.mkdtemp(prefix="tests-", dir=self.folder))
        for layer in layers:
            shutil.copy(self.build / "bin" / f"{layer}_test", self.programs)
        fcntl.flock(self.lock, fcntl.LOCK_UN)

    def passes(self, layer, change, limit):
        """Returns whether all tests pass. They run in a separate PID namespace, so that a changed signal reaches only the tests."""
        apart = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
        if os.geteuid() != 0:
            apart[1:1] = ["--user", "--map-root-user"]
        words = [*apart, str(self.programs / f"{layer}_test"), "--gtest_fail_fast", "--gtest_brief=1"]
        # GoogleTest creates this file and removes it when it finishes. If a test makes the program exit early, the file is left.
        early_end = self.programs / f"{layer}.{change}"
        try:
            done = subprocess.run(words, cwd=self.build, capture_output=True, timeout=limit, start_new_session=True,
                                  env=dict(os.environ, NLAUNCH_CHANGE=str(change), TEST_PREMATURE_EXIT_FILE=str(early_end)),
                                  preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY)))
            self.said = done.stdout
            return done.returncode == 0 and not early_end.exists()
        except subprocess.TimeoutExpired as late:
            self.said = (late.stdout or b"") + b"no end within the limit of time\n"
            return False


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
    tree.prepare(layers)
    results = []
    for layer in layers:
        began = time.monotonic()
        if not tree.passes(layer, -1, 600):
            sys.exit(f"the unit tests of {layer} do not pass as they are:\n{tree.said.decode(errors='replace')[-4000:]}")
        limit = 10 + 5 * (time.monotonic() - began)
        changes = [change for file in tree.files[layer] for change in file.changes]
        random.Random(f"{options.seed} {layer}").shuffle(changes)
        changes = changes[:options.count]
        deadline = time.monotonic() + 60 * options.minutes / len(layers)

        def missed(change):
            return None if time.monotonic() > deadline else tree.passes(layer, change.number, limit)

        counts = collections.Counter()
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            for change, passed in zip(changes, pool.map(missed, changes)):
                counts[passed] += 1
                if passed:
                    print(f"missed {change.file.path}:{change.line}:{change.column}: {change.said} in: {change.text()}", flush=True)
        tried = counts[True] + counts[False]
        share = f"{100 * counts[False] / tried:.0f} %" if tried else "none tried"
        out = sum(file.count - len(file.changes) for file in tree.files[layer])
        results.append(f"{layer}: {counts[False]} of {tried} changes noticed ({share}); {out} of its places do not compile when changed")
    shutil.rmtree(tree.programs)
    print("\n".join(results))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Checks the signatures of src/diagnose/signatures/ against a release of a program that they cover.

    pip download --no-deps vllm==0.34.0 vllm==0.33.0
    scripts/update-errors.py vllm vllm-0.34.0.whl 0.34.0 --since vllm-0.33.0.whl
    scripts/update-errors.py NVIDIA/pyxis PATH-TO-GIT-REPOSITORY v0.25.0 --since v0.24.0

Prints the error messages that no signature matches (with --since: only new ones), and the signatures that name the program as
their source but no longer match anything in it. Updates the sources in the tables: the release, and the file if a text has
moved. src/diagnose/errors.tsv has the release that was reviewed last, and the files whose messages users do not see between
the start and the first step.
"""
import argparse
import fnmatch
import os
import pathlib
import re
import sys
import typing

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))
import error_messages  # noqa: E402
import release_sources  # noqa: E402

DIAGNOSE = pathlib.Path(__file__).resolve().parents[1] / "src" / "diagnose"
NEVER = re.compile(r"(^|/)(tests?|benchmarks?|examples?|docs?|e2e)/")
Texts = dict[str, str]


class Signature(typing.NamedTuple):
    table: pathlib.Path
    line: int
    cells: list[str]  # id, class, kind, weight, pattern, why, fix, source

    @property
    def pattern(self) -> str:
        return self.cells[4]


def signatures(folder: pathlib.Path) -> list[Signature]:
    return [Signature(table, number, line.split("\t")) for table in sorted(folder.glob("*.tsv"))
            for number, line in enumerate(table.read_text().splitlines())
            if line and not line.startswith(("#", "id\t"))]


class Reviewed:
    """src/diagnose/errors.tsv"""

    def __init__(self, path: pathlib.Path, project: str):
        self.path = path
        self.lines = [line.split("\t") for line in path.read_text().splitlines()]
        rows = [line for line in self.lines[1:] if line[0] == project]
        if not rows:
            raise SystemExit(f"{path.name} knows no '{project}', but {', '.join(line[0] for line in self.lines[1:])}")
        self.row = rows[0]

    def ignores(self, file: str) -> bool:
        return bool(NEVER.search(file)) or any(fnmatch.fnmatch(file, glob) for glob in self.row[2].split())

    def write(self, release: str) -> None:
        self.row[1] = release
        self.path.write_text("".join("\t".join(line) + "\n" for line in self.lines))


def sources(path: str, release: str) -> dict[str, str]:
    ends = error_messages.ENDS
    if os.path.isfile(path):
        return release_sources.package(path, ends)
    if release_sources.tags(path):
        return release_sources.repository(path, release, ends)
    return release_sources.folder(path, ends)


def texts_of(files: dict[str, str]) -> Texts:
    return {file: error_messages.texts(file, text) for file, text in files.items() if not NEVER.search(file)}


def unknown(files: dict[str, str], before: dict[str, str], reviewed: Reviewed,
            known: list[Signature]) -> typing.Iterator[str]:
    """Returns the messages that no signature matches. A fallback matches every exception, so it does not count."""
    patterns = [re.compile(signature.pattern) for signature in known if signature.cells[2] != "fallback"]
    old = {(message.type, message.text) for message in error_messages.messages(before)}
    seen = set(old)
    for message in error_messages.messages({file: text for file, text in files.items() if not reviewed.ignores(file)}):
        if (message.type, message.text) in seen:
            continue
        seen.add((message.type, message.text))
        lines = error_messages.lines_of(message)
        if not any(pattern.search(line) for pattern in patterns for line in lines):
            yield f"unknown: {message.shown()}"


def has(texts: Texts, pattern: str, first: str = "") -> str | None:
    """Returns the file that contains the pattern: `first` if it does, else the one with the shortest name."""
    compiled = re.compile(pattern, re.M)
    if compiled.search(texts.get(first, "")):
        return first
    return min((file for file, text in texts.items() if compiled.search(text)), key=len, default=None)


def gone(known: list[Signature], project: str, release: str, last: str, texts: Texts,
         before: Texts) -> typing.Iterator[str]:
    """Prints what the release no longer has, and updates the sources of the other signatures. File types that these sources
    do not have (a repository has no libraries) are skipped."""
    entry = re.compile(rf"(?<![\w/-]){re.escape(project)} (?P<file>[^\s;]+)@(?P<release>[^\s;]+)")
    kinds = {pathlib.PurePath(file).suffix for file in texts}
    for signature in known:
        name = f"{signature.cells[0]} ({signature.table.name})"
        found = False
        for match in entry.finditer(signature.cells[7]):
            if pathlib.PurePath(match["file"]).suffix not in kinds:
                continue
            file = has(texts, signature.pattern, match["file"])
            if file is None:
                if match["release"] == last:
                    yield f"gone: {name}, last in {match['file']}@{last}"
                continue
            found = True
            if file != match["file"]:
                yield f"moved: {name}, from {match['file']} to {file}"
            signature.cells[7] = signature.cells[7].replace(match[0], f"{project} {file}@{release}")
        if found and before:
            for alternative in error_messages.alternatives(signature.pattern):
                if has(before, alternative) and not has(texts, alternative):
                    yield f"gone: {name}, of its alternatives: {alternative}"


def write(known: list[Signature]) -> None:
    for table in {signature.table for signature in known}:
        lines = table.read_text().splitlines()
        for signature in known:
            if signature.table == table:
                lines[signature.line] = "\t".join(signature.cells)
        table.write_text("\n".join(lines) + "\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("project", help="as the sources of the signatures call it")
    parser.add_argument("sources", help="a wheel or source archive of PyPI, a folder, or a git repository")
    parser.add_argument("release", help="its number, or the tag in the repository")
    parser.add_argument("--since", help="the release before, likewise (of a repository: its tag): only what is new")
    parser.add_argument("--diagnose", type=pathlib.Path, default=DIAGNOSE, help="folder of errors.tsv and signatures/")
    arguments = parser.parse_args()
    reviewed = Reviewed(arguments.diagnose / "errors.tsv", arguments.project)
    known = signatures(arguments.diagnose / "signatures")
    files = sources(arguments.sources, arguments.release)
    if not files:
        raise SystemExit(f"{arguments.sources} has no sources")
    since = arguments.since
    before = {} if not since else sources(since if os.path.exists(since) else arguments.sources, since)
    release = arguments.release.removeprefix("v")
    for line in unknown(files, before, reviewed, known):
        print(line)
    for line in gone(known, arguments.project, release, reviewed.row[1], texts_of(files), texts_of(before)):
        print(line)
    write(known)
    reviewed.write(release)
    return 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Updates a table of src/lint/variables/ to a release.

    scripts/update-catalogue.py nccl PATH-TO-GIT-REPOSITORY [v2.31.1-1]
    scripts/update-catalogue.py libfabric UNPACKED-SOURCES 2.7.0

Adds the names that the release reads and the table does not have, with an empty meaning, which the tests reject. Names that the
release no longer reads get their last release, and changed defaults are noted. Prints what a person has to write.
"""
import argparse
import pathlib
import re
import sys
import typing

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))
import release_sources  # noqa: E402

TABLES = pathlib.Path(__file__).resolve().parents[1] / "src" / "lint" / "variables"
TITLES = ["name", "first", "last", "type", "values", "default", "history", "instead", "meaning", "source"]
Row = dict[str, str]


class Table:
    def __init__(self, path: pathlib.Path):
        self.path = path
        self.head: dict[str, str] = {}
        self.comments: list[str] = []
        self.rows: dict[str, Row] = {}
        for line in path.read_text().splitlines():
            if match := re.fullmatch(r"# (owner|newest|families): (.*)", line):
                self.head[match[1]] = match[2]
            elif line.startswith("#"):
                self.comments.append(line)
            elif line and line != "\t".join(TITLES):
                row = dict(zip(TITLES, line.split("\t")))
                self.rows[row["name"]] = row

    def text(self) -> str:
        lines = [f"# {key}: {value}" for key, value in self.head.items()] + self.comments + ["\t".join(TITLES)]
        lines += ["\t".join(row[title] for title in TITLES) for _, row in sorted(self.rows.items())]
        return "\n".join(lines) + "\n"


def number(release: str) -> tuple[int, ...]:
    return tuple(map(int, release.split(".")))


def bare(tag: str) -> str:
    """Returns the release of a tag: 2.27.3 for v2.27.3-1."""
    match = re.match(r"v?(\d+(?:\.\d+)+)", tag)
    if not match:
        raise SystemExit(f"'{tag}' names no release: 2.31.1 or v2.31.1-1 would")
    return match[1]


def newest_tag(tags: list[str]) -> str:
    releases = [tag for tag in tags if re.fullmatch(r"v\d+(\.\d+){2}(-\d+|-aws)?", tag)]
    if not releases:
        raise SystemExit("the repository has no tag of a release")
    return max(releases, key=lambda tag: (number(bare(tag)), tag))


def known_default(row: Row) -> str:
    """Returns the last default found in the sources: the end of the history if there is one, since `default` is text for people."""
    entries = re.findall(r"(.*?) \([\d.]+\)(?:, |$)", row["history"])
    return entries[-1] if entries else row["default"]


def update(table: Table, found: dict[str, release_sources.Found], release: str) -> typing.Iterator[str]:
    """Updates the table, and yields what a person has to review."""
    before = table.head["newest"]
    if number(release) < number(before):
        raise SystemExit(f"{table.path.name} knows {before}; {release} is older")
    for name, variable in sorted(found.items()):
        source = f"{variable.file}@{release}"
        row = table.rows.get(name)
        if row is None:
            table.rows[name] = {"name": name, "first": release, "last": "", "type": variable.type,
                                "values": variable.values, "default": variable.default or "", "history": "",
                                "instead": "", "meaning": "unwritten", "source": source}
            yield f"{name} is new: write its meaning, and see to its type and values ({source})"
            continue
        if row["last"]:
            yield f"{name} is read again, after {row['last']}: see what its row says ({source})"
            row["last"], row["source"] = "", source
        old = known_default(row)
        if variable.default and variable.default.lower() != old.lower():
            row["history"] = (row["history"] or f"{old or 'none'} ({row['first'] or before})") + \
                f", {variable.default} ({release})"
            row["source"] = source
            shown = row["default"]
            if shown == old:
                row["default"] = variable.default
            yield f"{name} has another default, {variable.default} after {old or 'none'}: see what its row says ({source})"
    for name, row in sorted(table.rows.items()):
        if name not in found and not row["last"]:
            row["last"] = before
            yield f"{name} is not read any more: write what is to be used instead, if anything"
    table.head["newest"] = release


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("owner", choices=sorted(release_sources.READERS))
    parser.add_argument("sources", help="a git repository, or a folder with the sources of one release")
    parser.add_argument("release", nargs="?", help="its tag or number; of a repository, the newest if left out")
    parser.add_argument("--tables", type=pathlib.Path, default=TABLES, help="folder of the tables")
    arguments = parser.parse_args()
    tags = release_sources.tags(arguments.sources)
    if tags:
        tag = arguments.release or newest_tag(tags)
        files = release_sources.repository(arguments.sources, tag)
    elif arguments.release:
        tag, files = arguments.release, release_sources.folder(arguments.sources)
    else:
        parser.error("a folder of sources does not say which release it is: name it")
    found = release_sources.READERS[arguments.owner](files)
    if not found:
        raise SystemExit(f"{arguments.sources} has no variable of {arguments.owner}: is it the right folder?")
    table = Table(arguments.tables / f"{arguments.owner}.tsv")
    for line in update(table, found, bare(tag)):
        print(line)
    table.path.write_text(table.text())
    return 0


if __name__ == "__main__":
    sys.exit(main())

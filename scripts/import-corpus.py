#!/usr/bin/env python3
"""Runs `nlaunch import --check` on the public launch scripts in tests/import/corpus.tsv, each from its repository at its commit.
scripts/import-corpus.py FOLDER [--split dev|heldout|third] [ID...]. FOLDER/OWNER+NAME is the tree of a repository; if it is missing, git fetches
it. Prints a row for each script, and the counts. --first omits what import itself asked for (column `asked`)."""
import argparse
import collections
import csv
import pathlib
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TABLE = ROOT / "tests" / "import" / "corpus.tsv"
SECONDS = 120


def rows():
    with TABLE.open() as table:
        yield from csv.DictReader(table, delimiter="\t", quoting=csv.QUOTE_NONE)


def tree_of(row, folder):
    tree = folder / row["repo"].replace("/", "+")
    if not tree.exists():
        tree.mkdir(parents=True)
        for words in (["init", "-q"], ["fetch", "-q", "--depth", "1", f"https://github.com/{row['repo']}", row["commit"]], ["checkout", "-q", "FETCH_HEAD"]):
            subprocess.run(["git", *words], cwd=tree, check=True)
    return tree


def words_of(cell):
    return [] if cell in ("", "-") else shlex.split(cell)


def check(row, tree, nlaunch, first):
    """Returns (verdict, complete output)."""
    script = pathlib.Path(row["path"])
    folder, name = (tree / script.parent, script.name) if row["called_from"] == "script" else (tree, row["path"])
    asked = [] if first else [word.replace("$PWD", str(folder)) for word in words_of(row["asked"])]
    options, arguments = (asked[: asked.index("--")], asked[asked.index("--") + 1 :]) if "--" in asked else (asked, words_of(row["arguments"]))
    given = {word.partition("=")[0] for word in options}
    command = [nlaunch, "import", name, "--check", *options]
    for option in ("nodes", "gpus"):
        if row[option] != "-":
            command += [f"--{option}", row[option]]
    for variable in words_of(row["env"]):
        if variable.partition("=")[0] not in given:
            command += ["--env", variable]
    done = subprocess.run(command + (["--", *arguments] if arguments else []), cwd=folder, capture_output=True, text=True, errors="replace", timeout=SECONDS)
    if done.returncode == 0:
        return "same", done.stderr
    return "differs" if "\nNot the same job:" in done.stderr else "refused", done.stderr


def reason_of(said):
    lines = [line for line in said.splitlines() if line.strip()]
    telling = [line for line in lines if line.startswith(("error:", "nlaunch import:", "  line "))]
    return (telling or lines or [""])[0][:150]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("ids", nargs="*")
    parser.add_argument("--split", choices=("dev", "heldout", "third"))
    parser.add_argument("--nlaunch", type=lambda path: str(pathlib.Path(path).resolve()), default=ROOT / "build" / "bin" / "nlaunch")
    parser.add_argument("--first", action="store_true")
    args = parser.parse_args()
    counts = collections.Counter()
    for row in rows():
        if (args.ids and row["id"] not in args.ids) or (args.split and row["split"] != args.split):
            continue
        verdict, said = check(row, tree_of(row, args.folder), args.nlaunch, args.first)
        counts[verdict] += 1
        print(f"{row['id']:<28} {verdict:<8} {'' if verdict == 'same' else reason_of(said)}")
    print(", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items())))
    return 0


if __name__ == "__main__":
    sys.exit(main())

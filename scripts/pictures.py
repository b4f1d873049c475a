#!/usr/bin/env python3
"""Makes the pictures of README.md in docs/pictures/ from real runs: scripts/pictures.py, after a build.

With --check it changes nothing, and exits with 1 if a picture shows output that nlaunch no longer prints. Numbers, and the order of the
lines of two processes, differ from run to run and are ignored.
"""
import argparse
import html
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parent.parent
PICTURES = {
    "run": ["nlaunch run configs/quickstart.yaml"],
    "refused": ["ulimit -n 128", "nlaunch run configs/quickstart.yaml", "echo $?"],
}
SGR = re.compile(r"\x1b\[([\d;]*)m")
CLASSES = {"1": "bold", "2": "dim", "31": "red", "32": "green", "33": "yellow", "34": "blue", "35": "magenta", "36": "cyan"}
COLUMN, LINE, MARGIN, WIDEST = 7.83, 18, 16, 118  # pixels of 13 px DejaVu Sans Mono; characters of the widest line
STYLE = """\
    rect { fill: #14181f } text { font: 13px 'DejaVu Sans Mono', Menlo, Consolas, monospace; fill: #d5dae3; white-space: pre }
    .bold { font-weight: bold } .dim { fill: #7f8a99 } .red { fill: #ff7b72 } .green { fill: #7ee787 } .yellow { fill: #e3b341 }
    .blue { fill: #79c0ff } .magenta { fill: #d2a8ff } .cyan { fill: #76e3ea } .prompt { fill: #7f8a99 }"""


def record(commands, build):
    """Returns the lines that a terminal would show, with colours. Command lines start with "$ "."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name).resolve()
        shutil.copytree(SOURCE / "configs", folder / "configs")
        script = "code=0; nlaunch() { command nlaunch --color always \"$@\"; }\n" + "\n".join(f"echo '$ {c}'; (exit $code)\n{c}\ncode=$?" for c in commands)
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM_", "NLAUNCH_", "XDG_"))}
        env = {**clean, "HOME": name, "PATH": f"{build / 'bin'}:{os.environ['PATH']}", "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(["bash", "-c", script], cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=120)
        text = re.sub(r"\d{8}-\d{6}-\d+", "20260131-120000-4711", done.stdout.replace(str(folder), "~"))
    return [line for line in text.splitlines() if not plain(line).startswith("note: not passed on")]


def plain(line):
    return SGR.sub("", line)


def spans(line):
    """Returns (class, text) of a line, truncated to the width of the picture."""
    style, room = "prompt" if line.startswith("$ ") else "", WIDEST
    for i, part in enumerate(SGR.split(line)):
        if i % 2:
            style = " ".join(CLASSES[code] for code in part.split(";") if code in CLASSES)
            continue
        shown = part if len(part) <= room else part[:room - 1] + "…"
        room -= len(shown)
        if shown:
            yield style, shown
        if shown != part:
            return


def svg(lines):
    width = MARGIN * 2 + COLUMN * max(min(len(plain(line)), WIDEST) for line in lines)
    height = MARGIN * 2 + LINE * len(lines)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height}" viewBox="0 0 {width:.0f} {height}">',
           f"  <style>\n{STYLE}\n  </style>", f'  <rect width="{width:.0f}" height="{height}" rx="8"/>']
    for i, line in enumerate(lines):
        parts = "".join(f'<tspan class="{style}">{html.escape(text)}</tspan>' if style else html.escape(text) for style, text in spans(line))
        out.append(f'  <text x="{MARGIN}" y="{MARGIN + LINE * i + 13}" xml:space="preserve">{parts}</text>')
    return "\n".join([*out, "</svg>", ""])


def shown_in(picture):
    """Returns the lines of a picture as text."""
    return [html.unescape(re.sub(r"<[^>]*>", "", line)) for line in re.findall(r"<text [^>]*>(.*)</text>", picture)]


def masked(line):
    """Removes what differs between runs and machines."""
    line = re.sub(r"(preflight \w+: .*) \(.*", r"\1", line)
    return re.sub(r"\d+(\.\d+)?( ?m?s\b)?", "#", line)


def check(name, lines, path):
    said = {masked("".join(text for _, text in spans(line))) for line in lines}
    old = [line for line in shown_in(path.read_text()) if masked(line) not in said]
    for line in old:
        print(f"docs/pictures/{name}.svg shows a line that nlaunch no longer prints: {line}", file=sys.stderr)
    return not old


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--build", type=pathlib.Path, default=SOURCE / "build")
    args = parser.parse_args()
    fine = True
    for name, commands in PICTURES.items():
        path = SOURCE / "docs" / "pictures" / f"{name}.svg"
        lines = record(commands, args.build.resolve())
        if args.check:
            fine = check(name, lines, path) and fine
        else:
            path.write_text(svg(lines))
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())

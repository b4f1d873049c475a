"""The commands and files of the documents, for the tests that run them. A fenced block says behind its ``` what it is:

    ```sh                       commands, run by docs_test.py, in the order of the document
    ```sh cluster               run by cluster/docs_test.py on the test cluster
    ```sh elsewhere: REASON     run by nobody here
    ```python train.py          a file that the commands after it want; any other language likewise

A command may end with 0 only, unless its comment says that it `ends with N`.
"""
import gzip
import hashlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import textwrap

SOURCE = pathlib.Path(os.environ["NLAUNCH_SOURCE"])
BUILD = pathlib.Path(os.environ["NLAUNCH_BUILD"])
DOCUMENTS = [SOURCE / "README.md", *sorted((SOURCE / "docs").glob("*.md")), *sorted((SOURCE / "docs/howto").glob("*.md"))]
MARK = "@@ command "


class Block:
    def __init__(self, document, line, info, text):
        self.document, self.line, self.text = document, line, text
        self.language, _, self.rest = info.partition(" ")

    @property
    def where(self):
        """Where its commands are run: "here", "cluster", "elsewhere: REASON"; empty where it has none."""
        return (self.rest or "here") if self.language == "sh" else ""

    @property
    def file(self):
        return self.rest if self.language != "sh" else ""


def blocks(document):
    text = document.read_text()
    for found in re.finditer(r"^( *)```([^\n`]*)\n(.*?)^ *```$", text, re.M | re.S):
        yield Block(document, text.count("\n", 0, found.start()) + 2, found[2].strip(), textwrap.dedent(found[3]) if found[1] else found[3])


def commands(block):
    """(line, command, expected exit code); a command goes on in the next line after a backslash."""
    for found in re.finditer(r"^(?!#)\S(?:[^\n]*\\\n)*[^\n]*$", block.text, re.M):
        code = re.search(r"#.*\bends with (\d+)", found[0])
        yield block.line + block.text.count("\n", 0, found.start()), found[0], int(code[1]) if code else 0


def write_files(document, folder):
    for block in blocks(document):
        if block.file:
            (folder / block.file).write_text(block.text)


def script(document, where):
    """All commands of a document as one shell script, which says before each where it stands, and after it how it ended."""
    lines, expected = [], []
    for block in blocks(document):
        if block.where != where:
            continue
        for line, command, code in commands(block):
            name = f"{document.relative_to(SOURCE)}:{line}: {command.split('  #')[0]}"
            expected.append((name, code))
            lines.append(f"{command}\nprintf '\\n%s%s\\n' '{MARK}' \"$?\"")
    return "\n".join(lines) + "\n", expected


def wrong_ends(output, expected):
    """What of `expected` ended otherwise, each with what it said."""
    parts = re.split(rf"\n{MARK}(\d+)\n", output)
    said, codes = parts[::2], [int(code) for code in parts[1::2]]
    wrong = []
    for i, (name, code) in enumerate(expected):
        if i >= len(codes):
            wrong.append(f"{name}: never came to its end\n{said[-1]}")
            break
        if codes[i] != code:
            wrong.append(f"{name}: ended with {codes[i]}, not {code}\n{said[i]}")
    return wrong


def stage(folder):
    """A copy of what a checkout has that the documents name, with a build, a release, a site, a few logs and two runs."""
    for name in ("configs", "site-profiles", "templates"):
        shutil.copytree(SOURCE / name, folder / name)
    (folder / "build").symlink_to(BUILD)
    cases = SOURCE / "tests" / "import" / "cases"
    logs = SOURCE / "tests" / "diagnose"
    lint = SOURCE / "tests" / "lint" / "cases"
    (folder / "logs").mkdir()
    for name, source in {
            "job.sbatch": cases / "torchrun_nodes.sbatch", "slurm-4711.out": logs / "cuda-oom" / "job.log",
            "logs/rank0.log": logs / "ddp-3090" / "rank0.log", "logs/rank1.log": logs / "ddp-3090" / "rank1.log",
            "train.sbatch": lint / "torchrun_two_nodes.sbatch", ".env": lint / "launch.env", "nccl.conf": lint / "nccl.conf",
            "env.sh": lint / "set_twice.sh"}.items():
        shutil.copy(source, folder / name)
    (folder / "head.log.gz").write_bytes(gzip.compress((folder / "slurm-4711.out").read_bytes()))
    subprocess.run(["tar", "--zstd", "-cf", "all.tar.zst", "logs"], cwd=folder, check=True)
    for run in ("20260131-120000-4711", "20260131-130000-4712"):
        shutil.copytree(SOURCE / "tests" / "runs" / "version-1", folder / "runs" / "grpo" / run)
    (folder / "runs" / "grpo" / "latest").symlink_to("20260131-130000-4712")
    sites = folder / ".home" / ".config" / "nlaunch" / "sites"
    sites.mkdir(parents=True)
    (sites / "our-site.yaml").write_text("version: 1\nname: our-site\nextends: local\n")


def pack_release(folder):
    """What the document on installing calls a release: the installed tree in an archive."""
    version = re.search(r"project\(nlaunch VERSION (\S+)", (SOURCE / "CMakeLists.txt").read_text())[1]
    name = f"nlaunch-{version}-linux-{os.uname().machine}"
    subprocess.run(["cmake", "--install", BUILD, "--prefix", folder / ".release" / name], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["tar", "--zstd", "-cf", f"{name}.tar.zst", "-C", ".release", name], cwd=folder, check=True)
    digest = hashlib.sha256((folder / f"{name}.tar.zst").read_bytes()).hexdigest()
    (folder / f"{name}.tar.zst.sha256").write_text(f"{digest}  {name}.tar.zst\n")


def environment(folder):
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM_", "NLAUNCH_", "XDG_"))}
    return {**clean, "HOME": str(folder / ".home"), "PATH": f"{BUILD / 'bin'}:{os.environ['PATH']}"}


def run(document, where, folder, env, timeout=250):
    """Runs the commands of a document in a folder; says what ended otherwise than the document has it."""
    text, expected = script(document, where)
    shell = subprocess.Popen(["bash", "-c", text], cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                             errors="replace", stdin=subprocess.DEVNULL, start_new_session=True)
    try:
        said = shell.communicate(timeout=timeout)[0]
    except subprocess.TimeoutExpired:
        os.killpg(shell.pid, signal.SIGTERM)
        said = shell.communicate()[0]
    return wrong_ends(said, expected)

"""Reads the sources of a release; and what one of NCCL, aws-ofi-nccl or libfabric reads from its environment."""
import io
import os
import re
import subprocess
import tarfile
import typing
import zipfile

CODE = (".c", ".cc", ".cpp", ".cu", ".cuh", ".h", ".hpp")


class Found(typing.NamedTuple):
    """One variable in the sources; `default` is None where they do not say it in one place."""
    type: str
    values: str
    default: str | None
    file: str


# Reading a release

def folder(path: str, ends: tuple[str, ...] = CODE) -> dict[str, str]:
    files = {}
    for base, _, names in os.walk(path):
        for name in names:
            full = os.path.join(base, name)
            if name.endswith(ends) and os.path.isfile(full):
                with open(full, encoding="utf-8", errors="replace") as file:
                    files[os.path.relpath(full, path)] = file.read()
    return files


def tags(path: str) -> list[str]:
    """Those of a git repository; none where `path` is no top folder of one."""
    git = subprocess.run(["git", "-C", path, "rev-parse", "--absolute-git-dir"], capture_output=True, text=True,
                         check=False)
    own = {os.path.realpath(path), os.path.realpath(os.path.join(path, ".git"))}
    if git.returncode != 0 or os.path.realpath(git.stdout.strip()) not in own:
        return []
    return subprocess.run(["git", "-C", path, "tag"], capture_output=True, text=True, check=True).stdout.split()


def repository(path: str, tag: str, ends: tuple[str, ...] = CODE) -> dict[str, str]:
    git = subprocess.run(["git", "-C", path, "archive", "--format=tar", tag], stdout=subprocess.PIPE, check=False)
    if git.returncode != 0:
        raise SystemExit(f"{path} has no {tag}")
    with tarfile.open(fileobj=io.BytesIO(git.stdout)) as archive:
        files = {entry.name: archive.extractfile(entry).read().decode("utf-8", "replace")  # type: ignore[union-attr]
                 for entry in archive if entry.isfile() and entry.name.endswith(ends)}
    return files


def package(path: str, ends: tuple[str, ...] = CODE) -> dict[str, str]:
    """What PyPI has: a wheel, or a source archive, of whose names the first folder is left out. Of programs and libraries
    the texts in them."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as wheel:
            found = {re.sub(r"^[^/]+\.data/(pure|plat)lib/", "", name): wheel.read(name) for name in wheel.namelist()
                     if name.endswith(ends) or wheel.open(name).read(4) == b"\x7fELF"}
    else:
        with tarfile.open(path) as archive:
            found = {entry.name.partition("/")[2]: archive.extractfile(entry).read()  # type: ignore[union-attr]
                     for entry in archive if entry.isfile() and entry.name.endswith(ends)}
    return {name: "\n".join(text.decode() for text in re.findall(rb"[\x20-\x7e]{8,}", data))
            if data.startswith(b"\x7fELF") else data.decode("utf-8", "replace") for name, data in found.items()}


def without_comments(text: str) -> str:
    pattern = r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|//[^\n]*|/\*.*?\*/'
    return re.sub(pattern, lambda m: m[0] if m[0][0] in "\"'" else " ", text, flags=re.S)


# The C of a call

def calls(text: str, function: str) -> typing.Iterator[list[str]]:
    """The arguments of each call of `function` (a pattern), as they are written; its own definition is left out."""
    for match in re.finditer(r"\b(?:" + function + r")\s*\(", text):
        line = text[text.rfind("\n", 0, match.start()) + 1:match.start()]
        if re.match(r"\s*#\s*define\s*$", line):
            continue
        arguments, depth, start, quoted = [], 0, match.end(), False
        for at in range(match.end(), len(text)):
            letter = text[at]
            if letter == '"' and text[at - 1] != "\\":
                quoted = not quoted
            elif quoted:
                continue
            elif letter in "([{":
                depth += 1
            elif letter in ")]}" and depth > 0:
                depth -= 1
            elif letter == ")" or letter == "," and depth == 0:
                arguments.append(text[start:at].strip())
                start = at + 1
                if letter == ")":
                    yield arguments
                    break


def string(argument: str) -> str | None:
    match = re.fullmatch(r'"([A-Za-z0-9_]+)"', argument)
    return match[1] if match else None


def constants(files: dict[str, str]) -> dict[str, str]:
    """The #defines of one value. One that has several in the tree is left out: which holds is a matter of the build."""
    seen: dict[str, set[str]] = {}
    for text in files.values():
        for name, value in re.findall(r"^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+(\S[^\n\\]*?)[ \t]*$", text, re.M):
            seen.setdefault(name, set()).add(value)
    return {name: values.pop() for name, values in seen.items() if len(values) == 1}


def value(expression: str, known: dict[str, str], depth: int = 0) -> str | None:
    """The number or text that a default is, or None where it takes a compiler to know."""
    expression = expression.strip()
    if expression in ("NULL", "nullptr", '""', ""):
        return ""
    if expression in ("true", "false"):
        return str(int(expression == "true"))
    if expression == "NCCL_CONFIG_UNDEF_INT":
        return "as the communicator was made"
    if re.fullmatch(r'"[^"]*"', expression):
        return expression[1:-1].strip()
    if depth > 8:
        return None
    for name in set(re.findall(r"\b[A-Za-z_]\w*\b", re.sub(r"\b0x[0-9a-fA-F]+|\b\d+[uUlL]+\b", "", expression))):
        inner = value(known[name], known, depth + 1) if name in known else None
        if inner is None or not re.fullmatch(r"-?\d+", inner):
            return inner if name == expression else None
        expression = re.sub(rf"\b{name}\b", inner, expression)
    expression = re.sub(r"\b(0x[0-9a-fA-F]+|\d+)[uUlL]+\b", r"\1", expression)
    if not re.fullmatch(r"[\d\sxa-fA-F()+*<>/-]+", expression):
        return None
    try:
        return str(eval(expression.replace("/", "//"), {"__builtins__": {}}))  # digits and operators alone
    except (SyntaxError, ValueError, ZeroDivisionError):
        return None


# The three owners

GETENV = r"(?:std::)?getenv|secure_getenv|ncclGetEnv"


def nccl(files: dict[str, str]) -> dict[str, Found]:
    files = {name: without_comments(text) for name, text in files.items()
             if name.startswith("src/") and "/nvtx3/" not in name}
    known = constants(files)
    found = {}
    for file, text in sorted(files.items()):
        for arguments in calls(text, "NCCL_PARAM"):
            if len(arguments) == 3 and (name := string(arguments[1])):
                found["NCCL_" + name] = Found("integer", "", value(arguments[2], known), file)
        for arguments in calls(text, "DEFINE_NCCL_PARAM"):
            if len(arguments) > 4 and arguments[2].isupper():
                kind = "boolean" if arguments[1] == "bool" else "text"
                found[arguments[2]] = Found(kind, "", value(arguments[3], known), file)
        for arguments in calls(text, GETENV):
            if (name := string(arguments[0])) and name != "HOME":
                found.setdefault(name, Found("text", "", None, file))
        for arguments in calls(text, "ncclGetLevel|getNrings|getHostThreshold"):
            for name in filter(None, map(string, arguments)):
                found.setdefault(name, Found("text", "", None, file))
    return found


def aws_ofi_nccl(files: dict[str, str]) -> dict[str, Found]:
    files = {name: without_comments(text) for name, text in files.items() if name.startswith(("src/", "include/"))}
    known = constants(files)
    found = {}
    for file, text in sorted(files.items()):
        sets = {a[0]: "|".join(re.findall(r"\w+", a[1])) for a in calls(text, "OFI_NCCL_PARAM_VALUE_SET")}
        for macro, kind in (("_INT", "integer"), ("_UINT", "integer"), ("_STR", "text"), ("_REMOVED", ""),
                            ("_DEPRECATED", ""), ("", "")):
            for arguments in calls(text, "OFI_NCCL_PARAM" + macro):
                c_type = kind or arguments.pop(0)
                if len(arguments) < 3 or not (name := string(arguments[1])):
                    continue
                type_ = kind or ("boolean" if c_type == "bool" else "choice" if c_type in sets else
                                 "text" if c_type in ("float", "std::string") else "integer")
                default = arguments[2].rpartition("::")[2] if c_type in sets else value(arguments[2], known)
                found["OFI_NCCL_" + name] = Found(type_, sets.get(c_type, ""), default, file)
        for arguments in calls(text, GETENV):
            if (name := string(arguments[0])) and name.startswith("OFI_"):
                found.setdefault(name, Found("text", "", None, file))
    found.pop("OFI_NCCL_", None)
    return found


def provider_name(files: dict[str, str], known: dict[str, str]) -> str:
    """As the environment has it: that of rxm is "ofi_rxm"."""
    for _, text in sorted(files.items()):
        for first, second in re.findall(r"struct fi_provider \w+ = \{([^}]*)\}|\.prov = \{([^}]*)\}", text):
            if match := re.search(r"\.name\s*=\s*([\w\s\"]+)", first + second):
                name = match[1]
                for variable, first_value in re.findall(r"char (\w+)\[\w*\] = ([^;]+);", "".join(files.values())):
                    name = name.replace(variable, first_value)
                pieces = [known.get(word, word) for word in re.findall(r'"[^"]*"|\w+', name)]
                return "".join(piece.strip('"') for piece in pieces)
    return ""


def libfabric(files: dict[str, str]) -> dict[str, Found]:
    files = {name: without_comments(text) for name, text in files.items()
             if re.match(r"src/|include/|prov/[^/]+/(src|include)/|prov/hook/", name)}
    types = {"FI_PARAM_BOOL": "boolean", "FI_PARAM_INT": "integer", "FI_PARAM_SIZE_T": "integer",
             "FI_PARAM_STRING": "text"}
    parts: dict[str, dict[str, str]] = {}
    for file, text in files.items():
        match = re.match(r"prov/(?!util/)(hook/)?[^/]+/", file)
        parts.setdefault(match[0] if match else "", {})[file] = text
    found = {}
    for part, own in sorted(parts.items()):
        known = constants(parts[""] | own)
        provider = provider_name(own, known) if part else ""
        for file, text in sorted(own.items()):
            initial = dict(re.findall(r"^\s*\.(\w+)\s*=\s*([^,{}]+)", text, re.M))
            define = [(a[0], a[1], types.get(a[2], "text")) for a in calls(text, "fi_param_define") if len(a) > 3]
            define += [("", a[0], {"int": "integer", "bool": "boolean"}.get(kind, "text"))
                       for kind in ("int", "bool", "str") for a in calls(text, f"(?:vrb|fi_ibv)_get_param_{kind}")]
            for owner, quoted, type_ in define:
                if not (name := string(quoted)):
                    continue
                core = owner in ("NULL", "&core_prov") or not provider
                full = "_".join(["FI"] + ([] if core else [provider]) + [name]).upper()
                default = value(initial[name], known) if name in initial else None
                if type_ != "integer" or default is None or re.fullmatch(r"-?\d+", default):
                    found[full] = Found(type_, "", default, file)
                else:
                    found[full] = Found(type_, "", None, file)
            for arguments in calls(text, GETENV):
                if (name := string(arguments[0])) and name.startswith("FI_"):
                    found.setdefault(name, Found("text", "", None, file))
    return found


READERS = {"nccl": nccl, "aws-ofi-nccl": aws_ofi_nccl, "libfabric": libfabric}

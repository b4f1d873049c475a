"""The messages with which a program can fail, found in the sources of a release."""
import ast
import re
import typing

HOLE = "{}"  # stands where the program puts a value in
ENDS = (".py", ".cc", ".cpp", ".cu", ".h", ".hpp", ".go", ".c", ".sh", ".in")
LOGS = {"error", "critical", "exception", "fatal"}


class Message(typing.NamedTuple):
    file: str
    line: int
    type: str  # of the exception, or how it is logged: "logger.error"
    text: str

    def shown(self) -> str:
        return f"{self.file}:{self.line}: {self.type}: {self.text}"


def one_line(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


# Python

def template(node: ast.expr | None, names: dict[str, ast.expr], depth: int = 0) -> str:
    """The text that an expression makes, with holes for what is known at run time only."""
    if isinstance(node, ast.Constant):
        return str(node.value) if isinstance(node.value, str) else HOLE
    if isinstance(node, ast.JoinedStr):
        return "".join(template(value, {}, depth + 1) for value in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return template(node.left, names, depth + 1) + template(node.right, names, depth + 1)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        return re.sub(r"%[\d.]*[sdrf]", HOLE, template(node.left, names, depth + 1))
    if isinstance(node, ast.IfExp):
        return template(node.body, names, depth + 1) + HOLE + template(node.orelse, names, depth + 1)
    if isinstance(node, ast.Name) and node.id in names and depth < 4:
        return template(names[node.id], names, depth + 1)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr == "format":
            return re.sub(r"\{[^{}]*\}", HOLE, template(node.func.value, names, depth + 1))
        if node.func.attr in ("strip", "lstrip", "rstrip"):
            return template(node.func.value, names, depth + 1)
    return HOLE


def dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


class PythonReader(ast.NodeVisitor):
    def __init__(self, file: str):
        self.file = file
        self.names: dict[str, ast.expr] = {}
        self.messages: list[Message] = []

    def add(self, node: ast.AST, type_: str, text: ast.expr | None) -> None:
        said = one_line(template(text, self.names))
        if re.search(r"[A-Za-z]{3}", said):
            self.messages.append(Message(self.file, node.lineno, type_, said))  # type: ignore[attr-defined]

    def visit_Assign(self, node: ast.Assign) -> None:
        for target in node.targets:
            if isinstance(target, ast.Name):
                self.names[target.id] = node.value
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name) and node.target.id in self.names and isinstance(node.op, ast.Add):
            self.names[node.target.id] = ast.BinOp(self.names[node.target.id], ast.Add(), node.value)
        self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        outer, self.names = self.names, dict(self.names)
        self.generic_visit(node)
        self.names = outer

    visit_AsyncFunctionDef = visit_FunctionDef  # type: ignore[assignment]

    def visit_Raise(self, node: ast.Raise) -> None:
        if isinstance(node.exc, ast.Call):
            texts = node.exc.args + [word.value for word in node.exc.keywords]
            self.add(node, dotted(node.exc.func).rpartition(".")[2], texts[0] if texts else None)
        self.generic_visit(node)

    def visit_Assert(self, node: ast.Assert) -> None:
        self.add(node, "AssertionError", node.msg)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        called = dotted(node.func)
        owner, _, function = called.rpartition(".")
        logs = function in LOGS and re.search(r"log", owner, re.I)
        if node.args and (logs or called == "sys.exit" or (function == "error" and owner.endswith("parser"))):
            text = template(node.args[0], self.names)
            percent = ast.Constant(re.sub(r"%[\d.]*[sdrf]", HOLE, text))
            self.add(node, called, percent)
        self.generic_visit(node)


def python(file: str, text: str) -> list[Message]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):  # a template, or Python of another age
        return []
    reader = PythonReader(file)
    reader.visit(tree)
    return reader.messages


# Other languages: a call or a stream whose literals are joined

OTHERS = {
    ".c": r"\b(slurm_error|slurm_spank_log)\s*\(", ".go": r"\b(sylog\.(?:Fatalf|Errorf)|fmt\.Errorf|errors\.New)\(",
    ".sh": r"\b(common::err|common::log ERROR)\b", ".in": r"\b(common::err|common::log ERROR)\b",
}
CPP = r"\b(RAY_LOG\((?:ERROR|FATAL)\)|RAY_CHECK\w*|TORCH_CHECK\w*|NIXL_(?:ERROR|FATAL|CHECK)|XGRAMMAR_(?:CHECK|LOG_FATAL)|" \
      r"throw std::\w+|PD_CHECK)"


def other(file: str, text: str) -> list[Message]:
    ending = file[file.rfind("."):]
    pattern = OTHERS.get(ending, CPP)
    shell = ending in (".sh", ".in")
    messages = []
    for match in re.finditer(pattern, text):
        end = text.find("\n", match.end()) if shell or ending == ".go" else text.find(";", match.end())
        rest = text[match.end():end if end >= 0 else len(text)]
        literals = re.findall(r'"(.*)"' if shell else r'"((?:\\.|[^"\\\n])*)"', rest)
        joined = one_line(HOLE.join(literals).replace("\\n", " ").replace('\\"', '"'))
        said = re.sub(r"\$\([^)]*\)|\$\{[^}]*\}|\$[\w@*?]+|%[+#\d.]*l*[a-z]", HOLE, joined)
        if re.search(r"[A-Za-z]{3}", said):
            messages.append(Message(file, text.count("\n", 0, match.start()) + 1, match[1], said))
    return messages


def messages(files: dict[str, str]) -> list[Message]:
    found = []
    for file, text in sorted(files.items()):
        found += python(file, text) if file.endswith(".py") else other(file, text)
    return found


# What a signature is held against

PRINTED = {"sylog.Fatalf": "FATAL:   ", "common::err": "[ERROR] "}  # else the type of an exception and a colon
VALUES = ("1", "x", "'x'")  # what may stand in a hole: a number, a word, a quoted one


def filled(text: str) -> list[str]:
    return [text.replace(HOLE, value) for value in VALUES] if HOLE in text else [text]


def lines_of(message: Message) -> list[str]:
    return filled(PRINTED.get(message.type, f"{message.type}: ") + message.text)


def texts(file: str, text: str) -> str:
    """All that the file can print, one text a line: of Python its strings as they are joined and its exceptions' names."""
    try:
        tree = ast.parse(text) if file.endswith(".py") else None
    except (SyntaxError, ValueError):
        tree = None
    lines = [line for message in messages({file: text}) for line in lines_of(message)]
    if tree is None:
        return "\n".join([text] + lines)
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            lines.append(node.name)
        elif isinstance(node, (ast.Constant, ast.JoinedStr, ast.BinOp)):
            for part in template(node, {}).split("\n"):
                lines += filled(part) if len(part) > 6 else []
    return "\n".join(lines)


def alternatives(pattern: str) -> list[str]:
    """Those of the whole pattern, not of its groups."""
    found, depth, in_set, escaped = [""], 0, False, False
    for letter in pattern:
        if letter == "|" and not (depth or in_set or escaped):
            found.append("")
            continue
        found[-1] += letter
        if escaped:
            escaped = False
        elif letter == "\\":
            escaped = True
        elif in_set:
            in_set = letter != "]"
        else:
            in_set = letter == "["
            depth += {"(": 1, ")": -1}.get(letter, 0)
    return found

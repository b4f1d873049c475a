#!/usr/bin/env python3
"""A folder of src/ includes only what stands below it."""
import pathlib
import re
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parent.parent / "src"
# Top to bottom, as docs/design.md has them; probe/ and scope/ are programs of their own.
ORDER = [layer for layer in re.findall(r"^\| (?:`main\.cpp`, )?`(\w+)/` \|", (SOURCE.parent / "docs/design.md").read_text(), re.MULTILINE)
         if layer not in {"probe", "scope"}]
PROGRAMS = {"probe": {"base", "sys"}, "scope": set()}
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
# A library that belongs to one layer alone; of Boost, Describe with what it needs and the algorithms for strings are for all.
KEPT_IN = {"yaml-cpp/": "config", "boost/(?!describe|mp11|algorithm/string)": "sys", "hwloc": "sys", r"zstd\.h": "sys", "CLI/": "cli", r"curses\.h": "cli", "openssl/": "base", "cuda": "probe", r"nccl\.h": "probe", "gloo/": "probe"}
SYSTEM = re.compile(r"^\s*#\s*include\s*<([^>]+)>", re.MULTILINE)


def allowed(layer):
    if layer in PROGRAMS:
        return PROGRAMS[layer] | {layer}
    # The wrappers that the scope library knows are told apart in one place.
    return set(ORDER[ORDER.index(layer):]) | {"scope"}


def climbs(source):
    """Every include that climbs, as "file: what"."""
    found = []
    for path in sorted(source.rglob("*")):
        layer = path.relative_to(source).parts[0]
        if path.suffix not in {".h", ".c", ".cpp", ".cu"} or layer == path.name:
            continue
        text = path.read_text()
        for target in INCLUDE.findall(text):
            if "/" in target and target.split("/")[0] not in allowed(layer):
                found.append(f"{path.relative_to(source)}: {target}")
        for target in SYSTEM.findall(text):
            for prefix, home in KEPT_IN.items():
                if re.match(prefix, target) and layer != home:
                    found.append(f"{path.relative_to(source)}: <{target}>")
    return found


def foreign_parts(source):
    """Headers of src/commands/ that another command than theirs includes: run_arms.h belongs to run*.cpp."""
    found = []
    for path in sorted((source / "commands").glob("*")):
        for target in INCLUDE.findall(path.read_text()):
            folder, _, name = target.rpartition("/")
            if folder == "commands" and name.split("_")[0].removesuffix(".h") != path.stem.split("_")[0]:
                found.append(f"{path.name}: {target}")
    return found


DUMP = re.compile(r"(\.|->)dump\(")
# What is decided by a backend's name, and not by one of its traits.
BY_BACKEND = re.compile(r"([!=]=|case)\s*(\w+::)*Backend::|\bBackend::\w+\s*[!=]=")


def backends_told_apart(source):
    """Every file that compares backends, as its path."""
    files = sorted(path for path in source.rglob("*") if path.suffix in {".h", ".cpp", ".cu"})
    return [str(path.relative_to(source)) for path in files if BY_BACKEND.search(path.read_text())]


# A scheduler's identity: the name of an enumerator, or a comparison with the name of one.
SCHEDULER = re.compile(r'\bScheduler::(local|slurm|beaker|flux)\b|scheduler\)?\s*[!=]=|[!=]=\s*"(slurm|beaker|flux)"')


def identities(source):
    """Where it is asked which scheduler there is, in place of what it can do, as "file: line"."""
    return [f"{path.relative_to(source)}: {line.strip()}"
            for path in sorted(source.rglob("*")) if path.suffix in {".h", ".cpp"} and path.relative_to(source).parts[0] != "scheduler"
            for line in path.read_text().splitlines() if SCHEDULER.search(line) and "nullptr" not in line]


class Layers(unittest.TestCase):
    def test_only_a_scheduler_knows_which_it_is(self):
        self.assertEqual(identities(SOURCE), [])

    def test_a_question_for_a_scheduler_by_name_is_seen(self):
        import tempfile
        with tempfile.TemporaryDirectory() as folder:
            for layer in ("plan", "scheduler"):
                pathlib.Path(folder, layer).mkdir()
                pathlib.Path(folder, layer, "x.cpp").write_text(
                    'if (plan.scheduler == kSlurm) a();\nif (plan.scheduler != Scheduler::slurm) b();\nif ("x" == "flux") c();\n'
                    'if (scheduler == nullptr) d();\nplan.scheduler = "local";\n')
            self.assertEqual(identities(pathlib.Path(folder)), ["plan/x.cpp: if (plan.scheduler == kSlurm) a();",
                             "plan/x.cpp: if (plan.scheduler != Scheduler::slurm) b();", 'plan/x.cpp: if ("x" == "flux") c();'])

    def test_json_is_written_in_one_place(self):
        # dump() throws where a text in it is not UTF-8.
        sources = [path for path in SOURCE.rglob("*") if path.suffix in {".h", ".cpp", ".cu"}]
        self.assertEqual([str(path.relative_to(SOURCE)) for path in sources if DUMP.search(path.read_text())], ["base/json.cpp"])

    def test_no_command_includes_another(self):
        self.assertEqual(foreign_parts(SOURCE), [])

    def test_a_command_that_includes_another_is_seen(self):
        import tempfile
        with tempfile.TemporaryDirectory() as folder:
            commands = pathlib.Path(folder, "commands")
            commands.mkdir()
            (commands / "logs.cpp").write_text('#include "commands/run_arms.h"\n')
            (commands / "run.cpp").write_text('#include "commands/run_arms.h"\n')
            self.assertEqual(foreign_parts(pathlib.Path(folder)), ["logs.cpp: commands/run_arms.h"])

    def test_backends_are_told_apart_by_their_traits(self):
        self.assertEqual(backends_told_apart(SOURCE), [])

    def test_a_compared_backend_is_seen(self):
        for text in ("if (a.backend == Backend::gloo)", "b != nlaunch::Backend::nccl", "Backend::nccl == b", "case Backend::gloo:"):
            with self.subTest(text), tempfile.TemporaryDirectory() as folder:
                pathlib.Path(folder, "x.cpp").write_text(text + "\nBackend backend = Backend::nccl;\n")
                self.assertEqual(backends_told_apart(pathlib.Path(folder)), ["x.cpp"])

    def test_every_folder_has_its_place(self):
        folders = {path.name for path in SOURCE.iterdir() if path.is_dir() and any(path.iterdir())}
        self.assertEqual(folders - set(ORDER) - set(PROGRAMS), set())

    def test_no_include_climbs(self):
        self.assertEqual(climbs(SOURCE), [])

    def test_a_climbing_include_is_seen(self):
        with tempfile.TemporaryDirectory() as folder:
            layer = pathlib.Path(folder, "base")
            layer.mkdir()
            (layer / "x.h").write_text('#include "plan/plan.h"\n#include <boost/asio.hpp>\n#include <boost/describe.hpp>\n')
            self.assertEqual(climbs(pathlib.Path(folder)), ["base/x.h: plan/plan.h", "base/x.h: <boost/asio.hpp>"])


PROTOCOL = SOURCE / "fleet/protocol.cpp"
# What the layers below have sent: structs, which fleet/protocol.cpp alone knows as JSON.
SENT_BY = ["launch/job/handshake", "preflight/clocks", "preflight/ask/probes", "preflight/ask/remote_probes", "supervise/process_backend", "supervise/remote_backend"]
# Keys of summary.json, which an agent writes that is alone.
OF_FILES = {"agent_files.cpp": {"run", "exit_code", "sentence"}}


def message_keys():
    return {"type"} | set(re.findall(r'\bfield\("(\w+)"', PROTOCOL.read_text())) | set(re.findall(r'\bto\["(\w+)"\]', PROTOCOL.read_text()))


def keys_used(text):
    """Literals that stand as keys of JSON."""
    return set(re.findall(r'(?:\b(?:at|value|contains|find|count)\(|\[|\{)\s*"(\w+)"\s*[,)\]]', text))


class Protocol(unittest.TestCase):
    def test_a_key_of_a_message_stands_in_one_file(self):
        keys = message_keys()
        self.assertGreater(len(keys), 40)
        found = {path.name: sorted(keys_used(path.read_text()) & keys - OF_FILES.get(path.name, set()))
                 for path in sorted((SOURCE / "fleet").iterdir()) if path.name != PROTOCOL.name}
        self.assertEqual({name: used for name, used in found.items() if used}, {})

    def test_the_layers_below_know_no_json_of_messages(self):
        files = [SOURCE / f"{name}{suffix}" for name in SENT_BY for suffix in (".h", ".cpp") if (SOURCE / f"{name}{suffix}").exists()]
        self.assertGreaterEqual(len(files), len(SENT_BY))
        self.assertEqual([path.name for path in files if re.search(r"nlohmann|json_text|parse_json|_json\(", path.read_text())], [])

    def test_a_key_is_seen_where_it_stands(self):
        text = 'message.contains("node") message["plan"] json{{"why", x}} from.at("run") value("host", "")'
        self.assertEqual(keys_used(text), {"node", "plan", "why", "run", "host"})


if __name__ == "__main__":
    unittest.main()

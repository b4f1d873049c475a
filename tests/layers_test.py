#!/usr/bin/env python3
"""A folder of src/ includes only what stands below it."""
import pathlib
import re
import unittest

SOURCE = pathlib.Path(__file__).resolve().parent.parent / "src"
# Top to bottom, as docs/design.md has them; probe/ and scope/ are programs of their own.
ORDER = [layer for layer in re.findall(r"^\| (?:`main\.cpp`, )?`(\w+)/` \|", (SOURCE.parent / "docs/design.md").read_text(), re.MULTILINE)
         if layer not in {"probe", "scope"}]
PROGRAMS = {"probe": {"base", "sys"}, "scope": set()}
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
# A library that belongs to one layer alone.
KEPT_IN = {"yaml-cpp/": "config", "boost/": "sys", "hwloc": "sys", "zstd.h": "sys", "CLI/": "cli", "cuda": "probe", "nccl.h": "probe", "gloo/": "probe"}
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
                if target.startswith(prefix) and layer != home:
                    found.append(f"{path.relative_to(source)}: <{target}>")
    return found


DUMP = re.compile(r"(\.|->)dump\(")


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

    def test_every_folder_has_its_place(self):
        folders = {path.name for path in SOURCE.iterdir() if path.is_dir() and any(path.iterdir())}
        self.assertEqual(folders - set(ORDER) - set(PROGRAMS), set())

    def test_no_include_climbs(self):
        self.assertEqual(climbs(SOURCE), [])

    def test_a_climbing_include_is_seen(self):
        import tempfile
        with tempfile.TemporaryDirectory() as folder:
            layer = pathlib.Path(folder, "base")
            layer.mkdir()
            (layer / "x.h").write_text('#include "plan/plan.h"\n#include <boost/asio.hpp>\n')
            self.assertEqual(climbs(pathlib.Path(folder)), ["base/x.h: plan/plan.h", "base/x.h: <boost/asio.hpp>"])


if __name__ == "__main__":
    unittest.main()

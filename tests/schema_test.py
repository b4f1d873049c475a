#!/usr/bin/env python3
"""The JSON schemas and the parser, held against each other in both directions; and what is shipped, against the schemas."""
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

import jsonschema
import yaml

SOURCE = pathlib.Path(os.environ["NLAUNCH_SOURCE"])
NLAUNCH = pathlib.Path(os.environ["NLAUNCH_BUILD"]) / "bin" / "nlaunch"
UNHEARD = "qqqqqqqqqqqqqqqq"  # near to no word

# A file that has every map of the format, so that a key can be put into each.
WHOLE = {
    "site": {
        "version": 1, "match": {"gpu": "x"}, "env": {"set": {"A": "1"}, "when": [{"nodes": ">1", "set": {"B": "1"}}]},
        "scheduler": {"kind": "slurm", "bad_nodes": {"file": "x"}, "beaker": {"datasets": {"/a": {"weka": "x"}}}}, "node": {"gpus": 1, "nics": {"kind": "ib"}},
        "modules": {"reset": True}, "libraries": {"a": {"path": "/x"}}, "overlays": {"a": {"env": {"set": {"A": "1"}}}},
        "expect": {"all_reduce_busbw": [{"size": "1B", "min": "1GB/s"}], "transport": {"intra_node": "P2P"}},
    },
    "experiment": {
        "version": 1, "name": "a", "env": {"set": {"A": "1"}}, "weight_sync": {"backend": "gloo"}, "signals": {"TERM": "stop"},
        "roles": {"a": {"kind": "learner", "command": ["x"], "ready": {"delay": "1s"}, "stop": {"grace": "1s"},
                        "restart": {"policy": "never"}, "env": {"set": {"A": "1"}}}},
        "secrets": {"S": {"file": "x"}}, "walltime": {"max": 1}, "preflight": {"strict": True}, "audit": {"mode": "report"},
        "beaker": {"datasets": {"/a": {"weka": "x"}}}, "watch": {"start": "1s"}, "metrics": {"port": 9400},
        "bench": {"workloads": {"w": {"group": "node", "step": [{"op": "broadcast", "size": "1B"}]}}}, "restart": {"policy": "never"}, "overlays": {"a": {"env": {"set": {"A": "1"}}}},
    },
}


def schema(kind):
    return json.loads((SOURCE / "schema" / f"{kind}.json").read_text())


def validator(kind):
    return jsonschema.Draft202012Validator(schema(kind))


class Schemas(unittest.TestCase):
    maxDiff = None

    def parser_says(self, kind, document):
        """What nlaunch says of a document."""
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "file.yaml"
            path.write_text(document if isinstance(document, str) else json.dumps(document))
            command = ["sites", "check", path] if kind == "site" else ["plan", path, "--site", "local"]
            done = subprocess.run([NLAUNCH, *command], cwd=SOURCE, capture_output=True, text=True, timeout=60, check=False)
            return done.returncode, done.stderr

    def maps(self, root, node, value, path=()):
        """(path, schema) of every map in `value` that the schema of `node` describes."""
        while "$ref" in node:
            node = root["$defs"][node["$ref"].rsplit("/", 1)[1]]
        for choice in node.get("anyOf", []) + node.get("oneOf", []):
            if {"$ref", "type"} & set(choice):
                whole = {**choice, "$defs": root["$defs"]}
                if jsonschema.Draft202012Validator(whole).is_valid(value):
                    yield from self.maps(root, choice, value, path)
        if isinstance(value, dict) and "properties" in node:
            yield path, node
        if isinstance(value, dict):
            for key, inner in value.items():
                below = node.get("properties", {}).get(key, node.get("additionalProperties"))
                if isinstance(below, dict):
                    yield from self.maps(root, below, inner, (*path, key))
        if isinstance(value, list) and isinstance(node.get("items"), dict):
            for index, inner in enumerate(value):
                yield from self.maps(root, node["items"], inner, (*path, index))

    def test_the_schemas_are_schemas_and_the_program_has_them(self):
        for kind in WHOLE:
            jsonschema.Draft202012Validator.check_schema(schema(kind))
            done = subprocess.run([NLAUNCH, "schema", kind], capture_output=True, text=True, check=True)
            self.assertEqual(done.stdout, (SOURCE / "schema" / f"{kind}.json").read_text())

    def test_each_map_has_the_keys_that_the_parser_knows(self):
        for kind, whole in WHOLE.items():
            self.assertEqual(list(map(str, validator(kind).iter_errors(whole))), [])
            seen = 0
            for path, node in list(self.maps(schema(kind), schema(kind), whole)):
                document = json.loads(json.dumps(whole))
                inner = document
                for step in path:
                    inner = inner[step]
                row = path[-2:-1] == ("when",)
                inner[UNHEARD] = ">1" if row else {}
                with self.subTest(kind=kind, path=path):
                    code, said = self.parser_says(kind, document)
                    self.assertEqual(code, 65)
                    found = re.search(r"\nhint: (?:allowed:|an env with 'set' allows only) ([^\n]*)", said)
                    self.assertIsNotNone(found, said)
                    known = set(found[1].split(", ")) - ({"a"} if row else set())  # "a" is the library
                    self.assertEqual(known, set(node["properties"]))
                    seen += 1
            self.assertGreater(seen, 10)

    def test_each_choice_has_the_words_that_the_parser_knows(self):
        def choices(node, path):
            if "enum" in node and path:
                yield path, node["enum"]
            for key, below in node.get("properties", {}).items():
                yield from choices(below, (*path, key))

        for kind in WHOLE:
            root = schema(kind)
            found = list(choices(root, ()))
            if kind == "experiment":
                found += list(choices(root["$defs"]["role"], ("roles", "a")))
            self.assertGreater(len(found), 0)
            for path, words in found:
                document = json.loads(json.dumps(WHOLE[kind]))
                inner = document
                for step in path[:-1]:
                    inner = inner.setdefault(step, {"policy": "never"} if step == "restart" else {})
                inner[path[-1]] = UNHEARD
                with self.subTest(kind=kind, path=path):
                    _, said = self.parser_says(kind, document)
                    told = re.search(rf"must be (?:one of )?([\w-]+(?:, [\w-]+)*), found '{UNHEARD}'", said)
                    self.assertIsNotNone(told, said)
                    self.assertEqual(sorted(told[1].split(", ")), sorted(words))

    def test_what_is_shipped_is_valid_and_names_its_schema(self):
        for folder, kind in (("configs", "experiment"), ("site-profiles", "site")):
            files = sorted((SOURCE / folder).rglob("*.yaml"))
            self.assertGreater(len(files), 3)
            for path in files:
                with self.subTest(path.name):
                    text = path.read_text()
                    self.assertEqual([error.message for error in validator(kind).iter_errors(yaml.safe_load(text))], [])
                    named = re.match(r"# yaml-language-server: \$schema=(\S+)\n", text)
                    self.assertIsNotNone(named)
                    self.assertEqual((path.parent / named[1]).resolve(), SOURCE / "schema" / f"{kind}.json")

    def test_both_refuse_what_is_wrong(self):
        site = "version: 1\nname: a\n"
        experiment = "version: 1\nname: a\nroles: {a: {kind: learner, command: [x]}}\n"
        cases = [("site", text) for text in (
            "name: a\n", "version: 2\n", "- 1\n", site + "gpus: 4\n", site + "untried: yes please\n", site + "node: {gpus: four}\n",
            site + "node: {gpus: 2000}\n", site + "node: {gpus: '4'}\n", site + "scheduler: {kind: pbs}\n",
            site + "modules: {reset: 1}\n", site + "env: {A: 1}\n", site + "env: {set: {LD_PRELOAD: /x}}\n",
            site + "env: {set: {1A: x}}\n", site + "env: {when: {nodes: 1}}\n", site + "libraries: {nccl: /x}\n",
            site + "libraries: {nccl: {version: '>1'}}\n", site + "overlays: {a: {env: {set: {A: [1]}}}}\n",
            site + "expect: {all_reduce_busbw: [{size: 128, min: 1GB/s}]}\n",
            site + "expect: {all_reduce_busbw: [{size: 128MiB, min: 1GB}]}\n",
            site + "expect: {all_reduce_busbw: [{size: 128MiB}]}\n", site + "scheduler: {bad_nodes: {ttl: 7}}\n")]
        cases += [("experiment", text) for text in (
            "version: 1\nname: a\n", "version: 1\nroles: {a: {kind: learner, command: [x]}}\n",
            experiment.replace("name: a", "name: a b"), experiment.replace("[x]", "x"), experiment.replace("[x]", "[]"),
            experiment.replace("learner", "trainer"), experiment.replace("{a:", "{A:"), "version: 1\nname: a\nroles: {}\n",
            experiment.replace("[x]", "[x], count: 1, per_node: 1"), experiment.replace("[x]", "[x], spawned_by: b"),
            experiment.replace("command: [x]", "gpus: 1"), experiment.replace("[x]", "[x], ready: {timeout: 1s}"),
            experiment.replace("[x]", "[x], ready: {tcp: x, http: y}"), experiment.replace("[x]", "[x], stop: {grace: 60}"),
            experiment.replace("[x]", "[x], timeout: 1m"), experiment.replace("[x]", "[x], retries: 1"),
            *(experiment.replace("learner", "task").replace("[x]", f"[x], {key}") for key in (
                "ready: exited", "ends_run: true", "exit: ok", "restart: {policy: never}", "retries: -1", "timeout: 5")),
            experiment.replace("[x]", "[x], gpus: 1, gpu_memory: 1.5"), experiment.replace("[x]", "[x], gpus: 1, gpu_memory: 0"),
            experiment.replace("[x]", "[x], gpus: 1, share_gpus_with: {a: b}"), experiment.replace("[x]", "[x], exit: fine"), experiment.replace("[x]", "[x], restart: {max: 1}"),
            experiment + "nodes: 0\n", experiment + "weight_sync: {backend: mpi}\n", experiment + "secrets: {A: file}\n",
            experiment + "secrets: {A: {env: B, file: x}}\n", experiment + "watch: {stall: soon}\n",
            experiment + "start: [a]\nsignals: {KILL: stop}\n", experiment + "audit: {mode: loud}\n",
            experiment + "preflight: {level: thorough}\n", experiment + "bench: {steps: 1}\n",
            experiment + "metrics: {}\n", experiment + "metrics: {port: 65536}\n",
            *(experiment + f"bench: {{workloads: {{w: {workload}}}}}\n" for workload in (
                "{group: node}", "{group: node, step: []}", "{group: node, step: [{op: gather, size: 1B}]}", "{group: node, step: [{op: broadcast, size: 1}]}",
                "{group: node, step: [{op: broadcast}]}", "{group: node, step: [{op: broadcast, size: 1B, shape: [1]}]}",
                "{group: node, step: [{op: broadcast, size: 1B}], budget: 9}", "{group: node, step: [{op: broadcast, size: 1B}], scaling: 0.95}")))]
        for kind, text in cases:
            with self.subTest(kind=kind, text=text):
                self.assertNotEqual(list(validator(kind).iter_errors(yaml.safe_load(text))), [], "the schema")
                self.assertEqual(self.parser_says(kind, text)[0], 65, "the parser")


if __name__ == "__main__":
    unittest.main()

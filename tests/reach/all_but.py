#!/usr/bin/env python3
"""Runs the tests of a file but for some: all_but.py FILE [CLASS.TEST]... A name that is no test's ends with code 64.
Those that skip themselves are told with their reasons; where all do, nothing was tested, which is no success."""
import importlib.util
import pathlib
import sys
import unittest


def each(suite):
    for one in suite:
        if isinstance(one, unittest.TestSuite):
            yield from each(one)
        else:
            yield one


def main(file, *left_out):
    path = pathlib.Path(file).resolve()
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    tests = list(each(unittest.defaultTestLoader.loadTestsFromModule(module)))
    names = {name_of(test) for test in tests}
    if unknown := set(left_out) - names:
        print(f"{path.name} has no {', '.join(sorted(unknown))}", file=sys.stderr)
        return 64
    kept = unittest.TestSuite(test for test in tests if name_of(test) not in left_out)
    result = unittest.TextTestRunner(verbosity=2, resultclass=Result).run(kept)
    for test, why in result.skipped:
        print(f"SKIPPED\t{name_of(test)}\t{' '.join(why.split())}")
    return 0 if result.wasSuccessful() and result.passed > 0 else 1


def name_of(test):
    return test.id().partition(".")[2]


class Result(unittest.TextTestResult):
    passed = 0

    def addSuccess(self, test):
        super().addSuccess(test)
        self.passed += 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

#!/usr/bin/env python3
"""Every file that CONTRIBUTING.md names is there. A word in capitals stands for any name."""
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
PATH = re.compile(r"`((?:src|tests|docs|scripts|schema|site-profiles)/[^`]*)`")
ANY = re.compile(r"[A-Z]{3,}")


def missing(text):
    """The paths of a text at which there is nothing."""
    return [path for path in PATH.findall(text) if not any(ROOT.glob(ANY.sub("*", path.rstrip("/"))))]


class Contributing(unittest.TestCase):
    def test_its_files_are_there(self):
        text = (ROOT / "CONTRIBUTING.md").read_text()
        self.assertGreater(len(PATH.findall(text)), 30)
        self.assertEqual(missing(text), [])

    def test_a_file_that_is_gone_is_seen(self):
        self.assertEqual(missing("`src/no/such.cpp` `src/plan/plan.h` `src/lint/rules/SUBJECT.cpp` `src/gone/SUBJECT.cpp`"),
                         ["src/no/such.cpp", "src/gone/SUBJECT.cpp"])


if __name__ == "__main__":
    unittest.main()

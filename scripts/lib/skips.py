"""Lists the tests that were skipped and why, from CTest's log: GoogleTest's and unittest's own words for it."""
import re
import sys

TEST = re.compile(r"^\d+/\d+ Test(?:ing)?: (.+)$")
GTEST = re.compile(r"^\S+: Skipped$")
UNITTEST = re.compile(r"^(\w+) \(.*\) \.\.\. skipped ['\"](.+)['\"]$")


def skips(lines):
    """(test, reason) pairs."""
    test, reason_follows = "", False
    for line in lines:
        line = line.rstrip("\n")
        if named := TEST.match(line):
            test, reason_follows = named[1], False
        elif GTEST.match(line):
            reason_follows = True
        elif reason_follows:
            if line.strip():
                yield test, line.strip()
                reason_follows = False
        elif skipped := UNITTEST.match(line):
            yield f"{test}.{skipped[1]}", skipped[2]


def main():
    with open(sys.argv[1], encoding="utf-8", errors="replace") as log:
        found = sorted(set(skips(log)))
    if found:
        print(f"\n{len(found)} skipped:")
    for test, reason in found:
        print(f"  {test}: {reason}")


if __name__ == "__main__":
    main()

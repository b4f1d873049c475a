#!/usr/bin/env python3
"""Plain words: phrases that read like a translation are in no message and in no document; docs/glossary.md has the words to use."""
import pathlib
import re
import unittest

SOURCE = pathlib.Path(__file__).resolve().parent.parent
# Each with what to write in its place.
REFUSED = {
    r"one argument too many": "unexpected argument",
    r"(?<!there )is no (number|level|path|word|file|folder|regular|JSON|run|name|program|value|key|list|map)\b": "is not a ...",
    r"\b(an )?error of (its|nlaunch's) own": "internal error",
    r"everything about it": "run directory",
    r"without a word": "without writing a summary",
    r"is not whole": "truncated",
    r"nobody expands": "is not expanded",
    r"\bwas to (go on|be)\b": "was expected to",
    r"\bsure\? ": "confidence:",
    r"\bget(s|ting)? on\b(?! (the|a|with))": "makes progress",
    r"\bin vain\b": "without success",
    r"there is no such\b": "not found",
    r"\bforsaken\b": "lost its leader",
    r"\bcomes near\b": "is near",
    r"\bat work\b": "active",
    r"\bany more\b": "no longer",
    r"\bends the following\b": "detaches",
    r"\bwhat there is\b": "what is available",
    r"\bthat there (is|are)\b": "available",
    r"\bas it is called in\b": "current",
}
LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')


def messages():
    """(place, text) of each string literal of a program that has a blank in it: one without is a name."""
    for path in sorted((SOURCE / "src").rglob("*")):
        if path.suffix not in {".cpp", ".h", ".c", ".cu"}:
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if line.lstrip().startswith("//"):
                continue
            for text in LITERAL.findall(line):
                if " " in text:
                    yield f"{path.relative_to(SOURCE)}:{number}", text


def prose():
    """(place, text) of each line of the documents that is no code; a blank line separates nothing here."""
    for path in [SOURCE / "README.md", SOURCE / "CONTRIBUTING.md", *sorted((SOURCE / "docs").rglob("*.md"))]:
        if path.name == "measurements.md":
            continue
        code = False
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if line.startswith("```"):
                code = not code
            elif not code:
                yield f"{path.relative_to(SOURCE)}:{number}", line


class Words(unittest.TestCase):
    def check(self, texts):
        found = [f"{place}: '{match[0]}' ({instead}): {text.strip()[:100]}" for place, text in texts for phrase, instead in REFUSED.items()
                 if (match := re.search(phrase, text))]
        self.assertEqual(found, [], "\n".join(found))

    def test_messages(self):
        self.check(messages())

    def test_documents(self):
        self.check(prose())

    def test_documents_can_be_read_in_a_narrow_window(self):
        wide = [f"{place}: {len(text)} characters" for place, text in prose()
                if "/reference/" not in place and len(re.sub(r"\]\([^)]*\)", "]", text)) > 110 and not text.startswith(("|", "![", "<", "    "))]
        self.assertEqual(wide, [], "\n".join(wide))
        cells = [f"{place}: {cell.strip()[:60]}" for place, text in prose() if text.startswith("|") and "/reference/" not in place
                 for cell in re.split(r"(?<!\\)\|", text) if len(re.sub(r"\]\([^)]*\)", "]", cell.strip())) > 104]
        self.assertEqual(cells, [], "\n".join(cells))

    def test_the_readme_is_short(self):
        self.assertLessEqual(len((SOURCE / "README.md").read_text().splitlines()), 70)


if __name__ == "__main__":
    unittest.main()

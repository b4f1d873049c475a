#include "supervise/lines.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace nlaunch::supervise {
namespace {

using namespace std::string_literals;

std::string shown(std::string_view line) {
  std::string out;
  append_shown(out, line);
  return out;
}

TEST(AppendShown, KeepsTextTabsAndUtf8) {
  EXPECT_EQ(shown("loss\t0.5"), "loss\t0.5");
  EXPECT_EQ(shown("grün │ 日本 🚀\tok"), "grün │ 日本 🚀\tok");
}

TEST(AppendShown, ShowsWhatCouldActOnATerminal) {
  EXPECT_EQ(shown("\x1b]0;title\x07"), "\\x1b]0;title\\x07");
  EXPECT_EQ(shown("a\0b\x7f"s), "a\\x00b\\x7f");
  EXPECT_EQ(shown("\xff\xc3("), "\\xff\\xc3(");
  EXPECT_EQ(shown("\xc2\x9b"
                  "31m"),
            "\\xc2\\x9b31m")
      << "CSI in one character";
}

TEST(AppendShown, OfAProgressBarTheLastStateIsShown) {
  EXPECT_EQ(shown(" 10%\r 50%\r100%"), "100%");
  EXPECT_EQ(shown("from Windows\r"), "from Windows");
}

TEST(AppendShown, WhatIsShownDoesNotHangOnTheRestOfTheLine) {
  EXPECT_EQ(shown("a\x7f"), "a\\x7f");
  EXPECT_EQ(shown("a b~\t"), "a b~\t");
  EXPECT_EQ(shown("one\ttwo\x01\tthree\t"), "one\ttwo\\x01\tthree\t");
  EXPECT_EQ(shown("\tgr\xc3\xbcn"), "\tgrün");
  EXPECT_EQ(shown("\x1b[31mred\x1b[0m\tplain"), "red\tplain");
  EXPECT_EQ(shown("\r"), "");
  EXPECT_EQ(shown(" 10%\r"), " 10%");
}

TEST(AppendShown, AppendsToWhatIsThere) {
  std::string out = "> ";
  append_shown(out, "one\t");
  append_shown(out, "\x01");
  EXPECT_EQ(out, "> one\t\\x01");
}

std::vector<std::string> pieces_of(const std::string& text) {
  std::vector<std::string> pieces;
  LineCutter cutter;
  const auto keep = [&](std::string_view line, bool continued) {
    pieces.push_back((continued ? "+" : "") + std::string(line));
  };
  cutter.feed(text, keep);
  cutter.finish(keep);
  return pieces;
}

std::string followed(const std::vector<std::string>& blocks) {
  FollowedLines lines;
  std::string out;
  std::size_t count = 0;
  for (const auto& block : blocks) count += lines.feed(block, out);
  count += lines.finish(out);
  EXPECT_EQ(count, static_cast<std::size_t>(std::ranges::count(out, '\n')));
  return out;
}

TEST(FollowedLines, ShowWhatAProgressBarHasShownSoFar) {
  EXPECT_EQ(followed({"one\n", "tw", "o\n\nthree"}), "one\ntwo\n\nthree\n");
  EXPECT_EQ(followed({"\r 10%", "\r 20%\r 30%", "\r100%", "\ndone\n"}), " 20%\n 30%\n100%\ndone\n");
  EXPECT_EQ(followed({"10%\r", "20%\r", "30%\r", "\n"}), "10%\n20%\n30%\n");
  EXPECT_EQ(followed({"10%\r20%\r100%\nend\n"}), "100%\nend\n");
  EXPECT_EQ(followed({"one\r", "\ntwo\r\n"}), "one\ntwo\n");
}

TEST(FollowedLines, CannotActOnATerminal) {
  EXPECT_EQ(followed({"\x1b[31mred\x1b[0m\x1b[2J\n"}), "red\n");
  EXPECT_EQ(followed({"\x07\n"}), "\\x07\n");
}

TEST(FollowedLines, ALineThatNeverEndsIsNotKept) {
  FollowedLines lines;
  std::string out;
  std::size_t count = 0;
  for (int i = 0; i < 3; ++i) count += lines.feed(std::string(kLongestLine, 'x'), out);
  EXPECT_EQ(count, 2U);
  EXPECT_EQ(out.size(), 2 * (kLongestLine + 1));
}

TEST(LineCutter, APieceHasAsManyWholeCharactersAsItCan) {
  // Of two, three and four bytes; those with 80 within them and those that begin with E0 or F0 are borders.
  for (const std::string character : {"é", "日", "•", "ก", "🚀"}) {
    for (std::size_t shift = 0; shift < 5; ++shift) {
      std::string line(shift, 'x');
      while (line.size() < kLongestLine + 100) line += character;
      const auto whole = shift + (kLongestLine - shift) / character.size() * character.size();
      const auto pieces = pieces_of(line);
      ASSERT_EQ(pieces.size(), 2U);
      EXPECT_EQ(pieces[0], line.substr(0, whole)) << character << " after " << shift;
      EXPECT_EQ(pieces[1], "+" + line.substr(whole)) << character << " after " << shift;
    }
  }
}

TEST(LineCutter, BytesThatAreNoTextAreCutWhereTheyAre) {
  const std::string line(kLongestLine + 10, '\xbf');
  EXPECT_EQ(pieces_of(line).at(0).size(), kLongestLine);
  const auto letter_last = std::string(kLongestLine - 3, 'x') + "é" + "yz";
  EXPECT_EQ(pieces_of(letter_last).at(0).size(), kLongestLine);
}

TEST(LineCutter, ALineOfTheGreatestLengthIsOne) {
  const std::string line(kLongestLine, 'x');
  EXPECT_EQ(pieces_of(line + "\n" + line + "\nend"), (std::vector<std::string>{line, line, "end"}));
  EXPECT_EQ(pieces_of(line + "y\n"), (std::vector<std::string>{line, "+y"}));
}

class Printer : public ::testing::Test {
 protected:
  LinePrinter printer{"a.0", 5, 0, LinePrinter::Style::plain};
  std::string out;
};

TEST_F(Printer, PrintsWholeLinesOnly) {
  EXPECT_EQ(printer.feed("one\ntw", out), 1U);
  EXPECT_EQ(out, "a.0   │ one\n");
  out.clear();
  EXPECT_EQ(printer.feed("o\n\n", out), 2U);
  EXPECT_EQ(out, "a.0   │ two\na.0   │ \n");
}

TEST_F(Printer, PrintsALastLineWithoutEnd) {
  printer.feed("no end", out);
  EXPECT_EQ(out, "");
  EXPECT_EQ(printer.finish(out), 1U);
  EXPECT_EQ(out, "a.0   │ no end\n");
  EXPECT_EQ(printer.finish(out), 0U);
}

TEST_F(Printer, ALongLineComesInMarkedPieces) {
  const std::string line(2 * kLongestLine + 10, 'x');
  EXPECT_EQ(printer.feed(line + "\nnext\n", out), 4U);
  const auto full = std::string(kLongestLine, 'x');
  EXPECT_EQ(out, "a.0   │ " + full + "\na.0   ┆ " + full + "\na.0   ┆ xxxxxxxxxx\na.0   │ next\n");
}

TEST_F(Printer, APieceDoesNotEndWithinACharacter) {
  for (std::size_t shift = 0; shift < 4; ++shift) {
    std::string line(shift, 'x');
    while (line.size() < kLongestLine + 100) line += "🚀";
    out.clear();
    printer.feed(line + "\n", out);
    EXPECT_EQ(out.find("\\x"), std::string::npos) << "shift " << shift;
  }
}

TEST_F(Printer, TheSameBytesInAnyBlocksGiveTheSameLines) {
  std::string text;
  for (int i = 0; i < 50; ++i) text += std::string(static_cast<std::size_t>(i * 7919 % 20000), 'a') + "ü\n";
  std::string whole;
  LinePrinter("a.0", 5, 0, LinePrinter::Style::plain).feed(text, whole);
  for (const std::size_t block : {1U, 7U, 4096U, 70000U}) {
    LinePrinter again("a.0", 5, 0, LinePrinter::Style::plain);
    std::string pieces;
    for (std::size_t at = 0; at < text.size(); at += block)
      again.feed(std::string_view(text).substr(at, block), pieces);
    EXPECT_EQ(pieces, whole) << "blocks of " << block;
  }
}

TEST_F(Printer, TheEndOfALongLineIsMarkedToo) {
  const std::string line(kLongestLine, 'x');
  EXPECT_EQ(printer.feed(line + "rest", out), 1U);
  EXPECT_EQ(out, "a.0   │ " + line + "\n");
  out = "before\n";
  EXPECT_EQ(printer.finish(out), 1U);
  EXPECT_EQ(out, "before\na.0   ┆ rest\n");
  out.clear();
  printer.feed("next\n", out);
  EXPECT_EQ(out, "a.0   │ next\n");
}

TEST(LinePrinter, EachProcessHasTheNextColourAndTheEleventhTheFirst) {
  const int colours[] = {36, 33, 32, 35, 34, 96, 93, 92, 95, 94, 36, 33};
  for (std::size_t hue = 0; hue < std::size(colours); ++hue) {
    std::string out;
    LinePrinter("a.0", 5, hue, LinePrinter::Style::coloured).feed("text\n", out);
    EXPECT_EQ(out, "\x1b[" + std::to_string(colours[hue]) + "ma.0   │\x1b[0m text\n");
  }
}

TEST(LinePrinter, ColoursThePrefixAlone) {
  LinePrinter printer("a.0", 3, 1, LinePrinter::Style::coloured);
  std::string out;
  printer.feed("text\n", out);
  EXPECT_EQ(out, "\x1b[33ma.0 │\x1b[0m text\n");
}

}  // namespace
}  // namespace nlaunch::supervise

#include "supervise/lines.h"

#include <gtest/gtest.h>

#include <string>

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

TEST(LinePrinter, ColoursThePrefixAlone) {
  LinePrinter printer("a.0", 3, 1, LinePrinter::Style::coloured);
  std::string out;
  printer.feed("text\n", out);
  EXPECT_EQ(out, "\x1b[33ma.0 │\x1b[0m text\n");
}

}  // namespace
}  // namespace nlaunch::supervise

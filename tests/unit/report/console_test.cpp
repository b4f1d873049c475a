#include "report/console.h"

#include <gtest/gtest.h>

namespace nlaunch::report {
namespace {

class ConsoleTest : public testing::Test {
 protected:
  std::string shown(std::string_view text, bool colours) {
    written_.clear();
    console_.result_paint = console_.paint = Paint(colours);
    console_.result(text);
    const auto result = std::exchange(written_, "");
    console_.say(text);
    EXPECT_EQ(result, written_);
    return written_;
  }

  std::string written_;
  Console console_{[this](std::string_view text) { written_ += text; },
                   [this](std::string_view text) { written_ += text; }};
};

TEST_F(ConsoleTest, ShowsWhatWouldActOnATerminal) {
  EXPECT_EQ(shown("a\tb\nlearner.0 │ ü\n", false), "a\tb\nlearner.0 │ ü\n");
  EXPECT_EQ(shown("\x1b[2J\x1b]0;t\a\r\xc2\x9b|\x7f|\xff\n", false),
            "\\x1b[2J\\x1b]0;t\\x07\\x0d\\xc2\\x9b|\\x7f|\\xff\n");
  EXPECT_EQ(shown("\x1b", true), "\\x1b");
}

TEST_F(ConsoleTest, ColoursPassWhereTheyAreOn) {
  const auto red = Paint(true).red("no");
  EXPECT_EQ(shown(red + "\x1b[2Jm\x1b[31", true), red + "\\x1b[2Jm\\x1b[31");
  EXPECT_EQ(shown("\x1b[31mno", false), "\\x1b[31mno");
}

TEST_F(ConsoleTest, ADocumentIsWrittenAsItIs) {
  console_.document("\x1b[2J\r\n\xff");
  EXPECT_EQ(written_, "\x1b[2J\r\n\xff");
}

}  // namespace
}  // namespace nlaunch::report

#include "base/text.h"

#include <gtest/gtest.h>

namespace nlaunch::text {
namespace {

TEST(Text, PrintableShowsWhatCouldActOnATerminal) {
  EXPECT_EQ(printable("a\x1b[31mé\n\t\x7f"), "a\\x1b[31mé\\n\\t\\x7f");
  EXPECT_EQ(printable("\xc2\x9b"
                      "2J \xff"),
            "\\xc2\\x9b2J \\xff");
}

TEST(Text, WithoutEscapesHasNoColours) {
  EXPECT_EQ(without_escapes("\x1b[36m(raylet)\x1b[0m died\x1b[1;31m!\x1b[A"), "(raylet) died!");
  EXPECT_EQ(without_escapes("plain [36m"), "plain [36m");
  EXPECT_EQ(without_escapes("cut off \x1b[3"), "cut off \x1b[3") << "no sequence: it is shown as it is";
  EXPECT_EQ(without_escapes("\x1b[\x1b[0mx"), "\x1b[x");
}

TEST(Text, InvalidUtf8IsFoundAtItsFirstByte) {
  EXPECT_EQ(first_invalid_utf8("grün €𝄞"), std::nullopt);
  EXPECT_EQ(first_invalid_utf8("ab\xff"), 2U);
  EXPECT_EQ(first_invalid_utf8("\xc0\x80"), 0U);          // overlong
  EXPECT_EQ(first_invalid_utf8("x\xed\xa0\x80"), 1U);     // a surrogate
  EXPECT_EQ(first_invalid_utf8("\xe2\x82"), 0U);          // cut off
  EXPECT_EQ(first_invalid_utf8("\xf4\x90\x80\x80"), 0U);  // past U+10FFFF
}

TEST(Text, ANumberIsAllOfItsText) {
  EXPECT_EQ(whole_number<unsigned>("0042"), 42U);
  EXPECT_EQ(whole_number<std::int64_t>("-1"), -1);
  EXPECT_EQ(whole_number<unsigned>(""), std::nullopt);
  EXPECT_EQ(whole_number<unsigned>("-1"), std::nullopt);
  EXPECT_EQ(whole_number<unsigned>("4 "), std::nullopt);
  EXPECT_EQ(whole_number<std::uint8_t>("256"), std::nullopt);
}

TEST(Text, NearestNeedsToBeNear) {
  const std::vector<std::string> keys{"gpus", "command", "per_node"};
  EXPECT_EQ(nearest("gpu", keys), "gpus");
  EXPECT_EQ(nearest("comand", keys), "command");
  EXPECT_EQ(nearest("gpsu", std::vector<std::string>{"gpus"}), "gpus");
  EXPECT_EQ(nearest("rnu", std::vector<std::string>{"run"}), "run");
  EXPECT_EQ(nearest("Per_Nodes", keys), "per_node");
  EXPECT_EQ(nearest("zzz", keys), std::nullopt);
  EXPECT_EQ(nearest(std::string(100000, 'x'), keys), std::nullopt);
}

TEST(Text, ShellQuotingLeavesNothingToTheShell) {
  EXPECT_EQ(shell_quote("plain-1.0/x"), "plain-1.0/x");
  EXPECT_EQ(shell_quote(""), "''");
  EXPECT_EQ(shell_quote("a b$(c)'d'"), "'a b$(c)'\\''d'\\'''");
  EXPECT_EQ(shell_quote("Müller"), "'Müller'");
  EXPECT_EQ(shell_quote("it's\ntwo \\ lines\xff"), R"($'it\'s\012two \\ lines\377')");
}

TEST(Text, SplitKeepsEmptyParts) {
  EXPECT_EQ(split("a,,b", ','), (std::vector<std::string>{"a", "", "b"}));
  EXPECT_EQ(split("", ','), (std::vector<std::string>{""}));
}

TEST(Text, CountsHavePlurals) {
  EXPECT_EQ(count(1, "GPU"), "1 GPU");
  EXPECT_EQ(count(0, "GPU"), "0 GPUs");
  EXPECT_EQ(count(2, "process"), "2 processes");
}

}  // namespace
}  // namespace nlaunch::text

#include "shell/trace.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include "base/text.h"

namespace nlaunch::shell {
namespace {

/// A line as bash writes it.
std::string told(int pid, std::string_view script, int line, std::string_view command) {
  return fmt::format("+\x01{}\x01{}\x01{}\x01{}\n", pid, script, line, command);
}

std::string assigned(const Trace& trace) {
  std::vector<std::string> all;
  for (const auto& one : trace.assignments())
    all.push_back(fmt::format("{}={} {}:{}", one.name, one.value, one.script, one.line));
  return text::join(all, "|");
}

TEST(Trace, KnowsWhereAShellIs) {
  Trace trace;
  trace.read(told(7, "a.sh", 3, "ls") + told(8, "b.sh", 4, "cat x") + told(7, "a.sh", 5, "source y"), "/own");
  ASSERT_NE(trace.place_of(7), nullptr);
  EXPECT_EQ(trace.place_of(7)->line, 5U);
  EXPECT_EQ(trace.place_of(7)->command, "source y");
  EXPECT_EQ(trace.place_of(8)->script, "b.sh");
  EXPECT_EQ(trace.place_of(9), nullptr);
}

TEST(Trace, ATrapForTheExitIsBehindTheScript) {
  const auto last = [](const std::vector<TracedCommand>& commands) {
    const auto* one = last_of_script(commands, 7);
    return one == nullptr ? "none" : fmt::format("{}: {}", one->line, one->text);
  };
  const TracedCommand first{7, "a.sh", 2, 0, "trap 'kill -- -7; exit' SIGTERM EXIT"};
  const TracedCommand wait{7, "a.sh", 9, 0, "wait 8 9"};
  const TracedCommand kill{7, "a.sh", 1, 0, "kill -- -7"};
  EXPECT_EQ(last({first, wait, {8, "a.sh", 12, 0, "b"}, kill}), "9: wait 8 9");
  EXPECT_EQ(last({first, wait}), "9: wait 8 9");
  EXPECT_EQ(last({wait, kill}), "1: kill -- -7");
  EXPECT_EQ(last({first, wait, {7, "a.sh", 10, 0, "trap - EXIT"}, kill}), "1: kill -- -7");
  EXPECT_EQ(last({{7, "a.sh", 3, 0, "trap cleanup EXIT"},
                  wait,
                  {7, "a.sh", 1, 0, "cleanup"},
                  {7, "a.sh", 4, 0, "rm x"}}),
            "9: wait 8 9");
  EXPECT_EQ(last({}), "none");
}

TEST(Trace, ReadsLinesThatComeInPieces) {
  Trace trace;
  const auto line = told(7, "a.sh", 3, "A=1");
  trace.read(line.substr(0, 9), "/own");
  EXPECT_EQ(assigned(trace), "");
  trace.read(line.substr(9), "/own");
  EXPECT_EQ(assigned(trace), "A=1 a.sh:3");
}

TEST(Trace, LeavesOutWhatIsOfTheRecorder) {
  Trace trace;
  trace.read(told(7, "/own/start.sh", 3, "A=1"), "/own");
  EXPECT_EQ(trace.place_of(7), nullptr);
  EXPECT_EQ(assigned(trace), "");
}

TEST(Trace, KnowsAssignmentsInEachOfTheirForms) {
  Trace trace;
  trace.read(told(7, "a.sh", 1, "A=1") + told(7, "a.sh", 2, "export B=2") +
                 told(7, "a.sh", 3, "export 'C=a b'") + told(7, "a.sh", 4, "D='a b'") +
                 told(7, "a.sh", 5, "E+=x") + told(7, "a.sh", 6, "readonly F=") +
                 told(7, "a.sh", 7, "ls A=1") + told(7, "a.sh", 8, "[[ a == b ]]") +
                 told(7, "a.sh", 9, "G='it'\\''s'"),
             "/own");
  EXPECT_EQ(assigned(trace),
            "A=1 a.sh:1|B=2 a.sh:2|C=a b a.sh:3|D=a b a.sh:4|E=x a.sh:5|F= a.sh:6|G=it's a.sh:9");
}

TEST(Trace, AValueMayHaveLines) {
  Trace trace;
  trace.read(told(7, "a.sh", 1, "A='one\ntwo\n\nthree'") + told(7, "a.sh", 5, "ls"), "/own");
  EXPECT_EQ(assigned(trace), "A=one\ntwo\n\nthree a.sh:1");
}

TEST(Trace, WhatIsNoLineOfBashIsNone) {
  Trace trace;
  trace.read(
      "hello\n+\x01x\x01y\n+\x01"
      "1\x01"
      "2\n\x01\x01\x01\x01\n",
      "/own");
  EXPECT_EQ(assigned(trace), "");
}

TEST(Trace, KeepsTheCommandsInTheirOrder) {
  Trace trace;
  trace.read(told(7, "a.sh", 1, "A='one\ntwo'") + told(8, "", 2, "ls -l") + told(7, "/own/x", 3, "hidden") +
                 told(7, "a.sh", 4, "cat x"),
             "/own");
  std::vector<std::string> all;
  for (const auto& one : trace.commands())
    all.push_back(fmt::format("{} {}:{} {}", one.shell, one.script, one.line, one.text));
  EXPECT_EQ(all, (std::vector<std::string>{"7 a.sh:1 A='one\ntwo'", "8 :2 ls -l", "7 a.sh:4 cat x"}));
}

TEST(Trace, WordsLoseTheirQuotes) {
  using Words = std::vector<std::string>;
  EXPECT_EQ(words_of("export 'A=a b' B='it'\\''s'  C="), (Words{"export", "A=a b", "B=it's", "C="}));
  EXPECT_EQ(words_of("x '' a\\ b $'one\\ntwo\\303\\244'"), (Words{"x", "", "a b", "one\ntwo\303\244"}));
  EXPECT_EQ(words_of("x 'open"), (Words{"x", "open"}));
  EXPECT_EQ(words_of(""), Words{});
}

}  // namespace
}  // namespace nlaunch::shell

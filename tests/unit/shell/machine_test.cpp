#include "shell/machine.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include "base/text.h"

namespace nlaunch::shell {
namespace {

/// Commands "LINE WORD...", each with the variable A of `value`.
Recording recording(const std::vector<std::string>& commands, const std::string& value = "") {
  Recording all;
  std::uint32_t line = 0;
  for (const auto& command : commands) {
    RecordedCommand one;
    one.argv = text::split(command, ' ');
    one.environment = {"A=" + value};
    one.line = ++line;
    all.commands.push_back(std::move(one));
  }
  return all;
}

std::string decided(const Recording& one, const Recording& again, const Recording& other) {
  std::vector<std::string> all;
  for (const auto& decision : decided_by_machine(one, again, other))
    all.push_back(fmt::format("{}: {}", decision.line, decision.name));
  return text::join(all, "|");
}

TEST(Machine, WhatDependsOnItIsNamed) {
  const auto one = recording({"a 1", "b 2"});
  EXPECT_EQ(decided(one, one, one), "");
  EXPECT_EQ(decided(one, one, recording({"a 1", "b 3"})), "2: 2");
  EXPECT_EQ(decided(one, one, recording({"a 1"})), "2: b 2");
  EXPECT_EQ(decided(one, one, recording({"a 1", "b 2", "c"})), "3: c");
  EXPECT_EQ(decided(one, one, recording({"a 1", "b 2 3"})), "2: b 2");
  EXPECT_EQ(decided(recording({"a"}, "x\n y: 1\nz"), recording({"a"}, "x\n y: 1\nz"),
                    recording({"a"}, "x\n y: 2\nz")),
            "1: y: 1");
}

TEST(Machine, WhatIsAnotherEachTimeDoesNotDependOnIt) {
  EXPECT_EQ(decided(recording({"a 1"}), recording({"a 2"}), recording({"a 3"})), "");
  EXPECT_EQ(decided(recording({"a"}), recording({"a", "b"}), recording({"c"})), "");
}

}  // namespace
}  // namespace nlaunch::shell

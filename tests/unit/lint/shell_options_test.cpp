#include "lint/shell_options.h"

#include <gtest/gtest.h>

#include "unit/lint/support.h"

namespace nlaunch::lint {
namespace {

ScriptCommand command(int shell, std::vector<std::string> words) {
  ScriptCommand out;
  out.words = std::move(words);
  out.shell = shell;
  return out;
}

TEST(OptionByShell, AShellBeginsWithTheStateOfTheOneAboveIt) {
  Script script;
  script.shells_above = {{2, 1}, {3, 2}, {4, 1}};
  OptionByShell pipefail(script, kPipefail);
  EXPECT_FALSE(pipefail.after(command(1, {"python"})));
  EXPECT_TRUE(pipefail.after(command(2, {"set", "-o", "pipefail"})));
  EXPECT_TRUE(pipefail.after(command(3, {"python"})));
  EXPECT_FALSE(pipefail.after(command(1, {"python"})));
  EXPECT_FALSE(pipefail.after(command(4, {"python"})));
  EXPECT_TRUE(pipefail.after(command(1, {"set", "-euo", "pipefail"})));
  EXPECT_FALSE(pipefail.after(command(4, {"python"})));  // it has begun before
  EXPECT_FALSE(pipefail.after(command(2, {"set", "+o", "pipefail"})));
  EXPECT_TRUE(pipefail.after(command(1, {"python"})));
}

TEST(OptionByShell, TheFirstLineMayTurnItOn) {
  Script script;
  SourceSpan first;
  first.line = 1;
  script.comments = {{"#!/bin/bash -e", first}};
  OptionByShell errexit(script, kErrexit);
  EXPECT_TRUE(errexit.after(command(1, {"python"})));
  EXPECT_FALSE(errexit.after(command(1, {"set", "+e"})));
}

TEST(ExitTrap, OneThatCatchesAnyFailure) {
  const auto has = [](std::vector<std::string> words) {
    Script script;
    script.commands = {command(1, std::move(words))};
    return has_exit_trap(script);
  };
  EXPECT_TRUE(has({"trap", "rm x", "EXIT"}));
  EXPECT_TRUE(has({"trap", "rm x", "TERM", "ERR"}));
  EXPECT_FALSE(has({"trap", "-", "EXIT"}));
  EXPECT_FALSE(has({"trap", "EXIT", "TERM"}));
  EXPECT_FALSE(has({"trap", "rm x", "TERM"}));
}

}  // namespace
}  // namespace nlaunch::lint

#include "import/values.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "import/arithmetic.h"

namespace nlaunch::import {
namespace {

/// What the words of the last command come to, after the assignments before it: `<head>`, `<shell text>` for
/// what is no text.
std::string words_of(const std::string& text) {
  const auto script = script_of(text);
  Values values;
  values.set_number("SLURM_NNODES", 2);
  std::vector<std::string> all;
  for (const auto& command : script.commands) {
    if (command.nested) continue;
    for (const auto& one : command.assignments) values.assign(one, command.sure, one.span.line);
    if (&command != &script.commands.back()) continue;
    for (const auto& word : command.words) {
      for (const auto& value : values.split(word)) {
        std::string shown;
        for (const auto& piece : value.pieces) {
          shown += piece.kind == Piece::Kind::text   ? piece.text
                   : piece.kind == Piece::Kind::head ? "<head>"
                                                     : "<" + piece.text + ">";
        }
        all.push_back(shown);
      }
    }
  }
  return text::join(all, "|");
}

TEST(ImportValues, VariablesAreFollowed) {
  EXPECT_EQ(words_of("A=1\nB=\"$A 2\"\nx \"$B\" $B '$B' ${B}3\n"), "x|1 2|1|2|$B|1|23");
  EXPECT_EQ(words_of("A=(1 '2 3')\nA+=(4)\nx \"${A[@]}\" \"$@\" ${A[0]}\n"), "x|1|2 3|4|1");
  EXPECT_EQ(words_of("if y; then A=1; else A=2; fi\nx $A\n"), "x|1");
}

TEST(ImportValues, WhatTheCallerHas) {
  EXPECT_EQ(words_of("x $HOME $FOO ${FOO:-a} ${FOO:?no} ~/b \"~\" $SLURM_JOB_ID\n"),
            "x|${env.HOME}|${env.FOO:-}|${env.FOO:-a}|${env.FOO}|${env.HOME}/b|~|${run.id}");
  EXPECT_EQ(words_of("C=${1:-d}\nx $C $2 '${no}'\n"), "x|${vars.C}|${vars.argument2}|$${no}");
}

TEST(ImportValues, WhatOnlyTheNodeHas) {
  EXPECT_EQ(words_of("H=$(scontrol show hostnames $L | head -n1)\nI=$(getent hosts $H | cut -f1)\nx $H $I:1 "
                     "$(hostname) $MASTER_ADDR $(y)\n"),
            "x|<head>|<head>:1|${self.host}|<$MASTER_ADDR>|<$(y)>");
  EXPECT_EQ(words_of("x $(ls -td /m/*/final | head -n 1) $(realpath a/b) $((SLURM_NNODES * 4 - 1)) "
                     "$((SLURM_JOB_ID % 7))\n"),
            "x|${newest:/m/*/final}|a/b|7|<$((SLURM_JOB_ID % 7))>");
}

TEST(ImportValues, ValuesThatGrowWithoutEndAreGivenUp) {
  std::string text = "A=x\n";
  for (int i = 0; i < 100; ++i) text += "A=\"$A$A$(y)\"\n";
  EXPECT_LT(words_of(text + "x $A\n").size(), 100'000);
}

TEST(Arithmetic, SumsAndProducts) {
  const auto value = [](std::string_view text) {
    return arithmetic(
        text, [](const std::string& name) { return name == "n" ? std::optional<long>(3) : std::nullopt; });
  };
  EXPECT_EQ(value("1 + 2 * $n"), 7);
  EXPECT_EQ(value("${n} * n / 2"), 4);
  for (const auto* text : {"", "1 +", "1 / 0", "(1)", "m", "99999999999999999999", "1000000000 * 1000000000"})
    EXPECT_EQ(value(text), std::nullopt) << text;
}

}  // namespace
}  // namespace nlaunch::import

#include "lint/script_arguments.h"

#include <gtest/gtest.h>

#include "unit/lint/support.h"

namespace nlaunch::lint {
namespace {

using namespace support;

TEST(ScriptArguments, NamesOfVariables) {
  for (const auto* name : {"a", "z", "A", "Z", "_", "A1", "a_0", "Z9"})
    EXPECT_TRUE(is_variable_name(name)) << name;
  for (const auto* name : {"", "1A", "0", "9", "A-B", "A B", "A.", "A`", "A{", "A@", "A[", "A/", "A:"}) {
    EXPECT_FALSE(is_variable_name(name)) << name;
  }
}

TEST(ScriptArguments, WordsArePartedAtBlanks) {
  EXPECT_EQ(split_words(" a  b\tc\nd "), (Texts{"a", "b", "c", "d"}));
  EXPECT_EQ(split_words(""), Texts{});
}

TEST(ScriptArguments, NamesWithinAContainer) {
  EXPECT_EQ(name_in_container("APPTAINERENV_NCCL_A"), "NCCL_A");
  EXPECT_EQ(name_in_container("SINGULARITYENV_A"), "A");
  for (const auto* name : {"APPTAINERENV_", "APPTAINERENV_1", "APPTAINER_A", "A", "XAPPTAINERENV_A"}) {
    EXPECT_EQ(name_in_container(name), std::nullopt) << name;
  }
}

/// Where a name stands that is looked for from a place on.
std::string place(const std::string& text, std::string_view name, std::uint32_t line, std::uint32_t column) {
  const auto file = a_file("a.sh", text);
  return place_of(name, line, column, {file, 99, 7, 1}).where();
}

TEST(ScriptArguments, ANameIsFoundAtItsPlaceOrSoonBehindIt) {
  EXPECT_EQ(place("A B A\n", "A", 1, 1), "a.sh:1:1");
  EXPECT_EQ(place("A B A\n", "A", 1, 0), "a.sh:1:1");
  EXPECT_EQ(place("A B A\n", "A", 1, 2), "a.sh:1:5");
  EXPECT_EQ(place("A B A C\n", "A", 1, 5), "a.sh:1:5");
  EXPECT_EQ(place("A B A C\n", "A", 1, 6), "a.sh:1:5");
  EXPECT_EQ(place("x\n\nA A\n", "A", 1, 3), "a.sh:3:1");
  EXPECT_EQ(place("é A\n", "A", 1, 1), "a.sh:1:3");
  EXPECT_EQ(place("B\n", "A", 1, 1), "a.sh:99:7");
}

TEST(ScriptArguments, OnlyAWholeWordIsTheName) {
  EXPECT_EQ(place("AB BA _A A_ A1 1A aA zA 0A A9 A\n", "A", 1, 1), "a.sh:1:31");
  EXPECT_EQ(place("-A\n", "A", 1, 1), "a.sh:1:2");
  EXPECT_EQ(place("A=\n", "A", 1, 1), "a.sh:1:1");
}

TEST(ScriptArguments, ItIsLookedForInAFewLines) {
  EXPECT_EQ(place(std::string(63, '\n') + "A\n", "A", 1, 1), "a.sh:64:1");
  EXPECT_EQ(place(std::string(64, '\n') + "A\n", "A", 1, 1), "a.sh:99:7");
  EXPECT_EQ(place_of("AB", 1, 1, {a_file("a.sh", "AB"), 9, 9, 1}).length, 2U);
}

TEST(ScriptArguments, ScriptsOfShells) {
  for (const std::string shell : {"bash", "/bin/sh", "dash", "zsh", "ksh"}) {
    EXPECT_EQ(script(shell + " -c 'export A=1'\n").environments[0].settings.size(), 1U) << shell;
  }
  for (const std::string before : {"bash -e -c", "bash -lc", "bash --login -c", "bash -o pipefail -c",
                                   "bash -eo pipefail -c", "srun -n 2 bash -c", "env A=b bash -c"}) {
    EXPECT_EQ(script(before + " 'export NCCL_A=1'\n").environments[0].find("NCCL_A") != nullptr, true)
        << before;
  }
  for (const std::string before :
       {"bash", "bash -e", "bash x -c", "bash - -c", "fish -c", "bash -l --norc", "bash pipefail -c"}) {
    EXPECT_EQ(script(before + " 'export NCCL_A=1'\n").environments[0].find("NCCL_A"), nullptr) << before;
  }
  EXPECT_TRUE(script("bash -c\n").environments[0].settings.empty());
}

}  // namespace
}  // namespace nlaunch::lint

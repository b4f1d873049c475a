#include "lint/values.h"

#include <gtest/gtest.h>

namespace nlaunch::lint {
namespace {

/// "8", "8 octal", "8, and more", as it was read.
std::string number(std::string_view text) {
  const auto read = read_number(text);
  return std::to_string(read.value) + (read.octal ? " octal" : "") + (read.whole ? "" : ", and more");
}

TEST(Values, NumbersAreReadAsCDoesInBaseZero) {
  EXPECT_EQ(number("12"), "12");
  EXPECT_EQ(number("-2"), "-2");
  EXPECT_EQ(number(" 12"), "12");
  EXPECT_EQ(number("0"), "0");
  EXPECT_EQ(number("0x10"), "16");
  EXPECT_EQ(number("0X1f"), "31");
  EXPECT_EQ(number("010"), "8 octal");
  EXPECT_EQ(number(" 010"), "8 octal");
  EXPECT_EQ(number("01"), "1 octal");
  EXPECT_EQ(number("00"), "0 octal");
}

TEST(Values, WhatStandsBehindANumberMakesItNotWhole) {
  EXPECT_EQ(number("8M"), "8, and more");
  EXPECT_EQ(number("12 "), "12, and more");
  EXPECT_EQ(number("010x"), "8, and more");
  EXPECT_EQ(number("true"), "0, and more");
  EXPECT_EQ(number(""), "0, and more");
}

/// "10", "10, and more", or "none" where std::stoi throws.
std::string decimal(std::string_view text) {
  const auto read = read_decimal(text);
  if (!read.digits) return read.whole ? "whole without digits" : "none";
  return std::to_string(read.value) + (read.whole ? "" : ", and more");
}

TEST(Values, DecimalsAreReadAsStoiDoes) {
  EXPECT_EQ(decimal("10"), "10");
  EXPECT_EQ(decimal("010"), "10");
  EXPECT_EQ(decimal(" 10"), "10");
  EXPECT_EQ(decimal("10 "), "10");
  EXPECT_EQ(decimal("10m"), "10, and more");
  EXPECT_EQ(decimal("1a"), "1, and more");
  EXPECT_EQ(decimal("0x10"), "0, and more");
  EXPECT_EQ(decimal("m10"), "none");
  EXPECT_EQ(decimal(""), "none");
}

TEST(Values, ADecimalHasToFitAnInt) {
  EXPECT_EQ(decimal("2147483647"), "2147483647");
  EXPECT_EQ(decimal("2147483648"), "none");
  EXPECT_EQ(decimal("-2147483648"), "-2147483648");
  EXPECT_EQ(decimal("-2147483649"), "none");
}

TEST(Values, WordsAreFoundInAnyCase) {
  EXPECT_TRUE(is_word("yes", {"true", "yes"}));
  EXPECT_TRUE(is_word("TRUE", {"true", "yes"}));
  EXPECT_FALSE(is_word("ye", {"true", "yes"}));
  EXPECT_FALSE(is_word("", {"true", "yes"}));
}

TEST(Values, ListsHaveCommasAndOneSignInFront) {
  EXPECT_EQ(read_list("a,b").words, (std::vector<std::string>{"a", "b"}));
  EXPECT_FALSE(read_list("a,b").inverted);
  EXPECT_EQ(read_list("^a,,^b").words, (std::vector<std::string>{"a", "^b"}));
  EXPECT_TRUE(read_list("^a,,^b").inverted);
  EXPECT_TRUE(read_list("").words.empty());
  EXPECT_TRUE(read_list("^").words.empty());
  EXPECT_TRUE(read_list("^").inverted);
}

Variable levels() {
  Variable variable;
  variable.values = {{"LOC", std::nullopt}, {"C2C", Version{{2, 26, 2}}}, {"SYS", std::nullopt}};
  return variable;
}

TEST(Values, AValueIsFoundInTheCaseThatItsOwnerTakes) {
  auto variable = levels();
  ASSERT_NE(find_value(variable, "c2c"), nullptr);
  EXPECT_EQ(find_value(variable, "c2c")->value, "C2C");
  EXPECT_EQ(find_value(variable, "C2"), nullptr);
  variable.any_case = false;
  EXPECT_EQ(find_value(variable, "c2c"), nullptr);
  EXPECT_EQ(find_value(variable, "C2C")->value, "C2C");
}

TEST(Values, ShownAreThoseOfTheRelease) {
  auto variable = levels();
  EXPECT_EQ(shown_values(variable, nullptr), "LOC, C2C or SYS");
  const Version before{{2, 26, 1}};
  const Version since{{2, 26, 2}};
  EXPECT_EQ(shown_values(variable, &before), "LOC or SYS");
  EXPECT_EQ(shown_values(variable, &since), "LOC, C2C or SYS");
  variable.values.resize(1);
  EXPECT_EQ(shown_values(variable, nullptr), "LOC");
  variable.values.clear();
  EXPECT_EQ(shown_values(variable, nullptr), "");
}

TEST(Values, AProtocolIsForcedWhereAListNamesIt) {
  for (const auto* list : {"LL128", "ll128", "LL,LL128", "^LL;allreduce:LL128", "allreduce:ll128"}) {
    EXPECT_TRUE(forces(list, "LL128")) << list;
  }
  for (const auto* list : {"", "LL", "^LL128", "Simple,LL", "allreduce:^LL128", "^LL128;allreduce:LL"}) {
    EXPECT_FALSE(forces(list, "LL128")) << list;
  }
  EXPECT_TRUE(forces("LL128", "ll128"));
}

TEST(Values, AProtocolIsLeftOutWhereNoFunctionKeepsIt) {
  for (const auto* list : {"^LL128", "^ll128,LL", "Simple", "LL,Simple", "^LL128;allreduce:Simple"}) {
    EXPECT_TRUE(excludes(list, "LL128")) << list;
  }
  for (const auto* list :
       {"", "LL128", "Simple,LL128", "^LL", "^LL128;allreduce:LL128", "allreduce:^LL128"}) {
    EXPECT_FALSE(excludes(list, "LL128")) << list;
  }
  EXPECT_TRUE(excludes("^LL128", "ll128"));
}

}  // namespace
}  // namespace nlaunch::lint

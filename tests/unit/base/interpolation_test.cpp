#include "base/interpolation.h"

#include <gtest/gtest.h>

namespace nlaunch {
namespace {

Lookup names(std::string_view name) {
  if (name == "a") return std::string("A");
  if (name == "tricky") return std::string("${a}");
  if (name == "later") return Keep{};
  if (name == "var") return Expanded{"${later}/$${a}"};
  return Unknown{"no " + std::string(name), name != "misspelt"};
}

TEST(Interpolation, PutsInWhatIsKnownAndKeepsWhatComesLater) {
  EXPECT_EQ(expand("x${a}y${later}z", names, Pass::middle), "xAy${later}z");
  EXPECT_EQ(expand("$a $ $$", names, Pass::last), "$a $ $$");
}

TEST(Interpolation, DefaultsStandInAndMayNest) {
  EXPECT_EQ(expand("${none:-d}", names, Pass::last), "d");
  EXPECT_EQ(expand("${none:-${nor:-${a}}}", names, Pass::last), "A");
  EXPECT_EQ(expand("${a:-d}", names, Pass::last), "A");
  EXPECT_EQ(expand("${none:-}", names, Pass::last), "");
}

TEST(Interpolation, ADefaultDoesNotHideANameThatIsWrong) {
  const auto wrong = expand("${misspelt:-d}", names, Pass::last);
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().message, "no misspelt");
}

TEST(Interpolation, AnEscapeSurvivesUntilTheLastPass) {
  EXPECT_EQ(expand("$${a}", names, Pass::middle), "$${a}");
  EXPECT_EQ(expand("$${a}", names, Pass::last), "${a}");
}

TEST(Interpolation, AValueIsTextInEveryPass) {
  const auto middle = expand("${tricky}", names, Pass::middle);
  EXPECT_EQ(middle, "$${a}");
  EXPECT_EQ(expand(*middle, names, Pass::last), "${a}");
}

TEST(Interpolation, ATextThatWasExpandedKeepsItsReferencesForLater) {
  const auto middle = expand("${var} ${a}", names, Pass::middle);
  EXPECT_EQ(middle, "${later}/$${a} A");
}

TEST(Interpolation, MistakesHaveTheirPlace) {
  const auto unknown = expand("ab ${none}", names, Pass::last);
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().message, "no none");
  EXPECT_EQ(unknown.error().offset, 3U);
  EXPECT_EQ(unknown.error().length, 7U);
  EXPECT_EQ(expand("x${a", names, Pass::last).error().message, "'${' has no closing '}'");
  EXPECT_EQ(expand("${}", names, Pass::last).error().message, "'${}' is empty");
}

TEST(Interpolation, ReferencesInDefaultsAreReferences) {
  const auto found = references("${x:-${y}} ${z}");
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[1].name, "y");
  EXPECT_EQ(found[1].offset, 5U);
}

}  // namespace
}  // namespace nlaunch

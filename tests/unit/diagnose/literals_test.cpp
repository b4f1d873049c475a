#include "diagnose/literals.h"

#include <gtest/gtest.h>

namespace nlaunch::diagnose {
namespace {

using Literals = std::vector<std::string>;

TEST(RequiredLiterals, AreTheLongestRunOfTextInLowerCase) {
  EXPECT_EQ(required_literals("NCCL WARN (.*)"), Literals{"nccl warn "});
  EXPECT_EQ(required_literals(R"(task (\d+): Exited with exit code \d+)"),
            Literals{": exited with exit code "});
  EXPECT_EQ(required_literals(R"(a\.b\[c\]\(d\))"), Literals{"a.b[c](d)"});
}

TEST(RequiredLiterals, AreOneOfEachAlternative) {
  EXPECT_EQ(required_literals("first text|second text"), (Literals{"first text", "second text"}));
  EXPECT_EQ(required_literals("x(?:alpha|beta)y and more"), Literals{"y and more"});
}

TEST(RequiredLiterals, OfALetterInEitherCaseAreThatLetter) {
  EXPECT_EQ(required_literals("[Aa]ddress already in use"), Literals{"address already in use"});
}

TEST(RequiredLiterals, LeaveOutWhatMayBeMissing) {
  EXPECT_EQ(required_literals("abc(?:long and optional)?de"), Literals{"abc"});
  EXPECT_EQ(required_literals("abcx*defg"), Literals{"defg"});
  EXPECT_EQ(required_literals("ab{2}cdef"), Literals{"cdef"});
  EXPECT_EQ(required_literals("abc{0,3}d"), Literals{"ab"});
}

TEST(RequiredLiterals, GoOnThroughNamedGroupsAndAnchors) {
  EXPECT_EQ(required_literals("^(?P<who>rank) left\\b"), Literals{"rank left"});
  EXPECT_EQ(required_literals("(?i)Some Text"), Literals{"some text"});
}

TEST(RequiredLiterals, AreNoneWhereAnAlternativePromisesNone) {
  EXPECT_EQ(required_literals("text|.*"), Literals{});
  EXPECT_EQ(required_literals("(?:text|)"), Literals{});
  EXPECT_EQ(required_literals("[a-z]+"), Literals{});
}

}  // namespace
}  // namespace nlaunch::diagnose

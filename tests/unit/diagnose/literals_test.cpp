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

TEST(RequiredLiterals, OfSeveralRunsAreTheLongest) {
  EXPECT_EQ(required_literals("abcdefg.*hijk"), Literals{"abcdefg"});
  EXPECT_EQ(required_literals("hijk.*abcdefg"), Literals{"abcdefg"});
  EXPECT_EQ(required_literals("abcdefg.*hijklmn"), Literals{"abcdefg"});
}

TEST(RequiredLiterals, OfAsLongOnesAreThoseOfTheFewestAlternatives) {
  EXPECT_EQ(required_literals("(?:abcdefg|hijklmn).*opqrstu"), Literals{"opqrstu"});
  EXPECT_EQ(required_literals("opqrstu.*(?:abcdefg|hijklmn)"), Literals{"opqrstu"});
  EXPECT_EQ(required_literals("(?:abcdefgh|ijklmnop).*qrstuvw"), (Literals{"abcdefgh", "ijklmnop"}));
  EXPECT_EQ(required_literals("(?:abcdefgh|ij).*qrs"), Literals{"qrs"});
}

TEST(RequiredLiterals, AreSortedAndEachThereOnce) {
  EXPECT_EQ(required_literals("second|first|second"), (Literals{"first", "second"}));
}

TEST(RequiredLiterals, HoldOnceWhatIsRepeated) {
  EXPECT_EQ(required_literals("abc+def"), Literals{"abc"});
  EXPECT_EQ(required_literals("abc+?def"), Literals{"abc"});
  EXPECT_EQ(required_literals("abc*?defg"), Literals{"defg"});
  EXPECT_EQ(required_literals("x(?:abcdef)+y"), Literals{"xabcdef"});
  EXPECT_EQ(required_literals("x(?:ab|cde)+"), (Literals{"ab", "cde"}));
  EXPECT_EQ(required_literals("ab{1,2}c"), Literals{"ab"});
  EXPECT_EQ(required_literals("(?:ab|cd){0,2}e"), Literals{"e"});
}

TEST(RequiredLiterals, TakeABraceThatCountsNothingForItself) {
  EXPECT_EQ(required_literals("abc{x}def"), Literals{"abc{x}def"});
  EXPECT_EQ(required_literals("abc{"), Literals{"abc{"});
}

TEST(RequiredLiterals, KnowSetsOfOneLetter) {
  EXPECT_EQ(required_literals("ab[c]de"), Literals{"abcde"});
  EXPECT_EQ(required_literals("ab[cC]de"), Literals{"abcde"});
  EXPECT_EQ(required_literals("ab[cd]efg"), Literals{"efg"});
  EXPECT_EQ(required_literals("ab[ccc]efg"), Literals{"efg"});
  EXPECT_EQ(required_literals("ab[^c]defg"), Literals{"defg"});
  EXPECT_EQ(required_literals("ab[^^]defg"), Literals{"defg"});
  EXPECT_EQ(required_literals(R"(ab[\\]defg)"), Literals{"defg"});
  EXPECT_EQ(required_literals(R"(ab[\]c]defg)"), Literals{"defg"});
  EXPECT_EQ(required_literals("ab[]c]defg"), Literals{"defg"});
  EXPECT_EQ(required_literals("ab[^]c]defg"), Literals{"defg"});
}

TEST(RequiredLiterals, KnowWhatABackslashMeans) {
  EXPECT_EQ(required_literals(R"(ab\tcd)"), Literals{"ab\tcd"});
  EXPECT_EQ(required_literals(R"(\Aab\Bcd\z)"), Literals{"abcd"});
  EXPECT_EQ(required_literals(R"(\bab\bcd$)"), Literals{"abcd"});
  EXPECT_EQ(required_literals(R"(ab\wcde)"), Literals{"cde"});
  EXPECT_EQ(required_literals("ab\\"), Literals{"ab"});
}

TEST(RequiredLiterals, GoOnThroughGroupsOfEveryKind) {
  EXPECT_EQ(required_literals("ab(cd)ef"), Literals{"abcdef"});
  EXPECT_EQ(required_literals("ab(?i:CD)ef"), Literals{"abcdef"});
  EXPECT_EQ(required_literals("ab(?s)cd"), Literals{"abcd"});
  EXPECT_EQ(required_literals("(?:ab|cd)x|(?P<who>ef)"), (Literals{"ab", "cd", "ef"}));
}

TEST(RequiredLiterals, AreNoneOfAnAlternativeWhereverItStands) {
  EXPECT_EQ(required_literals(".*|text"), Literals{});
  EXPECT_EQ(required_literals("text|.*|more"), Literals{});
  EXPECT_EQ(required_literals("(?:text|.*)and this"), Literals{"and this"});
}

}  // namespace
}  // namespace nlaunch::diagnose

#include "diagnose/prefilter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <stdexcept>

#include "base/text.h"

namespace nlaunch::diagnose {
namespace {

using Hits = std::vector<std::pair<std::size_t, std::size_t>>;

Hits hits_of(const Prefilter& prefilter, std::string_view text) {
  Hits hits;
  std::vector<Prefilter::Hit> found;
  prefilter.search(text, found);
  for (const auto& hit : found) hits.emplace_back(hit.at, hit.literal);
  return hits;
}

TEST(Prefilter, FindsEveryLiteralWhereverItStands) {
  const Prefilter prefilter({"nccl warn", "no space left", "warning"});
  EXPECT_EQ(hits_of(prefilter, "NCCL WARN x no Space left"), (Hits{{0, 0}, {12, 1}}));
  EXPECT_EQ(hits_of(prefilter, "nccl warning"), (Hits{{0, 0}, {5, 2}}));
  EXPECT_EQ(hits_of(prefilter, "short"), Hits{});
  EXPECT_EQ(hits_of(prefilter, ""), Hits{});
}

TEST(Prefilter, TellsAnUpperCaseLetterFromTheSignThatDiffersByOneBit) {
  const Prefilter prefilter({"abc[def", "abc{defg"});
  EXPECT_EQ(hits_of(prefilter, "abc[DEF"), (Hits{{0, 0}}));
  EXPECT_EQ(hits_of(prefilter, "ABC{DEFG"), (Hits{{0, 1}}));
}

TEST(Prefilter, FindsTheFirstAndTheLastLetterOfTheAlphabetInEitherCase) {
  const Prefilter prefilter({"az@[`{za"});
  EXPECT_EQ(hits_of(prefilter, "AZ@[`{ZA az@[`{za"), (Hits{{0, 0}, {9, 0}}));
  EXPECT_EQ(hits_of(prefilter, "az`[`{za"), Hits{});
}

TEST(Prefilter, TakesLiteralsOfAnyLengthFromTheShortestOn) {
  EXPECT_THROW(Prefilter({"long enough", "shorty"}), std::logic_error);
  for (std::size_t before = 0; before < 20; ++before)
    EXPECT_EQ(hits_of(Prefilter({"shortly"}), std::string(before, ' ') + "shortly"), (Hits{{before, 0}}));
  const std::string lengthy(300, 'x');
  EXPECT_EQ(hits_of(Prefilter({lengthy + "y"}), "y" + lengthy + "y" + lengthy), (Hits{{1, 0}}));
}

TEST(Prefilter, SortsByPlaceThenByLiteral) {
  EXPECT_EQ(hits_of(Prefilter({"abcdefgh", "abcdefg", "bcdefgh", "z abcdefgh"}), "z abcdefgh"),
            (Hits{{0, 3}, {2, 0}, {2, 1}, {3, 2}}));
}

TEST(Prefilter, FindsWhatASimpleSearchFinds) {
  std::mt19937 random(7);
  const auto some_text = [&](std::size_t length) {
    std::string text;
    for (std::size_t i = 0; i < length; ++i) text += "abAB"[random() % 4];
    return text;
  };
  for (int round = 0; round < 200; ++round) {
    std::vector<std::string> literals;
    for (int i = 0; i < 5; ++i) literals.push_back(text::lower(some_text(7 + random() % 4)));
    const auto text = some_text(2000);
    Hits expected;
    for (std::size_t literal = 0; literal < literals.size(); ++literal) {
      const auto folded = text::lower(text);
      for (auto at = folded.find(literals[literal]); at != std::string::npos;
           at = folded.find(literals[literal], at + 1))
        expected.emplace_back(at, literal);
    }
    std::ranges::sort(expected);
    ASSERT_EQ(hits_of(Prefilter(literals), text), expected) << text;
  }
}

}  // namespace
}  // namespace nlaunch::diagnose

#include "preflight/search/search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

namespace nlaunch::preflight {
namespace {

/// What a pair shows: seconds, or -1 where it fails.
using Shows = std::function<double(std::size_t, std::size_t)>;

struct Searched {
  std::vector<Round> rounds;
  Verdicts found;
};

Searched search(std::size_t units, const Shows& shows, const SearchRules& rules = {}) {
  Searched out;
  for (;;) {
    const auto pairs = next_round(units, out.rounds, rules);
    if (pairs.empty()) break;
    Round round;
    std::vector<bool> busy(units);
    for (const auto& [a, b] : pairs) {
      EXPECT_FALSE(busy[a] || busy[b] || a == b) << "a unit is in one pair of a round";
      busy[a] = busy[b] = true;
      const double seconds = shows(a, b);
      round.push_back({{a, b}, 8, std::max(seconds, 0.0), seconds < 0 ? "not done within 10s" : ""});
    }
    out.rounds.push_back(std::move(round));
  }
  out.found = conclude(units, out.rounds, rules);
  return out;
}

Shows with(std::vector<std::size_t> bad, double seconds) {
  return [bad = std::move(bad), seconds](std::size_t a, std::size_t b) {
    const bool hit = std::ranges::any_of(bad, [&](auto unit) { return unit == a || unit == b; });
    return hit ? seconds : 1.0;
  };
}

std::vector<std::size_t> culprits(const Searched& searched) {
  std::vector<std::size_t> out;
  for (const auto& one : searched.found.culprits) out.push_back(one.unit);
  return out;
}

using Units = std::vector<std::size_t>;

TEST(Search, SeesEveryLinkOfTheRingInTwoRounds) {
  const auto all = search(6, with({}, 0));
  ASSERT_EQ(all.rounds.size(), 2);
  std::vector<UnitPair> seen;
  for (const auto& round : all.rounds) {
    for (const auto& trial : round) seen.push_back(trial.units);
  }
  EXPECT_EQ(seen, (std::vector<UnitPair>{{0, 1}, {2, 3}, {4, 5}, {1, 2}, {3, 4}, {5, 0}}));
  EXPECT_TRUE(all.found.culprits.empty() && all.found.links.empty() && all.found.undecided.empty());
  EXPECT_EQ(all.found.good, 6);
  // Of an odd number the link that closes the ring needs a third one.
  const auto odd = search(5, with({}, 0));
  ASSERT_EQ(odd.rounds.size(), 3);
  EXPECT_EQ(odd.rounds[2].front().units, (UnitPair{4, 0}));
}

TEST(Search, BlamesOnlyAfterTwoGoodPartners) {
  for (const double seconds : {2.0, -1.0}) {
    for (const std::size_t units : {3U, 4U, 5U, 8U, 33U}) {
      for (std::size_t bad = 0; bad < units; ++bad) {
        const auto one = search(units, with({bad}, seconds));
        EXPECT_EQ(culprits(one), Units{bad}) << units << " units, " << seconds;
        EXPECT_GE(one.found.culprits.front().partners, 2);
        EXPECT_TRUE(one.found.links.empty() && one.found.undecided.empty());
        EXPECT_EQ(one.found.good, units - 1);
        EXPECT_LE(one.rounds.size(), 4);
      }
    }
  }
}

TEST(Search, NamesTwoCulpritsThatAreNeighbours) {
  for (const double seconds : {2.0, -1.0}) {
    for (std::size_t bad = 0; bad < 7; ++bad)
      EXPECT_EQ(culprits(search(8, with({bad, bad + 1}, seconds))), (Units{bad, bad + 1}));
  }
}

TEST(Search, TellsABadLinkFromABadUnit) {
  const auto link =
      search(8, [](auto a, auto b) { return std::pair(a, b) == std::pair(2UL, 3UL) ? 3.0 : 1.0; });
  EXPECT_TRUE(link.found.culprits.empty());
  ASSERT_EQ(link.found.links.size(), 1);
  EXPECT_EQ(link.found.links[0].worst.units, (UnitPair{2, 3}));
  EXPECT_EQ(link.found.links[0].trials, 2) << "it was confirmed";
  EXPECT_EQ(link.found.good, 8);
}

TEST(Search, TwoBadLinksOfOneUnitDoNotMakeItBad) {
  const auto searched = search(12, [](auto a, auto b) {
    const auto pair = std::pair(std::min(a, b), std::max(a, b));
    return pair == std::pair(4UL, 5UL) || pair == std::pair(5UL, 6UL) ? -1.0 : 1.0;
  });
  EXPECT_TRUE(searched.found.culprits.empty());
  EXPECT_EQ(searched.found.links.size(), 2);
}

TEST(Search, ForgetsWhatWasSlowOnce) {
  int times = 0;
  const auto searched = search(8, [&](auto a, auto) { return a == 2 && times++ == 0 ? 3.0 : 1.0; });
  EXPECT_TRUE(searched.found.culprits.empty() && searched.found.links.empty());
}

TEST(Search, BlamesNobodyWhereAllAreSlow) {
  SearchRules rules;
  rules.most_seconds = 0.5;
  const auto searched = search(8, with({}, 0), rules);
  EXPECT_TRUE(searched.found.all_slow);
  EXPECT_TRUE(searched.found.culprits.empty());
}

TEST(Search, BlamesNobodyWhereNothingWorks) {
  const auto searched = search(6, with({0, 1, 2, 3, 4, 5}, -1));
  EXPECT_EQ(searched.found.good, 0);
  EXPECT_TRUE(searched.found.culprits.empty());
  EXPECT_LE(searched.rounds.size(), 4);
}

TEST(Search, DoesNotJudgeTimesWhereItIsToldNotTo) {
  SearchRules rules;
  rules.slower.reset();
  EXPECT_TRUE(search(8, with({3}, 20), rules).found.culprits.empty());
  EXPECT_EQ(culprits(search(8, with({3}, -1), rules)), Units{3});
}

TEST(Search, ComparesOnlyPairsOfOneSize) {
  std::vector<Round> rounds(1);
  // Pairs of eight ranks take three times as long as those of two, as they should.
  for (std::size_t unit = 0; unit < 8; unit += 2)
    rounds[0].push_back({{unit, unit + 1}, unit < 4 ? 2UL : 8UL, unit < 4 ? 1.0 : 3.0});
  EXPECT_EQ(conclude(8, rounds, {}).good, 8);
}

TEST(Search, NeedsMoreThanTwo) {
  const auto searched = search(2, with({0}, -1));
  EXPECT_TRUE(searched.found.culprits.empty());
  EXPECT_EQ(searched.rounds.size(), 1);
}

}  // namespace
}  // namespace nlaunch::preflight

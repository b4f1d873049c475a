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

using Pairs = std::vector<UnitPair>;

/// Rounds whose pairs take so many seconds; a negative number fails.
Round round_of(const std::vector<std::pair<UnitPair, double>>& pairs, std::size_t ranks = 8) {
  Round out;
  for (const auto& [pair, seconds] : pairs)
    out.push_back({pair, ranks, std::max(seconds, 0.0), seconds < 0 ? "no route" : ""});
  return out;
}

TEST(NextRound, BeginsWithNeighboursAndGoesOnWithTheOthers) {
  EXPECT_EQ(next_round(2, {}, {}), (Pairs{{0, 1}}));
  EXPECT_EQ(next_round(3, {}, {}), (Pairs{{0, 1}}));
  EXPECT_EQ(next_round(4, {}, {}), (Pairs{{0, 1}, {2, 3}}));
  const std::vector<Round> first(1);
  EXPECT_EQ(next_round(2, first, {}), Pairs{}) << "there are no others";
  EXPECT_EQ(next_round(3, first, {}), (Pairs{{1, 2}}));
  EXPECT_EQ(next_round(4, first, {}), (Pairs{{1, 2}, {3, 0}}));
  EXPECT_EQ(next_round(5, first, {}), (Pairs{{1, 2}, {3, 4}}));
}

TEST(NextRound, TriesASuspectWithAGoodOneFromAfar) {
  const std::vector<Round> rounds{round_of({{{0, 1}, 1}, {{2, 3}, 9}, {{4, 5}, 1}, {{6, 7}, 1}}),
                                  round_of({{{1, 2}, 1}, {{3, 4}, 9}, {{5, 6}, 1}, {{7, 0}, 1}})};
  EXPECT_EQ(next_round(8, rounds, {}), (Pairs{{3, 7}})) << "as far away as can be";
  auto more = rounds;
  more.push_back(round_of({{{3, 7}, 9}}));
  EXPECT_EQ(next_round(8, more, {}), Pairs{}) << "three good partners are enough";
  more.push_back({});
  EXPECT_EQ(next_round(8, more, {}), Pairs{});
}

TEST(NextRound, TriesABadLinkOnceMore) {
  std::vector<Round> rounds{round_of({{{0, 1}, 1}, {{2, 3}, 9}}), round_of({{{1, 2}, 1}, {{3, 0}, 1}})};
  EXPECT_EQ(next_round(4, rounds, {}), (Pairs{{2, 3}}));
  rounds.push_back(round_of({{{2, 3}, 9}}));
  EXPECT_EQ(next_round(4, rounds, {}), Pairs{});
}

TEST(NextRound, WhereNobodyIsGoodAnyPartnerWillDo) {
  const std::vector<Round> rounds{round_of({{{0, 1}, -1}, {{2, 3}, -1}}),
                                  round_of({{{1, 2}, -1}, {{3, 0}, -1}})};
  EXPECT_EQ(next_round(4, rounds, {}), (Pairs{{0, 2}, {1, 3}}));
}

TEST(NextRound, IsTheLastOneAfterFour) {
  const std::vector<Round> rounds(4);
  EXPECT_EQ(next_round(8, rounds, {}), Pairs{});
  EXPECT_NE(next_round(8, std::vector<Round>(3), {}), Pairs{});
}

TEST(Conclude, APairIsSlowFromHalfAsLongAgainOn) {
  const auto with = [](double seconds) {
    return conclude(
        4, {round_of({{{0, 1}, 1}, {{2, 3}, seconds}}), round_of({{{1, 2}, 1}, {{3, 0}, seconds}})}, {});
  };
  EXPECT_EQ(with(1.5).good, 4U);
  EXPECT_EQ(with(1.51).good, 3U);
  ASSERT_EQ(with(1.51).culprits.size(), 1U);
  EXPECT_EQ(with(1.51).culprits[0].unit, 3U);
  EXPECT_EQ(with(1.51).culprits[0].partners, 2U);
}

TEST(Conclude, TheUsualTimeIsTheMedianOfTheBestOfEach) {
  EXPECT_EQ(
      conclude(4, {round_of({{{0, 1}, 3}, {{2, 3}, 4}}), round_of({{{1, 2}, 2}, {{3, 0}, 5}})}, {}).usual, 2);
  EXPECT_EQ(conclude(4, {round_of({{{0, 1}, 3}, {{2, 3}, 4}})}, {}).usual, 3);
  EXPECT_EQ(conclude(4, {round_of({{{0, 1}, -1}, {{2, 3}, -1}})}, {}).usual, 0);
  EXPECT_EQ(conclude(4, {}, {}).usual, 0);
  // Of pairs of the size that most have.
  EXPECT_EQ(conclude(6, {round_of({{{0, 1}, 7}}, 4), round_of({{{2, 3}, 3}, {{4, 5}, 3}})}, {}).usual, 3);
}

TEST(Conclude, AllAreSlowWhereTheUsualPairIs) {
  SearchRules rules;
  const auto all_slow = [&](double most) {
    rules.most_seconds = most;
    return conclude(4, {round_of({{{0, 1}, 3}, {{2, 3}, 3}})}, rules).all_slow;
  };
  EXPECT_TRUE(all_slow(2.9));
  EXPECT_FALSE(all_slow(3));
  EXPECT_FALSE(all_slow(0));
}

TEST(Conclude, TheWorstTrialIsTheOneThatFailedOrTookTheLongest) {
  auto found = conclude(
      5,
      {round_of({{{0, 1}, 1}, {{2, 3}, 9}}), round_of({{{1, 2}, 1}, {{3, 4}, 5}}), round_of({{{4, 0}, 1}})},
      {});
  ASSERT_EQ(found.culprits.size(), 1U);
  EXPECT_EQ(found.culprits[0].worst.units, (UnitPair{2, 3}));
  found = conclude(
      5,
      {round_of({{{0, 1}, 1}, {{2, 3}, 9}}), round_of({{{1, 2}, 1}, {{3, 4}, -1}}), round_of({{{4, 0}, 1}})},
      {});
  EXPECT_EQ(found.culprits.at(0).worst.units, (UnitPair{3, 4}));
}

TEST(Conclude, APairThatWasGoodOnceIsNoBadLink) {
  const std::vector<Round> rounds{round_of({{{0, 1}, 1}, {{2, 3}, 9}}), round_of({{{1, 2}, 1}, {{3, 0}, 1}}),
                                  round_of({{{3, 2}, 1}})};
  EXPECT_TRUE(conclude(4, rounds, {}).links.empty());
  auto twice = rounds;
  twice[2] = round_of({{{3, 2}, 12}});
  const auto found = conclude(4, twice, {});
  ASSERT_EQ(found.links.size(), 1U);
  EXPECT_EQ(found.links[0].trials, 2U);
  EXPECT_EQ(found.links[0].worst.seconds, 12);
  EXPECT_EQ(found.links[0].worst.units, (UnitPair{2, 3}));
}

TEST(Conclude, OneGoodPartnerIsTooFewToBlame) {
  const auto found =
      conclude(4, {round_of({{{0, 1}, 1}, {{2, 3}, -1}}), round_of({{{1, 2}, -1}, {{3, 0}, 1}})}, {});
  ASSERT_EQ(found.culprits.size(), 1U);
  EXPECT_EQ(found.culprits[0].unit, 2U);
  EXPECT_EQ(found.good, 3U);
  EXPECT_TRUE(found.links.empty());
  EXPECT_TRUE(found.undecided.empty());
  const auto less = conclude(4, {round_of({{{0, 1}, 1}, {{2, 3}, -1}}), round_of({{{1, 2}, -1}})}, {});
  EXPECT_TRUE(less.culprits.empty());
  EXPECT_TRUE(less.links.empty());
  ASSERT_EQ(less.undecided.size(), 2U);
  EXPECT_EQ(less.undecided[0].units, (UnitPair{1, 2}));
  EXPECT_EQ(less.undecided[1].units, (UnitPair{2, 3}));
}

}  // namespace
}  // namespace nlaunch::preflight

#include "probe/rank/pattern.h"

#include <gtest/gtest.h>

#include <set>

namespace nlaunch::probe {
namespace {

TEST(Pattern, SumsToTheExpectedElement) {
  for (const std::uint64_t i : {0ULL, 1ULL, 12345ULL, 33554431ULL, 1ULL << 33U}) {
    for (const std::uint32_t ranks : {2U, 3U, 8U, 64U}) {
      std::uint32_t sum = 0;
      for (std::uint32_t rank = 0; rank < ranks; ++rank) sum += term(rank, i);
      EXPECT_EQ(sum, expected_element(sum_weight(ranks), i)) << i << " " << ranks;
    }
  }
}

TEST(Pattern, TellsWhoseTermItIs) {
  constexpr std::uint32_t kRanks = 8;
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
    EXPECT_EQ(rank_of_term(kRanks, 77, term(rank, 77)), static_cast<int>(rank));
  }
  EXPECT_EQ(rank_of_term(kRanks, 77, 12345), -1);
}

TEST(Pattern, DiffersFromElementToElement) {
  std::set<std::uint32_t> seen;
  for (std::uint64_t i = 0; i < 100000; ++i) seen.insert(element_seed(i));
  EXPECT_GT(seen.size(), 99990U);
  EXPECT_EQ(*seen.begin() % 2, 1U);
}

}  // namespace
}  // namespace nlaunch::probe

#include "probe/rank/expected.h"

#include <gtest/gtest.h>

namespace nlaunch::probe {
namespace {

/// What rank `rank` receives when all goes well, from what all ranks send.
std::vector<std::uint32_t> done(Collective op, std::uint64_t elements, unsigned rank, unsigned ranks) {
  const auto shape = shape_of(op, elements, ranks);
  std::vector<std::uint32_t> out(shape.receive);
  for (std::uint64_t i = 0; i < shape.receive; ++i) {
    const auto before = (rank + ranks - 1) % ranks;
    if (op == Collective::broadcast) out[i] = term(0, i);
    if (op == Collective::send_recv) out[i] = term(before, i);
    if (op == Collective::all_gather)
      out[i] = term(static_cast<std::uint32_t>(i / shape.send), i % shape.send);
    const auto at = op == Collective::reduce_scatter ? rank * shape.receive + i : i;
    for (unsigned r = 0; r < ranks && (op == Collective::all_reduce || op == Collective::reduce_scatter); ++r)
      out[i] += term(r, at);
  }
  return out;
}

TEST(Expected, IsWhatEachOperationLeaves) {
  constexpr unsigned kRanks = 3;
  constexpr std::uint64_t kElements = 50;
  for (const auto op : kValues<Collective>) {
    for (unsigned rank = 0; rank < kRanks; ++rank) {
      const auto received = done(op, kElements, rank, kRanks);
      std::uint64_t seen = 0;
      for (const auto& one : expected_in(op, kElements, rank, kRanks)) {
        for (std::uint64_t i = 0; i < one.count; ++i, ++seen) {
          ASSERT_EQ(received[one.offset + i], expected_element(one.weight, one.first + i))
              << name_of(op) << " rank " << rank << " element " << one.offset + i;
        }
      }
      EXPECT_EQ(seen, received.size());
    }
  }
}

TEST(Expected, NamesTheRankWhosePartIsWrong) {
  const auto stretches = expected_in(Collective::all_gather, 30, 0, 3);
  const auto comparison = judge(stretches, 2, 14, 7, 3);
  EXPECT_EQ(comparison.elements, 30U);
  EXPECT_EQ(comparison.wrong, 2U);
  EXPECT_EQ(comparison.expected, term(1, 4));
  EXPECT_EQ(comparison.found, 7U);
  EXPECT_EQ(comparison.fault, Fault::received);
  EXPECT_EQ(comparison.rank, 1);
}

TEST(Expected, NamesTheRankWhoseTermIsMissingOrDoubleInASum) {
  const auto stretches = expected_in(Collective::reduce_scatter, 30, 1, 3);
  const auto expected = term(0, 12) + term(1, 12) + term(2, 12);
  const auto missing = judge(stretches, 1, 2, expected - term(2, 12), 3);
  EXPECT_EQ(missing.expected, expected);
  EXPECT_EQ(missing.fault, Fault::missing);
  EXPECT_EQ(missing.rank, 2);
  const auto twice = judge(stretches, 1, 2, expected + term(0, 12), 3);
  EXPECT_EQ(twice.fault, Fault::twice);
  EXPECT_EQ(twice.rank, 0);
  const auto garbage = judge(stretches, 1, 2, 12345, 3);
  EXPECT_EQ(garbage.fault, Fault::none);
  EXPECT_EQ(garbage.rank, -1);
}

}  // namespace
}  // namespace nlaunch::probe

#include "bench/schedule.h"

#include <numeric>
#include <random>

namespace nlaunch::bench {

std::vector<Turn> make_schedule(std::size_t arms, std::uint32_t repeats, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Turn> turns;
  for (std::uint32_t repeat = 0; repeat < repeats; ++repeat) {
    std::vector<std::size_t> order(arms);
    std::iota(order.begin(), order.end(), std::size_t{0});
    // Not std::shuffle, whose order depends on the library.
    for (auto left = arms; left > 1; --left) std::swap(order[left - 1], order[random() % left]);
    for (const auto arm : order) turns.push_back({arm, repeat});
  }
  return turns;
}

}  // namespace nlaunch::bench

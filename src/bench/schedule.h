#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace nlaunch::bench {

struct Turn {
  std::size_t arm = 0;
  std::uint32_t repeat = 0;
};

/// Every arm once per repeat, in an order that is drawn anew for each repeat: what drifts (a clock, a
/// temperature, a neighbour) affects all arms alike. The same for the same seed on every machine.
std::vector<Turn> make_schedule(std::size_t arms, std::uint32_t repeats, std::uint64_t seed);

}  // namespace nlaunch::bench

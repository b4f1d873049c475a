#include "fleet/tree.h"

#include <cmath>

namespace nlaunch::fleet {
namespace {

constexpr std::uint32_t kMostDirect = 256;

}  // namespace

std::uint32_t fan_out_for(std::uint32_t nodes) {
  return nodes <= kMostDirect ? 0 : static_cast<std::uint32_t>(std::ceil(std::sqrt(nodes)));
}

std::uint32_t relays_in(std::uint32_t nodes, std::uint32_t fan_out) {
  return fan_out == 0 || nodes <= fan_out ? 0 : (nodes - 1) / fan_out;
}

std::vector<std::uint32_t> relays_of(std::uint32_t node, std::uint32_t fan_out) {
  std::vector<std::uint32_t> above;
  while (fan_out != 0 && node >= fan_out) above.push_back(node = node / fan_out - 1);
  return above;
}

}  // namespace nlaunch::fleet

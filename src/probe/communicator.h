#pragma once
#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "base/units.h"
#include "probe/spec.h"

namespace nlaunch::probe {

/// How the elements of one collective compare with what they must be.
struct Verdict {
  std::uint64_t elements = 0;
  std::uint64_t wrong = 0;
  std::uint64_t first_wrong = 0;  ///< index, where any is wrong
  std::uint32_t expected = 0;     ///< at first_wrong
  std::uint32_t found = 0;
  int missing = -1;  ///< rank in the communicator whose contribution is not there; -1: not one alone
};

struct JoinRequest {
  std::string address;  ///< of this node, for ranks on others; empty: there are none
  /// Tells the other ranks something, by its name: rank 0 NCCL's id, each rank over Gloo where it listens.
  std::function<void(const std::string& name, const std::string& bytes)> give;
  /// Waits for what another rank gives; nothing: it cannot come.
  std::function<std::optional<std::string>(const std::string& name)> take;
  int rank = 0;
  int size = 1;
  std::uint64_t largest = 0;  ///< bytes of the largest message to come
  Duration join{};
  Duration op{};
};

/// Ranks that can talk. All of them make the same calls in the same order.
class Communicator {
 public:
  virtual ~Communicator() = default;
  /// Does the collective once and compares every element of the result.
  virtual Result<Verdict> check(Op op, std::uint64_t bytes) = 0;
  /// Seconds for one of many such collectives, back to back: the median of several batches.
  virtual Result<double> time(Op op, std::uint64_t bytes) = 0;
};

/// Sum over the ranks' links that NCCL's tests call bus bandwidth, bytes/s: comparable over any number of
/// ranks.
inline double bus_bandwidth(Op op, std::uint64_t bytes, double seconds, std::size_t ranks) {
  const auto n = static_cast<double>(ranks);
  const double factor = op == Op::all_reduce ? 2 * (n - 1) / n : 1;
  return seconds > 0 ? factor * static_cast<double>(bytes) / seconds : 0;
}

inline double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return values.empty() ? 0 : *middle;
}

}  // namespace nlaunch::probe

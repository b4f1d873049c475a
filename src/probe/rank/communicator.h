#pragma once
#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "base/units.h"
#include "probe/rank/expected.h"
#include "probe/rank/spec.h"

namespace nlaunch::probe {

struct JoinRequest {
  std::string address;  ///< of this node, for ranks on others; empty: there are none
  /// Publishes something for the other ranks under a name: rank 0 NCCL's id, each rank over Gloo its
  /// listening address.
  std::function<void(const std::string& name, const std::string& bytes)> give;
  /// Waits for what another rank publishes; nothing: it cannot come.
  std::function<std::optional<std::string>(const std::string& name)> take;
  int rank = 0;
  int size = 1;
  std::uint64_t largest = 0;  ///< bytes of the largest message to come
  Duration join{};
  Duration op{};
};

/// Ranks that can communicate. All of them make the same calls in the same order.
class Communicator {
 public:
  virtual ~Communicator() = default;
  /// Runs it once and compares every element of the result.
  virtual Result<Comparison> check(Collective op, std::uint64_t bytes) = 0;
  /// Seconds for one of many such operations, back to back: the median of several batches.
  virtual Result<double> time(Collective op, std::uint64_t bytes) = 0;
  /// Seconds of each step of a workload, one after another without a pause.
  virtual Result<std::vector<double>> run(const Workload& workload) = 0;
};

inline double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return values.empty() ? 0 : *middle;
}

}  // namespace nlaunch::probe

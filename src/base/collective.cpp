#include "base/collective.h"

namespace nlaunch {
std::uint64_t size_of(DataType type) {
  return type == DataType::f32 || type == DataType::i32 ? 4 : 2;
}

double bus_bandwidth(Collective op, std::uint64_t bytes, double seconds, std::size_t ranks) {
  const auto n = static_cast<double>(ranks);
  double factor = 1;
  if (op == Collective::all_reduce) factor = 2 * (n - 1) / n;
  if (op == Collective::all_gather || op == Collective::reduce_scatter) factor = (n - 1) / n;
  return seconds > 0 ? factor * static_cast<double>(bytes) / seconds : 0;
}

}  // namespace nlaunch

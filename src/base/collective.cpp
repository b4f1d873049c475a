#include "base/collective.h"

namespace nlaunch {
namespace {

template <class Word, std::size_t N>
std::optional<Word> find(std::string_view name, const std::array<Word, N>& all) {
  for (const auto word : all) {
    if (name_of(word) == name) return word;
  }
  return std::nullopt;
}

}  // namespace

std::string_view name_of(Collective op) {
  switch (op) {
    case Collective::all_reduce:
      return "all_reduce";
    case Collective::broadcast:
      return "broadcast";
    case Collective::all_gather:
      return "all_gather";
    case Collective::reduce_scatter:
      return "reduce_scatter";
    case Collective::send_recv:
      return "send_recv";
  }
  return "";
}

std::string_view name_of(DataType type) {
  switch (type) {
    case DataType::f32:
      return "f32";
    case DataType::f16:
      return "f16";
    case DataType::bf16:
      return "bf16";
    case DataType::i32:
      return "i32";
  }
  return "";
}

std::optional<Collective> collective_of(std::string_view name) {
  return find(name, kCollectives);
}

std::optional<DataType> data_type_of(std::string_view name) {
  return find(name, kDataTypes);
}

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

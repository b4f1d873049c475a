#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/described.h"

/// Operations of the ranks of a group.
namespace nlaunch {

/// *send_recv*: each rank sends to the next one and receives from the previous one at the same time.
enum class Collective { all_reduce, broadcast, all_gather, reduce_scatter, send_recv };
BOOST_DESCRIBE_ENUM(Collective, all_reduce, broadcast, all_gather, reduce_scatter, send_recv)

enum class DataType { f32, f16, bf16, i32 };
BOOST_DESCRIBE_ENUM(DataType, f32, f16, bf16, i32)

/// Bytes of one element.
std::uint64_t size_of(DataType type);

/// Bytes/s over each link: what an operation with this size and time shows about the hardware, comparable
/// across numbers of ranks (nccl-tests, doc/PERFORMANCE.md). 0 for a time of 0.
double bus_bandwidth(Collective op, std::uint64_t bytes, double seconds, std::size_t ranks);

struct Operation {
  Collective op = Collective::all_reduce;
  std::uint64_t bytes = 0;  ///< as nccl-tests counts: for an all-gather, everything that a rank receives
  DataType type = DataType::f32;
  std::uint32_t count = 1;  ///< repetitions, in sequence
  bool operator==(const Operation&) const = default;
};
BOOST_DESCRIBE_STRUCT(Operation, (), (op, bytes, type, count))

/// Operations that are timed together, as in a training step.
struct Workload {
  std::string name;
  std::vector<Operation> step;
  std::uint32_t steps = 20;   ///< number of timed steps, each timed separately
  std::uint32_t warm_up = 5;  ///< steps before them
  bool busy = false;          ///< run matrix multiplications on the GPUs at the same time
};

/// Targets of a step of a workload. 0: no target.
struct Targets {
  double budget = 0;         ///< seconds; maximum time of a step
  double bus_bandwidth = 0;  ///< bytes/s; minimum
  double scaling = 0;        ///< minimum share of the bus bandwidth of two ranks of the group
};

}  // namespace nlaunch

#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/described.h"

/// What the ranks of a group do together.
namespace nlaunch {

/// *send_recv*: each rank sends to the next one and receives from the one before, at once.
enum class Collective { all_reduce, broadcast, all_gather, reduce_scatter, send_recv };
BOOST_DESCRIBE_ENUM(Collective, all_reduce, broadcast, all_gather, reduce_scatter, send_recv)

enum class DataType { f32, f16, bf16, i32 };
BOOST_DESCRIBE_ENUM(DataType, f32, f16, bf16, i32)

/// Bytes of one element.
std::uint64_t size_of(DataType type);

/// Bytes/s over each link: what an operation of this size and time shows of the hardware, comparable over any
/// number of ranks (nccl-tests, doc/PERFORMANCE.md). 0 for a time of 0.
double bus_bandwidth(Collective op, std::uint64_t bytes, double seconds, std::size_t ranks);

struct Operation {
  Collective op = Collective::all_reduce;
  std::uint64_t bytes = 0;  ///< as nccl-tests counts: of an all-gather all that a rank receives
  DataType type = DataType::f32;
  std::uint32_t count = 1;  ///< one after another
  bool operator==(const Operation&) const = default;
};
BOOST_DESCRIBE_STRUCT(Operation, (), (op, bytes, type, count))

/// Operations that are timed together, as a training step has them.
struct Workload {
  std::string name;
  std::vector<Operation> step;
  std::uint32_t steps = 20;   ///< that are timed, one by one
  std::uint32_t warm_up = 5;  ///< before them
  bool busy = false;          ///< while the GPUs also multiply matrices
};

/// What a step of a workload should hold. 0: nothing is asked.
struct Targets {
  double budget = 0;         ///< seconds of a step, at most
  double bus_bandwidth = 0;  ///< bytes/s, at least
  double scaling = 0;        ///< share of the bus bandwidth that two ranks of the group have, at least
};

}  // namespace nlaunch

#pragma once
#include <vector>

#include "base/collective.h"
#include "base/source.h"
#include "base/units.h"

/// The `bench` block of an experiment: what its groups are timed with.
namespace nlaunch::config {

class Value;  // config/reader.h
using Text = Located<std::string>;

struct BenchWorkload {
  Text name;
  Workload work;
  std::vector<SourceSpan> places;  ///< of the operations of `work`
  Text group;  ///< node, world, tensor_parallel, weight_sync, or the whole name of a group
  Targets targets;
};

struct Bench {
  std::vector<BenchWorkload> workloads;
  Duration timeout = std::chrono::minutes(1);  ///< for the ranks to meet, and for the steps of a workload
};

Bench read_bench(const Value& value);

}  // namespace nlaunch::config

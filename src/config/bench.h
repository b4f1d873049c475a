#pragma once
#include <vector>

#include "base/collective.h"
#include "base/source.h"
#include "base/units.h"

/// The `bench` block of an experiment: the workloads to measure.
namespace nlaunch::config {

class Value;  // config/reader.h
using Text = Located<std::string>;

struct BenchWorkload {
  Text name;
  Workload work;
  std::vector<SourceSpan> places;  ///< of the operations of `work`
  Text group;                      ///< node, world, tensor_parallel, weight_sync, or the full name of a group
  Targets targets;
};

struct Bench {
  std::vector<BenchWorkload> workloads;
  Duration timeout =
      std::chrono::minutes(1);  ///< limit for the ranks to connect, and for the steps of a workload
};

Bench read_bench(const Value& value);

}  // namespace nlaunch::config

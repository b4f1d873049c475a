#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "bench/arms.h"
#include "bench/environments.h"
#include "bench/schedule.h"
#include "bench/statistics.h"
#include "bench/trials.h"

namespace nlaunch::bench {

/// One arm, and what came of its repeats.
struct ArmResult {
  Arm arm;
  std::vector<plan::BenchWorkload> workloads;  ///< of its plan
  Environments environments;
  std::string refused;          ///< why it could not even be bound; empty: it was
  std::vector<Repeat> repeats;  ///< in the order in which they were made
};

struct Bench {
  std::string name;  ///< of the experiment
  std::string site;
  std::uint64_t seed = 0;
  std::uint32_t repeats = 0;  ///< that were asked for, of each arm
  std::vector<Turn> order;    ///< in which they were made
  std::vector<ArmResult> arms;
  std::string broken_off{};  ///< why not all of them could be made; empty: nothing was in the way
};

enum class Held { not_asked, held, missed, unknown };

/// What one arm took for one workload in one group.
struct Line {
  std::size_t arm = 0;
  std::string workload;
  std::string group;
  std::uint32_t ranks = 0;
  Backend backend = Backend::nccl;
  std::vector<double> seconds;  ///< of each good repeat: the median of its steps
  double median = 0;            ///< of these
  Interval interval{};          ///< both 0 with too few repeats
  std::uint64_t bytes = 0;      ///< of one message, where the step has one kind; else 0
  double busbw = 0;             ///< of the whole step
  double two_ranks = 0;         ///< bus bandwidth of the group's first two ranks alone; 0: not measured
  Targets targets;
  Held budget = Held::not_asked, bandwidth = Held::not_asked, scaling = Held::not_asked;
  std::string chosen;    ///< what NCCL took; empty: not known
  Conclusion verdict{};  ///< against the first arm that has the same workload and group
  bool reference = false;
};

/// How often an arm failed.
struct Failures {
  std::size_t arm = 0;
  std::size_t failed = 0;
  std::size_t repeats = 0;
  Interval interval{};              ///< of the share
  std::vector<std::string> causes;  ///< each once
};

/// By workload, group, arm. A workload that an arm never did has no line there.
std::vector<Line> lines(const Bench& bench);
std::vector<Failures> failures(const Bench& bench);

std::vector<Difference> differences(const Bench& bench);

/// ok; bench_missed where a line holds not what it should; bench_failed where an arm has no good repeat,
/// or not all repeats could be made.
int code_of(const Bench& bench);

nlohmann::ordered_json to_json(const Bench& bench);
/// A row for each repeat of each workload: workload,group,arm,repeat,seconds,busbw,ranks,backend.
std::string csv(const Bench& bench);

}  // namespace nlaunch::bench

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

/// One arm and its repeats.
struct ArmResult {
  Arm arm;
  std::vector<plan::BenchWorkload> workloads;  ///< of its plan
  Environments environments;
  std::string refused;          ///< why it could not even be bound; empty: it was
  std::vector<Repeat> repeats;  ///< in the order in which they ran
};

struct Bench {
  std::string name;  ///< of the experiment
  std::string site;
  std::uint64_t seed = 0;
  std::uint32_t repeats = 0;  ///< the requested number, per arm
  std::vector<Turn> order;    ///< in which they ran
  std::vector<ArmResult> arms;
  std::string broken_off{};  ///< why not all of them could be run; empty: all were
};

enum class Held { not_asked, held, missed, unknown };

/// The result of one arm for one workload in one group.
struct Line {
  std::size_t arm = 0;
  std::string workload;
  std::string group;
  std::uint32_t ranks = 0;
  Backend backend = Backend::nccl;
  std::vector<double> seconds;  ///< of each good repeat: the median of its steps
  double median = 0;            ///< of these
  Interval interval{};          ///< both 0 with too few repeats
  std::uint64_t bytes = 0;      ///< of one message, if the step has one kind; else 0
  double busbw = 0;             ///< of the whole step
  double two_ranks = 0;         ///< bus bandwidth of the group's first two ranks alone; 0: not measured
  Targets targets;
  Held budget = Held::not_asked, bandwidth = Held::not_asked, scaling = Held::not_asked;
  std::string chosen;    ///< what NCCL chose; empty: unknown
  Conclusion verdict{};  ///< against the first arm that has the same workload and group
  bool reference = false;
};

/// How often an arm failed.
struct Failures {
  std::size_t arm = 0;
  std::size_t failed = 0;
  std::size_t repeats = 0;
  Interval interval{};              ///< of the share
  std::vector<std::string> causes;  ///< without duplicates
};

/// By workload, group, arm. A workload that an arm never ran has no line there.
std::vector<Line> lines(const Bench& bench);
std::vector<Failures> failures(const Bench& bench);

std::vector<Difference> differences(const Bench& bench);

/// ok; bench_missed if a line misses its target; bench_failed if an arm has no good repeat, or not all
/// repeats could be run.
int code_of(const Bench& bench);

nlohmann::ordered_json to_json(const Bench& bench);
/// A row per repeat of each workload: workload,group,arm,repeat,seconds,busbw,ranks,backend.
std::string csv(const Bench& bench);

}  // namespace nlaunch::bench

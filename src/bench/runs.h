#pragma once
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bench/arms.h"
#include "bench/environments.h"
#include "bench/results.h"
#include "bench/run_record.h"
#include "bench/schedule.h"
#include "bench/statistics.h"

/// Whole runs compared: the result of each, and what can be concluded from them.
namespace nlaunch::bench {

struct ArmRuns {
  Arm arm;
  Environments environments;    ///< of its first run that was bound
  std::vector<RunRecord> runs;  ///< in the order in which they ran
};

struct RunComparison {
  std::string name;  ///< of the experiment
  std::string site;
  std::uint64_t seed = 0;
  std::uint32_t repeats = 0;  ///< the requested number, per arm
  std::vector<plan::Metric> metrics;
  std::vector<Turn> order;  ///< in which they ran
  std::vector<ArmRuns> arms;
  std::string stopped;  ///< why it stopped early; empty: it did not
};

/// The values of one quantity in one arm's runs.
struct RunLine {
  enum class What { time_to_finish, time_to_failure, metric };
  What what = What::metric;
  std::string metric;
  std::size_t arm = 0;
  std::vector<double> values;  ///< of each run that has it; for a metric, the median of what it printed
  std::size_t printed = 0;     ///< values of a metric in all of these runs together
  double median = 0;
  double first = 0;  ///< for a metric, the median over these runs; likewise `last`
  double last = 0;
  std::optional<Interval> interval;  ///< none with too few runs
  Conclusion verdict{};              ///< against the first arm that has this quantity
  bool reference = false;
};

/// "time to finish" of the runs that succeeded, "time to failure" of the others, and each metric of all runs
/// that printed it; by quantity, then arm. An arm without any value has no line there.
std::vector<RunLine> lines(const RunComparison& comparison);
std::vector<Failures> failures(const RunComparison& comparison);
std::vector<Difference> differences(const RunComparison& comparison);
/// Metrics that no run has printed.
std::vector<plan::Metric> never_printed(const RunComparison& comparison);

/// "time to finish", or the metric's name.
std::string name_of(const RunLine& line);
std::string verdict_text(const RunLine& line);

/// ok; bench_failed if an arm has no run that succeeded.
int code_of(const RunComparison& comparison);

nlohmann::ordered_json to_json(const RunComparison& comparison);

}  // namespace nlaunch::bench

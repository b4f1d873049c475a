#include "bench/runs.h"

#include <algorithm>

#include "base/exit_code.h"

namespace nlaunch::bench {
namespace {

using What = RunLine::What;

std::optional<double> value_of(const RunRecord& run, What what, const std::string& metric) {
  if (what == What::time_to_finish) return run.well() ? run.seconds : std::nullopt;
  if (what == What::time_to_failure) return run.well() ? std::nullopt : run.seconds;
  const auto found = run.metrics.find(metric);
  return found == run.metrics.end() ? std::nullopt : std::optional(found->second.median);
}

RunLine line_of(const RunComparison& comparison, std::size_t arm, What what, const std::string& metric) {
  RunLine line;
  line.what = what;
  line.metric = metric;
  line.arm = arm;
  std::vector<double> first;
  std::vector<double> last;
  for (const auto& run : comparison.arms[arm].runs) {
    const auto value = value_of(run, what, metric);
    if (!value) continue;
    line.values.push_back(*value);
    if (what != What::metric) continue;
    const auto& printed = run.metrics.at(metric);
    line.printed += printed.values;
    first.push_back(printed.first);
    last.push_back(printed.last);
  }
  line.median = median(line.values);
  line.first = first.empty() ? 0 : median(first);
  line.last = last.empty() ? 0 : median(last);
  if (line.values.size() >= kLeastRepeats) line.interval = median_interval(line.values, comparison.seed);
  return line;
}

void add_lines(const RunComparison& comparison, What what, const std::string& metric,
               std::vector<RunLine>& out) {
  std::vector<double> reference;
  for (std::size_t arm = 0; arm < comparison.arms.size(); ++arm) {
    auto line = line_of(comparison, arm, what, metric);
    if (line.values.empty()) continue;
    line.reference = reference.empty();
    if (line.reference) {
      reference = line.values;
    } else {
      line.verdict = compare_values(line.values, reference, comparison.seed);
    }
    out.push_back(std::move(line));
  }
}

}  // namespace

std::vector<RunLine> lines(const RunComparison& comparison) {
  std::vector<RunLine> out;
  add_lines(comparison, What::time_to_finish, "", out);
  add_lines(comparison, What::time_to_failure, "", out);
  for (const auto& metric : comparison.metrics) add_lines(comparison, What::metric, metric.name, out);
  return out;
}

std::vector<Failures> failures(const RunComparison& comparison) {
  std::vector<Failures> out;
  for (std::size_t arm = 0; arm < comparison.arms.size(); ++arm) {
    const auto& runs = comparison.arms[arm].runs;
    Failures one{arm, 0, runs.size(), {}, {}};
    for (const auto& run : runs) {
      if (run.well()) continue;
      ++one.failed;
      if (std::ranges::find(one.causes, run.cause) == one.causes.end()) one.causes.push_back(run.cause);
    }
    one.interval = share_interval(one.failed, one.repeats);
    out.push_back(std::move(one));
  }
  return out;
}

std::vector<Difference> differences(const RunComparison& comparison) {
  std::vector<Environments> arms;
  for (const auto& arm : comparison.arms) arms.push_back(arm.environments);
  return differences(arms);
}

std::vector<plan::Metric> never_printed(const RunComparison& comparison) {
  auto out = comparison.metrics;
  std::erase_if(out, [&](const plan::Metric& metric) {
    return std::ranges::any_of(comparison.arms, [&](const ArmRuns& arm) {
      return std::ranges::any_of(arm.runs,
                                 [&](const RunRecord& run) { return run.metrics.contains(metric.name); });
    });
  });
  return out;
}

std::string name_of(const RunLine& line) {
  if (line.what == What::metric) return line.metric;
  return line.what == What::time_to_finish ? "time to finish" : "time to failure";
}

std::string verdict_text(const RunLine& line) {
  const bool time = line.what != What::metric;
  return verdict_text(line.verdict, time ? "shorter" : "less", time ? "longer" : "more");
}

int code_of(const RunComparison& comparison) {
  for (const auto& one : failures(comparison)) {
    if (one.failed == one.repeats) return exit_code::bench_failed;
  }
  return exit_code::ok;
}

}  // namespace nlaunch::bench

#include "bench/trials.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "bench/statistics.h"
#include "preflight/groups/trials.h"

namespace nlaunch::bench {
namespace {

constexpr std::string_view kTwo = ", its first two ranks";

bool wanted(const plan::BenchWorkload& workload, const std::vector<std::string>& only) {
  return only.empty() || std::ranges::find(only, workload.work.name) != only.end();
}

/// Seconds of each step, of the slowest rank; none if a rank has not done it, or did it wrongly.
std::vector<double> steps_of(const preflight::GroupTrial& trial, const std::string& workload,
                             const preflight::Measured& measured) {
  std::vector<double> slowest;
  for (const auto rank : trial.members) {
    const auto& groups = measured.reports.at(rank).groups;
    const auto group = groups.find(trial.name);
    if (group == groups.end()) return {};
    const auto& done = group->second.workloads;
    const auto one = std::ranges::find(done, workload, &preflight::WorkloadResult::workload);
    if (one == done.end() || one->wrong > 0) return {};
    slowest.resize(std::max(slowest.size(), one->seconds.size()), 0);
    for (std::size_t step = 0; step < one->seconds.size(); ++step)
      slowest[step] = std::max(slowest[step], one->seconds[step]);
  }
  return slowest;
}

Chosen chosen_by(const preflight::GroupTrial& trial, const preflight::Measured& measured) {
  Chosen chosen{trial.name, {}, {}};
  for (const auto rank : trial.members) {
    const auto& groups = measured.reports.at(rank).groups;
    const auto group = groups.find(trial.name);
    if (group == groups.end()) continue;
    if (chosen.choices.empty()) chosen.choices = group->second.choices;
    for (const auto& pair : group->second.pairs) {
      if (std::ranges::find(chosen.transports, pair.via) == chosen.transports.end())
        chosen.transports.push_back(pair.via);
    }
  }
  return chosen;
}

/// The first problem, as a row of the preflight.
std::string failure_of(const preflight::Measured& measured) {
  if (measured.cancelled) return "cancelled";
  for (const auto status : {preflight::Status::fail, preflight::Status::unknown}) {
    // A measurement is still valid if the log does not name the transport.
    const auto row = std::ranges::find_if(measured.rows, [&](const preflight::Row& one) {
      return one.status == status && one.check != "transport" && one.check != "bandwidth";
    });
    if (row != measured.rows.end()) return fmt::format("{}: {}", row->subject, row->value);
  }
  return "";
}

}  // namespace

std::vector<preflight::GroupTrial> make_trials(const plan::Plan& plan,
                                               const std::vector<preflight::Rank>& ranks,
                                               const std::vector<std::string>& only) {
  std::vector<preflight::GroupTrial> trials;
  for (std::uint32_t group = 0; group < plan.groups.size(); ++group) {
    auto whole = preflight::trial_of(plan.groups[group], ranks);
    auto two = whole;
    two.name += kTwo;
    two.members.resize(std::min<std::size_t>(2, two.members.size()));
    for (const auto& workload : plan.bench.workloads) {
      if (!wanted(workload, only) || std::ranges::find(workload.groups, group) == workload.groups.end())
        continue;
      whole.workloads.push_back(workload.work);
      if (workload.targets.scaling > 0) two.workloads.push_back(workload.work);
    }
    if (!two.workloads.empty() && whole.members.size() > 2) trials.push_back(std::move(two));
    if (!whole.workloads.empty()) trials.push_back(std::move(whole));
  }
  return trials;
}

Repeat read_repeat(const std::vector<preflight::GroupTrial>& trials, const preflight::Measured& measured) {
  Repeat repeat;
  repeat.failure = failure_of(measured);
  for (const auto& trial : trials) {
    if (!trial.not_run.empty()) {
      if (repeat.failure.empty()) repeat.failure = fmt::format("{}: {}", trial.name, trial.not_run);
      continue;
    }
    if (measured.reports.empty()) continue;
    const bool two = trial.name.ends_with(kTwo);
    for (const auto& workload : trial.workloads) {
      const auto steps = steps_of(trial, workload.name, measured);
      if (steps.empty()) continue;
      repeat.timings.push_back(
          {workload.name, trial.name.substr(0, trial.name.size() - (two ? kTwo.size() : 0)),
           static_cast<std::uint32_t>(trial.members.size()), trial.backend, two, median(steps)});
    }
    if (trial.transport && !two) repeat.chosen.push_back(chosen_by(trial, measured));
  }
  return repeat;
}

double bus_bandwidth(const Workload& workload, double seconds, std::size_t ranks) {
  double bytes = 0;  // over each link
  for (const auto& one : workload.step)
    bytes += one.count * nlaunch::bus_bandwidth(one.op, one.bytes, 1, ranks);
  return seconds > 0 ? bytes / seconds : 0;
}

std::string text_of(const Chosen& chosen, const std::vector<Operation>& step) {
  std::vector<std::string> parts;
  for (const auto& one : chosen.choices) {
    const bool of_step = std::ranges::any_of(step, [&](const Operation& operation) {
      return operation.op == one.op && operation.bytes == one.bytes;
    });
    if (!of_step) continue;
    auto part = fmt::format("{}/{}", one.algorithm, one.protocol);
    if (one.channels > 0) part += fmt::format(" {}ch", one.channels);
    if (std::ranges::find(parts, part) == parts.end()) parts.push_back(std::move(part));
  }
  for (const auto& via : chosen.transports) parts.push_back("over " + via);
  return text::join(parts, ", ");
}

}  // namespace nlaunch::bench

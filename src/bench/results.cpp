#include "bench/results.h"

#include <algorithm>

#include "base/exit_code.h"

namespace nlaunch::bench {
namespace {

const Timing* find(const Repeat& repeat, const std::string& workload, const std::string& group, bool two) {
  const auto found = std::ranges::find_if(repeat.timings, [&](const Timing& one) {
    return one.workload == workload && one.group == group && one.two_ranks == two;
  });
  return found == repeat.timings.end() ? nullptr : &*found;
}

/// Workloads and groups in the order of the first arms that have them.
std::vector<std::pair<std::string, std::string>> keys(const Bench& bench) {
  std::vector<std::pair<std::string, std::string>> out;
  for (const auto& arm : bench.arms) {
    for (const auto& workload : arm.workloads) {
      for (const auto& repeat : arm.repeats) {
        for (const auto& timing : repeat.timings) {
          const std::pair key{timing.workload, timing.group};
          if (timing.workload == workload.work.name && std::ranges::find(out, key) == out.end())
            out.push_back(key);
        }
      }
    }
  }
  return out;
}

std::string chosen_in(const ArmResult& arm, const std::string& group, const std::vector<Operation>& step) {
  for (const auto& repeat : arm.repeats) {
    for (const auto& chosen : repeat.chosen) {
      if (chosen.group == group) return text_of(chosen, step);
    }
  }
  return "";
}

Held held(bool asked, bool known, bool right) {
  if (!asked) return Held::not_asked;
  return !known ? Held::unknown : right ? Held::held : Held::missed;
}

void judge(Line& line) {
  line.budget = held(line.targets.budget > 0, true, line.median <= line.targets.budget);
  line.bandwidth = held(line.targets.bus_bandwidth > 0, true, line.busbw >= line.targets.bus_bandwidth);
  const bool scales = line.targets.scaling > 0 && line.ranks > 2;
  line.scaling = held(scales, line.two_ranks > 0, line.busbw >= line.targets.scaling * line.two_ranks);
}

Line line_of(const ArmResult& arm, const std::string& workload, const std::string& group,
             std::uint64_t seed) {
  Line line;
  line.workload = workload;
  line.group = group;
  std::vector<double> two;
  for (const auto& repeat : arm.repeats) {
    if (const auto* timing = find(repeat, workload, group, false)) {
      line.seconds.push_back(timing->seconds);
      line.ranks = timing->ranks;
      line.backend = timing->backend;
    }
    if (const auto* timing = find(repeat, workload, group, true)) two.push_back(timing->seconds);
  }
  if (line.seconds.empty()) return line;
  line.median = median(line.seconds);
  if (line.seconds.size() >= kLeastRepeats) line.interval = median_interval(line.seconds, seed);
  for (const auto& one : arm.workloads) {
    if (one.work.name != workload) continue;
    line.targets = one.targets;
    line.chosen = chosen_in(arm, group, one.work.step);
    line.busbw = bus_bandwidth(one.work, line.median, line.ranks);
    line.two_ranks = bus_bandwidth(one.work, median(two), 2);
    if (one.work.step.size() == 1) line.bytes = one.work.step.front().bytes;
  }
  judge(line);
  return line;
}

}  // namespace

std::vector<Line> lines(const Bench& bench) {
  std::vector<Line> out;
  for (const auto& [workload, group] : keys(bench)) {
    std::vector<double> reference;
    for (std::size_t arm = 0; arm < bench.arms.size(); ++arm) {
      auto line = line_of(bench.arms[arm], workload, group, bench.seed);
      if (line.seconds.empty()) continue;
      line.arm = arm;
      line.reference = reference.empty();
      if (line.reference) {
        reference = line.seconds;
      } else {
        line.verdict = compare(line.seconds, reference, bench.seed);
      }
      out.push_back(std::move(line));
    }
  }
  return out;
}

std::vector<Failures> failures(const Bench& bench) {
  std::vector<Failures> out;
  for (std::size_t arm = 0; arm < bench.arms.size(); ++arm) {
    Failures one{arm, 0, bench.arms[arm].repeats.size(), {}, {}};
    for (const auto& repeat : bench.arms[arm].repeats) {
      if (repeat.failure.empty()) continue;
      ++one.failed;
      if (std::ranges::find(one.causes, repeat.failure) == one.causes.end())
        one.causes.push_back(repeat.failure);
    }
    if (!bench.arms[arm].refused.empty()) one.causes.push_back(bench.arms[arm].refused);
    one.interval = share_interval(one.failed, one.repeats);
    out.push_back(std::move(one));
  }
  return out;
}

std::vector<Difference> differences(const Bench& bench) {
  std::vector<Environments> arms;
  for (const auto& arm : bench.arms) arms.push_back(arm.environments);
  return differences(arms);
}

int code_of(const Bench& bench) {
  if (!bench.broken_off.empty()) return exit_code::bench_failed;
  for (const auto& one : failures(bench)) {
    if (one.failed == one.repeats) return exit_code::bench_failed;
  }
  for (const auto& line : lines(bench)) {
    for (const auto held : {line.budget, line.bandwidth, line.scaling}) {
      if (held == Held::missed) return exit_code::bench_missed;
    }
  }
  return exit_code::ok;
}

}  // namespace nlaunch::bench

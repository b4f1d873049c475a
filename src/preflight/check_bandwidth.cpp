#include <fmt/format.h>

#include <map>

#include "preflight/checks.h"
#include "preflight/expectations.h"
#include "preflight/slow_settings.h"

namespace nlaunch::preflight {
namespace {

Row judge(const Observations& observations, const GroupTrial& group, const Measurement& one,
          const plan::Expectation& expectation) {
  const auto value =
      fmt::format("{} at {} ({})", format_rate(one.busbw), message_text(one.bytes), time_text(one.seconds));
  const auto expected = fmt::format("{} and more ({})", format_rate(expectation.min), expectation.origin);
  if (one.busbw >= expectation.min) return passed("bandwidth", group.name, value, expected);
  const auto settings = slow_settings(observations, group);
  if (!settings.empty()) {
    return failed(
        "bandwidth", group.name, value, expected,
        {fmt::format("{}: run without it (nlaunch env --explain says where it comes from)", settings)});
  }
  return failed(
      "bandwidth", group.name, value, expected,
      {"links or GPUs are slower than this site's: nvidia-smi topo -m, nvidia-smi nvlink -s; report the node",
       Responsible::admin});
}

}  // namespace

std::vector<Row> check_bandwidth(const Observations& observations) {
  std::map<std::pair<std::string, std::uint64_t>, Measurement> measured;
  for (auto& one : measurements(observations)) measured[{one.group, one.bytes}] = one;
  std::vector<Row> rows;
  for (const auto& group : observations.groups) {
    for (const auto& expectation : observations.plan.expected.all_reduce_busbw) {
      if (!group.not_run.empty() || !fits(expectation, observations, group)) continue;
      if (tried_size(expectation) == 0) {
        rows.push_back(unknown("bandwidth", group.name,
                               fmt::format("the size of {} has no element of 4 B ({})",
                                           format_size(expectation.size), expectation.origin)));
      }
      const auto one = measured.find({group.name, tried_size(expectation)});
      if (one == measured.end()) continue;
      rows.push_back(judge(observations, group, one->second, expectation));
      if (rows.back().status == Status::fail) rows.back().hosts = observations.host_of(group);
    }
  }
  return rows;
}

}  // namespace nlaunch::preflight

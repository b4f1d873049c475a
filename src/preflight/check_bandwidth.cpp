#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "preflight/checks.h"
#include "preflight/expectations.h"
#include "preflight/slow_settings.h"

namespace nlaunch::preflight {
namespace {

Row judge(const Evidence& evidence, const GroupTrial& group, const Measurement& one,
          const plan::Expectation& expectation) {
  const auto value =
      fmt::format("{} at {} ({})", format_rate(one.busbw), message_text(one.bytes), time_text(one.seconds));
  const auto expected = fmt::format("{} and more ({})", format_rate(expectation.min), expectation.origin);
  if (one.busbw >= expectation.min) return passed("bandwidth", group.name, value, expected);
  const auto settings = slow_settings(evidence, group);
  if (!settings.empty()) {
    return failed(
        "bandwidth", group.name, value, expected,
        {fmt::format("{}: run without it (nlaunch env --explain says where it comes from)", settings)});
  }
  return failed(
      "bandwidth", group.name, value, expected,
      {"links or GPUs are slower than this site's: nvidia-smi topo -m, nvidia-smi nvlink -s; report the node",
       Who::admin});
}

}  // namespace

std::vector<Row> check_bandwidth(const Evidence& evidence) {
  std::vector<Row> rows;
  const auto measured = measurements(evidence);
  for (const auto& group : evidence.groups) {
    for (const auto& expectation : evidence.plan.expected.all_reduce_busbw) {
      if (!fits(expectation, evidence, group)) continue;
      const auto one = std::ranges::find_if(measured, [&](const Measurement& candidate) {
        return candidate.group == group.name && candidate.bytes == expectation.size;
      });
      if (one != measured.end()) rows.push_back(judge(evidence, group, *one, expectation));
    }
  }
  return rows;
}

}  // namespace nlaunch::preflight

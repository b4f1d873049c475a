#include "plan/together.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/registry.h"
#include "base/text.h"
#include "preflight/checks.h"

// Whether ranks that must be within one NVLink domain are: NVML reports the domain of each rank's GPU.
namespace nlaunch::preflight {
namespace {

constexpr auto kTogether = "together";

std::string host_of_node(const Observations& observations, std::uint32_t node) {
  return node < observations.hosts.size() ? observations.hosts[node] : fmt::format("node {}", node);
}

Row judge_together(const Observations& observations, const plan::Together& unit) {
  const std::set<std::uint32_t> nodes(unit.nodes.begin(), unit.nodes.end());
  std::map<std::string, std::set<std::string>> hosts_in;  // by domain
  std::size_t silent = 0;
  for (std::size_t i = 0; i < observations.ranks.size() && i < observations.reports.size(); ++i) {
    const auto& rank = observations.ranks[i];
    if (!nodes.contains(rank.node)) continue;
    const auto& identity = observations.reports[i].identity;
    if (!identity || identity->domain.empty())
      ++silent;
    else
      hosts_in[identity->domain].insert(host_of_node(observations, rank.node));
  }
  const auto subject = fmt::format("{}, {}", unit.name, text::count(nodes.size(), "node"));
  const auto expected = fmt::format("one NVLink domain ({})", unit.origin);
  if (hosts_in.size() > 1) {
    std::vector<std::string> parts;
    std::vector<std::string> hosts;
    for (const auto& [domain, names] : hosts_in) {
      parts.push_back(
          fmt::format("{} in {}", text::join(std::vector(names.begin(), names.end()), ", "), domain));
      hosts.insert(hosts.end(), names.begin(), names.end());
    }
    auto row = failed(kTogether, subject, text::join(parts, "; "), expected,
                      {"request nodes of one domain from Slurm (`topology: {slurm: block}` in the profile, "
                       "or --segment), or remove `keep_together`"});
    row.hosts = std::move(hosts);
    return row;
  }
  if (hosts_in.empty() || silent > 0)
    return unknown(kTogether, subject, "NVML reports no NVLink domain that these nodes share");
  return passed(kTogether, subject, fmt::format("all in {}", hosts_in.begin()->first));
}

std::vector<Row> check_together(const Observations& observations) {
  std::vector<Row> rows;
  for (const auto& unit : plan::kept_together(observations.plan)) {
    if (!unit.origin.empty() && unit.within == Closeness::domain)
      rows.push_back(judge_together(observations, unit));
  }
  return rows;
}

const Registered<Check> together_check{{
    .order = 45,
    .name = kTogether,
    .what = "the nodes that are kept together are in one NVLink domain, according to NVML",
    .stage = Stage::identity,
    .judge = check_together,
}};

}  // namespace
}  // namespace nlaunch::preflight

#include "preflight/search/suspects.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace nlaunch::preflight {
namespace {

/// By check, and not by subject: a rank's name contains its node, and a problem of one GPU on every node is a
/// problem of the site.
std::map<std::string, std::set<std::string>> failing_hosts(const Report& report) {
  std::map<std::string, std::set<std::string>> hosts;
  for (const auto& row : report.rows) {
    if (row.status == Status::fail) hosts[row.check].insert(row.hosts.begin(), row.hosts.end());
  }
  return hosts;
}

}  // namespace

std::vector<Suspect> suspects(const Report& report, std::size_t nodes) {
  const auto failing = failing_hosts(report);
  std::vector<Suspect> out;
  for (const auto& row : report.rows) {
    if (row.status != Status::fail) continue;
    const bool everywhere = failing.at(row.check).size() == nodes;
    if (everywhere && (nodes > 1 || row.responsible != Responsible::admin)) continue;
    for (const auto& host : row.hosts) {
      const auto known = std::ranges::find(out, host, &Suspect::host);
      if (known == out.end()) {
        out.push_back({host, fmt::format("{} {}: {}", row.check, row.subject, row.value), row.responsible});
      } else if (row.responsible == Responsible::admin) {
        known->responsible = Responsible::admin;
      }
    }
  }
  return out;
}

}  // namespace nlaunch::preflight

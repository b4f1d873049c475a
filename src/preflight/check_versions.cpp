#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/backend.h"
#include "base/text.h"
#include "preflight/checks.h"

namespace nlaunch::preflight {
namespace {

/// A libnccl of a role, and who loads it.
struct Loaded {
  const Rank* first = nullptr;
  std::vector<std::size_t> ranks;
};
/// By role and version; ranks without a known version are left out.
using Copies = std::map<std::pair<std::uint32_t, std::string>, Loaded>;

void add(const Observations& observations, std::size_t index, Copies& copies) {
  const auto& rank = observations.ranks[index];
  if (rank.library.version.empty()) return;
  auto& loaded = copies[{observations.plan.processes[rank.process].role, rank.library.version}];
  if (loaded.first == nullptr) loaded.first = &rank;
  loaded.ranks.push_back(index);
}

/// "learner", or "learner on node1 and node2" where it loads another one elsewhere.
std::string who_loads(const Observations& observations, const Copies& copies, std::uint32_t role,
                      const Loaded& loaded) {
  const auto several =
      std::ranges::count_if(copies, [&](const auto& entry) { return entry.first.first == role; });
  const auto& name = observations.plan.roles[role].name;
  if (several < 2 || observations.hosts.empty()) return name;
  constexpr std::size_t kMost = 4;
  auto hosts = observations.hosts_of(loaded.ranks);
  const auto more = hosts.size() > kMost ? hosts.size() - kMost : 0;
  hosts.resize(hosts.size() - more);
  return fmt::format("{} on {}{}", name, text::join(hosts, ", "),
                     more > 0 ? fmt::format(" and {} more", more) : "");
}

/// The nodes on which a role loads another version than on most nodes.
std::vector<std::string> odd_hosts(const Observations& observations, const Copies& copies) {
  std::map<std::uint32_t, std::size_t> all;
  for (const auto& [key, loaded] : copies) all[key.first] += loaded.ranks.size();
  std::vector<std::size_t> odd;
  for (const auto& [key, loaded] : copies) {
    const bool most_know_better = std::ranges::any_of(copies, [&](const auto& other) {
      return other.first.first == key.first && other.second.ranks.size() * 2 > all[key.first] &&
             &other.second != &loaded;
    });
    if (most_know_better) odd.insert(odd.end(), loaded.ranks.begin(), loaded.ranks.end());
  }
  return observations.hosts_of(odd);
}

void judge_group(const Observations& observations, const GroupTrial& group, std::vector<Row>& rows) {
  Copies copies;
  for (const auto rank : group.members) add(observations, rank, copies);
  std::set<std::string> versions;
  std::vector<std::string> responsible;
  for (const auto& [key, loaded] : copies) {
    const auto& library = loaded.first->library;
    versions.insert(library.version);
    responsible.push_back(fmt::format("{} loads {} ({}, {})",
                                      who_loads(observations, copies, key.first, loaded), library.version,
                                      library.path, library.by));
  }
  if (versions.size() == 1)
    rows.push_back(passed("nccl-version", group.name, *versions.begin(), "one version"));
  if (versions.size() > 1) {
    rows.push_back(
        failed("nccl-version", group.name, text::join(responsible, "; "), "one version of NCCL in the group",
               {"let these roles load one version: the same `preload:`, or the same wheel in their "
                "environments (vLLM also takes VLLM_NCCL_SO_PATH)"}));
    rows.back().hosts = odd_hosts(observations, copies);
  }
}

void judge_range(const Observations& observations, std::vector<Row>& rows) {
  const auto wanted = observations.plan.libraries.find("nccl");
  if (wanted == observations.plan.libraries.end() || !wanted->second.version) return;
  Copies copies;
  for (std::size_t rank = 0; rank < observations.ranks.size(); ++rank) add(observations, rank, copies);
  for (const auto& [key, loaded] : copies) {
    const auto& library = loaded.first->library;
    const auto version = parse_version(library.version);
    if (!version || wanted->second.version->contains(*version)) continue;
    rows.push_back(failed("nccl-version", who_loads(observations, copies, key.first, loaded),
                          fmt::format("{} ({}, {})", library.version, library.path, library.by),
                          fmt::format("{} ({})", wanted->second.version->str(), wanted->second.origin),
                          {"install an NCCL in that range, or `preload:` one"}));
    rows.back().hosts = observations.hosts_of(loaded.ranks);
  }
}

}  // namespace

std::vector<Row> check_versions(const Observations& observations) {
  std::vector<Row> rows;
  const bool gpus =
      std::ranges::any_of(observations.ranks, [](const Rank& rank) { return rank.device >= 0; });
  for (const auto& group : observations.groups) {
    const bool across_roles =
        group.kind == plan::GroupKind::world || group.kind == plan::GroupKind::weight_sync;
    if (across_roles && !traits_of(group.backend).library.empty() && gpus)
      judge_group(observations, group, rows);
  }
  judge_range(observations, rows);
  return rows;
}

}  // namespace nlaunch::preflight

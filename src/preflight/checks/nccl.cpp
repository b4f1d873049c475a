#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/backend.h"
#include "base/registry.h"
#include "base/text.h"
#include "preflight/checks.h"

namespace nlaunch::preflight {
namespace {

std::vector<Row> check_libraries(const NodeObservations& observations) {
  if (!observations.has_gpus()) return {skipped("nccl", "this machine", "no GPUs: libnccl is not needed")};
  std::vector<Row> rows;
  for (const auto& [role, library] : observations.libraries) {
    const auto& subject = observations.plan.roles[role].name;
    if (!library.version.empty()) {
      rows.push_back(
          passed("nccl", subject, fmt::format("{} {} ({})", library.version, library.path, library.by)));
    } else if (library.path.empty()) {
      rows.push_back(
          unknown("nccl", subject, fmt::format("libnccl not found ({}): {}", library.by, library.error)));
    } else {
      rows.push_back(failed("nccl", subject,
                            fmt::format("{} ({}): {}", library.path, library.by, library.error),
                            "a libnccl that loads", {"name an existing library, or install it"}));
    }
  }
  return rows;
}

const Registered<NodeCheck> nccl_check{{
    .order = 90,
    .name = "nccl",
    .what = "which libnccl each role loads, and whether its version is suitable",
    .judge = check_libraries,
}};

/// A version that is known to fail, and where.
struct KnownBad {
  bool (*applies)(const NodeObservations& observations, const Rank& rank, const Version& version);
  const char* what;
  const char* expected;
  const char* fix;
};

/// NCCL 2.28.9 and 2.29.2 test a weak compare-and-swap by its value when they return a proxy slot; on Arm the
/// slot leaks, and a rank waits for one forever without a message. Fixed in 2.29.3.
bool leaks_proxy_slots(const NodeObservations& observations, const Rank& /*rank*/, const Version& version) {
  const auto code = version.str();
  return observations.machine.arch == "aarch64" && (code == "2.28.9" || code == "2.29.2");
}

bool excludes_ll128(const std::string& protocols) {
  const auto lower = text::lower(protocols);
  const auto listed = text::split(lower.starts_with('^') ? lower.substr(1) : lower, ',');
  const bool named = std::ranges::find(listed, "ll128") != listed.end();
  return lower.starts_with('^') ? named : !lower.empty() && !named;
}

bool guarded(const NodeObservations& observations, const Rank& rank) {
  const auto is_zero = [&](const char* name) { return observations.variable(rank, name) == "0"; };
  return excludes_ll128(observations.variable(rank, "NCCL_PROTO").value_or("")) ||
         is_zero("NCCL_LL128_C2C") || (is_zero("FI_CXI_RDZV_THRESHOLD") && is_zero("FI_CXI_RDZV_GET_MIN"));
}

/// Since 2.27.3 NCCL uses LL128 across the chip-to-chip link of Grace Hopper; over Slingshot its flags and
/// data can arrive out of order, which corrupts results silently.
bool corrupts_over_slingshot(const NodeObservations& observations, const Rank& rank, const Version& version) {
  const auto& node = observations.planned();
  const bool grace_hopper = node.gpu_model.find("GH200") != std::string::npos ||
                            std::ranges::any_of(observations.machine.gpus, [](const GpuFact& gpu) {
                              return gpu.name.find("GH200") != std::string::npos;
                            });
  return grace_hopper && node.nic_kind == "cxi" && observations.plan.node.count > 1 &&
         version >= Version{{2, 27, 3}} && !guarded(observations, rank);
}

constexpr KnownBad kKnownBad[] = {
    {leaks_proxy_slots, "hangs silently on aarch64: it loses proxy slots", "2.28.7, or 2.29.3 or later",
     "install another NCCL in this role's environment, or `preload:` one"},
    {corrupts_over_slingshot, "can corrupt data silently: GH200 with Slingshot, and LL128 is allowed",
     "NCCL_PROTO=^LL128 (or NCCL_LL128_C2C=0, or FI_CXI_RDZV_THRESHOLD=0 with FI_CXI_RDZV_GET_MIN=0)",
     "set NCCL_PROTO: \"^LL128\" in the role's env:"},
};

void judge_rank(const NodeObservations& observations, const Rank& rank, const LibraryFact& library,
                std::vector<Row>& rows) {
  const auto version = parse_version(library.version);
  if (!version) return;
  for (const auto& bad : kKnownBad) {
    if (!bad.applies(observations, rank, *version)) continue;
    rows.push_back(
        failed("nccl-known-bad", observations.role_of(rank).name,
               fmt::format("NCCL {} ({}, {}) {}", library.version, library.path, library.by, bad.what),
               bad.expected, {bad.fix}));
  }
}

std::vector<Row> check_deny_list(const NodeObservations& observations) {
  std::vector<Row> rows;
  std::vector<std::string> clean;
  for (const auto& [role, library] : observations.libraries) {
    if (library.version.empty()) continue;
    // The environment is the role's: its first rank represents all.
    const auto rank = std::ranges::find_if(observations.ranks, [&](const Rank& one) {
      return observations.plan.processes[one.process].role == role;
    });
    const auto before = rows.size();
    if (rank != observations.ranks.end()) judge_rank(observations, *rank, library, rows);
    if (rows.size() == before)
      clean.push_back(fmt::format("{} {}", observations.plan.roles[role].name, library.version));
  }
  if (!clean.empty()) rows.push_back(passed("nccl-known-bad", "this machine", text::join(clean, ", ")));
  return rows;
}

const Registered<NodeCheck> nccl_known_bad_check{{
    .order = 100,
    .name = "nccl-known-bad",
    .what = "NCCL releases that are known to hang or to corrupt data",
    .judge = check_deny_list,
}};

/// A libnccl of a role, and the ranks that load it.
struct Loaded {
  const Rank* first = nullptr;
  std::vector<std::size_t> ranks;
};
/// By role and version; ranks without a known version are left out.
using Copies = std::map<std::pair<std::uint32_t, std::string>, Loaded>;

void add_copy(const Observations& observations, std::size_t index, Copies& copies) {
  const auto& rank = observations.ranks[index];
  if (rank.library.version.empty()) return;
  auto& loaded = copies[{observations.plan.processes[rank.process].role, rank.library.version}];
  if (loaded.first == nullptr) loaded.first = &rank;
  loaded.ranks.push_back(index);
}

/// "learner", or "learner on node1 and node2" if it loads another one elsewhere.
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

/// The nodes on which a role loads a different version than on most nodes.
std::vector<std::string> hosts_of_odd_copies(const Observations& observations, const Copies& copies) {
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

void judge_group_versions(const Observations& observations, const GroupTrial& group, std::vector<Row>& rows) {
  Copies copies;
  for (const auto rank : group.members) add_copy(observations, rank, copies);
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
    rows.push_back(failed("nccl-version", group.name, text::join(responsible, "; "),
                          "one version of NCCL in the group",
                          {"make these roles load one version: the same `preload:`, or the same wheel in "
                           "their environments (vLLM also accepts VLLM_NCCL_SO_PATH)"}));
    rows.back().hosts = hosts_of_odd_copies(observations, copies);
  }
}

void judge_version_range(const Observations& observations, std::vector<Row>& rows) {
  const auto wanted = observations.plan.libraries.find("nccl");
  if (wanted == observations.plan.libraries.end() || !wanted->second.version) return;
  Copies copies;
  for (std::size_t rank = 0; rank < observations.ranks.size(); ++rank) add_copy(observations, rank, copies);
  for (const auto& [key, loaded] : copies) {
    const auto& library = loaded.first->library;
    const auto version = parse_version(library.version);
    if (!version || wanted->second.version->contains(*version)) continue;
    rows.push_back(failed("nccl-version", who_loads(observations, copies, key.first, loaded),
                          fmt::format("{} ({}, {})", library.version, library.path, library.by),
                          fmt::format("{} ({})", wanted->second.version->str(), wanted->second.origin),
                          {"install an NCCL version in that range, or `preload:` one"}));
    rows.back().hosts = observations.hosts_of(loaded.ranks);
  }
}

std::vector<Row> check_versions(const Observations& observations) {
  std::vector<Row> rows;
  const bool gpus =
      std::ranges::any_of(observations.ranks, [](const Rank& rank) { return rank.device >= 0; });
  for (const auto& group : observations.groups) {
    const bool across_roles =
        group.kind == plan::GroupKind::world || group.kind == plan::GroupKind::weight_sync;
    if (across_roles && !traits_of(group.backend).library.empty() && gpus)
      judge_group_versions(observations, group, rows);
  }
  judge_version_range(observations, rows);
  return rows;
}

const Registered<Check> nccl_version_check{{
    .order = 10,
    .name = "nccl-version",
    .what = "all ranks of a group load the same version of NCCL",
    .stage = Stage::before,
    .judge = check_versions,
}};

}  // namespace
}  // namespace nlaunch::preflight

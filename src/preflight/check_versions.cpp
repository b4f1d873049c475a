#include <fmt/format.h>

#include <set>

#include "base/text.h"
#include "preflight/checks.h"

namespace nlaunch::preflight {
namespace {

/// The roles of a group that have a known libnccl.
std::set<std::uint32_t> roles_of(const Evidence& evidence, const plan::Group& group) {
  std::set<std::uint32_t> roles;
  for (const auto& member : group.members) {
    const auto role = evidence.plan.processes[member.process].role;
    const auto known = evidence.libraries.find(role);
    if (known != evidence.libraries.end() && !known->second.version.empty()) roles.insert(role);
  }
  return roles;
}

void judge_group(const Evidence& evidence, const plan::Group& group, std::vector<Row>& rows) {
  std::set<std::string> versions;
  std::vector<std::string> who;
  for (const auto role : roles_of(evidence, group)) {
    const auto& library = evidence.libraries.at(role);
    versions.insert(library.version);
    who.push_back(fmt::format("{} loads {} ({}, {})", evidence.plan.roles[role].name, library.version,
                              library.path, library.by));
  }
  if (versions.size() == 1)
    rows.push_back(passed("nccl-version", group.name, *versions.begin(), "one version"));
  if (versions.size() > 1) {
    rows.push_back(
        failed("nccl-version", group.name, text::join(who, "; "), "one version of NCCL in the group",
               {"let these roles load one version: the same `preload:`, or the same wheel in their "
                "environments (vLLM also takes VLLM_NCCL_SO_PATH)"}));
  }
}

void judge_range(const Evidence& evidence, std::vector<Row>& rows) {
  const auto wanted = evidence.plan.libraries.find("nccl");
  if (wanted == evidence.plan.libraries.end() || !wanted->second.version) return;
  for (const auto& [role, library] : evidence.libraries) {
    const auto version = parse_version(library.version);
    if (library.version.empty() || !version || wanted->second.version->contains(*version)) continue;
    rows.push_back(failed("nccl-version", evidence.plan.roles[role].name,
                          fmt::format("{} ({}, {})", library.version, library.path, library.by),
                          fmt::format("{} ({})", wanted->second.version->str(), wanted->second.origin),
                          {"install an NCCL in that range, or `preload:` one"}));
  }
}

}  // namespace

std::vector<Row> check_versions(const Evidence& evidence) {
  std::vector<Row> rows;
  for (const auto& group : evidence.plan.groups) {
    const bool across_roles =
        group.kind == plan::GroupKind::world || group.kind == plan::GroupKind::weight_sync;
    if (across_roles && group.backend == Backend::nccl && evidence.has_gpus())
      judge_group(evidence, group, rows);
  }
  judge_range(evidence, rows);
  return rows;
}

}  // namespace nlaunch::preflight

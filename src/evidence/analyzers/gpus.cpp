#include <fmt/format.h>

#include <algorithm>

#include "base/registry.h"
#include "evidence/analyzers/waits.h"
#include "evidence/verdict.h"

// What the use of the GPUs shows: one that is busy all the time and draws little power runs a kernel that
// waits, as a collective does whose other ranks have not arrived.
namespace nlaunch::evidence {
namespace {

enum class KernelUse { unknown, idle, spins, works };

struct SeenUse {
  KernelUse use = KernelUse::unknown;
  GpuUse gpu{};  ///< the first of them
};

SeenUse gpu_use_of(const Evidence& evidence, const Member& member) {
  const auto host = evidence.gpu_use.find(member.host);
  if (host == evidence.gpu_use.end() || member.gpus.empty()) return {};
  std::vector<GpuUse> uses;
  for (const auto& bus_id : member.gpus) {
    const auto found = host->second.find(bus_id);
    if (found == host->second.end()) return {};
    uses.push_back(found->second);
  }
  if (std::ranges::all_of(uses, &GpuUse::idle)) return {KernelUse::idle, uses.front()};
  if (std::ranges::all_of(uses, [](const auto& use) { return use.spins() || use.idle(); }))
    return {KernelUse::spins, *std::ranges::find_if(uses, &GpuUse::spins)};
  return {KernelUse::works, uses.front()};
}

/// The members of a role, by what their GPUs do.
struct RoleUse {
  std::map<KernelUse, std::vector<std::size_t>> members;
  GpuUse spinning{};

  [[nodiscard]] std::size_t count(KernelUse use) const {
    const auto found = members.find(use);
    return found == members.end() ? 0 : found->second.size();
  }
  [[nodiscard]] std::size_t size() const {
    return count(KernelUse::idle) + count(KernelUse::spins) + count(KernelUse::works);
  }
  [[nodiscard]] bool all(KernelUse use) const { return size() > 0 && count(use) == size(); }
};

std::string names_by_use(const Evidence& evidence, const RoleUse& role, KernelUse use) {
  std::vector<std::string> names;
  for (const auto i : role.members.at(use)) names.push_back(evidence.members[i].name());
  return listed(names);
}

std::string spinning_text(const GpuUse& use) {
  const auto at_work = use.draws_less() ? fmt::format(", {:.0f} W when working", use.working) : std::string();
  return fmt::format("100 % busy at {:.0f} W{}: a kernel that waits, as in a collective", use.power_now,
                     at_work);
}

void describe_role(const Evidence& evidence, const std::string& name, const RoleUse& role,
                   Analysis& analysis) {
  if (role.all(KernelUse::spins)) {
    analysis.says.push_back(
        fmt::format("all GPUs of {} are {}: it is stuck", name, spinning_text(role.spinning)));
  } else if (role.all(KernelUse::idle)) {
    analysis.says.push_back(fmt::format("the GPUs of {} are idle", name));
  } else {
    for (const auto use : {KernelUse::spins, KernelUse::idle, KernelUse::works}) {
      if (role.count(use) == 0) continue;
      const auto* what = use == KernelUse::idle ? "idle" : "busy";
      analysis.says.push_back(fmt::format("{}: {}", names_by_use(evidence, role, use),
                                          use == KernelUse::spins ? spinning_text(role.spinning) : what));
    }
  }
}

/// Most wait in a kernel, and a few run none: those have not arrived.
void accuse_idle(const Evidence& evidence, const RoleUse& role, Analysis& analysis) {
  if (role.count(KernelUse::spins) <= role.count(KernelUse::idle) || role.count(KernelUse::idle) == 0) return;
  for (const auto i : role.members.at(KernelUse::idle)) {
    if (evidence.members[i].rank)
      analysis.accused.push_back({i, "has an idle GPU, while the GPUs of the others wait in a kernel"});
  }
}

/// Whether the processes that train wait for those that generate, or the reverse.
void tell_apart(const std::map<std::string, RoleUse>& ranked, const std::map<std::string, RoleUse>& others,
                Analysis& analysis) {
  const auto all = [](const std::map<std::string, RoleUse>& roles, KernelUse use) {
    return !roles.empty() &&
           std::ranges::all_of(roles, [use](const auto& role) { return role.second.all(use); });
  };
  const auto any = [](const std::map<std::string, RoleUse>& roles, KernelUse use) {
    return std::ranges::any_of(roles, [use](const auto& role) { return role.second.count(use) > 0; });
  };
  if (all(ranked, KernelUse::idle) && all(others, KernelUse::idle))
    analysis.says.emplace_back(
        "nothing computes: all wait for something other than a GPU (a queue, a lock, a file)");
  if (all(ranked, KernelUse::idle) && any(others, KernelUse::works))
    analysis.says.emplace_back("the processes that train wait for those that generate, which are busy");
  if (any(ranked, KernelUse::spins) && all(others, KernelUse::idle))
    analysis.says.emplace_back(
        "the processes that generate are idle and not the cause: those that train are stuck");
}

Analysis analyze_gpus(const Evidence& evidence) {
  Analysis analysis;
  std::map<std::string, RoleUse> ranked;
  std::map<std::string, RoleUse> others;
  for (std::size_t i = 0; i < evidence.members.size(); ++i) {
    const auto& member = evidence.members[i];
    const auto seen = gpu_use_of(evidence, member);
    if (seen.use == KernelUse::unknown) continue;
    auto& role = (member.rank ? ranked : others)[member.role];
    role.members[seen.use].push_back(i);
    if (seen.use == KernelUse::spins) role.spinning = seen.gpu;
  }
  for (const auto* roles : {&ranked, &others}) {
    for (const auto& [name, role] : *roles) describe_role(evidence, name, role, analysis);
  }
  for (const auto& [name, role] : ranked) accuse_idle(evidence, role, analysis);
  tell_apart(ranked, others, analysis);
  return analysis;
}

const Registered<Analyzer> gpus_analyzer{{.order = 70, .name = "GPUs", .analyze = analyze_gpus}};

}  // namespace
}  // namespace nlaunch::evidence

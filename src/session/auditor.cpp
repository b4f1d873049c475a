#include "session/auditor.h"

#include <algorithm>

#include "base/exit_code.h"
#include "launch/machine.h"
#include "preflight/ask/role_library.h"

namespace nlaunch::session {

Auditor::Auditor(const plan::Plan& plan, const plan::BoundNode& node, std::string probe)
    : plan_(plan), node_(node), probe_(std::move(probe)) {
  facts_.preloaded = launch::preloaded_files(node);
  renew();
}

void Auditor::renew() {
  seen_ = {};  // what ran before was judged with other facts
  facts_.named_library.clear();
  facts_.own_library.clear();
  for (const auto& process : node_.processes) {
    const auto named = preflight::variable_of(process, "VLLM_NCCL_SO_PATH");
    if (auto file = named ? launch::file_of(*named) : std::nullopt)
      facts_.named_library[plan_.role_of(plan_.processes[process.process]).name] = std::move(*file);
  }
}

/// Only if a preload could be mistaken for a role's own library, because it may start that role's Python.
void Auditor::find_own_libraries() {
  if (!facts_.own_library.empty() || facts_.preloaded.empty()) return;
  for (const auto& process : node_.processes) {
    const auto& role = plan_.role_of(plan_.processes[process.process]);
    if (!role.preload.empty() || facts_.own_library.contains(role.name)) continue;
    facts_.own_library[role.name] = preflight::find_role_library(process, probe_).path;
  }
}

supervise::Hooks Auditor::hooks() {
  supervise::Hooks hooks;
  hooks.period = std::chrono::milliseconds(250);
  hooks.on_started = [this](std::uint32_t process, pid_t) { facts_.started.insert(process); };
  hooks.tick = [this](const supervise::LivePids& live) { return tick(live); };
  hooks.before_stop = [this](const supervise::LivePids& live) { look(live, launch::Thoroughness::all); };
  return hooks;
}

std::optional<supervise::Hooks::Abort> Auditor::tick(const supervise::LivePids& live) {
  constexpr Clock::duration kBetweenLooks = std::chrono::seconds(1);
  constexpr Clock::duration kBetweenLooksAtAll = std::chrono::minutes(1);
  const auto now = Clock::now();
  if (now < next_) return std::nullopt;
  const bool all = now >= next_of_all_;
  look(live, all ? launch::Thoroughness::all : launch::Thoroughness::changes);
  next_ = Clock::now() + kBetweenLooks;
  if (all) next_of_all_ = Clock::now() + kBetweenLooksAtAll;
  if (plan_.audit != AuditMode::enforce) return std::nullopt;
  const auto judged = report();
  if (judged.findings.empty()) return std::nullopt;
  return supervise::Hooks::Abort{judged.findings.front().message, exit_code::audit_refused};
}

void Auditor::look(const supervise::LivePids& live, launch::Thoroughness thoroughness) {
  launch::observe(seen_, live, facts_.preloaded, bindings_, thoroughness);
}

launch::AuditReport Auditor::report() {
  find_own_libraries();
  for (const auto& path : launch::mapped_nccl(seen_)) {
    if (!facts_.versions.contains(path)) facts_.versions[path] = launch::library_version(probe_, path);
  }
  return launch::judge(plan_, node_, seen_, facts_);
}

}  // namespace nlaunch::session

#include "session/auditor.h"

#include <algorithm>

#include "base/exit_code.h"
#include "launch/machine.h"
#include "preflight/ask/role_library.h"

namespace nlaunch::session {

Auditor::Auditor(const plan::Plan& plan, const plan::BoundNode& node, std::string probe)
    : plan_(plan), node_(node), probe_(std::move(probe)) {
  facts_.preloaded = launch::preloaded_files(node);
}

/// Asked only where a preload could be mistaken for a role's own library: it may start that role's Python.
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
  hooks.tick = [this](const supervise::LivePids& live) { return tick(live); };
  hooks.before_stop = [this](const supervise::LivePids& live) { look(live); };
  return hooks;
}

std::optional<supervise::Hooks::Abort> Auditor::tick(const supervise::LivePids& live) {
  constexpr Clock::duration kLongest = std::chrono::minutes(1);
  constexpr Clock::duration kAwaiting = std::chrono::seconds(1);
  if (Clock::now() < next_) return std::nullopt;
  look(live);
  // Nobody says when a service starts those that it spawns, nor for how long they will be there.
  if (launch::awaits_spawned(plan_, node_, seen_)) wait_ = std::min(kAwaiting, wait_);
  next_ = Clock::now() + wait_;
  wait_ = std::min(kLongest, wait_ * 2);
  if (plan_.audit != AuditMode::enforce) return std::nullopt;
  const auto judged = report();
  if (judged.findings.empty()) return std::nullopt;
  return supervise::Hooks::Abort{judged.findings.front().message, exit_code::preflight_refused};
}

void Auditor::look(const supervise::LivePids& live) {
  launch::observe(seen_, live, facts_.preloaded);
}

launch::AuditReport Auditor::report() {
  find_own_libraries();
  for (const auto& path : launch::mapped_nccl(seen_)) {
    if (!facts_.versions.contains(path)) facts_.versions[path] = launch::library_version(probe_, path);
  }
  return launch::judge(plan_, node_, seen_, facts_);
}

}  // namespace nlaunch::session

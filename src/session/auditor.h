#pragma once
#include <chrono>
#include <map>
#include <optional>
#include <string>

#include "launch/audit/audit.h"
#include "supervise/local_backend.h"

namespace nlaunch::session {

/// Watches during an attempt who has which libnccl, and judges it.
class Auditor {
 public:
  Auditor(const plan::Plan& plan, const plan::BoundNode& node, std::string probe);

  /// Processes begin otherwise from now on.
  void renew();
  /// To have it look while the processes run. They refer to this.
  supervise::Hooks hooks();

  /// Looks each second, at all processes each minute. Under `enforce`, a finding ends the run.
  std::optional<supervise::Hooks::Abort> tick(const supervise::LivePids& live);
  void look(const supervise::LivePids& live, launch::Thoroughness thoroughness);
  /// What all looks together show.
  launch::AuditReport report();

 private:
  void find_own_libraries();

  using Clock = std::chrono::steady_clock;

  const plan::Plan& plan_;
  const plan::BoundNode& node_;
  std::string probe_;
  launch::Observations seen_;
  launch::AuditFacts facts_;
  sys::BindingReader bindings_ = launch::nccl_bindings();
  Clock::time_point next_ = Clock::now();
  Clock::time_point next_of_all_ = Clock::now();
};

}  // namespace nlaunch::session

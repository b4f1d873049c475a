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

  /// To have it look while the processes run. They refer to this.
  supervise::Hooks hooks();

  /// Looks when it is time: often at first, each second until those that a service spawns are there, each
  /// minute in the end (a model may load for minutes before NCCL is). Under `enforce`, a finding ends the
  /// run.
  std::optional<supervise::Hooks::Abort> tick(const supervise::LivePids& live);
  void look(const supervise::LivePids& live);
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
  Clock::time_point next_ = Clock::now();
  Clock::duration wait_ = std::chrono::milliseconds(250);
};

}  // namespace nlaunch::session

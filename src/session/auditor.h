#pragma once
#include <chrono>
#include <map>
#include <optional>
#include <string>

#include "launch/audit/audit.h"
#include "supervise/local_backend.h"

namespace nlaunch::session {

/// Observes during an attempt which process uses which libnccl, and judges it.
class Auditor {
 public:
  Auditor(const plan::Plan& plan, const plan::BoundNode& node, std::string probe);

  /// Processes start with another environment from now on.
  void renew();
  /// Hooks that make it observe while the processes run. They refer to this object.
  supervise::Hooks hooks();

  /// Observes changes each second and all processes each minute. Under `enforce`, a finding ends the run.
  std::optional<supervise::Hooks::Abort> tick(const supervise::LivePids& live);
  void look(const supervise::LivePids& live, launch::Thoroughness thoroughness);
  /// The result of all observations so far.
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

#pragma once
#include <memory>
#include <vector>

#include "preflight/search/suspects.h"
#include "session/attempt_host.h"
#include "supervise/guardian.h"

namespace nlaunch::session {

/// What a run can run on: creates a host for each attempt.
class RunTarget {
 public:
  RunTarget() = default;
  virtual ~RunTarget() = default;
  RunTarget(const RunTarget&) = delete;
  RunTarget& operator=(const RunTarget&) = delete;

  virtual std::unique_ptr<AttemptHost> next(const supervise::GuardianLink& guardian) = 0;
  /// Adds the nodes that an administrator must repair to the site's list of bad nodes, and prints it.
  virtual void record(const std::vector<preflight::Suspect>& suspects) = 0;
  /// Excludes these nodes from the following attempts, and prints it. False: there are not enough other
  /// nodes, and nothing has changed.
  virtual bool leave_out(const std::vector<preflight::Suspect>& suspects) = 0;
};

}  // namespace nlaunch::session

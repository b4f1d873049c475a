#pragma once
#include <memory>
#include <vector>

#include "preflight/search/suspects.h"
#include "session/attempt_host.h"
#include "supervise/guardian.h"

namespace nlaunch::session {

/// What a run has to run on: it makes a host for each attempt.
class RunTarget {
 public:
  RunTarget() = default;
  virtual ~RunTarget() = default;
  RunTarget(const RunTarget&) = delete;
  RunTarget& operator=(const RunTarget&) = delete;

  virtual std::unique_ptr<AttemptHost> next(const supervise::GuardianLink& guardian) = 0;
  /// Puts those that their administrator must mend on the site's list of bad nodes, and says so.
  virtual void record(const std::vector<preflight::Suspect>& suspects) = 0;
  /// Leaves these nodes out of the attempts to come, and says so. False: there are not enough others, and
  /// nothing has changed.
  virtual bool leave_out(const std::vector<preflight::Suspect>& suspects) = 0;
};

}  // namespace nlaunch::session

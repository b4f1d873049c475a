#pragma once
#include <memory>
#include <vector>

#include "cli/place.h"
#include "preflight/suspects.h"
#include "supervise/guardian.h"

namespace nlaunch::cli {

/// What a job has to run on: it makes a place for each attempt.
class Venue {
 public:
  Venue() = default;
  virtual ~Venue() = default;
  Venue(const Venue&) = delete;
  Venue& operator=(const Venue&) = delete;

  virtual std::unique_ptr<Place> next(const supervise::GuardianLink& guardian) = 0;
  /// Puts those that their administrator must mend on the site's list of bad nodes, and says so.
  virtual void record(const std::vector<preflight::Suspect>& suspects) = 0;
  /// Leaves these nodes out of the attempts to come, and says so. False: there are not enough others, and
  /// nothing has changed.
  virtual bool leave_out(const std::vector<preflight::Suspect>& suspects) = 0;
};

}  // namespace nlaunch::cli

#pragma once
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "base/diagnostic.h"
#include "base/drill.h"

namespace nlaunch::probe {

/// One rank of a drill, in its communicators.
class Rehearsal {
 public:
  virtual ~Rehearsal() = default;

  /// What all ranks do first, in the same order: connections are created, and the numbers laid out.
  virtual Result<void> prepare() = 0;
  /// Starts them. May return when they are done, or never.
  virtual Result<void> launch(const std::vector<DrillLaunch>& launches) = 0;
  /// Whether everything that was launched is done.
  virtual Result<bool> finished() = 0;
  /// Elements that differ from the expected ones, once it is done.
  virtual Result<std::uint64_t> wrong() = 0;
};

/// Makes a rank do its part and observes it until the deadline. What it saw:
///   {"launched": how many, "ended": "completed", "waiting" (when the deadline came) or "failed", "text": of
///    a failure, "wrong": elements, "seconds"}
nlohmann::json play(Rehearsal& rehearsal, const std::vector<DrillLaunch>& launches, Duration deadline);

}  // namespace nlaunch::probe

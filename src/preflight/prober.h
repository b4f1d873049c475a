#pragma once
#include <functional>
#include <vector>

#include "preflight/evidence.h"
#include "preflight/probes.h"
#include "sys/loop.h"

namespace nlaunch::preflight {

struct ProbeWork {
  std::size_t ranks = 0;
  const std::vector<GroupTrial>& groups;
  Duration to_identify{};  ///< the longest time without a word from any probe before all say who they are
  Duration to_work{};      ///< the same afterwards
  /// Called once, when every rank has said who it is: true lets them go on.
  std::function<bool(const std::vector<RankReport>&)> fit;
  std::function<bool()> cancelled;  ///< may be empty
};

struct ProbeOutcome {
  std::vector<RankReport> reports;
  bool went = false;
  bool cancelled = false;
};

/// Starts the probes, lets them go on when they are fit, hands the ids of communicators around, and gathers
/// what they say. Runs `loop`; when it returns, all have been killed and reaped, but for those whose report
/// says that they could not be.
ProbeOutcome run_probes(sys::Loop& loop, Probes& probes, const ProbeWork& work);

}  // namespace nlaunch::preflight

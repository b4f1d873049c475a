#pragma once
#include <functional>
#include <vector>

#include "preflight/ask/probes.h"
#include "preflight/observations.h"
#include "preflight/timeline.h"
#include "sys/loop.h"

namespace nlaunch::preflight {

struct ProbeWork {
  std::vector<std::size_t> ranks;  ///< that take part, by index into Evidence::ranks
  std::size_t of = 0;              ///< the total number of ranks
  const std::vector<GroupTrial>& groups;
  Duration to_identify{};  ///< the longest time without output from any probe before all have identified
                           ///< themselves
  Duration to_work{};      ///< the same afterwards
  /// Called once, when every rank has identified itself: true lets them continue.
  std::function<bool(const std::vector<RankReport>&)> fit;
  std::function<bool()> cancelled;  ///< may be empty
  /// No rank is in two of the groups: each group continues as soon as its own ranks have identified
  /// themselves, and a group that fails does not stop the others. `fit` is not called.
  bool apart = false;
  std::function<void(const std::string&)> progress{};  ///< receives progress messages; may be empty
  Timeline* timeline = nullptr;                        ///< receives the phases of the probes; may be null
};

struct ProbeOutcome {
  std::vector<RankReport> reports;  ///< of all ranks; empty for those that did not take part
  bool went = false;
  bool cancelled = false;
};

/// Starts the probes, lets them continue when they are fit, relays the ids of communicators, and collects
/// their output. Runs `loop`. When it returns, all probes have been killed and reaped, except those whose
/// report says that they could not be.
ProbeOutcome run_probes(sys::Loop& loop, Probes& probes, const ProbeWork& work);

/// The largest message for which each of these ranks has room on its GPU, twice, next to NCCL's own memory.
/// What comes before a sweep is tried in any case: too little room for it is a fault.
std::uint64_t room_for_messages(const std::vector<RankReport>& reports,
                                const std::vector<std::size_t>& ranks);

}  // namespace nlaunch::preflight

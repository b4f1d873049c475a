#pragma once
#include <functional>
#include <vector>

#include "preflight/ask/probes.h"
#include "preflight/observations.h"
#include "sys/loop.h"

namespace nlaunch::preflight {

struct ProbeWork {
  std::vector<std::size_t> ranks;  ///< that take part, by index into Evidence::ranks
  std::size_t of = 0;              ///< how many ranks there are in all
  const std::vector<GroupTrial>& groups;
  Duration to_identify{};  ///< the longest time without a word from any probe before all say who they are
  Duration to_work{};      ///< the same afterwards
  /// Called once, when every rank has said who it is: true lets them go on.
  std::function<bool(const std::vector<RankReport>&)> fit;
  std::function<bool()> cancelled;  ///< may be empty
  /// No rank is in two of the groups: each group goes on as soon as its own ranks have said who they are, and
  /// one that fails ends no other. `fit` is not asked.
  bool apart = false;
  std::function<void(const std::string&)> progress{};  ///< told what goes on; may be empty
};

struct ProbeOutcome {
  std::vector<RankReport> reports;  ///< of all ranks; empty for those that took no part
  bool went = false;
  bool cancelled = false;
};

/// Starts the probes, lets them go on when they are fit, hands the ids of communicators around, and gathers
/// what they say. Runs `loop`; when it returns, all have been killed and reaped, but for those whose report
/// says that they could not be.
ProbeOutcome run_probes(sys::Loop& loop, Probes& probes, const ProbeWork& work);

/// The largest message for which each of these ranks has room on its GPU, twice, beside what NCCL takes. What
/// stands before a sweep is tried in any case: too little room for it is a fault.
std::uint64_t room_for_messages(const std::vector<RankReport>& reports,
                                const std::vector<std::size_t>& ranks);

}  // namespace nlaunch::preflight

#pragma once
#include "base/diagnostic.h"
#include "preflight/ask/prober.h"
#include "preflight/examine.h"

namespace nlaunch::preflight {

/// One start of the probes.
struct GroupRun {
  std::string folder;  ///< for what they need and leave; is made
  bool apart = false;  ///< as in ProbeWork; then only the ranks of the groups are started
  std::function<bool(const std::vector<RankReport>&)> fit{};  ///< as in ProbeWork
};

/// Lets probes try `observations.groups`, and puts what they said into the observations. Sizes for which
/// there was no room are taken out of the groups. True when it was cancelled. A folder that cannot be made is
/// an error.
Result<bool> try_groups(sys::Loop& loop, const Examination& request, Observations& observations,
                        const GroupRun& run);

/// What the job has, without any group or report.
Observations observations_for(const Examination& request, const std::vector<Rank>& ranks);

}  // namespace nlaunch::preflight

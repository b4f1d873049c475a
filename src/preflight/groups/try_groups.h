#pragma once
#include "base/diagnostic.h"
#include "preflight/ask/prober.h"
#include "preflight/examine.h"

namespace nlaunch::preflight {

/// One start of the probes.
struct GroupRun {
  std::string folder;  ///< for files that they need and leave; is created
  bool apart = false;  ///< as in ProbeWork; then only the ranks of the groups are started
  std::function<bool(const std::vector<RankReport>&)> fit{};  ///< as in ProbeWork
};

/// Makes probes try `observations.groups`, and puts their reports into the observations. Sizes that did not
/// fit into memory are removed from the groups. True if it was cancelled. A directory that cannot be created
/// is an error.
Result<bool> try_groups(sys::Loop& loop, const Examination& request, Observations& observations,
                        const GroupRun& run);

/// What the job has, without any group or report.
Observations observations_for(const Examination& request, const std::vector<Rank>& ranks);

}  // namespace nlaunch::preflight

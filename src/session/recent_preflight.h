#pragma once
#include <optional>

#include "launch/bind/bind.h"
#include "preflight/preflight.h"

namespace nlaunch::session {

/// A preflight that need not be repeated in full.
struct RecentPreflight {
  std::string run;  ///< id of the run directory that has its report
  preflight::Report report;
  Duration age{};  ///< since it finished
};

/// The preflight that passed at `level` or above within the last ten minutes, in the same job, for the same
/// plan on the same nodes, with the same GPUs, libraries and environments. It is searched in the other run
/// directories of this name. It does not count if something went wrong after it: a preflight of the same job
/// that did not pass, an earlier attempt of this run, or a run that did not finish or needed several
/// attempts. What ended them may be what a preflight finds. The attempt in `paths` must be bound, and its
/// nodes must have written their files there. `now`: seconds since 1970.
std::optional<RecentPreflight> recent_preflight(const launch::RunPaths& paths, PreflightLevel level,
                                                const std::string& job, std::int64_t now);

/// "preflight: level quick, because level standard passed 2m ago (run ID) with ...": for people.
std::string sentence(const RecentPreflight& recent);

}  // namespace nlaunch::session

#pragma once
#include <memory>

#include "probe/rank/communicator.h"
#include "probe/rank/rehearsal.h"

namespace nlaunch::probe {

/// Over Gloo, which has no streams and no graphs: each launch returns when it is done, or after the deadline
/// of `requests`, one per communicator.
Result<std::unique_ptr<Rehearsal>> rehearse_gloo(const Drill& drill,
                                                 const std::vector<JoinRequest>& requests);

}  // namespace nlaunch::probe

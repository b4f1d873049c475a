#pragma once
#include "preflight/evidence.h"

namespace nlaunch::preflight {

/// True when a floor of the site holds for this group: an all-reduce over NCCL with as many ranks on each
/// node, on as many nodes.
bool fits(const plan::Expectation& expectation, const Evidence& evidence, const GroupTrial& group);

}  // namespace nlaunch::preflight

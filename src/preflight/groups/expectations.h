#pragma once
#include "preflight/observations.h"

namespace nlaunch::preflight {

/// True when a floor of the site holds for this group: an all-reduce over NCCL with as many ranks on each
/// node, on as many nodes.
bool fits(const plan::Expectation& expectation, const Observations& observations, const GroupTrial& group);

/// Bytes of the message that is tried for it: whole elements. 0: there is none.
std::uint64_t tried_size(const plan::Expectation& expectation);

/// Writes beside each measurement of what kind its group is, and what the site expects of it.
void set_expectations(const Observations& observations, std::vector<Measurement>& measurements);

}  // namespace nlaunch::preflight

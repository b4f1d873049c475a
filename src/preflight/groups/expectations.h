#pragma once
#include "preflight/observations.h"

namespace nlaunch::preflight {

/// True if a floor of the site applies to this group: an all-reduce over NCCL with the same number of ranks
/// per node, on the same number of nodes.
bool fits(const plan::Expectation& expectation, const Observations& observations, const GroupTrial& group);

/// Bytes of the message that is tried for it: whole elements. 0: none.
std::uint64_t tried_size(const plan::Expectation& expectation);

/// Adds to each measurement the kind of its group, and what the site expects of it.
void set_expectations(const Observations& observations, std::vector<Measurement>& measurements);

}  // namespace nlaunch::preflight

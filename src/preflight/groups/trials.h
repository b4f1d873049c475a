#pragma once
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "preflight/observations.h"

/// What the probes will do, as a function of the plan and the libraries.
namespace nlaunch::preflight {

/// One rank per GPU (or CPU slot) of each process that is bound on this node, in plan order.
std::vector<Rank> make_ranks(const plan::Plan& plan, const plan::BoundNode& node);

/// Each node's GPUs, the learners' world, the weight-sync group. An engine's tensor-parallel group is not
/// tried separately: its node's group contains all its members. A node group whose ranks load several
/// versions of NCCL is split into one per version; any other such group is not run, and neither is one with
/// the same ranks as an earlier group. Of groups that use the same links, only the largest queries the
/// transport.
std::vector<GroupTrial> make_trials(const Observations& observations);

/// A group of the plan over these ranks, with no work yet. `not_run` says why it cannot be tried: its ranks
/// load different versions of NCCL, or one of them has no known version.
GroupTrial trial_of(const plan::Group& group, const std::vector<Rank>& ranks);

/// The file that all probes read (src/probe/rank/spec.h describes it). `addresses` by node; empty: only this
/// machine.
nlohmann::json make_spec(const Observations& observations, const std::string& folder,
                         const std::vector<std::string>& addresses = {});

}  // namespace nlaunch::preflight

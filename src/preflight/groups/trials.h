#pragma once
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "preflight/observations.h"

/// What the probes will do, as a function of the plan and of the libraries.
namespace nlaunch::preflight {

/// A rank for each GPU (or CPU slot) of each process that is bound on this node, in plan order.
std::vector<Rank> make_ranks(const plan::Plan& plan, const plan::BoundNode& node);

/// Each node's GPUs, the learners' world, the weight-sync group. An engine's tensor-parallel group is not
/// tried by itself: its node's group holds all its members. A node group whose ranks load several versions of
/// NCCL becomes one for each version; another group of that kind is not run, nor is one of the ranks of a
/// group before it. Of groups that use the same links only the largest asks for the transport.
std::vector<GroupTrial> make_trials(const Observations& observations);

/// A group of the plan over these ranks, with no work yet. `not_run` says why it cannot be tried: its ranks
/// load different versions of NCCL, or none is known for one of them.
GroupTrial trial_of(const plan::Group& group, const std::vector<Rank>& ranks);

/// The file that all probes read (src/probe/rank/spec.h has its form). `addresses` by node; empty: this
/// machine alone.
nlohmann::json make_spec(const Observations& observations, const std::string& folder,
                         const std::vector<std::string>& addresses = {});

}  // namespace nlaunch::preflight

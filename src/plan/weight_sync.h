#pragma once
#include "base/diagnostic.h"
#include "config/experiment.h"
#include "plan/plan.h"

/// The ways of the weights to the engines, from the experiment.
namespace nlaunch::plan {

/// What the groups talk through that are no weight sync: the first communicator that a weight sync names,
/// else NCCL, or Gloo for an experiment that may run on CPU slots at a place without GPUs.
Backend backend_of(const config::Experiment& experiment, bool gpus);

/// Says what is wrong with who is in a group and where it meets, and which engines the weights do not reach.
/// The processes have been placed; ways of the plan and of the experiment stand in the same order.
void check_weight_syncs(const config::Experiment& experiment, const Plan& plan, Diagnostics& diagnostics);

}  // namespace nlaunch::plan

#pragma once
#include "base/diagnostic.h"
#include "config/experiment.h"
#include "plan/plan.h"

/// The methods of moving the weights to the engines, from the experiment.
namespace nlaunch::plan {

/// The backend of the groups that are not a weight sync: the first communicator that a weight sync names,
/// otherwise NCCL, or Gloo for an experiment that can run on CPU slots without GPUs.
Backend backend_of(const config::Experiment& experiment, bool gpus);

/// Reports errors in the members and the master of a group, and engines that the weights do not reach. The
/// processes must be placed; the methods of the plan and of the experiment must be in the same order.
void check_weight_syncs(const config::Experiment& experiment, const Plan& plan, Diagnostics& diagnostics);

}  // namespace nlaunch::plan

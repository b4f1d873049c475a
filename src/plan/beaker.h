#pragma once
#include <functional>

#include "base/diagnostic.h"
#include "config/experiment.h"
#include "config/site.h"
#include "plan/plan.h"

/// What Beaker is told, from the profile and the experiment.
namespace nlaunch::plan {

/// The profile's section with the experiment's over it: a value replaces a value, datasets and secrets are
/// merged by path and name. What Beaker could not take is an error at its place. `port` is for the leader
/// where nobody has asked for one.
Beaker make_beaker(const config::Experiment& experiment, const config::Site& site, std::uint16_t port,
                   const std::function<std::string(const config::Text&)>& resolve, Diagnostics& diagnostics);

}  // namespace nlaunch::plan

#pragma once
#include <functional>

#include "base/diagnostic.h"
#include "config/experiment.h"
#include "config/site.h"
#include "plan/plan.h"

/// The Beaker settings, from the profile and the experiment.
namespace nlaunch::plan {

/// The profile's section overridden by the experiment's: single values replace each other, datasets and
/// secrets are merged by path and name. Values that Beaker would reject are errors at their location. `port`
/// is the leader's if none was requested.
Beaker make_beaker(const config::Experiment& experiment, const config::Site& site, std::uint16_t port,
                   const std::function<std::string(const config::Text&)>& resolve, Diagnostics& diagnostics);

}  // namespace nlaunch::plan

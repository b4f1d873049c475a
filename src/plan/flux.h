#pragma once
#include "plan/scheduler_part.h"

/// What Flux is told, from the profile.
namespace nlaunch::plan {

/// The site's directives. A name or a value that flux batch could take for something else, and an option that
/// nlaunch sets itself, are errors at their place.
void make_flux(const PartInput& input, Plan& plan);

/// The long options of flux batch that a directive may name.
std::vector<std::string> flux_options();

}  // namespace nlaunch::plan

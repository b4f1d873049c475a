#pragma once
#include "plan/scheduler_part.h"

/// The Flux settings, from the profile.
namespace nlaunch::plan {

/// The site's directives. Errors at their location: a name or a value that flux batch could misinterpret, and
/// an option that nlaunch sets itself.
void make_flux(const PartInput& input, Plan& plan);

/// The long options of flux batch that a directive can use.
std::vector<std::string> flux_options();

}  // namespace nlaunch::plan

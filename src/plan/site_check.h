#pragma once
#include <map>
#include <string>

#include "base/diagnostic.h"
#include "config/site.h"
#include "plan/build.h"
#include "plan/plan.h"

namespace nlaunch::plan {

/// What can be said of a profile by itself.
struct SiteCheck {
  Diagnostics findings;  ///< errors: no plan can be made; warnings: legal, and hardly meant
  std::map<std::string, Library> libraries;  ///< as a plan has them, to be looked for on this machine
};

/// Makes plans with the profile, one with each of its overlays, and looks for what could be meant otherwise
/// in the profile's own file: what it inherits is not its fault.
SiteCheck check_site(const config::Site& site, const MachineFacts& facts);

}  // namespace nlaunch::plan

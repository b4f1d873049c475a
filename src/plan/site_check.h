#pragma once
#include <map>
#include <string>

#include "base/diagnostic.h"
#include "config/site.h"
#include "plan/build.h"
#include "plan/plan.h"

namespace nlaunch::plan {

/// What can be found out about a profile on its own.
struct SiteCheck {
  Diagnostics findings;  ///< errors: no plan can be made; warnings: valid, but probably not intended
  std::map<std::string, Library> libraries;  ///< as in a plan, to be located on this machine
};

/// Makes plans with the profile, one with each of its overlays, and looks for probable mistakes in the
/// profile's own file, not in what it inherits.
SiteCheck check_site(const config::Site& site, const MachineFacts& facts);

}  // namespace nlaunch::plan

#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "preflight/preflight.h"

namespace nlaunch::preflight {

/// A node without which the job might continue.
struct Suspect {
  std::string host;
  std::string reason;                             ///< "limits memlock: 8.0 MiB"
  Responsible responsible = Responsible::nobody;  ///< can fix it; admin: the node must not be used until then
};

/// The nodes that a report's failures blame, without duplicates. What fails on all of several nodes blames
/// none of them: then the site, or the request, is at fault. A single node is blamed only for what its
/// administrator must fix.
std::vector<Suspect> suspects(const Report& report, std::size_t nodes);

}  // namespace nlaunch::preflight

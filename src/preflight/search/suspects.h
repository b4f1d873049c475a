#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "preflight/preflight.h"

namespace nlaunch::preflight {

/// A node without which the job might go on.
struct Suspect {
  std::string host;
  std::string reason;  ///< "limits memlock: 8.0 MiB"
  Responsible responsible =
      Responsible::nobody;  ///< can mend it; admin: the node is not to be used until then
};

/// The nodes that a report's failures blame, each once. What fails on all of several nodes blames none of
/// them: then it is the site, or what was asked for. Of a single node only what its administrator must mend
/// does.
std::vector<Suspect> suspects(const Report& report, std::size_t nodes);

}  // namespace nlaunch::preflight

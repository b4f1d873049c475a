#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/units.h"

/// What the ranks of a group do on purpose, to see what a failure looks like.
namespace nlaunch {

/// One all-reduce that a rank starts and does not wait for.
struct DrillLaunch {
  unsigned communicator = 0;
  unsigned stream = 0;  ///< 0 or 1
  unsigned part = 0;    ///< of the buffers, 0 or 1: what two launches do must not overlap
  bool operator==(const DrillLaunch&) const = default;
};

struct Drill {
  std::string name;
  std::uint64_t bytes = 0;                     ///< of each all-reduce
  unsigned communicators = 1;                  ///< over the same ranks
  bool captured = false;                       ///< the launches become a CUDA graph, which is launched
  std::map<std::string, std::string> env;      ///< over the ranks' own
  std::vector<std::vector<DrillLaunch>> does;  ///< by rank, in order; what each launches
  Duration deadline{};                         ///< after which a rank says that it still waits
};

}  // namespace nlaunch

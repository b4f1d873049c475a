#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/units.h"

/// What the ranks of a group do on purpose to show what a failure looks like.
namespace nlaunch {

/// One all-reduce that a rank starts without waiting for it.
struct DrillLaunch {
  unsigned communicator = 0;
  unsigned stream = 0;  ///< 0 or 1
  unsigned part = 0;    ///< of the buffers, 0 or 1: the work of two launches must not overlap
  bool operator==(const DrillLaunch&) const = default;
};

struct Drill {
  std::string name;
  std::uint64_t bytes = 0;     ///< of each all-reduce
  unsigned communicators = 1;  ///< over the same ranks
  bool captured = false;       ///< the launches are captured into a CUDA graph, which is then launched
  std::map<std::string, std::string> env;      ///< overrides the ranks' own environment
  std::vector<std::vector<DrillLaunch>> does;  ///< by rank, in order: what each rank launches
  Duration deadline{};                         ///< time after which a rank reports that it is still waiting
};

}  // namespace nlaunch

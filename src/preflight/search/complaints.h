#pragma once
#include "preflight/observations.h"

namespace nlaunch::preflight {

/// A group to split, to find the part that is to blame.
struct Complaint {
  std::size_t group = 0;    ///< index into Evidence::groups
  std::uint64_t bytes = 0;  ///< of the message at which it shows
};

/// Groups with a problem that no rank is blamed for yet: wrong data, a communicator that is not created
/// although all ranks arrived, a collective that does not complete, less than the site's floor. If there are
/// groups within a node, only those are returned, all of them, since they explain the problems of larger
/// ones; of groups that cross nodes, the first. At level deep, the largest group that crosses nodes is split
/// even if it has no problem.
std::vector<Complaint> complaints(const Observations& observations);

}  // namespace nlaunch::preflight

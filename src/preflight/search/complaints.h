#pragma once
#include "preflight/observations.h"

namespace nlaunch::preflight {

/// A group that is to be taken apart, to find which part of it is to blame.
struct Complaint {
  std::size_t group = 0;    ///< index into Evidence::groups
  std::uint64_t bytes = 0;  ///< of the message with which it shows
};

/// Groups in which something is wrong that no rank is blamed for yet: wrong data, a communicator that is not
/// made although all arrived, a collective that does not end, less than the site's floor. Those within a node
/// come alone, all of them, since they explain what is wrong with larger ones; of groups that cross nodes the
/// first one. At level deep the largest that crosses nodes is taken apart even if nothing is wrong with it.
std::vector<Complaint> complaints(const Observations& observations);

}  // namespace nlaunch::preflight

#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

namespace nlaunch::evidence {

/// Who waits for whom: waiter → those who have not come to where it waits. Anything that tells members apart.
using Waits = std::map<std::size_t, std::set<std::size_t>>;

struct Blame {
  std::set<std::size_t> whom;
  bool sure = false;  ///< false: they wait for each other
};
/// Those who are waited for and wait for nobody themselves. Where there is none, they wait in a circle, and
/// any of them can be the cause.
Blame blame(const Waits& waits);

/// "0, 2 and 3"
std::string listed(const std::vector<std::string>& names);

}  // namespace nlaunch::evidence

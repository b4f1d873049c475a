#pragma once
#include <string>
#include <vector>

#include "preflight/observations.h"

namespace nlaunch::preflight {

/// "ranks 0, 2, 3" where they are ranks of the role that `like` is of, else all their names.
std::string names_of(const Observations& observations, const std::vector<std::size_t>& ranks,
                     std::size_t like);

/// "learner rank 1 (GPU 1) did not join within 20 s; ranks 0, 2, 3 did", for ranks given by index.
std::string did_not_join(const Observations& observations, const std::vector<std::size_t>& missing,
                         const std::vector<std::size_t>& arrived);

}  // namespace nlaunch::preflight

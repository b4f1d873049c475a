#pragma once
#include <string>
#include <vector>

#include "plan/bound.h"

namespace nlaunch::commands {

/// How a variable reaches the program that runs inside the wrapper: one line for each carrier (options of the
/// wrapper, variables of its tool). Empty if nothing carries it, or if the tool passes on its whole
/// environment.
std::vector<std::string> carriers_of(const std::string& name, const plan::BoundProcess& process);

}  // namespace nlaunch::commands

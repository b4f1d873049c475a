#pragma once
#include <string>
#include <vector>

#include "plan/bound.h"

namespace nlaunch::commands {

/// How one variable gets to the program behind the wrapper, a line for each thing that carries it: options of
/// the wrapper, variables of its tool. Empty where nobody carries it, or the tool simply hands on all it has.
std::vector<std::string> carriers_of(const std::string& name, const plan::BoundProcess& process);

}  // namespace nlaunch::commands

#pragma once
#include <string>

#include "base/diagnostic.h"
#include "launch/bind/bind.h"
#include "plan/container.h"
#include "plan/environment.h"

/// A role's wrapper, made ready on its node.
namespace nlaunch::launch {

/// The wrapper with all that the process needs in its container, under the same paths: the run directory, its
/// scratch and working folders and the venv as far as they are here, and, not to be written to, what it
/// preloads, libnlaunch-scope.so and nlaunch-probe with its Gloo. A wrapper that is no known container's is
/// as it was.
Result<plan::Words> wrap(const plan::Words& wrapper, const plan::BoundProcess& process,
                         const std::string& venv, const std::vector<std::string>& folders,
                         const RunPaths& paths, const Install& install);

/// BoundProcess::given: what `operations` ask for that is not so on the `host` already. Of a variable that is
/// added to, the addition.
plan::Variables given_by(std::span<const plan::EnvOp> operations, const plan::ConditionFacts& facts,
                         const plan::Environment& host, const plan::Environment& environment);

}  // namespace nlaunch::launch

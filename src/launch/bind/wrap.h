#pragma once
#include <string>

#include "base/diagnostic.h"
#include "launch/bind/bind.h"
#include "plan/container.h"
#include "plan/environment.h"

/// Prepares a role's wrapper on its node.
namespace nlaunch::launch {

/// The wrapper with everything that the process needs in its container, under the same paths: the run
/// directory, the scratch and working directories and the venv, if they exist here, and, read-only, what it
/// preloads, libnlaunch-scope.so and nlaunch-probe with its Gloo. A wrapper that is not a known container
/// tool is unchanged.
Result<plan::Words> wrap(const plan::Words& wrapper, const plan::BoundProcess& process,
                         const std::string& venv, const std::vector<std::string>& folders,
                         const RunPaths& paths, const Install& install);

/// BoundProcess::given: what `operations` set that is not already so on the `host`. For a variable that is
/// appended to, the appended part.
plan::Variables given_by(std::span<const plan::EnvOp> operations, const plan::ConditionFacts& facts,
                         const plan::Environment& host, const plan::Environment& environment);

}  // namespace nlaunch::launch

#pragma once
#include <map>
#include <string>

#include "record/run_files.h"

/// The content of a run's files, as names with values that can be compared one by one.
namespace nlaunch::record {

using Facts = std::map<std::string, std::string>;
using Measured = std::map<std::string, double>;

Facts outcome_facts(const RunFiles& run);
Facts library_facts(const RunFiles& run);
/// The environments of the roles in the plan, for a run that was never bound.
Facts planned_environment_facts(const RunFiles& run);
/// The plan without environments, ports and files.
Facts plan_facts(const RunFiles& run);
/// The source files of the run, the state of git, the wheels.
Facts file_facts(const RunFiles& run);
Facts git_facts(const RunFiles& run);
Facts wheel_facts(const RunFiles& run);
Facts node_facts(const RunFiles& run);
Facts version_facts(const RunFiles& run);
Facts preflight_facts(const RunFiles& run);

/// Times (s), steps, metrics, the preflight's figures.
Measured measured(const RunFiles& run);

}  // namespace nlaunch::record

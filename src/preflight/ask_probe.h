#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "preflight/evidence.h"

namespace nlaunch::preflight {

/// Runs a short subcommand of nlaunch-probe and returns the line that it prints. Killed after thirty seconds.
Result<nlohmann::json> ask_probe(const std::string& probe, const std::vector<std::string>& arguments,
                                 const std::vector<std::string>& env);

/// `nlaunch-probe facts` in the environment of this process, or `error` set.
MachineFacts ask_machine_facts(const std::string& probe);

/// The facts in the probe's line.
MachineFacts read_machine_facts(const nlohmann::json& line);

}  // namespace nlaunch::preflight

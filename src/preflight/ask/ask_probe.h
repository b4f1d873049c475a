#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "preflight/observations.h"

namespace nlaunch::preflight {

/// NVML answers slowly on a machine with faulty GPUs.
constexpr Duration kProbeDeadline = std::chrono::seconds(30);

/// Runs a short subcommand of nlaunch-probe and returns the line that it prints. It is killed at the
/// deadline.
Result<nlohmann::json> ask_probe(const std::string& probe, const std::vector<std::string>& arguments,
                                 const std::vector<std::string>& env, Duration deadline = kProbeDeadline);

/// The same, started like that process, in its container if it has one.
Result<nlohmann::json> ask_probe_of(const plan::BoundProcess& process, const std::string& probe,
                                    const std::vector<std::string>& arguments,
                                    Duration deadline = kProbeDeadline);

/// `nlaunch-probe facts` in the environment of this process, or `error` set.
MachineFacts ask_machine_facts(const std::string& probe);

/// The facts in the probe's line.
MachineFacts read_machine_facts(const nlohmann::json& line);

}  // namespace nlaunch::preflight

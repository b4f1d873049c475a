#pragma once
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "launch/install.h"
#include "plan/bound.h"
#include "supervise/investigation.h"
#include "supervise/local_backend.h"

/// Evidence of a run that nlaunch supervises: what is collected on a node, and what it means.
namespace nlaunch::session {

/// Makes the hooks collect evidence of the processes of a node on request, and sample its GPUs all the time.
/// The arguments must outlive the hooks. `attempt`: its directory, which receives the samples.
void install_evidence_hooks(supervise::Hooks& hooks, const plan::Plan& plan, const plan::BoundNode& node,
                            const launch::Install& install, const std::filesystem::path& attempt);

/// Adds to the devices of launch::device_map how busy they were: "busy_percent" and "power_watts", medians
/// over the attempt.
void add_gpu_use(nlohmann::ordered_json& devices, const std::filesystem::path& attempt);

/// Judges the evidence of all nodes. If it is not sure about a culprit, and exactly one process has done
/// fewer steps than all others, that process is the culprit.
supervise::Judge judge_of(const plan::Plan& plan);

}  // namespace nlaunch::session

#pragma once
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "launch/install.h"
#include "plan/bound.h"
#include "supervise/investigation.h"
#include "supervise/local_backend.h"

/// Evidence of a run that nlaunch supervises: what is collected on a node, and what it shows.
namespace nlaunch::session {

/// Has the processes of a node looked at when that is wanted, and its GPUs sampled all the time. What is
/// given outlives the hooks. `attempt`: its folder, which gets the samples.
void install_evidence_hooks(supervise::Hooks& hooks, const plan::Plan& plan, const plan::BoundNode& node,
                            const launch::Install& install, const std::filesystem::path& attempt);

/// The samples of a node's GPUs.
std::filesystem::path gpu_use_file(const std::filesystem::path& attempt, const std::string& host);

/// Adds to the devices of launch::device_map how busy they were: "busy_percent" and "power_watts", medians
/// over the attempt.
void add_gpu_use(nlohmann::ordered_json& devices, const std::filesystem::path& attempt);

/// What the evidence of all nodes shows. Where it names nobody for sure, and one process alone has done fewer
/// steps than all others, the steps tell.
supervise::Judge judge_of(const plan::Plan& plan);

}  // namespace nlaunch::session

#pragma once
#include <filesystem>
#include <optional>
#include <string>

#include "launch/install.h"
#include "plan/bound.h"
#include "supervise/local_crew.h"
#include "supervise/watching.h"

/// Evidence of a run that nlaunch supervises: what is collected on a node, and what it shows.
namespace nlaunch::cli {

/// The program that collects from the processes of a node into `folder`; nothing where what it needs to know
/// cannot be written there. `logs`: folder of their log files.
std::optional<sys::SpawnRequest> collector(const plan::Plan& plan, const plan::BoundNode& node,
                                           const launch::Install& install, const std::filesystem::path& logs,
                                           const supervise::LivePids& live,
                                           const supervise::EndedProcesses& ended, const std::string& folder);

/// What the evidence of all nodes shows. Where it names nobody for sure, and one process alone has done fewer
/// steps than all others, the steps tell.
supervise::Judge judge_of(const plan::Plan& plan);

}  // namespace nlaunch::cli

#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "launch/bind/node_addresses.h"
#include "launch/bind/ports.h"
#include "launch/install.h"
#include "launch/machine.h"
#include "plan/bound.h"
#include "plan/environment.h"
#include "plan/plan.h"

/// Fills in what only a node knows: GPUs, ports, modules, secrets, libraries, every reference.
namespace nlaunch::launch {

/// Where a run keeps its files.
struct RunPaths {
  std::string id;
  std::filesystem::path folder;   ///< of the run
  std::filesystem::path attempt;  ///< of this attempt
  std::string resume{};           ///< the checkpoint that it begins with; empty: none
};

struct BindRequest {
  const plan::Plan& plan;
  std::uint32_t node = 0;  ///< index of this machine in the plan
  RunPaths paths;
  const Machine& machine;
  const Install& install;
  std::vector<std::string> environment;    ///< of the caller
  std::vector<std::uint16_t> ras_ports{};  ///< as claimed, by index of the process
  bool again = false;  ///< to another plan while processes run: what others were told of stays as it is
};

/// The scratch folder that a run has on a node of its plan.
std::string scratch_of(const plan::Plan& plan, std::uint32_t node, const std::string& run_id);
/// The user's folder for caches on a node: all runs have the same.
std::string cache_of(const plan::Plan& plan);
/// Removes it, where it is there and a folder of this user's.
void remove_scratch(const std::filesystem::path& scratch);

/// Binds the plan to this node, just before the start: makes the scratch folder and the files that
/// `${role.NAME.env_file}` and `${role.NAME.addrs_file}` name. The plan's ports are claimed. All mistakes are
/// reported together, and leave no scratch folder.
Result<plan::BoundNode> bind_node(const BindRequest& request, const NodeAddresses& directory);

/// The files that a library's glob fits, and its version as far as it can be told here.
Result<plan::BoundLibrary> bind_library(const std::string& name, const plan::Library& library,
                                        const std::string& probe);

/// What nlaunch itself sets for one process, from the plan and the node's GPUs: ranks, CUDA_VISIBLE_DEVICES,
/// who it is. `ras_port`: for NCCL's RAS, as claimed; 0: as wished.
std::vector<plan::EnvOp> own_operations(const plan::Plan& plan, const plan::Process& process,
                                        const plan::BoundNode& node, const RunPaths& paths,
                                        const std::string& master_address, std::uint16_t ras_port = 0);

}  // namespace nlaunch::launch

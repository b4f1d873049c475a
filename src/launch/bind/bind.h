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

/// Fills in what only a node knows: GPUs, ports, modules, secrets, libraries and every reference.
namespace nlaunch::launch {

/// Where a run keeps its files.
struct RunPaths {
  std::string id;
  std::filesystem::path folder;   ///< of the run
  std::filesystem::path attempt;  ///< of this attempt
  std::string resume{};           ///< the checkpoint from which it resumes; empty: none
};

struct BindRequest {
  const plan::Plan& plan;
  std::uint32_t node = 0;  ///< index of this machine in the plan
  RunPaths paths;
  const Machine& machine;
  const Install& install;
  std::vector<std::string> environment;    ///< of the caller
  std::vector<std::uint16_t> ras_ports{};  ///< as claimed, by index of the process
  bool again = false;  ///< binds to another plan while processes run: what others were told stays unchanged
};

/// The scratch directory of a run on a node of its plan.
std::string scratch_of(const plan::Plan& plan, std::uint32_t node, const std::string& run_id);
/// The variable that names the file in which a program with PyTorch's `@record` leaves the exception that
/// ends it, and the file for a process. The program does not mask secrets, so the file is in the scratch
/// directory and not in the run directory.
inline constexpr const char* kErrorFile = "TORCHELASTIC_ERROR_FILE";
std::string error_file_of(const plan::BoundNode& node, const std::string& process);
/// The user's cache directory on a node, shared by all runs.
std::string cache_of(const plan::Plan& plan);
/// Removes it if it exists and is a directory of this user.
void remove_scratch(const std::filesystem::path& scratch);

/// Binds the plan to this node, just before the start: creates the scratch directory and the files that
/// `${role.NAME.env_file}` and `${role.NAME.addrs_file}` name. The plan's ports must be claimed. All mistakes
/// are reported together, and then no scratch directory is left.
Result<plan::BoundNode> bind_node(const BindRequest& request, const NodeAddresses& directory);

/// The file that matches a library's glob, and its version if it can be determined here.
Result<plan::BoundLibrary> bind_library(const std::string& name, const plan::Library& library,
                                        const std::string& probe);

/// What nlaunch itself sets for one process, from the plan and the node's GPUs: ranks, CUDA_VISIBLE_DEVICES,
/// and its identity. `ras_port`: the claimed port for NCCL's RAS; 0: the preferred one.
std::vector<plan::EnvOp> own_operations(const plan::Plan& plan, const plan::Process& process,
                                        const plan::BoundNode& node, const RunPaths& paths,
                                        const std::string& master_address, std::uint16_t ras_port = 0);

}  // namespace nlaunch::launch

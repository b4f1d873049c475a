#include <algorithm>

#include "base/text.h"
#include "launch/bind.h"

namespace nlaunch::launch {
namespace {

using plan::EnvOp;

EnvOp own(std::string name, std::string value) {
  return {EnvOp::Kind::set, std::move(name), std::move(value), plan::Layer::nlaunch, "nlaunch", {}};
}

/// The GPUs that a process sees: under a rendezvous all of its role's on the node (it picks by LOCAL_RANK, as
/// under torchrun), otherwise those in its own reach.
std::vector<std::uint16_t> seen_gpus(const plan::Plan& plan, const plan::Process& process) {
  const auto& role = plan.role_of(process);
  if (role.rendezvous != Rendezvous::torch || role.gpus != 1) return gpus_in_reach(plan, process);
  std::vector<std::uint16_t> gpus;
  for (const auto& other : plan.processes) {
    if (other.role == process.role && other.node == process.node) {
      gpus.insert(gpus.end(), other.gpus.begin(), other.gpus.end());
    }
  }
  return gpus;
}

void add_ranks(std::vector<EnvOp>& operations, const plan::Role& role, const plan::Process& process,
               const std::string& master_address) {
  operations.push_back(own("MASTER_ADDR", master_address));
  operations.push_back(own("MASTER_PORT", std::to_string(role.rendezvous_port)));
  if (role.gpus > 1) {  // its own launcher (torchrun) makes the ranks
    operations.push_back(own("NNODES", std::to_string(role.count)));
    operations.push_back(own("NODE_RANK", std::to_string(process.index)));
    return;
  }
  operations.push_back(own("RANK", std::to_string(process.rank)));
  operations.push_back(own("WORLD_SIZE", std::to_string(role.count)));
  operations.push_back(own("LOCAL_RANK", std::to_string(process.local_rank)));
  operations.push_back(own("LOCAL_WORLD_SIZE", std::to_string(process.local_size)));
  operations.push_back(own("NODE_RANK", std::to_string(process.node_rank)));
  operations.push_back(own("GROUP_RANK", std::to_string(process.node_rank)));
}

}  // namespace

std::vector<EnvOp> own_operations(const plan::Plan& plan, const plan::Process& process,
                                  const plan::BoundNode& node, const RunPaths& paths,
                                  const std::string& master_address) {
  const auto& role = plan.role_of(process);
  std::vector<EnvOp> operations;
  if (!node.gpus.empty()) {
    std::vector<std::string> visible;
    for (const auto gpu : seen_gpus(plan, process)) visible.push_back(node.gpus.at(gpu).visible);
    operations.push_back(own("CUDA_DEVICE_ORDER", "PCI_BUS_ID"));
    operations.push_back(own("CUDA_VISIBLE_DEVICES", text::join(visible, ",")));
  }
  if (role.rendezvous == Rendezvous::torch) add_ranks(operations, role, process, master_address);
  operations.push_back(own("NLAUNCH_RUN_DIR", paths.folder.string()));
  operations.push_back(own("NLAUNCH_RUN_ID", paths.id));
  operations.push_back(own("NLAUNCH_ROLE", role.name));
  operations.push_back(own("NLAUNCH_INDEX", std::to_string(process.index)));
  return operations;
}

}  // namespace nlaunch::launch

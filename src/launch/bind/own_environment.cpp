#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "launch/bind/bind.h"
#include "launch/run_dir/wheels.h"

namespace nlaunch::launch {
namespace {

using plan::EnvOp;

EnvOp own(std::string name, std::string value) {
  return {EnvOp::Kind::set, std::move(name), std::move(value), plan::Layer::nlaunch, "nlaunch", {}};
}

/// The GPUs that a process sees: under a rendezvous all GPUs of its role on the node (it selects by
/// LOCAL_RANK, as under torchrun), otherwise those in its own reach.
std::vector<std::uint16_t> seen_gpus(const plan::Plan& plan, const plan::Process& process) {
  const auto& role = plan.role_of(process);
  if (role.rendezvous != Rendezvous::torch || role.gpus != 1 || makes_ranks(role))
    return gpus_in_reach(plan, process);
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
  if (makes_ranks(role)) {  // its own launcher (torchrun) does
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

EnvOp unless_set(std::string name, std::string value) {
  auto operation = own(std::move(name), std::move(value));
  operation.kind = EnvOp::Kind::fallback;
  operation.origin = "nlaunch's default";
  return operation;
}

/// PyTorch 2.8 renamed variables, and warns of the old names. Where its version cannot be told, it is new.
bool is_before_renaming(const plan::Role& role) {
  if (role.venv.empty()) return false;
  const auto wheels = wheels_of(role.venv);
  const auto torch = wheels.find("torch");
  if (torch == wheels.end()) return false;
  const auto version = parse_version(torch->second.substr(0, torch->second.find('+')));
  return version && *version < Version{{2, 8, 0}};
}

/// What makes a process that hangs tell why. A dump on a timeout is PyTorch's default.
void add_evidence(std::vector<EnvOp>& operations, const plan::Plan& plan, const plan::Process& process,
                  const plan::BoundNode& node, const RunPaths& paths, std::uint16_t ras_port) {
  const auto& role = plan.role_of(process);
  operations.push_back(unless_set("NCCL_RAS_ADDR", fmt::format("127.0.0.1:{}", ras_port)));
  // PyTorch appends the rank, which is unique in a role that has a rendezvous.
  const auto name = role.rendezvous == Rendezvous::torch ? role.name : plan.name_of(process);
  const auto dump = fmt::format("{}/nccl/flight-recorder.{}.", paths.attempt.string(), name);
  const std::array<std::array<std::string, 3>, 2> renamed{
      {{"TORCH_NCCL_TRACE_BUFFER_SIZE", "TORCH_FR_BUFFER_SIZE", "2000"},
       {"TORCH_NCCL_DEBUG_INFO_TEMP_FILE", "TORCH_FR_DUMP_TEMP_FILE", dump}}};
  const bool old = is_before_renaming(role);
  for (const auto& [before, after, value] : renamed) {
    // Who sets one of the two has said what is wanted: the newer name would win over it.
    const bool said =
        std::ranges::any_of(role.env, [&](const EnvOp& op) { return op.name == before || op.name == after; });
    if (!said) operations.push_back(unless_set(old ? before : after, value));
  }
  operations.push_back(unless_set("TORCH_NCCL_DEBUG_INFO_PIPE_FILE",
                                  fmt::format("{}/flight-recorder.{}.", node.scratch, name)));
}

}  // namespace

std::vector<EnvOp> own_operations(const plan::Plan& plan, const plan::Process& process,
                                  const plan::BoundNode& node, const RunPaths& paths,
                                  const std::string& master_address, std::uint16_t ras_port) {
  const auto& role = plan.role_of(process);
  std::vector<EnvOp> operations;
  if (!node.gpus.empty()) {
    std::vector<std::string> visible;
    for (const auto gpu : seen_gpus(plan, process)) visible.push_back(node.gpus.at(gpu).visible);
    operations.push_back(own("CUDA_DEVICE_ORDER", "PCI_BUS_ID"));
    operations.push_back(own("CUDA_VISIBLE_DEVICES", text::join(visible, ",")));
  }
  if (!node.gpus.empty() && role.gpus > 0) {
    add_evidence(operations, plan, process, node, paths,
                 ras_port != 0 ? ras_port : wished_ras_port(plan, process));
  }
  if (role.rendezvous == Rendezvous::torch) {
    add_ranks(operations, role, process, master_address);
    // torchrun sets it for its workers, and copies what the first of them left there to its own.
    operations.push_back(unless_set(kErrorFile, error_file_of(node, plan.name_of(process))));
  }
  operations.push_back(own("NLAUNCH_RUN_DIR", paths.folder.string()));
  operations.push_back(own("NLAUNCH_RUN_ID", paths.id));
  operations.push_back(own("NLAUNCH_ROLE", role.name));
  operations.push_back(own("NLAUNCH_INDEX", std::to_string(process.index)));
  return operations;
}

}  // namespace nlaunch::launch

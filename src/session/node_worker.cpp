#include "session/node_worker.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/exit_code.h"
#include "base/json.h"
#include "base/text.h"
#include "launch/run_dir/ray_logs.h"
#include "plan/bound_json.h"
#include "plan/update.h"
#include "session/run_evidence.h"
#include "sys/files.h"
#include "sys/spawn.h"

namespace nlaunch::session {
namespace {

/// A full disk is not a mistake in the experiment.
NodeWorker::Refused refused(Diagnostics why) {
  const auto& id = why.items().front().id;
  const bool disk = id == "file.write" || id == "file.folder";
  return {disk ? exit_code::internal : exit_code::bad_input, std::move(why)};
}

/// Checked before anything is started: a run that reaches the limit halfway through its start would blame one
/// process.
Result<void> check_open_files(const plan::Plan& plan, unsigned node) {
  constexpr std::uint64_t kForAll = 64;
  constexpr std::uint64_t kForEach = 8;  // its output, its log and its exit; input and outputs of a probe
  const auto here = std::ranges::count(plan.processes, node, &plan::Process::node);
  const auto wanted = kForAll + kForEach * static_cast<std::uint64_t>(here);
  const auto most = sys::permit_many_files();
  if (most >= wanted) return {};
  return failure(
      "session.files",
      "nlaunch is limited to {} open files here, but needs {} for {}: raise the hard limit (ulimit -Hn)",
      most, wanted, text::count(static_cast<std::size_t>(here), "process"));
}

}  // namespace

NodeWorker::NodeWorker(plan::Plan plan, Options options) : plan_(std::move(plan)), options_(options) {}

NodeWorker::~NodeWorker() {
  if (node_.scratch.empty()) return;
  launch::keep_ray_logs(node_.scratch, paths_.attempt / "ray" / node_.host, node_.masker);
  launch::remove_scratch(node_.scratch);
}

Result<void> NodeWorker::claim_ports() {
  return launch::claim_ports(plan_, options_.index, ports_);
}

std::vector<std::uint16_t> NodeWorker::ports() const {
  return launch::ports_of(plan_, options_.index);
}

std::optional<NodeWorker::Refused> NodeWorker::bind(const launch::RunPaths& paths,
                                                    const launch::NodeAddresses& nodes, bool share_gpus) {
  paths_ = paths;
  if (auto enough = check_open_files(plan_, options_.index); !enough)
    return refused(std::move(enough.error()));
  if (auto taken = launch::take_ports(plan_, nodes); !taken) return refused(std::move(taken.error()));
  const auto machine = options_.machine.get_for(plan_);
  if (!machine) return Refused{exit_code::internal, machine.error()};
  ras_ports_ = launch::claim_ras_ports(plan_, options_.index, ports_);
  auto node = launch::bind_node(
      {plan_, options_.index, paths_, *machine, options_.machine.install(), options_.environment, ras_ports_},
      nodes);
  if (!node) return refused(std::move(node.error()));
  node_ = std::move(*node);
  if (!share_gpus) {
    auto locks = launch::GpuLocks::take(plan_, node_, paths_.folder.string());
    if (!locks) return refused(std::move(locks.error()));
    locks_ = std::move(*locks);
  }
  save_bound();
  return std::nullopt;
}

void NodeWorker::save_bound() {
  const auto saved = sys::write_file_atomically(paths_.attempt / fmt::format("bound.{}.json", node_.host),
                                                json_text(plan::to_json(plan_, node_), 2) + "\n");
  // It helps to understand the run, but the run does not need it.
  if (!saved) node_.notes.push_back(saved.error().first_message());
}

std::optional<NodeWorker::Refused> NodeWorker::prepare(plan::Plan after, const launch::NodeAddresses& nodes,
                                                       std::vector<std::string> roles) {
  prepared_.reset();
  plan::keep_masked(plan_, after);
  if (auto taken = launch::take_ports(after, nodes); !taken) return refused(std::move(taken.error()));
  const auto machine = options_.machine.get_for(after);
  if (!machine) return Refused{exit_code::internal, machine.error()};
  auto node = launch::bind_node({after, options_.index, paths_, *machine, options_.machine.install(),
                                 options_.environment, ras_ports_, true},
                                nodes);
  if (!node) return refused(std::move(node.error()));
  prepared_.emplace(Prepared{std::move(after), std::move(*node), std::move(roles)});
  return std::nullopt;
}

/// Running code refers to the processes: each stays at its address.
void NodeWorker::adopt() {
  if (!prepared_) return;
  auto [plan, node, roles] = *std::exchange(prepared_, std::nullopt);
  for (std::size_t i = 0; i < node_.processes.size(); ++i) {
    const auto& role = plan.role_of(plan.processes[node_.processes[i].process]).name;
    if (std::ranges::find(roles, role) != roles.end()) node_.processes[i] = std::move(node.processes[i]);
  }
  for (const auto& secret : node.masker.values()) node_.masker.add(secret);
  plan_ = std::move(plan);
  if (auditor_) auditor_->renew();
  save_bound();
}

std::optional<NodeWorker::Refused> NodeWorker::bind_alone(const launch::RunPaths& paths, bool share_gpus) {
  const auto machine = options_.machine.get_for(plan_);
  if (!machine) return Refused{exit_code::internal, machine.error()};
  if (auto claimed = claim_ports(); !claimed) return refused(std::move(claimed.error()));
  auto nodes = launch::one_machine(machine->host);
  nodes.front().ports = ports();
  return bind(paths, nodes, share_gpus);
}

preflight::Request NodeWorker::preflight_request() const {
  preflight::Request request{plan_, node_, paths_.attempt.string(), options_.machine.install().probe};
  if (const auto machine = options_.machine.get_for(plan_)) request.facts = machine->facts;
  return request;
}

supervise::Hooks NodeWorker::begin_audit() {
  ports_.release();
  auditor_.emplace(plan_, node_, options_.machine.install().probe);
  auto hooks = auditor_->hooks();
  install_evidence_hooks(hooks, plan_, node_, options_.machine.install(), paths_.attempt);
  return hooks;
}

launch::AuditReport NodeWorker::audit() {
  return auditor_ ? auditor_->report() : launch::AuditReport();
}

}  // namespace nlaunch::session

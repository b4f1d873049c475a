#pragma once
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "launch/bind/bind.h"
#include "launch/bind/gpu_lock.h"
#include "launch/machine.h"
#include "preflight/preflight.h"
#include "session/auditor.h"

namespace nlaunch::session {

/// One node of a plan, from the claim of its ports to the end of its processes. A run on this machine owns
/// one, and so does the agent of each node of an allocation.
class NodeWorker {
 public:
  struct Options {
    std::uint32_t index = 0;                      ///< of this machine in the plan
    const std::vector<std::string>& environment;  ///< of the caller
    launch::MachineSource& machine;
  };
  /// What `options` refers to outlives this.
  NodeWorker(plan::Plan plan, Options options);
  /// Removes the scratch folder, and keeps the logs that Ray has there.
  ~NodeWorker();
  NodeWorker(const NodeWorker&) = delete;
  NodeWorker& operator=(const NodeWorker&) = delete;

  /// Takes a free port for each that the plan has on this node. Other runs leave them alone while this lives.
  Result<void> claim_ports();
  /// The ports that were claimed, in the plan's order.
  [[nodiscard]] std::vector<std::uint16_t> ports() const;

  /// Why the node cannot be used.
  struct Refused {
    int exit_code = 0;
    Diagnostics why;
  };
  /// Binds the plan to this node and writes what came of it to bound.HOST.json of the attempt. `nodes` has
  /// the addresses and ports of all nodes of the plan. The GPUs are locked, unless they are shared.
  std::optional<Refused> bind(const launch::RunPaths& paths, const launch::NodeAddresses& nodes,
                              bool share_gpus);
  /// The same for a plan's only node; claims its ports first.
  std::optional<Refused> bind_alone(const launch::RunPaths& paths, bool share_gpus);

  /// Binds the node to another plan, which differs from its own in what the processes of `roles` begin with,
  /// and changes nothing yet. Why it cannot be; nothing: `adopt` may follow.
  std::optional<Refused> prepare(plan::Plan after, const launch::NodeAddresses& nodes,
                                 std::vector<std::string> roles);
  /// From now on these processes begin with what was prepared.
  void adopt();

  /// As it is now: with the ports that were claimed, those of all nodes once this one is bound.
  [[nodiscard]] const plan::Plan& plan() const { return plan_; }
  [[nodiscard]] const plan::BoundNode& node() const { return node_; }

  /// What a preflight of this node needs to know of it. It refers to this.
  [[nodiscard]] preflight::Request preflight_request() const;

  /// Lets go of the ports, and begins the audit of the processes, which are about to be started; has them
  /// audited and, when that is wanted, their evidence collected. The hooks refer to this.
  supervise::Hooks begin_audit();
  /// What the audit has shown until now; nothing where it has not begun.
  launch::AuditReport audit();

 private:
  void save_bound();

  struct Prepared {
    plan::Plan plan;
    plan::BoundNode node;
    std::vector<std::string> roles;
  };
  plan::Plan plan_;
  Options options_;
  launch::Ports ports_;
  std::vector<std::uint16_t> ras_ports_;
  std::optional<Prepared> prepared_;
  std::optional<launch::GpuLocks> locks_;
  launch::RunPaths paths_;
  plan::BoundNode node_;
  std::optional<Auditor> auditor_;
};

}  // namespace nlaunch::session

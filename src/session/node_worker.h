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

/// One node of a plan, from claiming its ports until its processes have exited. A run on this machine owns
/// one, and so does the agent on each node of an allocation.
class NodeWorker {
 public:
  struct Options {
    std::uint32_t index = 0;                      ///< index of this machine in the plan
    const std::vector<std::string>& environment;  ///< of the caller
    launch::MachineSource& machine;
  };
  /// What `options` refers to must outlive this object.
  NodeWorker(plan::Plan plan, Options options);
  /// Removes the scratch directory, but keeps Ray's logs from it.
  ~NodeWorker();
  NodeWorker(const NodeWorker&) = delete;
  NodeWorker& operator=(const NodeWorker&) = delete;

  /// Claims a free port for each port that the plan has on this node. Other runs do not use them while this
  /// object exists.
  Result<void> claim_ports();
  /// The claimed ports, in the order of the plan.
  [[nodiscard]] std::vector<std::uint16_t> ports() const;

  /// Why the node cannot be used.
  struct Refused {
    int exit_code = 0;
    Diagnostics why;
  };
  /// Binds the plan to this node and writes the result to bound.HOST.json of the attempt. `nodes` has the
  /// addresses and ports of all nodes of the plan. The GPUs are locked unless they are shared.
  std::optional<Refused> bind(const launch::RunPaths& paths, const launch::NodeAddresses& nodes,
                              bool share_gpus);
  /// The same for the only node of a plan; claims its ports first.
  std::optional<Refused> bind_alone(const launch::RunPaths& paths, bool share_gpus);

  /// Binds the node to another plan, which differs from its own only in how the processes of `roles` start,
  /// and changes nothing yet. Returns why that is not possible, or nothing: then `adopt` may follow.
  std::optional<Refused> prepare(plan::Plan after, const launch::NodeAddresses& nodes,
                                 std::vector<std::string> roles);
  /// From now on these processes start with what was prepared.
  void adopt();

  /// The current plan: with the claimed ports, and with those of all nodes once this one is bound.
  [[nodiscard]] const plan::Plan& plan() const { return plan_; }
  [[nodiscard]] const plan::BoundNode& node() const { return node_; }

  /// What a preflight of this node needs. It refers to this object.
  [[nodiscard]] preflight::Request preflight_request() const;

  /// Releases the ports and starts the audit of the processes, which are about to start. The hooks audit them
  /// and, on request, collect their evidence; they refer to this object.
  supervise::Hooks begin_audit();
  /// What the audit has found so far; empty if it has not started.
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

#pragma once
#include <chrono>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/registry.h"
#include "preflight/findings.h"
#include "preflight/observations.h"

namespace nlaunch::preflight {

/// A question to nlaunch-probe about this machine. It registers itself in the file of the check that needs
/// it. Each question runs in its own process: a driver or a file system that hangs affects only that one,
/// which is killed at the deadline.
struct Inquiry {
  enum class Of {
    machine,  ///< in the environment of this process
    roles,    ///< in that of each role's first process on the machine
    things,   ///< in that of this process, for each of `things`, which is its first argument
  };
  enum class When {
    together,  ///< with the others
    alone,     ///< after them, and alone: it measures
  };
  int order = 0;          ///< for those that run alone
  std::string_view name;  ///< subcommand of nlaunch-probe, and the answer's name (NodeObservations::answers)
  PreflightLevel level = PreflightLevel::quick;  ///< the lowest level at which it is asked
  Duration deadline = std::chrono::seconds(5);
  Of of = Of::machine;
  When when = When::together;
  /// The arguments after the subcommand; null: none. `process` is the role's, null for a question about the
  /// machine.
  std::vector<std::string> (*arguments)(const NodeObservations& observations,
                                        const plan::BoundProcess* process) = nullptr;
  /// What Of::things asks about: the answer is "NAME/THING".
  std::vector<std::string> (*things)(const NodeObservations& observations) = nullptr;
  /// For Of::roles: the roles that are asked; null: all.
  bool (*concerns)(const NodeObservations& observations, std::uint32_t role) = nullptr;
  /// What else was found out about a role whose probe returned nothing, for Answer::said. Null: nothing.
  nlohmann::json (*otherwise)(const plan::BoundProcess& process) = nullptr;
  /// Whether there is anything to ask here; null: always.
  bool (*applies)(const NodeObservations& observations) = nullptr;
};

inline std::vector<const Inquiry*> inquiries() {
  return Registered<Inquiry>::all();
}

/// For Inquiry::applies: whether the plan has GPUs on this node.
bool has_gpus(const NodeObservations& observations);
/// For Inquiry::arguments: the GPUs of the plan on this node, which the probe numbers in this order.
std::vector<std::string> devices_of_plan(const NodeObservations& observations,
                                         const plan::BoundProcess* process);

/// Asks the questions of this level. Returns when all have answered or timed out. Of `observations`, the
/// plan, the node, its ranks, directories and Pythons must be set; the rest is found out at the same time.
Answers ask(const Request& request, const NodeObservations& observations);

}  // namespace nlaunch::preflight

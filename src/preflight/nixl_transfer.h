#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "plan/bound.h"
#include "plan/plan.h"

/// A transfer by NIXL as the weights take it: from a learner to engines, between the Pythons of both.
namespace nlaunch::preflight {

/// What one process's Python said.
struct NixlTransfer {
  std::string group;    ///< "weight sync"
  std::string process;  ///< "learner.0", "engine.2"
  std::string sender;   ///< "learner.0"
  bool sends = false;
  std::string version{};      ///< of NIXL; empty: its Python did not come so far
  bool lacks = false;         ///< its Python has no NIXL: nothing was tried
  bool sender_lacks = false;  ///< that of the sender has none
  std::string error{};        ///< why nothing was transferred; empty: it was
  double seconds = 0;         ///< of one that receives: of the transfer
  std::size_t receivers = 0;  ///< of the one that sends: how many there are
  std::size_t served = 0;     ///< and how many got theirs
};

/// Has the first learner send 1 MiB from memory to memory to the first process of each engine role on each
/// node, where the plan's weights go over NIXL; those of this node, together with the other nodes, which do
/// the same at the same time. Roles in containers are left out. `pythons`: of the roles here, by role. `tag`
/// is the same on all nodes, and the run's own.
std::vector<NixlTransfer> try_nixl(const plan::Plan& plan, const plan::BoundNode& node,
                                   const std::map<std::uint32_t, std::string>& pythons,
                                   const std::string& tag);

}  // namespace nlaunch::preflight

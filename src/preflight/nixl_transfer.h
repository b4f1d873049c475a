#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "plan/bound.h"
#include "plan/plan.h"

/// A NIXL transfer like that of the weights: from a learner to engines, between the Pythons of both.
namespace nlaunch::preflight {

/// The result of one process's Python.
struct NixlTransfer {
  std::string group;    ///< "weight sync"
  std::string process;  ///< "learner.0", "engine.2"
  std::string sender;   ///< "learner.0"
  bool sends = false;
  std::string version{};      ///< of NIXL; empty: its Python did not get that far
  bool lacks = false;         ///< its Python has no NIXL: nothing was tried
  bool sender_lacks = false;  ///< the sender's Python has none
  std::string error{};        ///< why nothing was transferred; empty: it was
  double seconds = 0;         ///< for a receiver: of the transfer
  std::size_t receivers = 0;  ///< for the sender: how many receivers there are
  std::size_t served = 0;     ///< and how many received the data
};

/// Makes the first learner send 1 MiB from memory to memory to the first process of each engine role on each
/// node, if the plan sends weights over NIXL. Runs this node's part; the other nodes do the same at the same
/// time. Roles in containers are left out. `pythons`: of the roles here, by role. `tag` is the same on all
/// nodes, and unique to the run.
std::vector<NixlTransfer> try_nixl(const plan::Plan& plan, const plan::BoundNode& node,
                                   const std::map<std::uint32_t, std::string>& pythons,
                                   const std::string& tag);

}  // namespace nlaunch::preflight

#pragma once
#include <string>
#include <vector>

#include "plan/bound.h"
#include "plan/plan.h"

/// Directories through which learners hand weights to engines on other nodes.
namespace nlaunch::preflight {

/// What this node found about one.
struct SharedFolder {
  std::string group;   ///< "weight sync"
  std::string path;    ///< on this node
  std::string writer;  ///< "learner.0", whose node writes
  bool writes = false;
  std::size_t readers = 0;  ///< nodes with engines, besides that of the writer
  std::size_t silent = 0;   ///< for a writer: the nodes whose files it has not seen
  std::string error{};      ///< why it cannot be used here; empty: it can
  Duration seen{};          ///< for a reader: until a file of the writer's node was visible
};

/// Tries each such directory together with the other nodes, which do the same at the same time: a node with
/// engines writes a file, the first learner's node answers it with another one, and the first waits for that.
/// If all succeed in time, nothing is left there. `tag` is the same on all nodes, and unique to the run.
std::vector<SharedFolder> try_shared_folders(const plan::Plan& plan, const plan::BoundNode& node,
                                             std::uint32_t index, const std::string& tag);

/// How long a node waits for another one.
constexpr Duration kToSeeAFile = std::chrono::seconds(20);

}  // namespace nlaunch::preflight

#pragma once
#include <string>
#include <vector>

#include "plan/bound.h"
#include "plan/plan.h"

/// Folders through which learners hand weights to engines on other nodes.
namespace nlaunch::preflight {

/// What this node found of one.
struct SharedFolder {
  std::string group;   ///< "weight sync"
  std::string path;    ///< on this node
  std::string writer;  ///< "learner.0", whose node writes
  bool writes = false;
  std::size_t readers = 0;  ///< nodes with engines, besides that of the writer
  std::size_t silent = 0;   ///< of a writer: those whose files it has not seen
  std::string error{};      ///< why it cannot be used here; empty: it can
  Duration seen{};          ///< of a node that reads: until a file of the writer's node was there
};

/// Tries each such folder together with the other nodes, which do the same at the same time: a node with
/// engines leaves a file, the first learner's node answers it with another one, and the first waits for that.
/// Where all do so in time, nothing of it is left there. `tag` is the same on all nodes, and the run's own.
std::vector<SharedFolder> try_shared_folders(const plan::Plan& plan, const plan::BoundNode& node,
                                             std::uint32_t index, const std::string& tag);

/// For how long a node waits for another one.
constexpr Duration kToSeeAFile = std::chrono::seconds(20);

}  // namespace nlaunch::preflight

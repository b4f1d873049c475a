#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "preflight/observations.h"
#include "preflight/row.h"

namespace nlaunch::preflight {

/// What a node reports about itself, before any probe has touched a GPU.
struct Findings {
  std::vector<Row> rows;    ///< of the checks of a machine
  std::vector<Rank> ranks;  ///< of this node, in plan order
  std::vector<Figure> figures{};
  std::vector<Fingerprint> fingerprints{};  ///< of this node's GPUs
  NodeSummary summary{};
};

/// Checks this machine: its GPUs, limits, ports and directories, and the libnccl of each role.
Findings look(const Request& request);

/// Sent between a node's agent and the leader. Anything that is not findings throws.
nlohmann::json to_json(const Findings& findings);
Findings findings_from_json(const nlohmann::json& from);

}  // namespace nlaunch::preflight

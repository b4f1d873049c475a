#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "preflight/observations.h"
#include "preflight/row.h"

namespace nlaunch::preflight {

/// What a node says of itself, before any probe has touched a GPU.
struct Findings {
  std::vector<Row> rows;    ///< of the checks of a machine
  std::vector<Rank> ranks;  ///< of this node, in plan order
  std::vector<Figure> figures{};
  std::vector<Fingerprint> fingerprints{};  ///< of this node's GPUs
  NodeSummary summary{};
};

struct Look {
  const plan::Plan& plan;
  const plan::BoundNode& node;
  std::string folder;  ///< of the attempt
  std::string probe;   ///< path of nlaunch-probe
  PreflightLevel level = PreflightLevel::standard;
  std::string facts{};    ///< what `nlaunch-probe facts` said a moment ago; empty: it is asked
  std::string address{};  ///< by which other nodes reach this one; empty: there is only this machine
};

/// Looks at this machine: its GPUs, limits, ports and folders, and the libnccl of each role.
Findings look(const Look& request);

/// Between a node's agent and the leader. What is no findings is an exception.
nlohmann::json to_json(const Findings& findings);
Findings findings_from_json(const nlohmann::json& from);

}  // namespace nlaunch::preflight

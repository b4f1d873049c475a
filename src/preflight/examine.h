#pragma once
#include "preflight/findings.h"
#include "preflight/preflight.h"
#include "preflight/probes.h"
#include "sys/loop.h"

namespace nlaunch::preflight {

struct Examination {
  const plan::Plan& plan;
  PreflightLevel level = PreflightLevel::standard;
  Deadlines deadlines{};
  std::string folder;  ///< of the attempt, seen by all nodes; "preflight" is made (or emptied) in it
  std::vector<std::string> hosts{};      ///< names of the nodes; empty where there is only this machine
  std::vector<std::string> addresses{};  ///< by which the nodes reach each other; empty likewise
  std::function<void(const Row&)> on_row{};
  std::function<bool()> cancelled{};
  /// Makes the probes of all ranks. `folder` is where spec.json is.
  std::function<std::unique_ptr<Probes>(const std::vector<Rank>& ranks, const std::string& folder)> probes;
};

/// Judges what all nodes found, and lets probes try the plan's groups. Runs `loop`. `findings` by node.
Report examine(sys::Loop& loop, const Examination& request, std::vector<Findings> findings);

}  // namespace nlaunch::preflight

#pragma once
#include <string>
#include <vector>

#include "preflight/observations.h"

namespace nlaunch::preflight {

/// The ports of the node's processes: those that the plan has are held for them, and of those that a command
/// or a readiness check names by number it is tried whether one can listen there now.
std::vector<PortFact> ask_ports(const plan::Plan& plan, const plan::BoundNode& node);

/// The folders that the run will use here, each once. None is touched.
std::vector<Folder> folders_of(const NodeObservations& observations, const std::string& run_folder);

}  // namespace nlaunch::preflight

#pragma once
#include <string>
#include <vector>

#include "preflight/observations.h"

namespace nlaunch::preflight {

/// Whether each port of the node's processes can be listened on now.
std::vector<PortFact> ask_ports(const plan::BoundNode& node);

/// The folders that the run will use here, each once. None is touched.
std::vector<Folder> folders_of(const NodeObservations& observations, const std::string& run_folder);

}  // namespace nlaunch::preflight

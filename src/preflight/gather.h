#pragma once
#include <string>
#include <vector>

#include "preflight/evidence.h"

namespace nlaunch::preflight {

/// Whether each port of the node's processes can be listened on now.
std::vector<PortFact> ask_ports(const plan::BoundNode& node);

/// Free space of the run directory and of the node's scratch folder, and whether they can be written to.
std::vector<FolderFact> ask_folders(const plan::BoundNode& node, const std::string& run_folder);

}  // namespace nlaunch::preflight

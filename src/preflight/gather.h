#pragma once
#include <string>
#include <vector>

#include "preflight/observations.h"

namespace nlaunch::preflight {

/// The ports of the node's processes: those in the plan are held for them; for those that a command or a
/// readiness check gives by number, it is tried whether one can listen there now.
std::vector<PortFact> ask_ports(const plan::Plan& plan, const plan::BoundNode& node);

/// The directories that the run will use here, without duplicates. None is touched.
std::vector<Folder> folders_of(const NodeObservations& observations, const std::string& run_folder);

}  // namespace nlaunch::preflight

#pragma once
#include <map>

#include "preflight/observations.h"

namespace nlaunch::preflight {

/// The Python that runs a process's command: the command itself, its script's interpreter, or the first on
/// PATH.
RolePython python_of(const plan::BoundProcess& process);

/// Of each role on the node: an experiment's learners and engines are taken to use one in any case, others
/// only where the command says so.
std::map<std::uint32_t, RolePython> pythons_of_roles(const NodeObservations& observations);

}  // namespace nlaunch::preflight

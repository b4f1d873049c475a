#pragma once
#include <string>

#include "import/commands.h"
#include "import/import.h"

namespace nlaunch::import {

/// Puts the role into the container of the launch. A secret that stands in the tool's options goes to
/// out.secrets instead. `head`: see command_line.h.
void contain(const Launch& launch, const std::string& head, ImportedRole& made, Imported& out);

/// Paths in the options of containers that begin at the run's folder (`$PWD` in the script) become absolute:
/// a path in an image has to be. The roles, srun's options and workdir are there.
void import_mounts(Imported& out);

}  // namespace nlaunch::import

#pragma once
#include <string>
#include <string_view>

#include "import/import.h"

/// Options of the script's srun. Each one is decided by nlaunch, or passed to its step, or mentioned in a
/// note, or cannot be expressed in an experiment.
namespace nlaunch::import {

/// True for options of pyxis, CSCS or srun that set an image in which a whole step runs.
bool is_of_image(std::string_view option);
/// What such an option means for the other roles; may be empty.
std::string said_of_image(std::string_view option);

/// Imports the options of the steps from which roles are made.
void import_steps(const shell::Recording& recording, Imported& out);

}  // namespace nlaunch::import

#pragma once
#include <string>
#include <string_view>

#include "import/import.h"

/// Options of the script's srun. Each is nlaunch's own to decide, or its step has it too, or a note names it,
/// or no experiment can say it.
namespace nlaunch::import {

/// Of pyxis, of CSCS, of srun: an image in which a whole step runs.
bool is_of_image(std::string_view option);
/// What such an option means for the other roles; may be empty.
std::string said_of_image(std::string_view option);

/// Of the steps that roles are made of.
void import_steps(const shell::Recording& recording, Imported& out);

}  // namespace nlaunch::import

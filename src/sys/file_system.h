#pragma once
#include <filesystem>
#include <string>

namespace nlaunch::sys {

/// The kind of file system that a path is on, or would be, where machines share it: "NFS", "Lustre", "GPFS"
/// ...; empty for one of this machine alone, and where it cannot be told.
std::string shared_file_system(std::filesystem::path path);

}  // namespace nlaunch::sys

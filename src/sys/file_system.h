#pragma once
#include <filesystem>
#include <string>

namespace nlaunch::sys {

/// The kind of shared file system that a path is on, or would be: "NFS", "Lustre", "GPFS" ...; empty for a
/// local one, and if unknown.
std::string shared_file_system(std::filesystem::path path);

}  // namespace nlaunch::sys

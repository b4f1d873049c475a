#pragma once
#include <filesystem>
#include <map>
#include <string>

namespace nlaunch::launch {

/// The distributions installed in a venv by name ("nvidia_nccl_cu12"), with their versions, from the names of
/// their metadata directories. Empty if there is no venv.
std::map<std::string, std::string> wheels_of(const std::filesystem::path& venv);

}  // namespace nlaunch::launch

#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace nlaunch::probe {

/// `folder PATH`: writes 4 KiB into a nameless file there, to the disk. A file system that is gone can hang
/// this process for good.
///   event "folder"; path, free (bytes for this user), seconds (for the write), error (why it cannot be
///   used), read_only (true: it is there, and this user cannot write to it; `error` says why).
nlohmann::json try_folder(const std::string& path);

}  // namespace nlaunch::probe

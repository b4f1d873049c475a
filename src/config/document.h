#pragma once
#include <string>

#include "config/reader.h"

namespace nlaunch::config {

/// Reads a file whose whole is a map. Of one that asks for a newer version that alone is told: its other keys
/// may mean anything.
Result<Node> read_document(const std::string& path, Problems& problems);
/// The same for a text that is already there.
Result<Node> read_document(const std::shared_ptr<const SourceFile>& file, Problems& problems);

/// The version of the files that this nlaunch reads: `version: 1`, which every file has.
inline constexpr std::uint32_t kFileVersion = 1;

/// Reports a version that is missing, or none that this nlaunch reads.
void check_version(Keys& keys);

}  // namespace nlaunch::config

#pragma once
#include <string>

#include "config/reader.h"

namespace nlaunch::config {

/// Reads a file that consists of one map. If the file needs a newer version, only that is reported: its other
/// keys can mean anything.
Result<Node> read_document(const std::string& path, Problems& problems);
/// The same for text that is already in memory.
Result<Node> read_document(const std::shared_ptr<const SourceFile>& file, Problems& problems);

/// The version of the files that this nlaunch reads: `version: 1`, required in every file.
inline constexpr std::uint32_t kFileVersion = 1;

/// Reports a missing version, or one that this nlaunch does not support.
void check_version(Keys& keys);

}  // namespace nlaunch::config

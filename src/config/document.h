#pragma once
#include <string>

#include "config/reader.h"

namespace nlaunch::config {

/// Reads a file whose whole is a map.
Result<Node> read_document(const std::string& path, Problems& problems);
/// The same for a text that is already there.
Result<Node> read_document(const std::shared_ptr<const SourceFile>& file, Problems& problems);

/// `version: 1`, which every file has.
void check_version(Keys& keys);

}  // namespace nlaunch::config

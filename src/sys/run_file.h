#pragma once
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/format.h"

namespace nlaunch::sys {

/// A JSON file of a run directory; empty if it does not exist. A failure [run.damaged] names the file and the
/// problem: it is not JSON, is deeper than 200 levels, is larger than 256 MiB, or has a member of a different
/// type than `format` specifies. [format.newer]: a newer nlaunch wrote it. [file.kind]: it is not a regular
/// file.
Result<std::optional<nlohmann::ordered_json>> read_run_file(const std::filesystem::path& path,
                                                            const Format& format);

}  // namespace nlaunch::sys

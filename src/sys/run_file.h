#pragma once
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/format.h"

namespace nlaunch::sys {

/// A JSON file of a run directory; nothing where it is not there. A failure [run.damaged] names the file and
/// what is wrong with it: it is no JSON, is deeper than 200 levels, is larger than 256 MiB, or has a member
/// of another type than `format` says. [format.newer]: a newer nlaunch wrote it. [file.kind]: it is no
/// regular file.
Result<std::optional<nlohmann::ordered_json>> read_run_file(const std::filesystem::path& path,
                                                            const Format& format);

}  // namespace nlaunch::sys

#pragma once
#include <filesystem>

#include "base/secrets.h"

namespace nlaunch::launch {

/// Ray writes why a raylet, its gcs_server or a worker ended into logs of its own, in the folder that `ray
/// start
/// --temp-dir` names. Copies those of all sessions in `scratch` to `target`, before `scratch` is removed: the
/// last MiB of each, the newest first, 64 MiB in all, with secrets masked. Without a session `target` is not
/// made.
void keep_ray_logs(const std::filesystem::path& scratch, const std::filesystem::path& target,
                   const Masker& masker);

}  // namespace nlaunch::launch

#pragma once
#include <filesystem>

#include "base/secrets.h"

namespace nlaunch::launch {

/// Ray writes why a raylet, its gcs_server or a worker exited to separate logs, in the directory given by
/// `ray start
/// --temp-dir`. Copies the logs of all sessions in `scratch` to `target` before `scratch` is removed: the
/// last MiB of each, newest first, 64 MiB in total, with secrets masked. Without a session, `target` is not
/// created.
void keep_ray_logs(const std::filesystem::path& scratch, const std::filesystem::path& target,
                   const Masker& masker);

}  // namespace nlaunch::launch

#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "base/words.h"

namespace nlaunch::launch {

/// What a role preloads, and for whom.
struct PreloadRequest {
  std::vector<std::string> libraries;  ///< absolute paths, in the order of loading
  PreloadScope scope = PreloadScope::process;
  std::string scope_library;    ///< libnlaunch-scope.so; comes last, and only where the scope is `process`
  std::filesystem::path links;  ///< an existing folder of this attempt
};

/// The value of LD_PRELOAD; empty where nothing is preloaded. The loader splits the value at blanks and
/// colons and expands `$`: a path with one of these is reached through a link that is made in `links` (the
/// same link for the same path, so that it may be asked for again, and from several nodes). Fails when a
/// library cannot be read, or when the path of `links` has such a character itself and a link is needed.
Result<std::string> preload_value(const PreloadRequest& request);

}  // namespace nlaunch::launch

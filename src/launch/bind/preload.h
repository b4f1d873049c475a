#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "base/words.h"

namespace nlaunch::launch {

/// What a role preloads, and its scope.
struct PreloadRequest {
  std::vector<std::string> libraries;  ///< absolute paths, in load order
  PreloadScope scope = PreloadScope::process;
  std::string scope_library;    ///< libnlaunch-scope.so; comes last, and only if the scope is `process`
  std::filesystem::path links;  ///< an existing directory of this attempt
};

/// The value of LD_PRELOAD; empty if nothing is preloaded. The loader splits the value at blanks and colons
/// and expands `$`: a path with one of these is reached through a link created in `links` (the same link for
/// the same path, so that this can be called again, and from several nodes). Fails if a library cannot be
/// read, or if a link is needed and the path of `links` itself has such a character.
Result<std::string> preload_value(const PreloadRequest& request);

}  // namespace nlaunch::launch

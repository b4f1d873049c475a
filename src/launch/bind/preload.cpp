#include "launch/bind/preload.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <functional>

#include "base/text.h"

namespace nlaunch::launch {
namespace {

namespace fs = std::filesystem;

bool splits(const std::string& path) {
  return path.find_first_of(" :$") != std::string::npos;
}

/// A link to `target`; one that another process created in the meantime is just as good.
Result<std::string> link_to(const std::string& target, const fs::path& folder) {
  if (splits(folder.string())) {
    return failure(
        "launch.preload-path",
        "cannot preload '{}': the loader splits LD_PRELOAD at blanks and colons, and '{}', where a link "
        "to it would be created, has one too; choose another directory with --runs-dir",
        target, folder.string());
  }
  const auto link = folder / fmt::format("preload-{:016x}.so", std::hash<std::string>{}(target));
  std::error_code error;
  fs::create_symlink(target, link, error);
  if (error && fs::read_symlink(link, error) != target) {
    return failure("launch.preload-link", "cannot create the link '{}' to '{}': {}", link.string(), target,
                   error.message());
  }
  return link.string();
}

Result<std::string> entry(const std::string& library, const fs::path& links) {
  if (::access(library.c_str(), R_OK) != 0) {
    return failure("launch.preload-missing", "cannot preload '{}': {}", library, std::strerror(errno));
  }
  return splits(library) ? link_to(library, links) : library;
}

}  // namespace

Result<std::string> preload_value(const PreloadRequest& request) {
  if (request.libraries.empty()) return "";
  auto libraries = request.libraries;
  if (request.scope == PreloadScope::process) libraries.push_back(request.scope_library);
  Diagnostics problems;
  for (auto& library : libraries) {
    auto found = entry(library, request.links);
    if (found) {
      library = std::move(*found);
    } else {
      problems.append(found.error());
    }
  }
  if (problems.has_errors()) return std::unexpected(std::move(problems));
  return text::join(libraries, ":");
}

}  // namespace nlaunch::launch

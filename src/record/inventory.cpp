#include "record/inventory.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/text.h"
#include "preflight/observations.h"

namespace nlaunch::record {
namespace {

namespace fs = std::filesystem;

/// Deeper than anything that nlaunch creates: protects the stack.
constexpr unsigned kDeepest = 32;

/// Paths below the run directory that nlaunch or its bundles own. A '*' also matches slashes.
constexpr std::array<std::string_view, 23> kKnown{"plan.json",
                                                  "lock.json",
                                                  "events.jsonl",
                                                  "summary.json",
                                                  "job.json",
                                                  "job.sbatch",
                                                  "beaker.yaml",
                                                  "diagnosis.json",
                                                  "preflight.json",
                                                  "bench.json",
                                                  "*.log",
                                                  "*.out",
                                                  "attempt-*/bound.*.json",
                                                  "attempt-*/*.json",
                                                  "attempt-*/logs/*",
                                                  "attempt-*/nccl/*",
                                                  "attempt-*/evidence/*",
                                                  "attempt-*/preflight/*",
                                                  "attempt-*/env/*",
                                                  "attempt-*/ray/*",
                                                  "attempt-*/addrs/*",
                                                  "attempt-*/modules*",
                                                  "attempt-*/*.txt"};

bool is_known(std::string_view path) {
  return std::ranges::any_of(kKnown, [&](std::string_view glob) { return text::glob_match(glob, path); });
}

/// An earlier bundle, or one that is being written.
bool is_bundle(const fs::path& path) {
  return !path.has_parent_path() && path.filename().string().find(".tar.zst") != std::string::npos;
}

/// Why a file that is not nlaunch's is left out; empty: it is included.
std::string foreign(const std::string& path, std::uint64_t size) {
  if (is_known(path) || size <= kLargestForeign) return "";
  return fmt::format("a file of the run's programs ({}); only those up to {} are included",
                     preflight::size_text(size), preflight::size_text(kLargestForeign));
}

std::string kind_of(mode_t mode) {
  if (S_ISLNK(mode)) return "a symlink, which is not followed";
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

class Walk {
 public:
  explicit Walk(const fs::path& root) : root_(root) {}

  void enter(const fs::path& folder, unsigned depth) {
    if (depth > kDeepest) return leave_out(folder, "directories nested too deeply");
    std::vector<std::string> names;
    std::error_code error;
    for (fs::directory_iterator at(root_ / folder, error), end; !error && at != end; at.increment(error))
      names.push_back(at->path().filename());
    if (error) leave_out(folder, fmt::format("cannot be read: {}", error.message()));
    std::ranges::sort(names);
    for (const auto& name : names) take(folder / name, depth);
  }

  Inventory found;

 private:
  void take(const fs::path& path, unsigned depth) {
    struct stat info {};
    if (::lstat((root_ / path).c_str(), &info) != 0) {
      if (errno != ENOENT) leave_out(path, fmt::format("cannot be read: {}", std::strerror(errno)));
    } else if (S_ISDIR(info.st_mode)) {
      enter(path, depth + 1);
    } else if (!S_ISREG(info.st_mode)) {
      leave_out(path, kind_of(info.st_mode));
    } else if (!is_bundle(path)) {
      const auto size = static_cast<std::uint64_t>(info.st_size);
      if (auto why = foreign(path.string(), size); !why.empty()) return leave_out(path, std::move(why));
      found.items.push_back({path.string(), size});
    }
  }

  void leave_out(const fs::path& path, std::string why) {
    found.left_out.push_back({path.string(), std::move(why)});
  }

  const fs::path& root_;
};

}  // namespace

Inventory take_inventory(const fs::path& run) {
  Walk walk(run);
  walk.enter({}, 0);
  return std::move(walk.found);
}

}  // namespace nlaunch::record

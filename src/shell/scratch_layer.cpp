#include "shell/scratch_layer.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <deque>
#include <string_view>

namespace nlaunch::shell {
namespace {

namespace fs = std::filesystem;

/// A script's own files are small; a checkpoint that it opens for writing starts empty.
constexpr std::uintmax_t kLargestCopy = 64U << 20U;
constexpr std::size_t kMostFiles = 10'000;

bool is_anything(const fs::path& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0;
}

bool is_folder(const fs::path& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

bool is_link(const fs::path& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0 && S_ISLNK(info.st_mode);
}

/// Devices that accept writes without an effect.
bool is_harmless_device(const fs::path& path) {
  constexpr std::array<std::string_view, 3> kDevices{"/dev/null", "/dev/zero", "/dev/full"};
  return std::ranges::find(kDevices, path.native()) != kDevices.end();
}

/// A descriptor of a process: /proc/PID/fd/N.
bool is_descriptor(const fs::path& path) {
  return path.native().starts_with("/proc/") && path.parent_path().filename() == "fd";
}

}  // namespace

bool ScratchLayer::contains(const fs::path& path) const {
  const auto& text = path.native();
  const auto& prefix = folder_.native();
  return text.starts_with(prefix) && (text.size() == prefix.size() || text[prefix.size()] == '/');
}

fs::path ScratchLayer::in_layer(const fs::path& path) const {
  return folder_.native() + path.native();
}

fs::path ScratchLayer::unmapped(const fs::path& path) const {
  if (!contains(path)) return path;
  const auto rest = path.native().substr(folder_.native().size());
  return rest.empty() ? "/" : rest;
}

std::string ScratchLayer::without_layer(std::string text) const {
  const auto& prefix = folder_.native();
  for (auto at = text.find(prefix); at != std::string::npos; at = text.find(prefix, at))
    text.erase(at, prefix.size());
  return text;
}

bool ScratchLayer::covers(const fs::path& path) const {
  return is_removed(path) || is_anything(in_layer(path));
}

bool ScratchLayer::is_removed(const fs::path& path) const {
  for (auto one = path; one != one.root_path(); one = one.parent_path())
    if (removed_.contains(one)) return true;
  return false;
}

bool ScratchLayer::is_there(const fs::path& path) const {
  return is_anything(in_layer(path)) || (!is_removed(path) && is_anything(path));
}

std::expected<fs::path, int> ScratchLayer::resolved(const fs::path& path, bool follow_last,
                                                    pid_t self) const {
  constexpr int kMostLinks = 40;  // the kernel's MAXSYMLINKS
  const auto all = unmapped(path);
  std::deque<fs::path> rest(all.begin(), all.end());
  fs::path done("/");
  int links = 0;
  while (!rest.empty()) {
    const auto part = rest.front();
    rest.pop_front();
    if (part.empty() || part == "." || part == "/") continue;
    if (part == "..") {
      done = done.parent_path();
      continue;
    }
    const auto next = done / part;
    if (next == "/proc/self" ||
        next == "/proc/thread-self") {  // not this process, which asks on behalf of another
      done = fs::path("/proc") / std::to_string(self);
      continue;
    }
    const auto inside = in_layer(next);
    const bool of_layer = is_anything(inside);
    const bool link = of_layer ? is_link(inside) : !is_removed(next) && is_link(next);
    const bool is_last = std::ranges::all_of(rest, [](const fs::path& one) { return one.empty(); });
    if (!link || (is_last && !follow_last)) {
      done = next;
      continue;
    }
    std::error_code error;
    const auto target = unmapped(fs::read_symlink(of_layer ? inside : next, error));
    // A descriptor that does not refer to a file has no path: "pipe:[12]".
    if (error || (is_descriptor(next) && target.is_relative())) {
      done = next;
      continue;
    }
    if (++links > kMostLinks) return std::unexpected(ELOOP);
    rest.insert(rest.begin(), target.begin(), target.end());
    if (target.is_absolute()) done = "/";
  }
  return done;
}

std::string ScratchLayer::link_target(const fs::path& link, const fs::path& target) const {
  const auto whole = unmapped(target.is_absolute() ? target : link.parent_path() / target);
  return in_layer(whole.lexically_normal());
}

bool ScratchLayer::make_folder(const fs::path& path) {
  std::error_code error;
  fs::create_directories(in_layer(path), error);
  return !error;
}

bool ScratchLayer::make_parents(const fs::path& path) {
  return path.has_parent_path() && make_folder(path.parent_path());
}

std::uintmax_t ScratchLayer::size() const {
  auto all = removed_bytes_;
  std::error_code error;
  fs::recursive_directory_iterator entry(folder_, error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    struct stat info {};
    if (::lstat(entry->path().c_str(), &info) == 0 && S_ISREG(info.st_mode))
      all += static_cast<std::uintmax_t>(info.st_size);
  }
  return all;
}

bool ScratchLayer::copy_up(const fs::path& path) {
  const auto target = in_layer(path);
  if (is_anything(target) || is_removed(path) || !is_anything(path)) return true;
  std::error_code error;
  const auto status = fs::symlink_status(path, error);
  if (fs::is_directory(status)) return make_folder(path);
  if (fs::is_symlink(status)) {
    fs::create_symlink(link_target(path, fs::read_symlink(path, error)), target, error);
    return !error;
  }
  if (!fs::is_regular_file(status)) return false;
  const auto size = fs::file_size(path, error);
  if (error || size > kLargestCopy) return true;  // a new one replaces it
  fs::copy_file(path, target, error);
  if (!error)
    fs::permissions(target, fs::perms::owner_read | fs::perms::owner_write, fs::perm_options::add, error);
  return !error;
}

fs::path ScratchLayer::map_to_read(const fs::path& path) const {
  const auto target = in_layer(path);
  if (is_removed(path)) return target;
  // A directory of the machine shows more than the layer's copy.
  const bool both_are_folders = is_folder(target) && is_folder(path);
  return is_anything(target) && !both_are_folders ? target : path;
}

std::expected<fs::path, int> ScratchLayer::map(const fs::path& path, Access access) {
  if (access == Access::read) return map_to_read(path);
  const auto target = in_layer(path);
  const bool of_file = access == Access::write || access == Access::replace;
  if (is_harmless_device(path) || is_descriptor(path) || permitted_.contains(path))
    return of_file ? std::expected<fs::path, int>(path) : std::unexpected(EACCES);
  if (path.has_parent_path() && !is_there(path.parent_path())) return std::unexpected(ENOENT);
  switch (access) {
    case Access::create:
      if (is_there(path)) return std::unexpected(EEXIST);
      break;
    case Access::remove: {
      if (!is_there(path)) return std::unexpected(ENOENT);
      const bool on_machine = !is_removed(path) && is_anything(path);
      removed_.insert(path);
      struct stat info {};
      if (::lstat(target.c_str(), &info) == 0 && S_ISREG(info.st_mode))
        removed_bytes_ += static_cast<std::uintmax_t>(info.st_size);
      if (is_anything(target)) return target;
      return on_machine ? std::unexpected(0) : std::unexpected(ENOENT);
    }
    case Access::change:
      if (!is_there(path)) return std::unexpected(ENOENT);
      break;
    default:
      break;
  }
  if (of_file && (is_anything(target) ? is_folder(target) : !is_removed(path) && is_folder(path)))
    return std::unexpected(EISDIR);
  if (!make_parents(path)) return std::unexpected(EACCES);
  // A truncated file keeps its permissions.
  if (access != Access::create && !copy_up(path)) return std::unexpected(EACCES);
  if (of_file || access == Access::create) {
    if (made_.size() >= kMostFiles) return std::unexpected(ENOSPC);
    made_.insert(target);
  }
  return target;
}

}  // namespace nlaunch::shell

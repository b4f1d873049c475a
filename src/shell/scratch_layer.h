#pragma once
#include <sys/types.h>

#include <cstdint>
#include <expected>
#include <filesystem>
#include <set>
#include <string>

namespace nlaunch::shell {

/// How a process accesses a path.
enum class Access {
  read,     ///< the file, or whether it exists
  write,    ///< to an existing or new file; the old content may stay
  replace,  ///< a new file, or one that is truncated first
  create,   ///< a name that does not exist yet: a directory, a link, a FIFO
  change,   ///< permissions, times, size or name of an existing path
  remove,
};

/// An overlay on the machine's file system, which is never written to: what a process writes, creates or
/// removes happens in a scratch directory, and later processes see it there. Path P of the machine is FOLDER
/// + P in it. No link inside the directory leads out of it, for any process: `link_target` ensures that.
class ScratchLayer {
 public:
  /// `folder`: an existing, empty directory, absolute and without links.
  explicit ScratchLayer(std::filesystem::path folder) : folder_(std::move(folder)) {}

  /// `path` without `.`, `..` and links, as process `self` sees it through the layer. The last component is
  /// followed or kept. Returns an errno if there are too many links.
  [[nodiscard]] std::expected<std::filesystem::path, int> resolved(const std::filesystem::path& path,
                                                                   bool follow_last, pid_t self) const;

  /// The path to use instead of `path`, which is resolved. Returns an errno if the access fails, or 0 if it
  /// succeeded and nothing is left to do.
  std::expected<std::filesystem::path, int> map(const std::filesystem::path& path, Access access);

  /// The same for reading, which cannot fail.
  [[nodiscard]] std::filesystem::path map_to_read(const std::filesystem::path& path) const;

  /// The text of a link at `link` that should lead to `target`, relative or not.
  [[nodiscard]] std::string link_target(const std::filesystem::path& link,
                                        const std::filesystem::path& target) const;

  /// The machine's path if `path` is in the layer; else `path` itself.
  [[nodiscard]] std::filesystem::path unmapped(const std::filesystem::path& path) const;
  /// The text with the layer's directory removed from all paths.
  [[nodiscard]] std::string without_layer(std::string text) const;
  [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }
  /// Whether the layer overrides a path of the machine.
  [[nodiscard]] bool covers(const std::filesystem::path& path) const;

  /// Lets processes write to this file of the machine.
  void permit(std::filesystem::path file) { permitted_.insert(std::move(file)); }
  [[nodiscard]] const std::set<std::filesystem::path>& permitted() const { return permitted_; }
  /// Creates a directory that exists only on the cluster.
  bool make_folder(const std::filesystem::path& path);
  /// Bytes of all files that are or were in it.
  [[nodiscard]] std::uintmax_t size() const;

 private:
  [[nodiscard]] bool contains(const std::filesystem::path& path) const;
  [[nodiscard]] std::filesystem::path in_layer(const std::filesystem::path& path) const;
  [[nodiscard]] bool is_removed(const std::filesystem::path& path) const;
  /// Exists in the layer or, unless removed, on the machine.
  [[nodiscard]] bool is_there(const std::filesystem::path& path) const;
  bool copy_up(const std::filesystem::path& path);
  bool make_parents(const std::filesystem::path& path);

  std::filesystem::path folder_;
  std::set<std::filesystem::path> permitted_;
  std::set<std::filesystem::path> removed_;  ///< of the machine's
  std::set<std::filesystem::path> made_;     ///< in the layer
  std::uintmax_t removed_bytes_ = 0;         ///< of its own files: an open one can still grow
};

}  // namespace nlaunch::shell

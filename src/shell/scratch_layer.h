#pragma once
#include <sys/types.h>

#include <cstdint>
#include <expected>
#include <filesystem>
#include <set>
#include <string>

namespace nlaunch::shell {

/// What a process wants with a path.
enum class Access {
  read,     ///< the file, or whether it is there
  write,    ///< to an existing or a new file, of which the old content may stay
  replace,  ///< a new file, or one that is emptied first
  create,   ///< a name that is not there yet: a folder, a link, a FIFO
  change,   ///< the rights, the times, the size, the name of what is there
  remove,
};

/// A file system over that of the machine, which is never written to: what a process writes, makes or removes
/// is so in a scratch folder, and is seen there by all that come later. A path P of the machine is FOLDER + P
/// in it. No link within the folder leads out of it, whoever looks: `link_target` sees to that.
class ScratchLayer {
 public:
  /// `folder`: an existing, empty one, absolute and without links.
  explicit ScratchLayer(std::filesystem::path folder) : folder_(std::move(folder)) {}

  /// `path` without `.`, `..` and links, as process `self` sees it: through the layer. The last part is
  /// followed, or is as it is. An errno where there are too many links.
  [[nodiscard]] std::expected<std::filesystem::path, int> resolved(const std::filesystem::path& path,
                                                                   bool follow_last, pid_t self) const;

  /// The path to use in place of `path`, a resolved one. An errno where the access fails, or 0 where there is
  /// nothing left to do and it has succeeded.
  std::expected<std::filesystem::path, int> map(const std::filesystem::path& path, Access access);

  /// The same for reading, which cannot fail.
  [[nodiscard]] std::filesystem::path map_to_read(const std::filesystem::path& path) const;

  /// What to write into a link at `link` that shall lead to `target`, relative or not.
  [[nodiscard]] std::string link_target(const std::filesystem::path& link,
                                        const std::filesystem::path& target) const;

  /// A path of the machine, where `path` is one of the layer's; else `path` itself.
  [[nodiscard]] std::filesystem::path unmapped(const std::filesystem::path& path) const;
  /// The text with the layer's folder taken out of all paths.
  [[nodiscard]] std::string without_layer(std::string text) const;
  [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }
  /// Whether a path of the machine has something of its own in the layer.
  [[nodiscard]] bool covers(const std::filesystem::path& path) const;

  /// A file of the machine that processes may write to after all.
  void permit(std::filesystem::path file) { permitted_.insert(std::move(file)); }
  [[nodiscard]] const std::set<std::filesystem::path>& permitted() const { return permitted_; }
  /// Makes a folder that exists on a cluster alone.
  bool make_folder(const std::filesystem::path& path);
  /// Bytes of all files that are or were in it.
  [[nodiscard]] std::uintmax_t size() const;

 private:
  [[nodiscard]] bool contains(const std::filesystem::path& path) const;
  [[nodiscard]] std::filesystem::path in_layer(const std::filesystem::path& path) const;
  [[nodiscard]] bool is_removed(const std::filesystem::path& path) const;
  /// In the layer, or, unless removed, on the machine.
  [[nodiscard]] bool is_there(const std::filesystem::path& path) const;
  bool copy_up(const std::filesystem::path& path);
  bool make_parents(const std::filesystem::path& path);

  std::filesystem::path folder_;
  std::set<std::filesystem::path> permitted_;
  std::set<std::filesystem::path> removed_;  ///< of the machine's
  std::set<std::filesystem::path> made_;     ///< in the layer
  std::uintmax_t removed_bytes_ = 0;         ///< of its own files: who has one open still fills it
};

}  // namespace nlaunch::shell

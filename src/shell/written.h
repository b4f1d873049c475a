#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "shell/guarded.h"
#include "shell/scratch_layer.h"
#include "shell/words.h"

namespace nlaunch::shell {

/// A file that the script wrote, or a directory that it created.
struct WrittenFile {
  std::string path;                 ///< absolute; a directory ends with a slash
  std::optional<std::string> text;  ///< nullopt: not text, or larger than 64 KiB
  bool executable = false;
  bool in_task = false;  ///< by a task of a step, on its node
  bool operator==(const WrittenFile&) const = default;
};

/// What a program is given: its arguments, its variables and its working directory.
struct Told {
  const Words& words;
  const std::vector<std::string>& variables;
  const std::string& folder;
};

/// True if a text names a path or, with `below`, something below it: "--config=conf/a.yaml" names
/// conf/a.yaml, and something below conf.
bool names_path(std::string_view text, std::string_view path, bool below);

/// Files of the layer: those that the script itself wrote, and those that a program of the job would write.
class Written {
 public:
  /// `layer` must outlive this object.
  explicit Written(const ScratchLayer& layer) : layer_(layer) {}

  /// The request lists it as existing.
  void given(const std::string& path) { given_.insert(path); }
  /// The output of a program of the job goes into it.
  void redirected(const std::string& path) { outputs_.insert(path); }
  /// `cp`, `mv`, `ln`, `install`, `dd` of the job.
  void copied(const ProgramStart& start, const Words& argv);
  /// A program of the job prints into it, in the background or not.
  void job_prints_to(const std::string& pipe, bool background) { pipes_of_job_[pipe] = background; }
  /// `tee FILE...`, which passes its input on.
  void tee(const ProgramStart& start, const Words& argv);
  /// A task of a step writes it.
  void by_task(const std::string& path) { by_task_.insert(path); }
  void made_folder(const std::string& path) { folders_.insert(path); }
  /// `mkdir FOLDER...`.
  void mkdir(const ProgramStart& start, const Words& argv);

  [[nodiscard]] const std::set<std::string>& all_given() const { return given_; }
  [[nodiscard]] bool is_given(const std::string& path) const { return given_.contains(path); }
  /// A program of the job writes it.
  [[nodiscard]] bool is_made_by_job(const std::string& path) const {
    const auto tee = tees_.find(path);
    return outputs_.contains(path) || copied_.contains(path) ||
           (tee != tees_.end() && pipes_of_job_.contains(tee->second));
  }

  /// True if a program of the job prints into this pipe.
  [[nodiscard]] bool is_of_job(const std::string& pipe) const { return pipes_of_job_.contains(pipe); }
  /// True if `tee` has filled it with the output of a program in the foreground.
  [[nodiscard]] bool is_finished_by_tee(const std::string& path) const {
    const auto tee = tees_.find(path);
    const auto pipe = tee == tees_.end() ? pipes_of_job_.end() : pipes_of_job_.find(tee->second);
    return pipe != pipes_of_job_.end() && !pipe->second;
  }

  /// The script's own, sorted.
  [[nodiscard]] std::vector<WrittenFile> files() const;
  /// Directories that it created.
  [[nodiscard]] const std::set<std::string>& folders() const { return folders_; }
  /// Those that a program is given, and directories that contain something it is given.
  [[nodiscard]] std::vector<WrittenFile> told_to(const Told& program) const;
  /// Files that a program is given and that contain the output of another one.
  [[nodiscard]] std::vector<std::string> outputs_told_to(const Told& program) const;

 private:
  /// The contents of a copy when it was created.
  struct Copy {
    std::string target, source;
    std::optional<std::string> text;
  };
  [[nodiscard]] bool is_own(const std::string& path) const;
  [[nodiscard]] bool is_changed_copy(const std::string& path) const;
  [[nodiscard]] WrittenFile file(const std::string& path) const;

  const ScratchLayer& layer_;
  std::set<std::string> given_;
  std::set<std::string> outputs_;
  std::set<std::string> copied_;              ///< with the folders into which
  std::map<std::string, bool> pipes_of_job_;  ///< in the background?
  std::map<std::string, std::string> tees_;   ///< file → the pipe that is read
  std::set<std::string> folders_;
  std::set<std::string> by_task_;
  std::vector<Copy> copies_;
};

}  // namespace nlaunch::shell

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

/// A file that the script has written, or a folder that it has made.
struct WrittenFile {
  std::string path;                 ///< of a folder with a slash at its end
  std::optional<std::string> text;  ///< nothing: it is no text, or has more than 64 KiB
  bool executable = false;
  bool in_task = false;  ///< by a task of a step, on its node
  bool operator==(const WrittenFile&) const = default;
};

/// What a program is told: its words, its variables, and the folder in which it runs.
struct Told {
  const Words& words;
  const std::vector<std::string>& variables;
  const std::string& folder;
};

/// A text names a path, or the path stands in front of a longer one where `below`: "--config=conf/a.yaml"
/// names conf/a.yaml, and what is below conf.
bool names_path(std::string_view text, std::string_view path, bool below);

/// Files of the layer: which the script itself has written, and which a program of the job would write.
class Written {
 public:
  /// `layer` outlives it.
  explicit Written(const ScratchLayer& layer) : layer_(layer) {}

  /// The request says that it is there.
  void given(const std::string& path) { given_.insert(path); }
  /// The output of a program of the job goes into it.
  void redirected(const std::string& path) { outputs_.insert(path); }
  /// `cp`, `mv`, `ln`, `install`, `dd` of the job.
  void copied(const ProgramStart& start, const Words& argv);
  /// A program of the job prints into it.
  void job_prints_to(const std::string& pipe) { pipes_of_job_.insert(pipe); }
  /// `tee FILE...`, which passes on what it reads.
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
    return outputs_.contains(path) || copied_.contains(path);
  }

  /// The script's own, sorted.
  [[nodiscard]] std::vector<WrittenFile> files() const;
  /// Folders that it has made.
  [[nodiscard]] const std::set<std::string>& folders() const { return folders_; }
  /// Those of them that a program is told of, and folders in which it is told of something.
  [[nodiscard]] std::vector<WrittenFile> told_to(const Told& program) const;
  /// Files that a program is told of, and into which the output of another one goes.
  [[nodiscard]] std::vector<std::string> outputs_told_to(const Told& program) const;

 private:
  /// What a copy had in it when it was made.
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
  std::set<std::string> copied_;  ///< with the folders into which
  std::set<std::string> pipes_of_job_;
  std::map<std::string, std::string> tees_;  ///< file → the pipe that is read
  std::set<std::string> folders_;
  std::set<std::string> by_task_;
  std::vector<Copy> copies_;
};

}  // namespace nlaunch::shell

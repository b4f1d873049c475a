#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shell/launchers.h"
#include "shell/recorder.h"
#include "shell/scratch_layer.h"
#include "shell/written.h"

/// What a recorded script finds instead of a cluster: an environment, login files, and stand-in scripts for
/// programs that start others.
namespace nlaunch::shell {

/// The recorder's own files, which no script can write to.
struct OwnFiles {
  std::filesystem::path folder;
  [[nodiscard]] std::string trace() const { return folder / "trace"; }
  [[nodiscard]] std::string start() const { return folder / "start.sh"; }
  [[nodiscard]] std::string programs() const { return folder / "bin"; }
  [[nodiscard]] std::string other() const { return folder / "other"; }  ///< for programs that are not found
  [[nodiscard]] std::string answers() const { return folder / "answers"; }
  [[nodiscard]] std::string input() const { return folder / "input"; }  ///< empty: not /dev/null
  [[nodiscard]] std::string output() const { return folder / "output"; }
};

/// What a file contains of which is only known that it exists. It is a comment for those that read it here,
/// and is found again in what is made of the file.
inline constexpr std::string_view kTextOfGiven = "# nlaunch: what is in this file is not known here\n";
/// True for such a text, or one that was made of it.
bool is_of_given(std::string_view text);

/// Opened by a process in the last moment in which it ignores signals, if bash started it with &: a program
/// that is missing runs by a function of bash, whose exec restores them.
constexpr const char* kAskedByHandler = "/rec/handler";

/// Creates the files in the existing directory. Returns false if they cannot be written.
bool make_own_files(const OwnFiles& own, const RecordRequest& request);

/// Creates in the layer what the request says is there: files on the cluster, files that were written before,
/// and the hosts of its allocation, whose names bash itself looks up.
void make_given_files(const RecordRequest& request, ScratchLayer& layer, Written& written);

/// The script's initial environment.
std::vector<std::string> environment_of(const RecordRequest& request, const OwnFiles& own);
/// True for a variable that the recorder or bash itself set: "PS4=+".
bool is_own_variable(std::string_view entry);
/// A text with the directory of the recorder's programs removed.
std::string without_own(std::string text, const OwnFiles& own);

/// The value of a variable in a list of "NAME=VALUE".
std::optional<std::string> value_of(const std::vector<std::string>& environment, std::string_view name);
/// The index of the launcher that started a program, from the program's environment.
std::optional<std::size_t> launcher_of(const std::vector<std::string>& environment);
/// The task that a program belongs to, from the program's environment.
std::optional<Task> task_of(const std::vector<std::string>& environment);

/// For `source …/bin/activate` of a virtual environment that exists only on the cluster, and conda's `source
/// activate NAME`.
std::string activation(const std::string& path, const std::string& command);

/// Scripts that run in the place of programs, or that are sourced.
class StandInScripts {
 public:
  /// `own` must outlive this object.
  explicit StandInScripts(const OwnFiles& own) : own_(own) {}

  /// The path of a script of these lines, among the recorder's own files.
  std::string put(const std::string& lines);
  /// The same for a program that prints `text` and exits with `code`.
  std::string answer(const std::string& text, int code);

 private:
  std::string put_file(const std::string& content);

  const OwnFiles& own_;
  std::map<std::string, std::string> paths_;  ///< by their content
};

/// How a launcher's tasks are started.
struct StartOfTasks {
  std::size_t launcher = 0;  ///< its index among the recorded commands
  std::size_t step = 0;      ///< its number
  bool mpi = false;          ///< mpirun, not srun
  std::optional<std::uint64_t>
      until{};  ///< `timeout`: the time (Failing::now()) at which it ends the program
};
/// A script that starts the program once per recorded task, or once if there are no tasks.
std::string script_of_tasks(const Started& started, const StartOfTasks& start, const RecordRequest& request,
                            const OwnFiles& own);
/// The same for a script that is started on each node. `script`: it and its arguments.
std::string script_of_nodes(const Words& script, const RecordRequest& request);
/// StartOfTasks::until of the launcher around a program with this environment.
std::optional<std::uint64_t> until_of(const std::vector<std::string>& environment);

}  // namespace nlaunch::shell

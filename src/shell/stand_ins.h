#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shell/launchers.h"
#include "shell/recorder.h"

/// What a recorded script finds in the place of a cluster: an environment, files of its login, and scripts
/// that stand in for programs which start others.
namespace nlaunch::shell {

/// The recorder's own files, which no script writes to.
struct OwnFiles {
  std::filesystem::path folder;
  [[nodiscard]] std::string trace() const { return folder / "trace"; }
  [[nodiscard]] std::string start() const { return folder / "start.sh"; }
  [[nodiscard]] std::string programs() const { return folder / "bin"; }
  [[nodiscard]] std::string other() const { return folder / "other"; }  ///< for what is found nowhere
  [[nodiscard]] std::string answers() const { return folder / "answers"; }
  [[nodiscard]] std::string input() const { return folder / "input"; }  ///< empty: not /dev/null
  [[nodiscard]] std::string output() const { return folder / "output"; }
};

/// Makes the files in its folder, which is there. False where they cannot be written.
bool make_own_files(const OwnFiles& own);

/// The environment in which the script begins.
std::vector<std::string> environment_of(const RecordRequest& request, const OwnFiles& own);
/// A variable that the recorder or bash itself has set: "PS4=+".
bool is_own_variable(std::string_view entry);
/// A text with the folder of the recorder's programs taken out.
std::string without_own(std::string text, const OwnFiles& own);

/// The value of a variable among "NAME=VALUE".
std::optional<std::string> value_of(const std::vector<std::string>& environment, std::string_view name);
/// The index of the launcher that has started a program, by its environment.
std::optional<std::size_t> launcher_of(const std::vector<std::string>& environment);
/// The task that a program is of, by its environment.
std::optional<Task> task_of(const std::vector<std::string>& environment);

/// For `source …/bin/activate`, of a virtual environment that is on the cluster alone, and `source activate
/// NAME`, of conda.
std::string activation(const std::string& path, const std::string& command);

/// How a launcher's tasks are started.
struct StartOfTasks {
  std::size_t launcher = 0;  ///< its index among the recorded commands
  std::size_t step = 0;      ///< its number
  bool mpi = false;          ///< mpirun, not srun
};
/// The lines of a script that starts the program once for each task that is recorded, or once where it has
/// none.
std::string script_of_tasks(const Started& started, const StartOfTasks& start, const RecordRequest& request,
                            const OwnFiles& own);
/// The same for a script that somebody starts on each node. `script`: it and its arguments.
std::string script_of_nodes(const Words& script, const RecordRequest& request);

}  // namespace nlaunch::shell

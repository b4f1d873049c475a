#pragma once
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "shell/guarded.h"
#include "shell/places.h"

namespace nlaunch::shell {

/// Which processes of a recording belong to which task of a step.
class TasksOfShells {
 public:
  /// `places` must outlive this object.
  explicit TasksOfShells(const Places& places) : places_(places) {}

  /// A step starts these tasks, some of which represent others unless `all` are recorded.
  void starts(const std::vector<Task>& tasks, bool all);
  /// The variables that tell the task of a program, which are missing after `env -i`, are those of the
  /// process, or of one above it, before that.
  [[nodiscard]] ProgramStart with_task(ProgramStart start);
  /// The shell is the first of a task. `line`: of the script that started the step.
  void began(pid_t shell, const Task& task, std::uint32_t line);
  /// The task of a process; nullopt if none.
  [[nodiscard]] std::optional<Task> of(pid_t pid) const;
  /// The line of the step if the process was the first shell of a task that has ended now.
  std::optional<std::uint32_t> ended(pid_t pid);

  /// True if a task compares its number with that of a task that was not recorded: `[ $SLURM_NODEID -eq 5 ]`.
  [[nodiscard]] bool branch() const;

 private:
  static constexpr int kDeepest = 50;  ///< processes above one another

  const Places& places_;
  std::map<pid_t, Task> tasks_;                              ///< of the shells that began them, even if ended
  std::map<pid_t, std::uint32_t> lines_;                     ///< of the steps of those that run
  std::map<pid_t, std::vector<std::string>> own_variables_;  ///< of processes in a launcher
  std::size_t unrecorded_ = 0;  ///< tasks of the largest step that was not recorded completely
};

}  // namespace nlaunch::shell

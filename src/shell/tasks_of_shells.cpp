#include "shell/tasks_of_shells.h"

#include <algorithm>
#include <iterator>

#include "shell/allocation.h"
#include "shell/stand_ins.h"
#include "shell/trace.h"

namespace nlaunch::shell {

void TasksOfShells::starts(const std::vector<Task>& tasks, bool all) {
  const auto recorded = recorded_for(tasks, all);
  for (std::size_t i = 0; i < recorded.size(); ++i)
    if (recorded[i] != i) unrecorded_ = std::max(unrecorded_, tasks.size());
}

ProgramStart TasksOfShells::with_task(ProgramStart start) {
  if (launcher_of(start.environment)) {
    auto& own = own_variables_[start.pid];
    own.clear();
    std::ranges::copy_if(start.environment, std::back_inserter(own), is_own_variable);
    return start;
  }
  std::optional<pid_t> pid = start.pid;
  for (int i = 0; pid && i < kDeepest; ++i, pid = places_.parent_of(*pid))
    if (const auto own = own_variables_.find(*pid); own != own_variables_.end()) {
      start.environment.insert(start.environment.end(), own->second.begin(), own->second.end());
      break;
    }
  return start;
}

void TasksOfShells::began(pid_t shell, const Task& task, std::uint32_t line) {
  tasks_.try_emplace(shell, task);
  lines_.try_emplace(shell, line);
}

std::optional<Task> TasksOfShells::of(pid_t pid) const {
  for (int i = 0; i < kDeepest; ++i) {
    const auto found = tasks_.find(pid);
    if (found != tasks_.end()) return found->second;
    const auto parent = places_.parent_of(pid);
    if (!parent) return std::nullopt;
    pid = *parent;
  }
  return std::nullopt;
}

std::optional<std::uint32_t> TasksOfShells::ended(pid_t pid) {
  own_variables_.erase(pid);
  const auto found = lines_.find(pid);
  if (found == lines_.end()) return std::nullopt;
  const auto line = found->second;
  lines_.erase(found);
  return line;
}

bool TasksOfShells::branch() const {
  return unrecorded_ > 0 &&
         std::ranges::any_of(places_.trace().commands(), [&](const TracedCommand& command) {
           const auto task = of(command.shell);
           return task && compares_tasks(command.text, *task, unrecorded_);
         });
}

}  // namespace nlaunch::shell

#include "shell/processes.h"

#include <algorithm>

#include "base/text.h"
#include "shell/trace.h"
#include "shell/words.h"

namespace nlaunch::shell {
namespace {

bool is_before(const WaitedFor::By& one, const WaitedFor& next) {
  const auto ended = next.before.find(one.shell);
  return ended != next.before.end() && ended->second > one.number;
}

/// `kill PID`, `kill -9 PID`; not -0, which only checks.
bool ends(const Words& kill) {
  return !has(kill, "-0") && !has(kill, "-l") && !(has(kill, "-s") && has(kill, "0"));
}

}  // namespace

bool had_ended(const WaitedFor& first, const WaitedFor& next) {
  return std::ranges::any_of(first.by, [&](const auto& one) { return is_before(one, next); });
}

bool was_ended(const WaitedFor& first, const WaitedFor& next) {
  return std::ranges::any_of(first.by, [&](const auto& one) { return one.kills && is_before(one, next); });
}

void Processes::forked(pid_t parent, pid_t child, bool in_front) {
  const bool is_first = parents_.empty();
  parents_[child] = parent;
  auto& shell = shells_[parent];
  // The script's own shell traces nothing itself while it only starts programs in the background and
  // pipelines.
  shell.traces = shell.traces || is_first;
  end_wait(parent, shell);
  if (const auto above = in_front ? parent_of(parent) : std::nullopt) {
    auto& waiting = shells_[*above];
    if (waiting.traces && waiting.awaited.empty()) {
      waiting.awaited = {parent};
      waiting.in_front = true;
    }
  }
  shell.children.push_back(child);
  ended_at_fork_[child] = shell.ended;
}

void Processes::end_wait(pid_t pid, Shell& shell) {
  if (shell.awaited.empty()) return;
  // What it does while a shell still runs that seemed to be in front: the rest of a pipeline, or it was not.
  if (shell.in_front && !ended_.contains(shell.awaited.front())) return;
  for (const auto child : shell.awaited) {
    // What a shell has left in the background goes on when it has ended.
    for (const auto index : programs_[child])
      if (shell.kills || is_awaited(pids_.at(index), child))
        found_[index].by.push_back({pid, shell.ended, shell.kills});
    if (shell.kills) {
      killed_.insert(child);
      continue;
    }
    std::erase(shell.children, child);
    awaited_.insert(child);
  }
  shell.awaited.clear();
  shell.in_front = false;
  ++shell.ended;
}

void Processes::traced(pid_t shell, const std::string& command) {
  auto& waiting = shells_[shell];
  waiting.traces = true;
  end_wait(shell, waiting);
  const auto words = words_of(command);
  if (words.empty()) return;
  waiting.kills = words[0] == "kill" && ends(words);
  // -n waits for any one of them. `tail --pid=PID -f FILE` waits, too.
  const bool follows = words[0] == "tail" && words.size() > 1 &&
                       std::ranges::any_of(words, [](const auto& word) { return word.starts_with("--pid"); });
  const bool waits = follows || (words[0] == "wait" && !has(words, "-n"));
  if (!waits && !waiting.kills) return;
  waiting.awaited.clear();
  waiting.in_front = false;
  if (waits && words.size() == 1) waiting.awaited = waiting.children;
  constexpr std::string_view kPid = "--pid=";
  for (const std::string_view word : words) {
    const auto child = text::whole_number<pid_t>(word.starts_with(kPid) ? word.substr(kPid.size()) : word);
    if (child && std::ranges::find(waiting.children, *child) != waiting.children.end())
      waiting.awaited.push_back(*child);
  }
}

void Processes::started(pid_t pid, std::size_t index, Foreground foreground, bool piped) {
  auto& found = found_[index];
  pids_[index] = pid;
  // A shell may exec its last program.
  auto& shell = shells_[pid];
  end_wait(pid, shell);
  found.before[pid] = shell.ended;
  // What it has left in the background then has a program above it, which waits for none of it.
  if (shell.traces)
    for (const auto child : shell.children)
      if (!awaited_.contains(child)) left_.insert(child);
  shell.traces = false;
  // It seemed to be in front while it computed its words: bash prepares one in the background only then.
  if (const auto parent = foreground == Foreground::none ? parent_of(pid) : std::nullopt) {
    auto& above = shells_[*parent];
    if (above.in_front && above.awaited.front() == pid) {
      above.awaited.clear();
      above.in_front = false;
    }
  }
  // Only a shell of the script forks what tells of itself and then starts a program in the background.
  const bool forked = foreground == Foreground::none && !piped && !shell.by_exec;
  if (const auto parent = parent_of(pid); forked && parent && !shells_[*parent].is_program)
    shells_[*parent].traces = true;
  shell.is_program = true;
  constexpr int kDeepest = 50;
  for (int i = 0; i < kDeepest; ++i) {
    programs_[pid].push_back(index);
    const auto parent = parent_of(pid);
    if (!parent) break;
    found.before[*parent] = ended_at_fork_[pid];
    const bool waits = foreground == Foreground::of_all || (foreground == Foreground::of_its_shell && i == 0);
    if (auto& above = shells_[*parent]; waits && above.traces && above.awaited.empty()) above.awaited = {pid};
    pid = *parent;
  }
}

std::optional<pid_t> Processes::parent_of(pid_t pid) const {
  const auto found = parents_.find(pid);
  return found == parents_.end() ? std::nullopt : std::optional(found->second);
}

bool Processes::is_new_shell(pid_t pid) const {
  const auto found = shells_.find(pid);
  return found != shells_.end() && found->second.by_exec;
}

bool Processes::reads_commands(pid_t pid) const {
  const auto found = shells_.find(pid);
  return found != shells_.end() && found->second.reads_commands;
}

WaitedFor Processes::of(std::size_t index) const {
  const auto found = found_.find(index);
  if (found == found_.end()) return {};
  auto waited = found->second;
  // A shell may end with a wait.
  for (const auto& [pid, shell] : shells_)
    for (const auto child : shell.awaited) {
      const auto programs = programs_.find(child);
      if (programs != programs_.end() &&
          std::ranges::find(programs->second, index) != programs->second.end() &&
          (shell.kills || is_awaited(pids_.at(index), child)))
        waited.by.push_back({pid, shell.ended, shell.kills});
    }
  waited.is_awaited = is_awaited(pids_.at(index));
  return waited;
}

/// By the shell above it, and that one by the shell above that one. A launcher waits for all that it starts.
bool Processes::is_awaited(pid_t pid, pid_t top) const {
  constexpr int kDeepest = 50;
  for (int i = 0; i < kDeepest; ++i) {
    const auto parent = parent_of(pid);
    if (!parent || pid == top) return true;
    const auto& shell = shells_.at(*parent);
    const bool is_waiting = !shell.kills && std::ranges::find(shell.awaited, pid) != shell.awaited.end();
    if (killed_.contains(pid) || left_.contains(pid) ||
        (shell.traces && !awaited_.contains(pid) && !is_waiting))
      return false;
    pid = *parent;
  }
  return false;
}

}  // namespace nlaunch::shell

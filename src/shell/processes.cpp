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

void Processes::forked(pid_t parent, pid_t child) {
  parents_[child] = parent;
  auto& shell = shells_[parent];
  end_wait(parent, shell);
  shell.children.push_back(child);
  ended_at_fork_[child] = shell.ended;
}

void Processes::end_wait(pid_t pid, Shell& shell) {
  if (shell.awaited.empty()) return;
  for (const auto child : shell.awaited) {
    for (const auto index : programs_[child]) found_[index].by.push_back({pid, shell.ended, shell.kills});
    if (!shell.kills) std::erase(shell.children, child);
  }
  shell.awaited.clear();
  ++shell.ended;
}

void Processes::traced(pid_t shell, const std::string& command) {
  auto& waiting = shells_[shell];
  end_wait(shell, waiting);
  const auto words = words_of(command);
  if (words.empty()) return;
  waiting.kills = words[0] == "kill" && ends(words);
  // -n waits for any one of them.
  const bool waits = words[0] == "wait" && !has(words, "-n");
  if (!waits && !waiting.kills) return;
  if (waits && words.size() == 1) waiting.awaited = waiting.children;
  for (const auto& word : words) {
    const auto child = text::whole_number<pid_t>(word);
    if (child && std::ranges::find(waiting.children, *child) != waiting.children.end())
      waiting.awaited.push_back(*child);
  }
}

void Processes::started(pid_t pid, std::size_t index) {
  auto& found = found_[index];
  // A shell may exec its last program.
  auto& shell = shells_[pid];
  end_wait(pid, shell);
  found.before[pid] = shell.ended;
  constexpr int kDeepest = 50;
  for (int i = 0; i < kDeepest; ++i) {
    programs_[pid].push_back(index);
    const auto parent = parent_of(pid);
    if (!parent) break;
    found.before[*parent] = ended_at_fork_[pid];
    pid = *parent;
  }
}

std::optional<pid_t> Processes::parent_of(pid_t pid) const {
  const auto found = parents_.find(pid);
  return found == parents_.end() ? std::nullopt : std::optional(found->second);
}

WaitedFor Processes::of(std::size_t index) const {
  const auto found = found_.find(index);
  return found == found_.end() ? WaitedFor() : found->second;
}

}  // namespace nlaunch::shell

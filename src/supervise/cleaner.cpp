#include "supervise/cleaner.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace nlaunch::supervise {
namespace {

constexpr Duration kPauseOfCleaner = std::chrono::milliseconds(5);
constexpr int kMostLooks = 1000;  // five seconds

}  // namespace

std::string describe(const sys::ProcessInfo& process) {
  return fmt::format("{} (pid {})", text::printable(process.name), process.pid);
}

std::string describe_survivor(const sys::ProcessInfo& process) {
  return fmt::format("{} (pid {}, state {})", text::printable(process.name), process.pid, process.state);
}

void Cleaner::clean(sys::Subtree subtree, Done done) {
  tasks_.push_back({subtree, std::move(done), 0, {}, {}});
  schedule(Duration::zero());
}

void Cleaner::schedule(Duration delay) {
  if (std::exchange(scheduled_, true)) return;
  loop_.after(delay, [this] {
    scheduled_ = false;
    look();
  });
}

void Cleaner::look() {
  std::vector<sys::Subtree> subtrees;
  for (auto& task : tasks_) {
    subtrees.push_back(task.subtree);
    task.there.clear();
    ++task.looks;
  }
  for (auto& [index, process] : sys::kill_subtrees(subtrees)) {
    tasks_[index].there.push_back(process);
    if (sys::is_alive(process))
      tasks_[index].killed.emplace(sys::ProcessId{process.pid, process.start_ticks}, process);
  }
  const auto finished = std::ranges::stable_partition(
      tasks_, [](const Task& task) { return !task.there.empty() && task.looks < kMostLooks; });
  std::vector<Task> done(std::make_move_iterator(finished.begin()), std::make_move_iterator(finished.end()));
  tasks_.erase(finished.begin(), finished.end());
  if (!tasks_.empty()) schedule(kPauseOfCleaner);
  for (const auto& task : done) {
    Result result;
    for (const auto& [id, process] : task.killed) result.killed.push_back(describe(process));
    for (const auto& process : task.there) result.survivors.push_back(describe_survivor(process));
    task.done(result);
  }
}

}  // namespace nlaunch::supervise

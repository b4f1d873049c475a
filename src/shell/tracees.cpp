#include "shell/tracees.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>

#include "base/text.h"
#include "sys/proc.h"
#include "sys/proc_threads.h"

namespace nlaunch::shell {
namespace {

std::uint64_t resident_bytes_of(pid_t pid) {
  const auto pages = text::split(sys::read_proc_file(pid, "statm").value_or(""), ' ');
  const auto resident = pages.size() > 1 ? text::whole_number<std::uint64_t>(pages[1]) : std::nullopt;
  return resident.value_or(0) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

/// Also true if it is gone.
bool sleeps(pid_t pid) {
  const auto info = sys::process_info(pid);
  return !info || info->state == 'S' || info->state == 'Z';
}

}  // namespace

void Tracees::add(pid_t child, pid_t parent) {
  auto& born = all_[child];
  born.announced = true;
  if (born.born) resume(child, 0);
  held_[child] = parent;
  parents_[child] = parent;
  born_[child] = Clock::now();
}

std::uint64_t Tracees::resident_bytes() const {
  std::uint64_t memory = 0;
  for (const auto& [pid, process] : all_) memory += resident_bytes_of(pid);
  return memory + resident_bytes_of(::getpid());
}

void Tracees::kill_all() const {
  for (const auto& [pid, process] : all_) ::kill(pid, SIGKILL);
}

void Tracees::remove(pid_t pid) {
  release(pid);
  std::erase(ending_, pid);
  if (const auto sleeper = sleepers_.find(pid); sleeper != sleepers_.end()) {
    if (all_.contains(sleeper->second)) resume(sleeper->second, 0);
    sleepers_.erase(sleeper);
  }
  all_.erase(pid);
  parents_.erase(pid);
  born_.erase(pid);
}

std::optional<pid_t> Tracees::release(pid_t child) {
  const auto parent = held_.find(child);
  if (parent == held_.end()) return std::nullopt;
  const auto pid = parent->second;
  held_.erase(parent);
  if (all_.contains(pid)) resume(pid, 0);
  return pid;
}

void Tracees::release_all_above(pid_t child) {
  for (std::optional<pid_t> pid = child; pid;) pid = release(*pid);
}

void Tracees::release_those_who_wait() {
  constexpr auto kLongest = std::chrono::milliseconds(300);
  std::vector<pid_t> waiting;
  for (const auto& [child, parent] : held_)
    if (sleeps(child) && (!runs_others(child) || Clock::now() > born_.at(child) + kLongest))
      waiting.push_back(child);
  for (const auto child : waiting) release(child);
  for (auto& [pid, process] : all_) {  // whose parent was killed before it could report its fork
    if (!process.born || process.announced) continue;
    process.announced = true;
    resume(pid, 0);
  }
}

void Tracees::hold_end(pid_t pid) {
  ending_.push_back(pid);
  ending_since_ = Clock::now();
  release(pid);  // the shell that has forked it
}

void Tracees::let_end(pid_t pid) {
  if (std::erase(ending_, pid) > 0) resume(pid, 0);
  ending_since_ = Clock::now();
  idle_looks_ = 0;
}

std::optional<pid_t> Tracees::let_one_end() {
  const auto first = std::ranges::min_element(ending_, {}, [&](pid_t pid) {
    const auto born = born_.find(pid);
    return born == born_.end() ? Clock::time_point() : born->second;
  });
  if (first == ending_.end()) return std::nullopt;
  const auto pid = *first;
  let_end(pid);
  return pid;
}

void Tracees::let_one_end_before(pid_t sleeper) {
  if (const auto ends = let_one_end())
    sleepers_[*ends] = sleeper;
  else
    resume(sleeper, 0);
}

void Tracees::look_for_idleness(bool idle) {
  // What waits for a moment only is not seen so often.
  constexpr int kLooks = 3;
  idle_looks_ = idle && !ending_.empty() && all_wait() ? idle_looks_ + 1 : 0;
  if (idle_looks_ == kLooks) (void)let_one_end();
}

void Tracees::look_for_busy_loop() {
  constexpr auto kBusy = std::chrono::milliseconds(300);
  if (!ending_.empty() && Clock::now() > ending_since_ + kBusy) (void)let_one_end();
}

bool Tracees::runs_others(pid_t pid) const {
  return std::ranges::any_of(all_, [&](const auto& one) {
    for (auto at = parents_.find(one.first); at != parents_.end(); at = parents_.find(at->second))
      if (at->second == pid) return true;
    return false;
  });
}

bool Tracees::all_wait() const {
  return std::ranges::all_of(all_, [&](const auto& one) {
    return std::ranges::find(ending_, one.first) != ending_.end() || sleeps(one.first);
  });
}

}  // namespace nlaunch::shell

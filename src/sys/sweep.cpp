#include "sys/sweep.h"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <map>
#include <optional>
#include <thread>
#include <variant>

#include "sys/files.h"

namespace nlaunch::sys {
namespace {

using Clock = std::chrono::steady_clock;

ProcessId id_of(const ProcessInfo& info) {
  return {info.pid, info.start_ticks};
}

std::optional<std::uint64_t> mark_of(pid_t pid) {
  rlimit limit{};
  if (::prlimit(pid, RLIMIT_LOCKS, nullptr, &limit) != 0) return std::nullopt;
  return limit.rlim_cur;
}

/// The pid that was assigned last, in our namespace.
pid_t newest_pid() {
  const auto text = read_regular_file("/proc/loadavg", 4096);
  if (!text) return 0;
  const auto last = text->rfind(' ');
  return last == std::string::npos ? 0 : std::atoi(text->c_str() + last);
}

/// /proc also has entries for thread ids, which it does not list.
bool is_thread(pid_t pid) {
  const auto status = read_regular_file(fmt::format("/proc/{}/status", pid), 65536);
  return status && status->find(fmt::format("\nTgid:\t{}\n", pid)) == std::string::npos;
}

bool has_children() {
  siginfo_t info{};
  return ::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 || errno != ECHILD;
}

/// Finds and kills descendants of this process. A process is stopped within microseconds of being seen: one
/// that forks and exits every 200 µs would be gone at the end of the scan.
class TreeKiller {
 public:
  /// Without `only`, all that are not in `except`; they count as members of subtree 0.
  TreeKiller(const ProcessIds& except, const std::vector<Subtree>* only) : except_(except), only_(only) {}

  /// Stops all and then kills all; returns those that existed.
  std::vector<SubtreeMember> run() {
    if (!has_children()) return {};  // so it has no other descendants: it is their subreaper
    // Bounded, because the kill must come soon: what it cannot keep up with is left to the next call.
    while (stop_new_ones() && Clock::now() < deadline_) {
    }
    std::vector<SubtreeMember> found;
    for (const auto& [id, member] : targets_) {
      if (is_alive(member.process)) send(member.process, SIGKILL);
      found.push_back(member);
    }
    return found;
  }

 private:
  struct Excluded {};
  struct Unrelated {};
  struct Target {
    std::size_t subtree = 0;
  };
  using Relation = std::variant<Unrelated, Excluded, Target>;

  /// True if it found new, living processes.
  bool stop_new_ones() {
    relations_ = {{::getpid(), Unrelated{}}};
    const auto before = stopped_;
    std::vector<ProcessInfo> strangers;
    const auto look = [&](const ProcessInfo& info) {
      if (!look_at(info)) strangers.push_back(info);
    };
    const pid_t newest = newest_pid();
    for_each_process(look);
    look_at_newer_than(newest, look);
    // A child has a lower pid than its parent if the numbers have wrapped around; and the parent of one that
    // we saw may have exited since.
    while (std::erase_if(strangers, [&](const ProcessInfo& info) { return look_again_at(info); }) > 0) {
    }
    return stopped_ > before;
  }

  /// The listing of /proc is outdated by the time its entries are read, and a process that keeps forking and
  /// exiting is always ahead of it. So newer pids are examined as well, the newest first: the others are dead
  /// by now.
  template <class Look>
  void look_at_newer_than(pid_t newest, const Look& look) const {
    constexpr int kMostRounds = 16;
    for (int round = 0; round < kMostRounds; ++round) {
      const pid_t now = newest_pid();
      for (pid_t pid = now; pid > newest && Clock::now() < deadline_; --pid) {
        const auto info = process_info(pid);
        if (info && !(is_alive(*info) && is_thread(pid))) look(*info);
      }
      if (now == newest) return;
      newest = now;
    }
  }

  bool look_again_at(const ProcessInfo& info) {
    if (look_at(info)) return true;
    const auto now = process_info(info.pid);
    return now && now->parent != info.parent && look_at(*now);
  }

  /// False if it is not (yet) known as a descendant.
  bool look_at(const ProcessInfo& info) {
    const auto parent = relations_.find(info.parent);
    if (parent == relations_.end() || info.pid == ::getpid()) return false;
    const auto relation = relation_of(info, parent->second);
    relations_.emplace(info.pid, relation);
    const auto* target = std::get_if<Target>(&relation);
    if (target == nullptr || !targets_.emplace(id_of(info), SubtreeMember{target->subtree, info}).second)
      return true;
    if (!is_alive(info)) return true;
    send(info, SIGSTOP);
    ++stopped_;
    return true;
  }

  Relation relation_of(const ProcessInfo& info, const Relation& parent) const {
    if (!std::holds_alternative<Unrelated>(parent)) return parent;
    if (except_.contains(id_of(info))) return Excluded{};
    if (only_ == nullptr) return Target{};
    for (std::size_t i = 0; i < only_->size(); ++i) {
      if (info.session == (*only_)[i].leader) return Target{i};
    }
    const auto mark = mark_of(info.pid);
    for (std::size_t i = 0; mark && i < only_->size(); ++i) {
      if (*mark == (*only_)[i].mark) return Target{i};
    }
    return Unrelated{};
  }

  /// A signal to a process group also reaches a fork in progress. Groups of our own session belong to the
  /// user.
  void send(const ProcessInfo& info, int signal) const {
    if (info.session != own_session_ && info.group > 1) ::kill(-info.group, signal);
    ::kill(info.pid, signal);
  }

  const ProcessIds& except_;
  const std::vector<Subtree>* only_;
  pid_t own_session_ = ::getsid(0);
  std::map<pid_t, Relation> relations_;
  std::map<ProcessId, SubtreeMember> targets_;
  std::size_t stopped_ = 0;
  Clock::time_point deadline_ = Clock::now() + std::chrono::milliseconds(50);
};

/// False if there is no child left.
bool reap() {
  for (;;) {
    const pid_t pid = ::waitpid(-1, nullptr, WNOHANG);
    if (pid <= 0) return pid == 0;
  }
}

}  // namespace

bool is_alive(const ProcessInfo& process) {
  return process.state != 'Z' && process.state != 'X';
}

void become_subreaper() {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
}

ProcessIds own_descendants() {
  ProcessIds found;
  if (!has_children()) return found;
  for (const auto& info : descendants(::getpid())) found.insert(id_of(info));
  return found;
}

std::vector<ProcessInfo> kill_descendants(const ProcessIds& except) {
  std::vector<ProcessInfo> found;
  for (auto& member : TreeKiller(except, nullptr).run()) found.push_back(std::move(member.process));
  return found;
}

std::vector<SubtreeMember> kill_subtrees(const std::vector<Subtree>& subtrees) {
  const ProcessIds none;
  return TreeKiller(none, &subtrees).run();
}

SweepReport sweep(const ProcessIds& except, Duration limit) {
  const auto deadline = Clock::now() + limit;
  std::map<ProcessId, ProcessInfo> killed;
  SweepReport report;
  for (auto pause = std::chrono::microseconds(200);;
       pause = std::min(2 * pause, std::chrono::microseconds(10000))) {
    bool children = reap();
    report.survivors = kill_descendants(except);
    for (const auto& info : report.survivors) {
      if (is_alive(info)) killed.emplace(id_of(info), info);
    }
    children = children && reap();
    // If some are left alone, there may always be children.
    if (report.survivors.empty() && (!children || !except.empty())) break;
    if (Clock::now() >= deadline) break;
    std::this_thread::sleep_for(pause);
  }
  std::erase_if(report.survivors, [](const ProcessInfo& process) { return !is_alive(process); });
  for (const auto& [id, info] : killed) report.killed.push_back(info);
  return report;
}

}  // namespace nlaunch::sys

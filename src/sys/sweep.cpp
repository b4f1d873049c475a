#include "sys/sweep.h"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

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

/// The pid that was given out last, in our namespace.
pid_t newest_pid() {
  const auto text = read_regular_file("/proc/loadavg", 4096);
  if (!text) return 0;
  const auto last = text->rfind(' ');
  return last == std::string::npos ? 0 : std::atoi(text->c_str() + last);
}

/// /proc also answers for the number of a thread, which it does not list.
bool is_thread(pid_t pid) {
  const auto status = read_regular_file(fmt::format("/proc/{}/status", pid), 65536);
  return status && status->find(fmt::format("\nTgid:\t{}\n", pid)) == std::string::npos;
}

/// One hunt for the descendants of this process. What is found is stopped within microseconds of being seen:
/// a process that forks and exits every 200 µs would be gone at the end of the scan.
class Hunt {
 public:
  /// Without `only`, all that are not excepted; they count as members of subtree 0.
  Hunt(const ProcessIds& except, const std::vector<Subtree>* only) : except_(except), only_(only) {}

  /// Stops all and then kills all; returns those that were there.
  std::vector<SubtreeMember> run() {
    // Bounded, for the killing must come soon: what could not be kept up with is for the next call.
    while (stop_new_ones() && Clock::now() < deadline_) {
    }
    std::vector<SubtreeMember> found;
    for (const auto& [id, member] : prey_) {
      if (is_alive(member.process)) send(member.process, SIGKILL);
      found.push_back(member);
    }
    return found;
  }

 private:
  struct Excluded {};
  struct Bystander {};
  struct Prey {
    std::size_t subtree = 0;
  };
  using Kin = std::variant<Bystander, Excluded, Prey>;

  /// True when there was somebody new, and alive.
  bool stop_new_ones() {
    kin_ = {{::getpid(), Bystander{}}};
    const auto before = stopped_;
    std::vector<ProcessInfo> strangers;
    const auto look = [&](const ProcessInfo& info) {
      if (!look_at(info)) strangers.push_back(info);
    };
    const pid_t newest = newest_pid();
    for_each_process(look);
    look_at_newer_than(newest, look);
    // A child has a lower pid than its parent where the numbers have wrapped around; and the parent of one
    // that we saw may have ended since.
    while (std::erase_if(strangers, [&](const ProcessInfo& info) { return look_again_at(info); }) > 0) {
    }
    return stopped_ > before;
  }

  /// The listing of /proc is old by the time that its entries are looked at, and one that forks and exits
  /// again and again is always ahead of it. So what has come since is looked at, the newest first: the others
  /// are dead by now.
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

  /// False when it is not (yet) known as a descendant.
  bool look_at(const ProcessInfo& info) {
    const auto parent = kin_.find(info.parent);
    if (parent == kin_.end() || info.pid == ::getpid()) return false;
    const auto kin = kin_of(info, parent->second);
    kin_.emplace(info.pid, kin);
    const auto* prey = std::get_if<Prey>(&kin);
    if (prey == nullptr || !prey_.emplace(id_of(info), SubtreeMember{prey->subtree, info}).second)
      return true;
    if (!is_alive(info)) return true;
    send(info, SIGSTOP);
    ++stopped_;
    return true;
  }

  Kin kin_of(const ProcessInfo& info, const Kin& parent) const {
    if (!std::holds_alternative<Bystander>(parent)) return parent;
    if (except_.contains(id_of(info))) return Excluded{};
    if (only_ == nullptr) return Prey{};
    for (std::size_t i = 0; i < only_->size(); ++i) {
      if (info.session == (*only_)[i].leader) return Prey{i};
    }
    const auto mark = mark_of(info.pid);
    for (std::size_t i = 0; mark && i < only_->size(); ++i) {
      if (*mark == (*only_)[i].mark) return Prey{i};
    }
    return Bystander{};
  }

  /// A signal to a process group reaches a fork in progress, too. Groups of our own session are the user's.
  void send(const ProcessInfo& info, int signal) const {
    if (info.session != own_session_ && info.group > 1) ::kill(-info.group, signal);
    ::kill(info.pid, signal);
  }

  const ProcessIds& except_;
  const std::vector<Subtree>* only_;
  pid_t own_session_ = ::getsid(0);
  std::map<pid_t, Kin> kin_;
  std::map<ProcessId, SubtreeMember> prey_;
  std::size_t stopped_ = 0;
  Clock::time_point deadline_ = Clock::now() + std::chrono::milliseconds(50);
};

/// False when there is no child left.
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
  for (const auto& info : descendants(::getpid())) found.insert(id_of(info));
  return found;
}

std::vector<ProcessInfo> kill_descendants(const ProcessIds& except) {
  std::vector<ProcessInfo> found;
  for (auto& member : Hunt(except, nullptr).run()) found.push_back(std::move(member.process));
  return found;
}

std::vector<SubtreeMember> kill_subtrees(const std::vector<Subtree>& subtrees) {
  const ProcessIds none;
  return Hunt(none, &subtrees).run();
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
    // Where some are left alone there may be children for ever.
    if (report.survivors.empty() && (!children || !except.empty())) break;
    if (Clock::now() >= deadline) break;
    std::this_thread::sleep_for(pause);
  }
  std::erase_if(report.survivors, [](const ProcessInfo& process) { return !is_alive(process); });
  for (const auto& [id, info] : killed) report.killed.push_back(info);
  return report;
}

}  // namespace nlaunch::sys

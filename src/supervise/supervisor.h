#pragma once
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "plan/bound.h"
#include "plan/plan.h"
#include "supervise/events.h"
#include "supervise/guardian.h"
#include "supervise/outcome.h"

namespace nlaunch::supervise {

struct TerminalOptions {
  int fd = 1;
  bool quiet = false;  ///< nothing is written there
  Color color = Color::never;
};

/// The processes that are alive: index into Plan::processes → pid.
using LivePids = std::map<std::uint32_t, pid_t>;

/// What others do while a run goes on. They run on the loop that supervises: what takes long belongs
/// elsewhere.
struct Hooks {
  std::function<void(std::uint32_t process, pid_t pid)> on_started;
  /// Called every `period`. A reason that it gives ends the run, with this exit code.
  struct Verdict {
    std::string reason;
    int exit_code = 0;
  };
  std::function<std::optional<Verdict>(const LivePids&)> tick;
  Duration period = std::chrono::seconds(5);
  /// Called once, when it is decided that the run ends, while those processes that did not fail are alive.
  std::function<void(const LivePids&)> before_stop;
};

struct Attempt {
  const plan::Plan& plan;
  const plan::BoundNode& node;
  std::filesystem::path run_folder;  ///< exists
  unsigned number = 0;
  EventLog& events;
  const GuardianLink& guardian;
  TerminalOptions terminal;
  Hooks hooks;
};

/// "attempt-0" in the run's folder.
std::filesystem::path attempt_folder(const std::filesystem::path& run_folder, unsigned number);

/// Starts the processes of this node, supervises them to their end and leaves nothing of them alive, whatever
/// happens. To be called from the main thread of a child subreaper that has no other children that matter:
/// all of them are reaped, and killed at the end.
Outcome run_attempt(const Attempt& attempt);

}  // namespace nlaunch::supervise

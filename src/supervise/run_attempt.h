#pragma once
#include <filesystem>

#include "plan/bound.h"
#include "plan/plan.h"
#include "supervise/events.h"
#include "supervise/guardian.h"
#include "supervise/investigation.h"
#include "supervise/local_backend.h"
#include "supervise/outcome.h"
#include "supervise/roster.h"
#include "supervise/steering.h"

namespace nlaunch::supervise {

struct Attempt {
  const plan::Plan& plan;
  const plan::BoundNode& node;
  std::filesystem::path run_folder;  ///< must exist
  unsigned number = 0;
  EventLog& events;
  const GuardianLink& guardian;
  RunTerminal* terminal = nullptr;  ///< null: writes nothing
  Color color = Color::never;       ///< of the names before lines of output
  Hooks hooks;
  Judge judge{};                   ///< of evidence; see Investigation
  Roster::AddressOf address_of{};  ///< see Supervisor
  Rebinder rebinder{};             ///< see Supervisor
};

/// "attempt-0" in the run directory.
std::filesystem::path attempt_folder(const std::filesystem::path& run_folder, unsigned number);

/// Starts the processes of this node, supervises them until they exit, and leaves none of them alive,
/// whatever happens. Call it from the main thread of a child subreaper that has no other children that
/// matter: all children are reaped, and killed at the end.
Outcome run_attempt(const Attempt& attempt);

}  // namespace nlaunch::supervise

#include "supervise/signals.h"

#include <csignal>

#include "sys/proc.h"

namespace nlaunch::supervise {
namespace {

/// The processes inside the container, parents before children; empty without a container, and before
/// anything has started in it.
std::vector<sys::ProcessInfo> programs_in(pid_t leader, const plan::Words& wrapper) {
  if (!plan::is_container(wrapper)) return {};
  auto found = sys::descendants(leader);
  std::erase_if(found, [&](const auto& process) { return plan::belongs_to_tool(wrapper, process.name); });
  return found;
}

}  // namespace

void signal_group(pid_t leader, const plan::Words& wrapper, int signal) {
  const auto programs = programs_in(leader, wrapper);
  if (programs.empty()) {
    ::kill(-leader, signal);
    return;
  }
  for (const auto& program : programs) {
    if (program.group == programs.front().group) ::kill(program.pid, signal);
  }
}

void signal_process(pid_t leader, const plan::Words& wrapper, int signal) {
  const auto programs = programs_in(leader, wrapper);
  ::kill(programs.empty() ? leader : programs.front().pid, signal);
}

}  // namespace nlaunch::supervise

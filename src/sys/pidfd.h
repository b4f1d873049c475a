#pragma once
#include <sys/types.h>

#include <optional>

#include "sys/files.h"
#include "sys/wait_status.h"

namespace nlaunch::sys {

/// A descriptor that becomes readable when the process exits; none on Linux before 5.3, or if the process is
/// gone.
UniqueFd open_pidfd(pid_t pid);

/// How a process that is not our child exited. `pidfd` must have been opened while it was alive. Empty if
/// unknown: before Linux 6.15 the status is lost once the parent has reaped the child.
std::optional<WaitStatus> status_of_ended(int pidfd, pid_t pid);

}  // namespace nlaunch::sys

#pragma once
#include <sys/types.h>

#include <optional>

#include "sys/files.h"
#include "sys/wait_status.h"

namespace nlaunch::sys {

/// A descriptor that is readable once the process has ended; none where Linux is older than 5.3, or the
/// process is gone.
UniqueFd open_pidfd(pid_t pid);

/// How a process ended that is another one's child. `pidfd` was opened while it lived. Nothing where that
/// cannot be known: before Linux 6.15 it is lost once the parent has reaped the child.
std::optional<WaitStatus> status_of_ended(int pidfd, pid_t pid);

}  // namespace nlaunch::sys

#pragma once
#include <sys/types.h>

#include "plan/container.h"

/// Signals to a process that may run behind a wrapper.
namespace nlaunch::supervise {

/// Signals the process group of `leader`, because a wrapper shell does not pass signals on. For a container
/// it is the group of the program inside, without the processes of the container tool: bwrap would die and
/// take the program with it too early; apptainer would forward the signal a second time.
void signal_group(pid_t leader, const plan::Words& wrapper, int signal);

/// Signals the process alone; for a container, the program inside.
void signal_process(pid_t leader, const plan::Words& wrapper, int signal);

}  // namespace nlaunch::supervise

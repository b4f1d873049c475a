#pragma once
#include <sys/types.h>

#include "plan/container.h"

/// Signals to a process that may stand behind a wrapper.
namespace nlaunch::supervise {

/// To the process group of `leader`: a wrapper shell does not pass it on. Of a container it is the group of
/// the program inside, without the processes of the tool: bwrap would die of it, and take the program along
/// before its time; apptainer would hand it on a second time.
void signal_group(pid_t leader, const plan::Words& wrapper, int signal);

/// To the process alone; of a container to the program inside.
void signal_process(pid_t leader, const plan::Words& wrapper, int signal);

}  // namespace nlaunch::supervise

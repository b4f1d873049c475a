#pragma once
#include <string>

namespace nlaunch::supervise {

/// The signal that `nlaunch stop` sends to the pid that the user sees: the first one stops gracefully, the
/// second one kills. A dedicated signal, because a shell without job control ignores SIGINT for background
/// commands, and an experiment can give SIGTERM and SIGHUP another meaning. It queues: two that arrive
/// together count as two.
int stop_signal();

/// What stopped a run, for messages: "SIGTERM", "`nlaunch stop`".
std::string name_of_stop(int signal);
/// 128 + signal, as in a shell; `nlaunch stop` counts as Ctrl-C.
int exit_code_of_stop(int signal);

}  // namespace nlaunch::supervise

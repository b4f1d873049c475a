#pragma once
#include <string>

namespace nlaunch::supervise {

/// What `nlaunch stop` sends to the pid that the user sees: a graceful stop, the second one kills. A signal
/// of its own, since a shell without job control has SIGINT ignored for what it puts in the background, and
/// an experiment may give SIGTERM and SIGHUP another meaning. It queues: two that arrive together are two.
int stop_signal();

/// What has stopped a run, for people: "SIGTERM", "`nlaunch stop`".
std::string name_of_stop(int signal);
/// 128 + signal, as a shell has it; `nlaunch stop` counts as Ctrl-C.
int exit_code_of_stop(int signal);

}  // namespace nlaunch::supervise

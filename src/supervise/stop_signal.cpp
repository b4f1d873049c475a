#include "supervise/stop_signal.h"

#include <csignal>

#include "base/exit_code.h"
#include "sys/wait_status.h"

namespace nlaunch::supervise {

int stop_signal() {
  return SIGRTMIN;
}

std::string name_of_stop(int signal) {
  return signal == stop_signal() ? "`nlaunch stop`" : sys::signal_name(signal);
}

int exit_code_of_stop(int signal) {
  return signal == stop_signal() ? exit_code::interrupted : 128 + signal;
}

}  // namespace nlaunch::supervise

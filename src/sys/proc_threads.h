#pragma once
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

/// What /proc reports about the threads of a process and its open files. As in sys/proc.h, what has gone
/// meanwhile is absent; so is what this user may not read.
namespace nlaunch::sys {

struct ThreadInfo {
  pid_t tid = 0;
  char state = '?';  ///< as in proc(5): R S D Z T t ...
  std::string name;
  std::uint64_t cpu_ticks = 0;  ///< in user and kernel mode since its start, in 1/sysconf(_SC_CLK_TCK) s
  std::string wait_channel;     ///< the kernel function in which it sleeps; empty if it does not
};
/// All threads; the first is the main thread, whose tid is the pid.
std::vector<ThreadInfo> threads_of(pid_t pid);

/// The system call of its main thread, as in /proc/PID/syscall: "running", or "202 0x7f.. ...".
std::string system_call(pid_t pid);
/// The kernel stack of its main thread, one function per line; empty if this user may not read it.
std::string kernel_stack(pid_t pid);
/// Its open descriptors and their targets: 3, "socket:[12345]".
std::vector<std::pair<int, std::string>> open_files(pid_t pid);
/// The complete file /proc/PID/NAME; empty if it cannot be read.
std::optional<std::string> read_proc_file(pid_t pid, const std::string& name);

}  // namespace nlaunch::sys

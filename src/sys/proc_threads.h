#pragma once
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

/// What /proc says of the threads of a process, and of what it has open. As in sys/proc.h, what has gone
/// meanwhile is absent; so is what this user may not read.
namespace nlaunch::sys {

struct ThreadInfo {
  pid_t tid = 0;
  char state = '?';  ///< as in proc(5): R S D Z T t ...
  std::string name;
  std::uint64_t cpu_ticks = 0;  ///< in user and kernel mode since it began, in 1/sysconf(_SC_CLK_TCK) s
  std::string wait_channel;     ///< the kernel's function in which it sleeps; empty where it does not
};
/// All threads; the first is the main thread, whose tid is the pid.
std::vector<ThreadInfo> threads_of(pid_t pid);

/// The system call in which its main thread is, as /proc/PID/syscall has it: "running", or "202 0x7f.. ...".
std::string system_call(pid_t pid);
/// The kernel's stack of its main thread, one function a line; empty where this user may not read it.
std::string kernel_stack(pid_t pid);
/// Its descriptors and what they are: 3, "socket:[12345]".
std::vector<std::pair<int, std::string>> open_files(pid_t pid);
/// The file /proc/PID/NAME, whole; nothing where it cannot be read.
std::optional<std::string> read_proc_file(pid_t pid, const std::string& name);

}  // namespace nlaunch::sys

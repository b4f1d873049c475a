#pragma once
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "base/diagnostic.h"

namespace nlaunch::sys {

/// A function that has been called and has not returned.
struct NativeCall {
  std::uint64_t address = 0;
  std::string function;  ///< as in the source, with its parameters for C++; empty: its file does not name it
  std::string file;      ///< the program or library; empty: generated code
};

struct ThreadStack {
  pid_t thread = 0;
  std::string name;               ///< comm, at most 15 characters
  std::vector<NativeCall> calls;  ///< the innermost first, at most 256
  std::string why_not;            ///< why `calls` is empty or ends early; empty: it is complete
};

/// The stacks of all threads of a process, its main thread's first, as far as there is time until `end`. A
/// thread stops only while its own stack is read, and goes on even if this process is killed meanwhile
/// (PTRACE_SEIZE in ptrace(2)). A thread that is stopped (state T), or does not stop (state D), is left
/// alone. Works in the files that the process sees, in a container too. Fails if the process is gone, or may
/// not be traced: "Operation not permitted".
Result<std::vector<ThreadStack>> native_stacks(pid_t pid, std::chrono::steady_clock::time_point end);

}  // namespace nlaunch::sys

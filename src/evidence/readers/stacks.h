#pragma once
#include <sys/types.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace nlaunch::evidence {

struct Frame {
  std::string function;
  /// As shortened by the tool, "torch/distributed/distributed_c10d.py"; for native code the library. Empty:
  /// unknown.
  std::string file;
  int line = 0;

  /// "step (train.py:12)"
  [[nodiscard]] std::string str() const;
};
/// Of a main thread, innermost frame first.
using Stack = std::vector<Frame>;

/// The main threads in the text of one or more `py-spy dump`s, by pid: the thread named MainThread, else the
/// first.
std::map<pid_t, Stack> python_stacks(std::string_view text);

/// The main threads in native-stacks.txt, by pid: after each line "Process PID: COMMAND", the thread whose
/// number is the pid. Other threads show nothing of what a process waits for.
std::map<pid_t, Stack> native_stacks(std::string_view text);

}  // namespace nlaunch::evidence

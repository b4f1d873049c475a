#pragma once
#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "sys/proc_threads.h"

namespace nlaunch::evidence {

/// A process as /proc shows it.
struct ProcessState {
  pid_t pid = 0;
  pid_t parent = 0;
  std::string name;
  char state = '?';     ///< as in proc(5); X: it has exited
  double cpu = 0;       ///< CPUs that it used while it was observed: 1.0 is one, busy all the time
  double main_cpu = 0;  ///< of that, its main thread
  std::string executable;
  std::string command;
  std::string title;        ///< sys::process_title
  std::optional<int> rank;  ///< RANK of its environment
  bool program = false;     ///< neither a wrapper (a shell, env, uv) nor a launcher (torchrun)
  bool python = false;
  bool cuda = false;         ///< it has libcuda mapped
  std::string system_call;   ///< sys::system_call
  std::string kernel_stack;  ///< sys::kernel_stack
  std::size_t files = 0;     ///< that it has open
  std::vector<sys::ThreadInfo> threads;
};

/// A process of the plan and all below it, parents before children.
using Tree = std::vector<ProcessState>;

/// Examines the tree below `root` twice within half a second, to tell which processes work and which wait.
/// Processes that exit in between are left out, except the root. Empty if the root has exited.
Tree look_at_tree(pid_t root);

/// The state that two observations of a main thread show. It is stuck in the kernel if it was in state D both
/// times and used no CPU in between: a process that reads from a disk is often in that state, too.
char state_of_looks(char first, char second, double main_cpu);

}  // namespace nlaunch::evidence

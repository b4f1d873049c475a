#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "supervise/state_machine.h"
#include "sys/files.h"
#include "sys/loop.h"
#include "sys/proc.h"

namespace nlaunch::supervise {

/// A descendant of one of the plan's processes: "VLLM::EngineCore (pid 4711)".
struct Child {
  pid_t pid = 0;
  std::string title;
  [[nodiscard]] std::string str() const;
};

/// Whether, by its title, the server cannot work without this process: a part of vLLM or SGLang, or one of
/// Ray's own processes on a node. A Ray worker (`ray::`) may be restarted.
bool is_part_of_server(std::string_view title);

/// It ended by a signal with which the user, the scheduler or its parent requests that.
bool was_asked_to_end(const sys::WaitStatus& status);

/// Whether its parent starts and stops it at will: an idle Ray worker, an agent of its raylet.
bool comes_and_goes(std::string_view title);

/// Reports which descendants of the plan's processes exit, and how: a server whose worker was killed prints
/// little more than that the worker is gone. Processes that live for less than one scan (compilers, version
/// probes) are not watched.
class ChildWatch {
 public:
  /// `root` is the process of the plan. The status is missing if the kernel does not report it.
  using Ended =
      std::function<void(ProcessIndex root, const Child& child, std::optional<sys::WaitStatus> status)>;
  /// The processes of the plan that are alive.
  using Roots = std::function<std::map<ProcessIndex, pid_t>()>;
  ChildWatch(sys::Loop& loop, Roots roots, Ended ended);
  ~ChildWatch();
  ChildWatch(const ChildWatch&) = delete;
  ChildWatch& operator=(const ChildWatch&) = delete;

  /// Immediately reports the descendants of `root` that have exited, so that a parent that exits because of
  /// them is reported after them, whatever order the loop sees.
  void report_exited(ProcessIndex root);

 private:
  struct Watched {
    ProcessIndex root = 0;
    Child child;
    sys::UniqueFd handle{};  ///< none until the process was seen twice
  };

  void look();
  void take(ProcessIndex root, const sys::ProcessInfo& info, std::map<sys::ProcessId, Watched>& seen);
  void ended(sys::ProcessId id);

  sys::Loop& loop_;
  Roots roots_;
  Ended ended_;
  std::optional<sys::Loop::TimerId> timer_;
  std::map<sys::ProcessId, Watched> watched_;
};

}  // namespace nlaunch::supervise

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

/// A process below one of the plan's: "VLLM::EngineCore (pid 4711)".
struct Child {
  pid_t pid = 0;
  std::string title;
  [[nodiscard]] std::string str() const;
};

/// The server that it belongs to cannot do without it, by its title: a part of vLLM or SGLang, Ray's own
/// processes on a node. A worker of Ray (`ray::`) may be started again.
bool is_part_of_server(std::string_view title);

/// Its parent starts and ends it as it likes: a worker of Ray without work, an agent of its raylet.
bool comes_and_goes(std::string_view title);

/// Notices which processes below those of the plan end, and how: a server whose worker was killed says little
/// more than that it is gone. Those that live for less than a look (compilers, probes of a version) are not
/// watched.
class ChildWatch {
 public:
  /// `root` is the process of the plan. The status is missing where the kernel does not tell it.
  using Ended =
      std::function<void(ProcessIndex root, const Child& child, std::optional<sys::WaitStatus> status)>;
  /// The processes of the plan that are alive.
  using Roots = std::function<std::map<ProcessIndex, pid_t>()>;
  ChildWatch(sys::Loop& loop, Roots roots, Ended ended);
  ~ChildWatch();
  ChildWatch(const ChildWatch&) = delete;
  ChildWatch& operator=(const ChildWatch&) = delete;

  /// Tells at once of those below `root` that have ended: a parent that ends because of that is told of after
  /// them, whichever the loop hears of first.
  void tell_of_ended(ProcessIndex root);

 private:
  struct Watched {
    ProcessIndex root = 0;
    Child child;
    sys::UniqueFd handle{};  ///< none until it was seen twice
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

#pragma once
#include <sys/types.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "supervise/state_machine.h"

namespace nlaunch::supervise {

/// What came of an action where the process lives. Times are since the attempt began.
namespace process_event {
// What the table takes as it is.
using event::Abort;  ///< somebody who watches there wants the run to end
using event::Ended;
using event::Fresh;
using event::NodeBack;  ///< an agent is there in the place of one that was lost
using event::NodeLost;  ///< a node, or the agent there, is gone, and these processes with it
using event::Ready;
using event::Signal;
using event::Unresponsive;
struct Started {
  ProcessIndex process = 0;
  pid_t pid = 0;
};
struct NotStarted {
  ProcessIndex process = 0;
  std::string reason;
};
struct NotReady {
  ProcessIndex process = 0;
  std::string waited;  ///< for what, and what the last look said
};
struct CleanedUp {
  ProcessIndex process = 0;
  std::vector<std::string> killed;        ///< that it had left behind: "python (pid 4711)"
  std::vector<std::string> last_lines{};  ///< of a task that has ended
};
/// A process below it ended by a signal or with another code than 0, or ended and nobody can say how.
struct ChildEnded {
  ProcessIndex process = 0;
  pid_t pid = 0;
  std::string title;
  std::optional<sys::WaitStatus> status;
  std::map<std::string, std::uint64_t> logs{};  ///< bytes that the logs of its node had then
};
/// SIGKILL did not end it in time: it counts as ended all the same.
struct NotKillable {
  ProcessIndex process = 0;
};
/// It gets on.
struct Progress {
  ProcessIndex process = 0;
  std::int64_t step = -1;   ///< -1: it does not say which
  double seconds = -1;      ///< that the step took; -1: it does not say
  std::int64_t total = -1;  ///< steps that there are to be; -1: it does not say
};
/// Its output says that a checkpoint is complete.
struct Saved {
  ProcessIndex process = 0;
  std::string path;  ///< absolute
};
/// What can be seen of the node's processes is in the folder that Collect named.
struct Collected {
  std::string trouble;  ///< why not, or not all; empty: it is
};
/// Something that a person should hear, and that stops nothing.
struct Trouble {
  std::string sentence;
};
}  // namespace process_event
struct ProcessEvent {
  Duration at{};
  std::variant<process_event::Started, process_event::NotStarted, process_event::Ready,
               process_event::NotReady, process_event::Unresponsive, process_event::Fresh,
               process_event::Ended, process_event::ChildEnded, process_event::CleanedUp,
               process_event::NotKillable, process_event::Signal, process_event::NodeLost,
               process_event::NodeBack, process_event::Abort, process_event::Progress, process_event::Saved,
               process_event::Collected, process_event::Trouble>
      what;
};

/// How it ended where the processes lived.
struct BackendEnd {
  std::vector<std::string> left_behind;  ///< killed at the very end, of no process in particular
  std::vector<std::string> survivors;    ///< that could not be killed, with their state
  std::vector<std::string> last_lines;   ///< of the process that was asked for
  std::uint64_t lost_bytes = 0;          ///< missing in log files
  /// Bytes that the log of each process had when the run was decided: what follows in it followed.
  std::map<std::string, std::uint64_t> log_when_decided{};
  std::uint64_t oom_kills = 0;  ///< of the kernel, while the run went on; see sys::oom_kills
};

/// Those who start, signal and end processes where they live: this machine, or the agents of many. What comes
/// of it is told through `ProcessEvent`s, on the leader's loop.
class ProcessBackend {
 public:
  using Tell = std::function<void(ProcessEvent)>;
  ProcessBackend() = default;
  virtual ~ProcessBackend() = default;
  ProcessBackend(const ProcessBackend&) = delete;
  ProcessBackend& operator=(const ProcessBackend&) = delete;

  virtual void perform(const NodeAction& action) = 0;
  /// Nodes are wanted in the place of those where these were. One machine has no others.
  virtual void recover(const std::vector<ProcessIndex>& /*processes*/) {}
  /// The node of these is left, where nothing of them lives any more; another is wanted in its place.
  virtual void release(const std::vector<ProcessIndex>& /*processes*/) {}
  /// It is decided that the run ends, and all that did not fail are still alive.
  virtual void ending() = 0;
  /// Nothing is to be left alive; then calls `done`. `of`: whose last lines are wanted.
  virtual void finish(std::optional<ProcessIndex> of, std::function<void(BackendEnd)> done) = 0;
};

}  // namespace nlaunch::supervise

#pragma once
#include <sys/types.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "supervise/explanation.h"
#include "supervise/state_machine.h"

namespace nlaunch::supervise {

/// The results of actions, reported from where the process lives. Times are since the start of the attempt.
namespace process_event {
// Events that the state machine takes as they are.
using event::Abort;  ///< a watcher there wants to end the run
using event::Ended;
using event::Fresh;
using event::NodeBack;  ///< an agent replaces one that was lost
using event::NodeLost;  ///< a node or its agent is lost, and these processes with it
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
  std::string waited;  ///< what was awaited, and the result of the last check
  NotReadySeen seen{};
};
/// It is about to be reported as ended, and left the exception that ended it; see RecordedError.
struct Raised {
  ProcessIndex process = 0;
  std::string type;
  std::string message;
  Duration ago{};     ///< how long before this event
  Duration within{};  ///< it can have been later than that, by at most this much
};
struct CleanedUp {
  ProcessIndex process = 0;
  std::vector<std::string> killed;        ///< that it left behind: "python (pid 4711)"
  std::vector<std::string> last_lines{};  ///< of a task that has exited
  std::optional<PortTaken> port{};        ///< why it failed, if its output says that a port is in use
};
/// A descendant was killed by a signal, exited with a code other than 0, or exited with unknown status.
struct ChildEnded {
  ProcessIndex process = 0;
  pid_t pid = 0;
  std::string title;
  std::optional<sys::WaitStatus> status;
  std::map<std::string, std::uint64_t> logs{};  ///< sizes of its node's logs at that moment, in bytes
};
/// SIGKILL did not end it in time; it counts as exited anyway.
struct NotKillable {
  ProcessIndex process = 0;
};
/// It makes progress.
struct Progress {
  ProcessIndex process = 0;
  std::int64_t step = -1;   ///< -1: not reported
  double seconds = -1;      ///< duration of the step; -1: not reported
  std::int64_t total = -1;  ///< total number of steps; -1: not reported
};
/// Its output says that a checkpoint is complete.
struct Saved {
  ProcessIndex process = 0;
  std::string path;  ///< absolute
};
/// Its output names a page of an experiment tracker; see Link.
struct Linked {
  ProcessIndex process = 0;
  std::string kind;
  std::string url;
};
/// What can be observed of the node's processes is in the directory that Collect named.
struct Collected {
  std::string trouble;  ///< why it failed, fully or in part; empty: complete
};
/// A warning for the user that stops nothing.
struct Trouble {
  std::string sentence;
};
}  // namespace process_event
struct ProcessEvent {
  Duration at{};
  std::variant<
      process_event::Started, process_event::NotStarted, process_event::Ready, process_event::NotReady,
      process_event::Unresponsive, process_event::Fresh, process_event::Raised, process_event::Ended,
      process_event::ChildEnded, process_event::CleanedUp, process_event::NotKillable, process_event::Signal,
      process_event::NodeLost, process_event::NodeBack, process_event::Abort, process_event::Progress,
      process_event::Saved, process_event::Linked, process_event::Collected, process_event::Trouble>
      what;
};

/// The result on the nodes where the processes lived.
struct BackendEnd {
  std::vector<std::string> left_behind;  ///< killed at the very end, not attributed to a process
  std::vector<std::string> survivors;    ///< that could not be killed, with their state
  std::vector<std::string> last_lines;   ///< of the requested process
  std::uint64_t lost_bytes = 0;          ///< missing from log files
  /// Size of each process's log, in bytes, when the outcome was decided: later output is a consequence.
  std::map<std::string, std::uint64_t> log_when_decided{};
  std::uint64_t oom_kills = 0;  ///< by the kernel, during the run; see sys::oom_kills
};

/// Starts, signals and stops processes where they live: on this machine, or through the agents of several
/// nodes. Results are reported as `ProcessEvent`s on the leader's loop.
class ProcessBackend {
 public:
  using Tell = std::function<void(ProcessEvent)>;
  ProcessBackend() = default;
  virtual ~ProcessBackend() = default;
  ProcessBackend(const ProcessBackend&) = delete;
  ProcessBackend& operator=(const ProcessBackend&) = delete;

  virtual void perform(const NodeAction& action) = 0;
  /// Requests replacement nodes for those of these processes. A single machine has none.
  virtual void recover(const std::vector<ProcessIndex>& /*processes*/) {}
  /// The node of these processes is released: none of them is alive there. A replacement node is wanted.
  virtual void release(const std::vector<ProcessIndex>& /*processes*/) {}
  /// The end of the run is decided; everything that did not fail is still alive.
  virtual void ending() = 0;
  /// Ensures that nothing is left alive, then calls `done`. `of`: the process whose last lines are wanted.
  virtual void finish(std::optional<ProcessIndex> of, std::function<void(BackendEnd)> done) = 0;
};

}  // namespace nlaunch::supervise

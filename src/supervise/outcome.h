#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "supervise/checkpoints.h"
#include "supervise/child_watch.h"
#include "supervise/events.h"
#include "supervise/explanation.h"
#include "supervise/links.h"
#include "supervise/state_machine.h"
#include "supervise/terminal.h"
#include "watch/slow_nodes.h"

namespace nlaunch::supervise {

/// A descendant of one of the plan's processes that failed.
struct ChildReport {
  Child child;
  std::optional<sys::WaitStatus> status;  ///< not always known
  Duration at{};
  std::map<std::string, std::uint64_t> logs{};  ///< sizes of its node's logs at that moment, in bytes
};

/// The exception that ended a process.
struct Exception {
  std::string type;     ///< "RuntimeError"; may be empty
  std::string message;  ///< may be empty, or have several lines
  Duration at{};        ///< since the start of the attempt
  Duration within{};    ///< it can have been later than `at`, by at most this much
  /// "RuntimeError: CUDA error: out of memory": the first line, shortened.
  [[nodiscard]] std::string str() const;
};

/// The lifetime of one process in an attempt. Times are since the start of the attempt.
struct ProcessReport {
  std::string name;       ///< "learner.0"
  std::string host;       ///< name of its node; empty on a single machine
  int rank = -1;          ///< if its role has a rendezvous
  std::string program{};  ///< "vLLM API server", "train.py": see sys::process_title
  pid_t pid = 0;          ///< of its last start; 0 if it was not started
  std::optional<Duration> started;
  std::optional<Duration> ready;
  std::optional<Duration> ended;
  std::optional<sys::WaitStatus> status;
  std::optional<Exception> exception{};  ///< that ended it, if the program left a record of it
  bool stopped = false;                  ///< nlaunch asked it to stop, or killed it
  bool ended_before = false;             ///< it had exited before the outcome was decided by something else
  unsigned restarts = 0;
  std::vector<ChildReport> children;  ///< the last ones that failed
  std::vector<std::string>
      left_behind;  ///< processes that it left behind and that were killed: "python (pid 4711)"
  std::string log;  ///< path of its log file
  std::optional<std::uint64_t> log_when_decided{};  ///< size of the log at that moment, in bytes
  std::string ended_early{};                        ///< "exited with code 0 at step 3 of 40"; else empty
  std::string lost{};                               ///< why the run continued without it; else empty
  std::vector<std::string> last_lines{};            ///< of a task that has exited, at most 20
};

/// The result of an attempt: data for the user and for summary.json.
struct Outcome {
  Cause cause;
  std::vector<ProcessReport> processes;
  std::string started_at;  ///< UTC
  std::string ended_at;
  Duration took{};
  std::optional<Duration> decided;      ///< when the cause occurred, since the start of the attempt
  std::optional<std::size_t> first;     ///< index into `processes` of the one that failed first
  std::optional<std::size_t> next;      ///< the next process that exited on its own after it
  std::vector<std::string> last_lines;  ///< of the first one, at most 20
  std::string not_ready;                ///< what was awaited, and the result of the last check
  std::string check{};                  ///< of the first one, as written, and its timeout; empty: it had none
  std::optional<Explanation> explanation{};  ///< of the first one's failure, beyond what its log says
  std::vector<std::string> left_behind;      ///< killed at the very end, not attributed to a process
  std::vector<std::string> survivors;        ///< that could not be killed, with their state
  Terminal::Skipped skipped;                 ///< on the terminal
  std::uint64_t lost_bytes = 0;              ///< missing from log files
  std::uint64_t oom_kills = 0;               ///< by the kernel, in the memory cgroups of this run
  std::vector<std::string> troubles;         ///< warnings for the user that did not stop the run
  Json watch;                                ///< progress: see StallMonitor::summary; null: not watched
  std::optional<SavedCheckpoint>
      checkpoint{};  ///< the newest when the run ended; empty: none, or not checked
  /// A stop had been requested and was waiting for a checkpoint when something else decided the outcome.
  bool stop_asked = false;
  std::optional<std::uint64_t> last_step{};     ///< the last step seen; empty: none
  std::optional<plan::Plan> updated{};          ///< replaces the plan with which the attempt started
  std::optional<watch::SlowestNode> slowest{};  ///< empty: no node was slower than the others
  std::vector<Link> links{};                    ///< pages of experiment trackers, from the output
};

/// How long a server may run after it has lost one of its parts. vLLM exits within a second if no client
/// waits for an answer; otherwise it waits for its connections (12 s were measured), and so do its clients.
inline constexpr Duration kTimeToEndWithoutPart = std::chrono::seconds(5);

/// The process whose exception came first, if that is not the one that decided the outcome by its exit: a
/// process can take seconds to exit after an exception, and others that lose their connection to it can be
/// faster. A process that was killed or crashed failed by itself, whatever the others raised.
std::optional<std::size_t> first_to_raise(const Outcome& outcome);

/// A duration as printed in messages: "80ms", "12.4s".
std::string in_seconds(Duration duration);
/// "VLLM::EngineCore (pid 4711) of engine.0 was killed by SIGKILL 69.7s into the run"
std::string end_of_child(const ProcessReport& process, const ChildReport& child);
/// The child process whose exit explains why the run ended: a part that a server needs, or a process that was
/// killed by a signal before any other failed.
struct LostChild {
  const ProcessReport* process = nullptr;  ///< the parent
  const ChildReport* child = nullptr;
  /// Whatever any process printed after it is a consequence: the child itself printed nothing.
  [[nodiscard]] bool says_nothing() const;
};
std::optional<LostChild> lost_child(const Outcome& outcome);

/// "finished", "failed", "not-started", "not-ready", "interrupted", "terminated", "killed", "walltime",
/// "node-lost", "stalled", "unresponsive", "aborted".
std::string_view name_of(const Cause& cause);
/// The run's exit code; see base/exit_code.h.
int exit_code(const Cause& cause);
int exit_code(const Outcome& outcome);
/// One sentence: "learner.1 exited with code 3 after 12.4s, 80ms before engine.0 exited with code 1".
std::string sentence(const Outcome& outcome);
/// What is saved of a run that did not finish: "the newest complete checkpoint is /ckpt/step_40 (step 40);
/// the 3 steps after it are not saved". Empty if checkpoints are not tracked.
std::string saved_sentence(const Outcome& outcome, const plan::Plan& plan);
/// What to check next if the outcome itself does not explain the cause; may be empty.
std::string advice(const Outcome& outcome);
/// For summary.json. "processes" is an empty array: there can be many, and they are made one by one.
Json to_json(const Outcome& outcome);
Json to_json(const ProcessReport& process);

/// summary.json of a run whose supervisor was killed, written by the guardian.
Json summary_of_lost_supervisor(sys::WaitStatus status, const std::vector<std::string>& killed,
                                const std::vector<std::string>& survivors);

}  // namespace nlaunch::supervise

#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "supervise/checkpoints.h"
#include "supervise/child_watch.h"
#include "supervise/events.h"
#include "supervise/state_machine.h"
#include "supervise/terminal.h"
#include "watch/slow_nodes.h"

namespace nlaunch::supervise {

/// A process below one of the plan's that did not end well.
struct ChildReport {
  Child child;
  std::optional<sys::WaitStatus> status;  ///< not always known
  Duration at{};
  std::map<std::string, std::uint64_t> logs{};  ///< bytes that the logs of its node had then
};

/// The life of one process in an attempt. Times are since the attempt began.
struct ProcessReport {
  std::string name;       ///< "learner.0"
  std::string host;       ///< name of its node; empty on one machine
  int rank = -1;          ///< where its role has a rendezvous
  std::string program{};  ///< "vLLM API server", "train.py": see sys::process_title
  pid_t pid = 0;          ///< of its last start; 0 when it was not started
  std::optional<Duration> started;
  std::optional<Duration> ready;
  std::optional<Duration> ended;
  std::optional<sys::WaitStatus> status;
  bool stopped = false;  ///< nlaunch has asked it to end, or killed it
  unsigned restarts = 0;
  std::vector<ChildReport> children;     ///< the last ones that did not end well
  std::vector<std::string> left_behind;  ///< processes that it left and that were killed: "python (pid 4711)"
  std::string log;                       ///< path of its log file
  std::optional<std::uint64_t> log_when_decided{};  ///< bytes that the log had then
  std::string ended_early{};                        ///< "exited with code 0 at step 3 of 40"; else empty
  std::string lost{};                               ///< why the run went on without it; else empty
  std::vector<std::string> last_lines{};            ///< of a task that has ended, at most 20
};

/// How an attempt went: data for people and for summary.json.
struct Outcome {
  Cause cause;
  std::vector<ProcessReport> processes;
  std::string started_at;  ///< UTC
  std::string ended_at;
  Duration took{};
  std::optional<Duration> decided;       ///< when the cause came up, since the attempt began
  std::optional<std::size_t> first;      ///< index into `processes` of the one that decided
  std::optional<std::size_t> next;       ///< the next one that ended by itself after it
  std::vector<std::string> last_lines;   ///< of the first one, at most 20
  std::string not_ready;                 ///< what was waited for, and what the last look said
  std::vector<std::string> left_behind;  ///< killed at the very end, of no process in particular
  std::vector<std::string> survivors;    ///< that could not be killed, with their state
  Terminal::Skipped skipped;             ///< on the terminal
  std::uint64_t lost_bytes = 0;          ///< missing in log files
  std::uint64_t oom_kills = 0;           ///< of the kernel, in the memory cgroups of this run
  std::vector<std::string> troubles;     ///< what a person should hear, and stopped nothing
  Json watch;                            ///< how it got on: see Watching::summary; null: not watched
  std::optional<SavedCheckpoint>
      checkpoint{};  ///< the newest when it ended; nothing: there is none, or nobody asked
  /// Somebody had asked for the end, and waited for a checkpoint, when something else decided.
  bool stop_asked = false;
  std::optional<std::uint64_t> last_step{};     ///< that was seen; nothing: none was
  std::optional<plan::Plan> updated{};          ///< in place of the plan that the attempt began with
  std::optional<watch::SlowestNode> slowest{};  ///< nothing: none was slower than the others
};

/// How long a server has that has lost one of its parts. vLLM's ends within a second where nobody waits for
/// an answer, else it waits for its connections (12 s were measured), and who waits for it waits as well.
inline constexpr Duration kTimeToEndWithoutPart = std::chrono::seconds(5);

/// A time as it is said of a run: "80ms", "12.4s".
std::string in_seconds(Duration duration);
/// "VLLM::EngineCore (pid 4711) of engine.0 was killed by SIGKILL 69.7s into the run"
std::string end_of_child(const ProcessReport& process, const ChildReport& child);
/// The child process whose end explains why the run ended: a part that a server needs, or a process that was
/// killed by a signal before any other failed.
struct LostChild {
  const ProcessReport* process = nullptr;  ///< whose child it is
  const ChildReport* child = nullptr;
  /// What any process printed after it is a consequence: it left no words of its own.
  [[nodiscard]] bool says_nothing() const;
};
std::optional<LostChild> lost_child(const Outcome& outcome);

/// "finished", "failed", "not-started", "not-ready", "interrupted", "terminated", "killed", "walltime",
/// "node-lost", "stalled", "unresponsive", "aborted".
std::string_view name_of(const Cause& cause);
/// As the run's exit code; see base/exit_code.h.
int exit_code(const Cause& cause);
int exit_code(const Outcome& outcome);
/// One sentence: "learner.1 exited with code 3 after 12.4s, 80ms before engine.0 exited with code 1".
std::string sentence(const Outcome& outcome);
/// What is saved of a run that did not finish: "the newest complete checkpoint is /ckpt/step_40 (step 40);
/// the 3 steps after it are in none". Empty where checkpoints are not looked at.
std::string saved_sentence(const Outcome& outcome, const plan::Plan& plan);
/// What to look at next, where the end itself does not tell why; may be empty.
std::string advice(const Outcome& outcome);
/// For summary.json.
Json to_json(const Outcome& outcome);

/// summary.json of a run whose supervisor was killed, for the guardian to write.
Json summary_of_lost_supervisor(sys::WaitStatus status, const std::vector<std::string>& killed,
                                const std::vector<std::string>& survivors);

}  // namespace nlaunch::supervise

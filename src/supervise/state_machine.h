#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/words.h"
#include "plan/plan.h"
#include "sys/wait_status.h"

/// Supervision as a state machine: (state, event) → (state, actions). Pure, without clocks or processes:
/// whoever performs the actions feeds their results back as events.
namespace nlaunch::supervise {

using ProcessIndex = std::uint32_t;  ///< into Rules::processes

/// The rules for one process.
struct ProcessRules {
  std::uint32_t process = 0;  ///< index into Plan::processes
  std::string role{};
  /// When it is ready: once started, when its readiness check succeeds, or when it has exited with 0.
  enum class Ready { started, checked, exited };
  Ready ready = Ready::started;
  Stop stop{};
  Restart restart{};
  bool ends_run = false;
  bool exit_ok = false;
  bool leave = false;
  bool saves = false;                       ///< it is a learner, whose checkpoints count
  bool watched = false;                     ///< its liveness is checked once it is ready
  bool gets_fresh = false;                  ///< after a restart it is stale until it reports otherwise
  std::optional<std::uint32_t> tolerate{};  ///< number of replicas of its role with which the run continues
  std::optional<int> walltime_signal{};     ///< replaces the stop signal when the walltime is near
  std::optional<std::uint32_t> replica{};   ///< index into Rules::replicas; empty: it is not part of one
  bool borrowed = false;                    ///< its node joins at any time and can be taken away
};

/// Nodes outside the run's own job. Each can join during the run, and leave.
struct BorrowedNodes {
  std::size_t min = 0;                           ///< this many must be serving before later stages start
  std::vector<std::vector<ProcessIndex>> nodes;  ///< the processes of each node
};

/// The rules for the run.
struct Rules {
  std::vector<ProcessRules> processes;
  std::vector<std::vector<ProcessIndex>> stages;  ///< every process is in exactly one stage
  /// Processes that form one replica: when one of them fails, all are restarted.
  std::vector<std::vector<ProcessIndex>> replicas{};
  std::vector<BorrowedNodes> borrowed{};  ///< by elastic pool
  std::map<int, SignalRule> signals;
  /// SIGUSR2 means that the walltime is near, as the batch script requests from Slurm (--signal=B:USR2@...).
  bool walltime = false;
};
/// The processes that nlaunch starts itself, in plan order.
Rules rules_of(const plan::Plan& plan);

// Why a run ends: the first cause decides.
struct Finished {};
struct ProcessFailed {
  ProcessIndex process = 0;
  sys::WaitStatus status;
  /// Number of consecutive early failures after which it is not restarted although restarts were left; 0: not
  /// the reason.
  unsigned alike = 0;
};
struct StartFailed {
  ProcessIndex process = 0;
  std::string reason;
};
struct NeverReady {
  ProcessIndex process = 0;
  bool has_ended = false;  ///< it exited with 0 before it was ready; else it timed out
};
/// A descendant without which it cannot serve has exited, and it keeps running.
struct PartLost {
  ProcessIndex process = 0;
  std::string reason;  ///< "VLLM::EngineCore (pid 4711) of engine.0 was killed by SIGKILL 69.7s into the run"
};
/// It was ready and stopped responding.
struct Unresponsive {
  ProcessIndex process = 0;
  std::string reason;  ///< "http://n1:8000/health: no answer within 10s, 3 times in a row"
};
struct StoppedBySignal {
  int signal = 0;
};
struct GuardianGone {};
struct WalltimeNear {};
/// A node or its agent is lost, and its processes with it.
struct NodeLost {
  std::string host;
  std::string why;
};
/// A watcher of the run (for example the audit) has ended it.
struct Aborted {
  std::string reason;
  int exit_code = 0;
  std::optional<ProcessIndex> process{};  ///< the process at fault, if known
};
using Cause = std::variant<Finished, ProcessFailed, StartFailed, NeverReady, PartLost, Unresponsive,
                           StoppedBySignal, GuardianGone, WalltimeNear, NodeLost, Aborted>;

// The phases of a process.
struct Waiting {};    ///< for its stage
struct Starting {     ///< about to be spawned
  bool stop = false;  ///< to be stopped once it has started: another process of its replica has failed
};
struct Running {};     ///< not ready yet
struct Serving {       ///< ready
  bool stale = false;  ///< it has restarted and still has the weights from its start
};
struct Stopping {};  ///< it got its stop signal; the grace period is running
struct Killed {};    ///< it got SIGKILL
struct CleaningUp {  ///< its wait status is known; its leftovers are being killed and its output drained
  bool restart = false;
};
struct Gathering {};  ///< to be restarted when all of its replica have exited
struct BackingOff {};
struct Ended {};
using ProcessPhase = std::variant<Waiting, Starting, Running, Serving, Stopping, Killed, CleaningUp,
                                  Gathering, BackingOff, Ended>;

struct ProcessState {
  ProcessPhase phase;
  unsigned restarts = 0;  ///< in total
  unsigned counted = 0;   ///< those that count towards Restart::max
  /// Consecutive failures of the same kind, each soon after the start.
  std::optional<sys::WaitStatus> failure{};
  unsigned alike = 0;
  /// The run continues without it: `tolerate`.
  enum class Missing {
    no,
    given_up,   ///< permanently
    draining,   ///< its node is being drained, and some of its processes have not exited
    away,       ///< its node is gone: it restarts when another node, or the same one, replaces it
    may_start,  ///< its node is available; others of its replica are missing or have not exited yet
  };
  Missing missing = Missing::no;
  bool parked = false;  ///< scaled away: it is missing and is not started
  bool again = false;   ///< a restart was requested
};

// The phases of the run.
struct Going {
  std::size_t stage = 0;  ///< the last stage that was started
};
struct Ending {
  Cause cause;
  std::size_t stage = 0;  ///< this stage is being stopped; later stages have been stopped
  unsigned interrupts = 0;
};
struct Killing {
  Cause cause;
};
struct Done {
  Cause cause;
};
using Phase = std::variant<Going, Ending, Killing, Done>;

/// Where searches over the processes found something last. The next one begins there, with the same result:
/// most events change nothing in it, and in a large run each would look at all processes.
struct LastFound {
  std::size_t ends_run = 0;     ///< a process that ends the run
  std::size_t unsatisfied = 0;  ///< of the stage that starts, in its order
  std::size_t unfinished = 0;   ///< a process that the run waits for
  std::size_t alive = 0;        ///< of the stage that is stopped, in its order
  std::size_t unsettled = 0;    ///< a process that has started and not ended
};

struct State {
  Phase phase;
  std::vector<ProcessState> processes;
  std::vector<std::vector<ProcessIndex>> drains{};  ///< the processes on nodes that are being drained
  LastFound found{};
};

namespace event {
struct Started {
  ProcessIndex process = 0;
};
struct SpawnFailed {
  ProcessIndex process = 0;
  std::string reason;
};
struct Ready {
  ProcessIndex process = 0;
};
struct ReadyTimeout {
  ProcessIndex process = 0;
};
struct Ended {
  ProcessIndex process = 0;
  sys::WaitStatus status;
  bool soon = false;  ///< soon after its start
};
/// It was ready and stopped responding.
struct Unresponsive {
  ProcessIndex process = 0;
  std::string reason;
};
/// It has the current weights.
struct Fresh {
  ProcessIndex process = 0;
};
/// Request to restart these: whole replicas.
struct RestartWanted {
  std::vector<ProcessIndex> processes;
};
/// Request to run without these until Unpark: whole replicas.
struct Park {
  std::vector<ProcessIndex> processes;
};
struct Unpark {
  std::vector<ProcessIndex> processes;
};
/// Request to remove everything from a node: `can_do_without` holds for these. They may restart on another
/// node.
struct Drain {
  std::vector<ProcessIndex> processes;
};
/// A restart is long enough ago that it no longer counts.
struct RestartForgotten {
  ProcessIndex process = 0;
};
/// A descendant without which it cannot serve has exited, and it had time to exit as well.
struct PartLost {
  ProcessIndex process = 0;
  std::string reason;
};
/// Its leftovers are gone and its output is drained.
struct CleanedUp {
  ProcessIndex process = 0;
};
struct GraceOver {
  ProcessIndex process = 0;
};
struct BackoffOver {
  ProcessIndex process = 0;
};
struct Signal {
  int signal = 0;
};
struct GuardianLost {};
struct NodeLost {
  std::string host;
  std::string why;
  std::vector<ProcessIndex> processes;  ///< that ran there
};
/// A node is available for the processes of a lost node.
struct NodeBack {
  std::string host;
  std::vector<ProcessIndex> processes;
};
struct Abort {
  std::string reason;
  int exit_code = 0;
  std::optional<ProcessIndex> process{};  ///< the process at fault, if known
};
}  // namespace event
using Event =
    std::variant<event::Started, event::SpawnFailed, event::Ready, event::ReadyTimeout, event::Ended,
                 event::PartLost, event::Unresponsive, event::Fresh, event::RestartWanted, event::Park,
                 event::Unpark, event::Drain, event::RestartForgotten, event::CleanedUp, event::GraceOver,
                 event::BackoffOver, event::Signal, event::GuardianLost, event::NodeLost, event::NodeBack,
                 event::Abort>;

namespace action {
/// Answered by Started or SpawnFailed; must not be performed if the process is no longer Starting.
struct Start {
  ProcessIndex process = 0;
};
/// Answered by Ready or ReadyTimeout; for a process that is ready when it has exited, by Ended or
/// ReadyTimeout.
struct AwaitReady {
  ProcessIndex process = 0;
};
/// Checks its liveness from now on, until it exits. Answered by Unresponsive, at most once.
struct Watch {
  ProcessIndex process = 0;
};
/// Answered by Fresh, possibly never.
struct AwaitFresh {
  ProcessIndex process = 0;
};
/// The set of addressable replicas of another role has changed.
struct Notify {
  ProcessIndex process = 0;  ///< the process to notify, as `on_change` of its role specifies
  std::string role;
  std::uint64_t generation = 0;
  std::vector<std::string> addresses;  ///< current addresses, HOST:PORT
  std::vector<std::string> added;      ///< that are new
  std::vector<std::string> removed;    ///< that are gone
};
/// Sends the stop signal to the whole process group, because a wrapper shell does not pass it on.
struct SignalGroup {
  ProcessIndex process = 0;
  int signal = 0;
};
/// Sends a signal to the process alone, because its helpers may not handle it.
struct SignalProcess {
  ProcessIndex process = 0;
  int signal = 0;
};
/// Answered by GraceOver.
struct ArmGrace {
  ProcessIndex process = 0;
  Duration grace{};
};
struct KillTree {
  ProcessIndex process = 0;
};
struct KillAll {};
/// Records what can be observed of all processes. Answered by Collected, from every node.
struct Collect {
  std::string folder;  ///< target directory for all nodes
};
/// Answered by CleanedUp.
struct CleanUp {
  ProcessIndex process = 0;
  bool leave = false;  ///< its leftovers stay alive until the run ends
};
/// Answered by BackoffOver. The first process of a replica stands for all of it.
struct ArmBackoff {
  ProcessIndex process = 0;
  Duration backoff{};
};
/// Answered by RestartForgotten.
struct ForgetRestart {
  ProcessIndex process = 0;
  Duration after{};
};
/// The run continues without these.
struct Tolerate {
  std::vector<ProcessIndex> processes;  ///< of one replica, or a single process
  Cause cause;                          ///< the cause that would have ended the run
  std::size_t left = 0;                 ///< remaining replicas of the role
};
/// Requests a node in place of the one of these processes. Answered by NodeBack, possibly never.
struct Recover {
  std::vector<ProcessIndex> processes;
};
/// None of these is alive any more, and their node is to be released.
struct Release {
  std::vector<ProcessIndex> processes;
};
/// The end of the run and its cause are decided.
struct Decide {
  Cause cause;
};
struct Finish {
  Cause cause;
};
}  // namespace action
/// Actions performed where the process lives.
using NodeAction = std::variant<action::Start, action::AwaitReady, action::Watch, action::AwaitFresh,
                                action::Notify, action::SignalGroup, action::SignalProcess, action::KillTree,
                                action::KillAll, action::Collect, action::CleanUp>;
using Action =
    std::variant<action::Start, action::AwaitReady, action::Watch, action::AwaitFresh, action::SignalGroup,
                 action::SignalProcess, action::KillTree, action::KillAll, action::CleanUp, action::ArmGrace,
                 action::ArmBackoff, action::ForgetRestart, action::Tolerate, action::Recover,
                 action::Release, action::Decide, action::Finish>;

/// Whether the run can continue without these: enough of their roles are left.
bool can_do_without(const Rules& rules, const State& state, const std::vector<ProcessIndex>& processes);
/// Whether it has the weights from its start when it becomes ready while others have later ones: it has
/// restarted, or its node joined a run in progress.
bool begins_stale(const Rules& rules, const State& state, ProcessIndex process);
/// Whether it can be addressed: it serves, or has not been ready for the first time yet.
bool is_listed(const State& state, ProcessIndex process);

/// The cause with which this signal would end a run; empty if it would not.
std::optional<Cause> cause_of(const Rules& rules, int signal);

struct Step {
  State state;
  std::vector<Action> actions;
};

/// The start of a run.
Step begin(const Rules& rules);
/// An event that has no meaning in this state (an expired grace period of a process that has exited) changes
/// nothing.
Step step(const Rules& rules, State state, const Event& event);

}  // namespace nlaunch::supervise

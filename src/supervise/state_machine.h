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

/// Supervision as a table: (state, event) → (state, actions). Pure, no clock, no process: who performs the
/// actions feeds back what came of them as events.
namespace nlaunch::supervise {

using ProcessIndex = std::uint32_t;  ///< into Rules::processes

/// What holds for one process.
struct ProcessRules {
  std::uint32_t process = 0;  ///< index into Plan::processes
  std::string role{};
  /// When it is ready: once started, when its readiness check says so, or when it has exited with 0.
  enum class Ready { started, checked, exited };
  Ready ready = Ready::started;
  Stop stop{};
  Restart restart{};
  bool ends_run = false;
  bool exit_ok = false;
  bool leave = false;
  bool saves = false;                       ///< it is a learner, whose checkpoints count
  bool watched = false;                     ///< once it is ready it is asked whether it answers
  bool gets_fresh = false;                  ///< one that has started again is stale until it says otherwise
  std::optional<std::uint32_t> tolerate{};  ///< replicas of its role with which the run goes on
  std::optional<int> walltime_signal{};     ///< in place of the stop signal when the walltime comes near
  std::optional<std::uint32_t> replica{};   ///< index into Rules::replicas; nothing: it stands for itself
  bool borrowed = false;                    ///< its node comes by itself, and may be taken away
};

/// Nodes that are no part of the run's own job. Each may come while the run goes on, and go.
struct BorrowedNodes {
  std::size_t min = 0;                           ///< so many are at work before what comes after them starts
  std::vector<std::vector<ProcessIndex>> nodes;  ///< the processes of each
};

/// What holds for the run.
struct Rules {
  std::vector<ProcessRules> processes;
  std::vector<std::vector<ProcessIndex>> stages;  ///< every process stands in exactly one
  /// Processes that are one: when one of them fails, all are started again.
  std::vector<std::vector<ProcessIndex>> replicas{};
  std::vector<BorrowedNodes> borrowed{};  ///< by elastic pool
  std::map<int, SignalRule> signals;
  /// SIGUSR2 says that the walltime comes near, as the batch script asks Slurm for (--signal=B:USR2@...).
  bool walltime = false;
};
/// The processes are those that nlaunch starts itself, in plan order.
Rules rules_of(const plan::Plan& plan);

// Why a run ends: the first thing that decided it.
struct Finished {};
struct ProcessFailed {
  ProcessIndex process = 0;
  sys::WaitStatus status;
  /// So often in a row, and before it could work: it is not started again, though it might have been. 0: that
  /// is not why.
  unsigned alike = 0;
};
struct StartFailed {
  ProcessIndex process = 0;
  std::string reason;
};
struct NeverReady {
  ProcessIndex process = 0;
  bool has_ended = false;  ///< with 0, as it may once it is ready; else its time was over
};
/// A process below it has ended that it cannot serve without, and it goes on.
struct PartLost {
  ProcessIndex process = 0;
  std::string reason;  ///< "VLLM::EngineCore (pid 4711) of engine.0 was killed by SIGKILL 69.7s into the run"
};
/// It was ready, and answers no more.
struct Unresponsive {
  ProcessIndex process = 0;
  std::string reason;  ///< "http://n1:8000/health: no answer within 10s, 3 times in a row"
};
struct StoppedBySignal {
  int signal = 0;
};
struct GuardianGone {};
struct WalltimeNear {};
/// A node, or the agent there, is gone, and its processes with it.
struct NodeLost {
  std::string host;
  std::string why;
};
/// Somebody who watches the run (the audit, for one) has ended it.
struct Aborted {
  std::string reason;
  int exit_code = 0;
  std::optional<ProcessIndex> process{};  ///< whose fault it is, where that is known
};
using Cause = std::variant<Finished, ProcessFailed, StartFailed, NeverReady, PartLost, Unresponsive,
                           StoppedBySignal, GuardianGone, WalltimeNear, NodeLost, Aborted>;

// Where a process is in its life.
struct Waiting {};    ///< for its stage
struct Starting {     ///< to be spawned
  bool stop = false;  ///< once it is: another of its replica has failed
};
struct Running {};     ///< not ready yet
struct Serving {       ///< ready
  bool stale = false;  ///< it has started again, and has the weights of its start
};
struct Stopping {};  ///< has its stop signal, and its grace runs
struct Killed {};    ///< has SIGKILL
struct CleaningUp {  ///< its wait status is there; what it left behind is swept, its output drained
  bool restart = false;
};
struct Gathering {};  ///< to be started again when all of its replica have ended
struct BackingOff {};
struct Ended {};
using ProcessPhase = std::variant<Waiting, Starting, Running, Serving, Stopping, Killed, CleaningUp,
                                  Gathering, BackingOff, Ended>;

struct ProcessState {
  ProcessPhase phase;
  unsigned restarts = 0;  ///< in all
  unsigned counted = 0;   ///< of these, those that Restart::max counts
  /// Failures of the same kind, one after the other and each soon after the start.
  std::optional<sys::WaitStatus> failure{};
  unsigned alike = 0;
  /// The run goes on without it: `tolerate`.
  enum class Missing {
    no,
    given_up,   ///< for good
    draining,   ///< its node is to be left, and not all that is there have ended
    away,       ///< its node is gone: it starts again where another node, or the same, takes its place
    may_start,  ///< its node is there; others of its replica are not, or have not ended yet
  };
  Missing missing = Missing::no;
  bool parked = false;  ///< somebody wishes that it does not run: it is missing, and does not start
  bool again = false;   ///< somebody wishes that it starts again
};

// Where the run is.
struct Going {
  std::size_t stage = 0;  ///< the last that was started
};
struct Ending {
  Cause cause;
  std::size_t stage = 0;  ///< being stopped: this one; those above are
  unsigned interrupts = 0;
};
struct Killing {
  Cause cause;
};
struct Done {
  Cause cause;
};
using Phase = std::variant<Going, Ending, Killing, Done>;

struct State {
  Phase phase;
  std::vector<ProcessState> processes;
  std::vector<std::vector<ProcessIndex>> drains{};  ///< what is on nodes that are to be left
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
  bool soon = false;  ///< after its start
};
/// It was ready, and answers no more.
struct Unresponsive {
  ProcessIndex process = 0;
  std::string reason;
};
/// It has the weights of now.
struct Fresh {
  ProcessIndex process = 0;
};
/// Somebody wishes that these start again: whole replicas.
struct RestartWanted {
  std::vector<ProcessIndex> processes;
};
/// Somebody wishes that the run goes on without these, until Unpark: whole replicas.
struct Park {
  std::vector<ProcessIndex> processes;
};
struct Unpark {
  std::vector<ProcessIndex> processes;
};
/// Somebody wishes that nothing is left on a node: `can_do_without` holds of these. They may start again on
/// another.
struct Drain {
  std::vector<ProcessIndex> processes;
};
/// A restart is so long ago that it counts no more.
struct RestartForgotten {
  ProcessIndex process = 0;
};
/// A process below it has ended that it cannot serve without. It had time to end as well.
struct PartLost {
  ProcessIndex process = 0;
  std::string reason;
};
/// What it left behind is gone, its output is drained.
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
  std::vector<ProcessIndex> processes;  ///< that were there
};
/// A node is there for those that were on one that is gone.
struct NodeBack {
  std::string host;
  std::vector<ProcessIndex> processes;
};
struct Abort {
  std::string reason;
  int exit_code = 0;
  std::optional<ProcessIndex> process{};  ///< whose fault it is, where that is known
};
}  // namespace event
using Event =
    std::variant<event::Started, event::SpawnFailed, event::Ready, event::ReadyTimeout, event::Ended,
                 event::PartLost, event::Unresponsive, event::Fresh, event::RestartWanted, event::Park,
                 event::Unpark, event::Drain, event::RestartForgotten, event::CleanedUp, event::GraceOver,
                 event::BackoffOver, event::Signal, event::GuardianLost, event::NodeLost, event::NodeBack,
                 event::Abort>;

namespace action {
/// To be answered by Started or SpawnFailed; not to be performed when the process is no longer Starting.
struct Start {
  ProcessIndex process = 0;
};
/// To be answered by Ready or ReadyTimeout; for one that is ready when it has exited, by Ended or
/// ReadyTimeout.
struct AwaitReady {
  ProcessIndex process = 0;
};
/// From now on it is asked whether it answers; until its end. To be answered by Unresponsive, once.
struct Watch {
  ProcessIndex process = 0;
};
/// To be answered by Fresh, some time or never.
struct AwaitFresh {
  ProcessIndex process = 0;
};
/// It has changed which replicas of another role can be addressed.
struct Notify {
  ProcessIndex process = 0;  ///< the process to tell, as `on_change` of its role says
  std::string role;
  std::uint64_t generation = 0;
  std::vector<std::string> addresses;  ///< HOST:PORT, those of now
  std::vector<std::string> added;      ///< that were not among them before
  std::vector<std::string> removed;    ///< that were
};
/// The stop signal, to the whole process group: a wrapper shell does not pass it on.
struct SignalGroup {
  ProcessIndex process = 0;
  int signal = 0;
};
/// To the process alone: its helpers may not know what to do with it.
struct SignalProcess {
  ProcessIndex process = 0;
  int signal = 0;
};
/// To be answered by GraceOver.
struct ArmGrace {
  ProcessIndex process = 0;
  Duration grace{};
};
struct KillTree {
  ProcessIndex process = 0;
};
struct KillAll {};
/// What can be seen of all processes is to be kept. To be answered by Collected, of every node.
struct Collect {
  std::string folder;  ///< where to, of all nodes
};
/// To be answered by CleanedUp.
struct CleanUp {
  ProcessIndex process = 0;
  bool leave = false;  ///< what it left behind lives on, until the run ends
};
/// To be answered by BackoffOver. Of a replica, its first process stands for all.
struct ArmBackoff {
  ProcessIndex process = 0;
  Duration backoff{};
};
/// To be answered by RestartForgotten.
struct ForgetRestart {
  ProcessIndex process = 0;
  Duration after{};
};
/// The run goes on without these.
struct Tolerate {
  std::vector<ProcessIndex> processes;  ///< of one replica, or one alone
  Cause cause;                          ///< what the run would have ended with
  std::size_t left = 0;                 ///< replicas of the role
};
/// A node is wanted in the place of the one that these were on. To be answered by NodeBack, some time or
/// never.
struct Recover {
  std::vector<ProcessIndex> processes;
};
/// Nothing of these lives any more, and their node is to be left.
struct Release {
  std::vector<ProcessIndex> processes;
};
/// It is decided that the run ends, and why.
struct Decide {
  Cause cause;
};
struct Finish {
  Cause cause;
};
}  // namespace action
/// Those that are performed where the process lives.
using NodeAction = std::variant<action::Start, action::AwaitReady, action::Watch, action::AwaitFresh,
                                action::Notify, action::SignalGroup, action::SignalProcess, action::KillTree,
                                action::KillAll, action::Collect, action::CleanUp>;
using Action =
    std::variant<action::Start, action::AwaitReady, action::Watch, action::AwaitFresh, action::SignalGroup,
                 action::SignalProcess, action::KillTree, action::KillAll, action::CleanUp, action::ArmGrace,
                 action::ArmBackoff, action::ForgetRestart, action::Tolerate, action::Recover,
                 action::Release, action::Decide, action::Finish>;

/// The run goes on without these: enough of their roles are left.
bool can_do_without(const Rules& rules, const State& state, const std::vector<ProcessIndex>& processes);
/// When it is ready it has the weights of its start, and others have later ones: it has started again, or its
/// node has come when the run was at work.
bool begins_stale(const Rules& rules, const State& state, ProcessIndex process);
/// It may be addressed: it serves, or has yet to be ready for the first time.
bool is_listed(const State& state, ProcessIndex process);

/// Why this signal would end a run; nothing where it would not.
std::optional<Cause> cause_of(const Rules& rules, int signal);

struct Step {
  State state;
  std::vector<Action> actions;
};

/// The start of a run.
Step begin(const Rules& rules);
/// An event that means nothing in this state (a grace that is over for a process that has ended) changes
/// nothing.
Step step(const Rules& rules, State state, const Event& event);

}  // namespace nlaunch::supervise

#pragma once
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/described.h"
#include "base/units.h"

/// The words of nlaunch that are used in both its files and its plan.
namespace nlaunch {

enum class RoleKind {
  learner,  ///< trains
  engine,   ///< generates
  service,  ///< helps them
  task,     ///< prepares something: the next stage starts when it has exited with code 0
};
BOOST_DESCRIBE_ENUM(RoleKind, learner, engine, service, task)
/// The role trains or generates, with the libraries that nlaunch manages.
constexpr bool computes(RoleKind kind) {
  return kind == RoleKind::learner || kind == RoleKind::engine;
}

enum class Rendezvous { none, torch };
BOOST_DESCRIBE_ENUM(Rendezvous, torch, none)

/// Starts one rank per GPU of a process.
enum class Launcher { torchrun, accelerate };
BOOST_DESCRIBE_ENUM(Launcher, torchrun, accelerate)

enum class PreloadScope {
  process,  ///< the role's program only
  tree,     ///< the program and everything that it starts
};
BOOST_DESCRIBE_ENUM(PreloadScope, process, tree)

enum class Backend { nccl, gloo };
BOOST_DESCRIBE_ENUM(Backend, nccl, gloo)

/// How weights get from the learners to the engines.
enum class SyncBackend {
  nccl,  ///< in a group of NCCL ranks
  gloo,  ///< in a group over TCP
  ipc,   ///< on the GPU that a learner and an engine share: CUDA IPC
  disk,  ///< in files on a shared file system
  nixl,  ///< from memory to memory, through NIXL
  none,  ///< not at run time
};
BOOST_DESCRIBE_ENUM(SyncBackend, nccl, gloo, ipc, disk, nixl, none)
/// The backend of its ranks; nothing if they do not form a group.
constexpr std::optional<Backend> communicator_of(SyncBackend backend) {
  if (backend == SyncBackend::nccl) return Backend::nccl;
  if (backend == SyncBackend::gloo) return Backend::gloo;
  return std::nullopt;
}

/// A server whose health endpoint nlaunch knows.
enum class ReadyServer { vllm, sglang };
BOOST_DESCRIBE_ENUM(ReadyServer, vllm, sglang)

/// What processes that are kept together have in common.
enum class Closeness {
  node,
  domain,   ///< of NVLink: nodes whose GPUs are connected by it, as in a rack of NVL72
  switch_,  ///< the switch that their network cables connect to
};
BOOST_DESCRIBE_ENUM(Closeness, node, domain, switch_)

/// The topology plugin of a Slurm that knows the location of its nodes.
enum class SlurmTopology {
  tree,   ///< switches: --switches
  block,  ///< blocks of nodes, each an NVLink domain: --segment
};
BOOST_DESCRIBE_ENUM(SlurmTopology, tree, block)

/// When an operation applies; an empty member always matches. All members that are set must match.
struct Condition {
  std::optional<VersionRange> nodes;            ///< number of nodes, as a version of one part
  std::string gpu;                              ///< glob for the GPU model
  std::string arch;                             ///< glob for the machine's architecture
  std::optional<RoleKind> kind;                 ///< kind of the role
  std::map<std::string, VersionRange> library;  ///< version of a site library, by name
  [[nodiscard]] bool always() const {
    return !nodes && gpu.empty() && arch.empty() && !kind && library.empty();
  }
};
BOOST_DESCRIBE_STRUCT(Condition, (), (nodes, gpu, arch, kind, library))

struct Stop {
  int signal = 15;
  Duration grace = std::chrono::seconds(30);
};
BOOST_DESCRIBE_STRUCT(Stop, (), (signal, grace))

struct Restart {
  bool on_failure = false;
  unsigned max = 3;
  Duration backoff = std::chrono::seconds(5);
  std::optional<Duration>
      most_backoff{};  ///< maximum up to which it doubles with each restart; nothing: it stays the same
  std::optional<Duration> within{};  ///< time window in which `max` counts restarts; nothing: the whole run

  /// Wait before the next start, after this many counted restarts.
  [[nodiscard]] Duration backoff_after(unsigned restarts) const {
    auto wait = backoff;
    for (unsigned i = 0; i < restarts && most_backoff && wait < *most_backoff; ++i) wait *= 2;
    return most_backoff ? std::min(wait, std::max(backoff, *most_backoff)) : backoff;
  }
};
BOOST_DESCRIBE_STRUCT(Restart, (), (on_failure, max, backoff, most_backoff, within))

/// Keys of a role that the plan uses unchanged.
struct RoleSettings {
  RoleKind kind = RoleKind::service;
  Rendezvous rendezvous = Rendezvous::none;
  Stop stop;
  Restart restart;
  bool exit_ok = false;  ///< `exit: ok`: exiting with code 0 is not a failure
  bool leave = false;    ///< whatever a process leaves running is kept until the run ends
  /// `tolerate: {min: N}`: number of replicas with which the run continues when others are lost; nothing:
  /// none can be lost.
  std::optional<std::uint32_t> tolerate{};
  std::uint32_t standby = 0;  ///< replicas that run unannounced until they replace others
  bool any_cpu = false;       ///< `cpu_binding: none`: not bound to the CPUs near its GPUs
};

/// What happens as the walltime approaches.
struct Walltime {
  int signal = 15;  ///< to learners
  Duration before = std::chrono::minutes(10);
  enum class Then { stop, requeue, chain };
  BOOST_DESCRIBE_NESTED_ENUM(Then, stop, requeue, chain)
  Then then = Then::stop;
  std::uint32_t max = 30;                           ///< maximum number of jobs in a chain
  Duration min_runtime = std::chrono::minutes(15);  ///< a run that fails earlier is not continued
};
BOOST_DESCRIBE_STRUCT(Walltime, (), (signal, before, then, max, min_runtime))

/// What a person can be notified of.
enum class NotifyOn {
  start,  ///< the processes of an attempt are about to start
  ready,  ///< all processes are up for the first time
  stall,  ///< `watch` found that the run makes no progress
  end,    ///< the run is over, or was refused
};
BOOST_DESCRIBE_ENUM(NotifyOn, start, ready, stall, end)

/// What to do when a run makes no progress.
enum class OnStall {
  warn,
  dump,     ///< collect evidence; the run continues
  abort,    ///< collect evidence, then stop the run
  restart,  ///< collect evidence, then start another attempt, as after a failure
};
BOOST_DESCRIBE_ENUM(OnStall, warn, dump, abort, restart)

enum class PreflightLevel {
  quick,     ///< no CUDA context
  standard,  ///< also the interpreters and the plan's groups
  deep,      ///< also slow checks: every pair of GPUs, all sizes, arithmetic under load
};
BOOST_DESCRIBE_ENUM(PreflightLevel, quick, standard, deep)

enum class AuditMode { report, enforce };
BOOST_DESCRIBE_ENUM(AuditMode, report, enforce)

/// What to do with a signal sent to nlaunch.
struct SignalRule {
  enum class Action { stop, ignore, forward };
  BOOST_DESCRIBE_NESTED_ENUM(Action, stop, ignore, forward)
  Action action = Action::stop;
  std::vector<std::string> roles;  ///< forward: to these roles; empty: to all
};
BOOST_DESCRIBE_STRUCT(SignalRule, (), (action, roles))

/// The priority of a Beaker job.
enum class BeakerPriority { low, normal, high, urgent, immediate };
BOOST_DESCRIBE_ENUM(BeakerPriority, low, normal, high, urgent, immediate)

/// Parses the word; `standard` for any other.
constexpr PreflightLevel level_of(std::string_view word) {
  return value_of<PreflightLevel>(word).value_or(PreflightLevel::standard);
}

}  // namespace nlaunch

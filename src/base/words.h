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

/// The words of nlaunch that both its files and its plan are written in.
namespace nlaunch {

enum class RoleKind {
  learner,  ///< trains
  engine,   ///< generates
  service,  ///< helps while they do
  task,     ///< prepares something: the next stage starts when it has exited with 0
};
BOOST_DESCRIBE_ENUM(RoleKind, learner, engine, service, task)
/// It trains or generates, with the libraries that nlaunch takes care of.
constexpr bool computes(RoleKind kind) {
  return kind == RoleKind::learner || kind == RoleKind::engine;
}

enum class Rendezvous { none, torch };
BOOST_DESCRIBE_ENUM(Rendezvous, torch, none)

/// What starts a rank for each GPU of a process.
enum class Launcher { torchrun, accelerate };
BOOST_DESCRIBE_ENUM(Launcher, torchrun, accelerate)

enum class PreloadScope {
  process,  ///< the role's program alone
  tree,     ///< the program and all that it starts
};
BOOST_DESCRIBE_ENUM(PreloadScope, process, tree)

enum class Backend { nccl, gloo };
BOOST_DESCRIBE_ENUM(Backend, nccl, gloo)

/// How weights get from the learners to the engines.
enum class SyncBackend {
  nccl,  ///< in a group of NCCL's ranks
  gloo,  ///< in a group over TCP
  ipc,   ///< on the GPU that a learner and an engine share: CUDA IPC
  disk,  ///< in files that both see
  nixl,  ///< from memory to memory, by NIXL
  none,  ///< not while they run
};
BOOST_DESCRIBE_ENUM(SyncBackend, nccl, gloo, ipc, disk, nixl, none)
/// What its ranks talk through; nothing where they make no group.
constexpr std::optional<Backend> communicator_of(SyncBackend backend) {
  if (backend == SyncBackend::nccl) return Backend::nccl;
  if (backend == SyncBackend::gloo) return Backend::gloo;
  return std::nullopt;
}

/// A server whose health path nlaunch knows.
enum class ReadyServer { vllm, sglang };
BOOST_DESCRIBE_ENUM(ReadyServer, vllm, sglang)

/// What some processes have in common where they are kept together.
enum class Closeness {
  node,
  domain,   ///< of NVLink: nodes whose GPUs reach each other over it, as in a rack of NVL72
  switch_,  ///< the one that their network cables end at
};
BOOST_DESCRIBE_ENUM(Closeness, node, domain, switch_)

/// The topology plugin of a Slurm that knows where its nodes are.
enum class SlurmTopology {
  tree,   ///< switches: --switches
  block,  ///< blocks of nodes, each an NVLink domain: --segment
};
BOOST_DESCRIBE_ENUM(SlurmTopology, tree, block)

/// When an operation applies; what is empty always fits. All that is given must fit.
struct Condition {
  std::optional<VersionRange> nodes;            ///< number of nodes, as a version of one part
  std::string gpu;                              ///< glob on the GPU's model
  std::string arch;                             ///< glob on the machine's architecture
  std::optional<RoleKind> kind;                 ///< kind of the role
  std::map<std::string, VersionRange> library;  ///< version of a library of the site, by name
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
  std::optional<Duration> most_backoff{};  ///< up to which it doubles with each restart; nothing: it stays
  std::optional<Duration> within{};        ///< `max` counts those of this time; nothing: all of the run

  /// Before the next start, when so many restarts are counted.
  [[nodiscard]] Duration backoff_after(unsigned restarts) const {
    auto wait = backoff;
    for (unsigned i = 0; i < restarts && most_backoff && wait < *most_backoff; ++i) wait *= 2;
    return most_backoff ? std::min(wait, std::max(backoff, *most_backoff)) : backoff;
  }
};
BOOST_DESCRIBE_STRUCT(Restart, (), (on_failure, max, backoff, most_backoff, within))

/// What the keys of a role say that the plan takes as it is.
struct RoleSettings {
  RoleKind kind = RoleKind::service;
  Rendezvous rendezvous = Rendezvous::none;
  Stop stop;
  Restart restart;
  bool exit_ok = false;  ///< `exit: ok`: ending by itself with 0 is no failure
  bool leave = false;    ///< what a process leaves behind lives until the run ends
  /// `tolerate: {min: N}`: replicas with which the run goes on when others are lost; nothing: none is.
  std::optional<std::uint32_t> tolerate{};
  std::uint32_t standby =
      0;                 ///< replicas that run and are told to nobody until they take the place of others
  bool any_cpu = false;  ///< `cpu_binding: none`: it is not bound to the CPUs near its GPUs
};

/// What happens when the walltime comes near.
struct Walltime {
  int signal = 15;  ///< to learners
  Duration before = std::chrono::minutes(10);
  enum class Then { stop, requeue, chain };
  BOOST_DESCRIBE_NESTED_ENUM(Then, stop, requeue, chain)
  Then then = Then::stop;
  std::uint32_t max = 30;                           ///< jobs of a chain
  Duration min_runtime = std::chrono::minutes(15);  ///< a run that fails sooner is not continued
};
BOOST_DESCRIBE_STRUCT(Walltime, (), (signal, before, then, max, min_runtime))

/// What is done when a run makes no progress any more.
enum class OnStall {
  warn,
  dump,     ///< evidence is collected, and the run goes on
  abort,    ///< evidence, then the end
  restart,  ///< evidence, then another attempt, as after a failure
};
BOOST_DESCRIBE_ENUM(OnStall, warn, dump, abort, restart)

enum class PreflightLevel {
  quick,     ///< no CUDA context
  standard,  ///< also the interpreters, and the plan's groups
  deep,      ///< also what takes a minute: every pair of GPUs, all sizes, arithmetic under load
};
BOOST_DESCRIBE_ENUM(PreflightLevel, quick, standard, deep)

enum class AuditMode { report, enforce };
BOOST_DESCRIBE_ENUM(AuditMode, report, enforce)

/// What a signal to nlaunch does.
struct SignalRule {
  enum class Action { stop, ignore, forward };
  BOOST_DESCRIBE_NESTED_ENUM(Action, stop, ignore, forward)
  Action action = Action::stop;
  std::vector<std::string> roles;  ///< forward: to these; empty: to all
};
BOOST_DESCRIBE_STRUCT(SignalRule, (), (action, roles))

/// How urgent a job of Beaker is.
enum class BeakerPriority { low, normal, high, urgent, immediate };
BOOST_DESCRIBE_ENUM(BeakerPriority, low, normal, high, urgent, immediate)

/// Of its word; `standard` for any other.
constexpr PreflightLevel level_of(std::string_view word) {
  return value_of<PreflightLevel>(word).value_or(PreflightLevel::standard);
}

}  // namespace nlaunch

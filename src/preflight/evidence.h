#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "plan/bound.h"
#include "plan/plan.h"
#include "preflight/preflight.h"

/// What the checks are given: everything that was found, as values. A check is a pure function of these.
namespace nlaunch::preflight {

struct GpuFact {
  std::string bus_id;  ///< with its whole PCI domain: "00000009:01:00.0"
  std::string uuid;
  std::string name;
  std::uint64_t memory_total = 0;  ///< bytes
  std::uint64_t memory_used = 0;
};

/// Of this machine, by `nlaunch-probe facts`.
struct MachineFacts {
  std::string error;  ///< why there are none
  std::string hostname;
  std::string arch;
  std::string driver;
  std::string nvml_error;
  std::vector<GpuFact> gpus;             ///< in order of bus ids
  std::optional<std::uint64_t> memlock;  ///< bytes; nothing: unlimited
  std::optional<std::uint64_t> nofile;
  std::optional<std::uint64_t> shm_free;  ///< bytes; nothing: there is no /dev/shm
};

/// The libnccl of one role.
struct LibraryFact {
  std::string path;
  std::string version;  ///< "2.28.9"; empty where it could not be loaded
  std::string by;       ///< what selects it: "preload", "VLLM_NCCL_SO_PATH", ...
  std::string error;
};

struct PortFact {
  std::string process;
  std::uint16_t port = 0;
  std::string error;  ///< empty: free
};
struct FolderFact {
  std::string what;  ///< "run directory", "scratch"
  std::string path;
  std::uint64_t free = 0;  ///< bytes for this user
  std::string error;
};

/// One GPU (or CPU slot) of one process: what one probe stands for.
struct Rank {
  std::uint32_t process = 0;  ///< index into Plan::processes
  std::uint16_t gpu = 0;
  std::uint32_t node = 0;           ///< index of its node
  std::size_t bound = 0;            ///< index into its node's BoundNode::processes
  std::string subject;              ///< "learner rank 1 (GPU 1)"; of several nodes "(node3 GPU 1)"
  int device = -1;                  ///< CUDA ordinal in the process's environment; -1: CPU slot
  LibraryFact library{};            ///< its role's on its node, where it uses a GPU
  std::vector<std::string> slow{};  ///< "NCCL_P2P_DISABLE=1": settings that take a transport away
};

/// Of one node: what the checks of a machine are given.
struct NodeEvidence {
  const plan::Plan& plan;
  const plan::BoundNode& node;
  MachineFacts machine{};
  std::map<std::uint32_t, LibraryFact> libraries{};  ///< by role, for roles that use GPUs here
  std::vector<PortFact> ports{};
  std::vector<FolderFact> folders{};
  std::vector<Rank> ranks{};  ///< those of this node

  [[nodiscard]] bool has_gpus() const { return !node.gpus.empty(); }
  [[nodiscard]] const plan::Role& role_of(const Rank& rank) const {
    return plan.role_of(plan.processes[rank.process]);
  }
  /// The value of a variable in the environment of the rank's process, or nothing.
  [[nodiscard]] std::optional<std::string> variable(const Rank& rank, const std::string& name) const;
};

/// A group of the plan as the probes will try it.
struct GroupTrial {
  std::string name;
  plan::GroupKind kind = plan::GroupKind::node;
  Backend backend = Backend::nccl;
  std::vector<std::size_t> members;  ///< indices into Evidence::ranks
  std::vector<std::uint64_t> sizes;
  bool transport = false;
  std::string not_run;  ///< why it is not tried; empty: it is

  [[nodiscard]] const char* op() const {
    return kind == plan::GroupKind::weight_sync ? "broadcast" : "all_reduce";
  }
};

struct Identity {
  std::string host_id;  ///< what NCCL takes for the host
  std::string host_id_source;
  std::string visible_devices;
  int device = -1;
  std::string bus_id;  ///< as CUDA says it; empty for a CPU slot
  std::string uuid;
  std::string nvml_uuid;  ///< that NVML gives this bus id; empty where it could not be asked
};

struct SizeResult {
  std::uint64_t bytes = 0;
  std::uint64_t elements = 0;
  std::uint64_t wrong = 0;
  std::uint64_t first_wrong = 0;
  std::uint32_t expected = 0;
  std::uint32_t found = 0;
  int missing = -1;  ///< index into GroupTrial::members
  double seconds = 0;
  double busbw = 0;
};

struct PairTransport {
  std::size_t from = 0;  ///< index into GroupTrial::members
  std::size_t to = 0;
  std::string via;
};

/// How far one rank came with one group.
struct Progress {
  bool joining = false;
  bool joined = false;
  std::vector<SizeResult> results;
  std::string network;
  std::vector<PairTransport> pairs;
  std::string transport_error;
};

struct ProbeError {
  std::string phase;  ///< "identity", "join", "collective"
  std::string group;
  std::string kind;  ///< "unavailable", "failed", "deadline"
  std::string text;
};

/// What one probe said.
struct RankReport {
  std::optional<Identity> identity;
  std::map<std::string, Progress> groups;  ///< by the group's name
  std::vector<ProbeError> errors;
  bool done = false;
  std::string end;    ///< how it ended by itself without being done: "was killed by SIGSEGV; ..."
  std::string stuck;  ///< state in which it survived SIGKILL; empty: it was reaped
};

/// Of the whole job: what the checks of ranks and groups are given.
struct Evidence {
  const plan::Plan& plan;
  std::vector<std::string> hosts{};  ///< names of the nodes; empty where there is only this machine
  Deadlines deadlines{};
  std::vector<Rank> ranks{};
  std::vector<GroupTrial> groups{};
  std::vector<RankReport> reports{};  ///< one for each rank once the probes have run
  bool went = false;                  ///< the identities were fit, and the ranks were told to go on

  [[nodiscard]] const plan::Role& role_of(const Rank& rank) const {
    return plan.role_of(plan.processes[rank.process]);
  }
  /// The nodes of some ranks, each once, in the order of the ranks; none where there is only this machine.
  [[nodiscard]] std::vector<std::string> hosts_of(const std::vector<std::size_t>& ranks) const;
};

/// "20 s", "1.5 s".
std::string seconds_text(Duration duration);
/// "8 B", "22118400 B", "128MiB": a message's size, exact.
std::string message_text(std::uint64_t bytes);
/// "95.1 µs", "2.24 ms".
std::string time_text(double seconds);

}  // namespace nlaunch::preflight

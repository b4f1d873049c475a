#pragma once
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/collective.h"
#include "base/drill.h"
#include "plan/bound.h"
#include "plan/plan.h"
#include "preflight/nixl_transfer.h"
#include "preflight/preflight.h"
#include "preflight/shared_folder.h"

/// The input of the checks: everything that was found, as values. A check is a pure function of these.
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
  std::string cuda_driver;  ///< "13.0", the newest CUDA that the driver supports
  std::string nvml_error;
  bool no_driver = false;                ///< with nvml_error: this machine has none, like one without GPUs
  std::vector<GpuFact> gpus;             ///< in order of bus ids
  std::optional<std::uint64_t> memlock;  ///< bytes; nothing: unlimited
  std::optional<std::uint64_t> nofile;
  std::optional<std::uint64_t> nproc;
  std::optional<std::uint64_t> core;      ///< bytes
  std::optional<std::uint64_t> shm_free;  ///< bytes; nothing: there is no /dev/shm
  std::string userfaultfd;  ///< that this user can open: "all", "user mode", "none"; empty: unknown
};

/// The libnccl of one role.
struct LibraryFact {
  std::string path;
  std::string version;  ///< "2.28.9"; empty where it could not be loaded
  std::string by;       ///< what selects it: "preload", "VLLM_NCCL_SO_PATH", ...
  std::string error;
};

/// The Python of one role.
struct RolePython {
  std::string path;    ///< empty: there is none
  bool named = false;  ///< its command runs it; else it is the first on PATH, which it may use
};

struct PortFact {
  std::string process;
  std::uint16_t port = 0;
  std::string error;     ///< empty: free
  bool sure = true;      ///< the process listens there
  std::string holder{};  ///< who listens there now: "server.py (pid 4711, user alice)"; empty: nobody is seen
  std::string remedy{};  ///< what frees the port
};
/// A directory that the run will use; nlaunch-probe checks it ("folder/PATH").
struct Folder {
  std::string what;  ///< "run directory", "scratch", "learner's workdir"
  std::string path;
  enum class Use {
    look,   ///< it must exist
    write,  ///< and be writable
    fill,   ///< and have room for the run's files
  };
  Use use = Use::fill;
};

/// One GPU (or CPU slot) of one process: the subject of one probe.
struct Rank {
  std::uint32_t process = 0;  ///< index into Plan::processes
  std::uint16_t gpu = 0;
  std::uint32_t node = 0;           ///< index of its node
  std::size_t bound = 0;            ///< index into its node's BoundNode::processes
  std::string subject;              ///< "learner rank 1 (GPU 1)"; of several nodes "(node3 GPU 1)"
  int device = -1;                  ///< CUDA ordinal in the process's environment; -1: CPU slot
  LibraryFact library{};            ///< its role's on its node, if it uses a GPU
  std::vector<std::string> slow{};  ///< "NCCL_P2P_DISABLE=1": settings that disable a transport
  std::string no_probe{};           ///< why it cannot have one: its container; empty: it can
};

/// The answer of nlaunch-probe to a question about the machine.
struct Answer {
  nlohmann::json said;  ///< null: there is none
  std::string error;    ///< why not: "nlaunch-probe gpu-health did not answer within 5 s"
};
using Answers = std::map<std::string, Answer, std::less<>>;

/// What GPUs of one model must find equal, bit by bit: the hash of a result.
struct Fingerprint {
  std::uint32_t node = 0;  ///< index of its node
  std::string gpu;         ///< "GPU 0"
  std::string model;
  std::string value;
};

/// For one node: the input of the checks of a machine.
struct NodeObservations {
  const plan::Plan& plan;
  const plan::BoundNode& node;
  std::string address{};  ///< the address of this node for other nodes; empty: this machine is the only one
  MachineFacts machine{};
  std::map<std::uint32_t, RolePython> pythons{};     ///< by role, for those that are expected to have one
  std::map<std::uint32_t, LibraryFact> libraries{};  ///< by role, for roles that use GPUs here
  std::vector<PortFact> ports{};
  std::vector<std::string> interfaces{};  ///< names of network interfaces; empty: unknown
  std::vector<Folder> folders{};
  std::vector<SharedFolder> shared_folders{};
  std::vector<NixlTransfer> nixl{};
  std::vector<Rank> ranks{};  ///< those of this node
  Answers answers{};  ///< by the inquiry's name; for a role "NAME/ROLE". Questions that were not asked are
                      ///< missing

  /// The answer with that name; null if it was not asked.
  [[nodiscard]] const Answer* answer(std::string_view name) const {
    const auto found = answers.find(name);
    return found == answers.end() ? nullptr : &found->second;
  }
  [[nodiscard]] bool has_gpus() const { return !node.gpus.empty(); }
  /// The plan's description of this node. Its `count` is that of the node's pool.
  [[nodiscard]] const plan::Node& planned() const;
  /// The plan is of this machine's parts and not of an experiment: only what the profile says about a node
  /// counts.
  [[nodiscard]] bool for_the_machine() const;
  /// The first process of each role on this machine, by role.
  [[nodiscard]] std::map<std::uint32_t, const plan::BoundProcess*> first_of_roles() const;
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
  std::vector<Workload> workloads{};
  bool neighbours = false;       ///< each rank sends to the next one, instead of the group's own operation
  std::optional<Drill> drill{};  ///< instead of sizes and workloads

  [[nodiscard]] Collective op() const {
    if (neighbours) return Collective::send_recv;
    return kind == plan::GroupKind::weight_sync ? Collective::broadcast : Collective::all_reduce;
  }
  /// Its operation as a name for rows.
  [[nodiscard]] std::string op_name() const { return std::string(name_of(op())); }
};

struct Identity {
  std::string host_id;  ///< what NCCL uses as the host identity
  std::string host_id_source;
  std::string visible_devices;
  int device = -1;
  std::string bus_id;  ///< as CUDA reports it; empty for a CPU slot
  std::string uuid;
  std::string nvml_uuid;  ///< that NVML reports for this bus id; empty if NVML could not be queried
  std::string domain{};   ///< of NVLink, across nodes; empty: the fabric is local to the node, or unknown
  std::uint64_t free_bytes = 0;  ///< of the GPU's memory, once this probe has its context
};

struct SizeResult {
  std::uint64_t bytes = 0;
  std::uint64_t elements = 0;
  std::uint64_t wrong = 0;
  std::uint64_t first_wrong = 0;
  std::uint32_t expected = 0;
  std::uint32_t found = 0;
  int rank = -1;  ///< index into GroupTrial::members: whose contribution is wrong; -1: not a single rank's
  double seconds = 0;
  double busbw = 0;
  std::string
      fault{};  ///< of its contribution: "missing" or "twice" in a sum, "received": as it came from that rank
};

struct PairTransport {
  std::size_t from = 0;  ///< index into GroupTrial::members
  std::size_t to = 0;
  std::string via;
};

/// What one rank reports about a workload that it has completed.
struct WorkloadResult {
  std::string workload;
  std::uint64_t wrong = 0;      ///< elements, when each of its operations was checked before
  std::vector<double> seconds;  ///< of each step
};

/// What NCCL chose for an operation, according to its log.
struct Choice {
  Collective op = Collective::all_reduce;
  std::uint64_t bytes = 0;
  std::string algorithm;
  std::string protocol;
  std::uint32_t channels = 0;  ///< 0: not logged
};

/// What a rank saw in a drill.
struct DrillSeen {
  enum class End {
    completed,
    waiting,  ///< still, at the deadline
    blocked,  ///< a call did not return
    failed,
  };
  End end = End::waiting;
  std::uint64_t launched = 0;  ///< operations
  std::string text;            ///< of the library, if it printed one
  std::uint64_t wrong = 0;     ///< elements, if it completed
  double seconds = 0;
};

/// How far one rank got with one group.
struct Progress {
  bool joining = false;
  bool joined = false;
  std::vector<SizeResult> results;
  std::vector<WorkloadResult> workloads;
  std::vector<Choice> choices;
  std::string network;
  std::vector<PairTransport> pairs;
  std::string transport_error;
  std::optional<DrillSeen> drill;
};

struct ProbeError {
  std::string phase;  ///< "identity", "join", "collective"
  std::string group;
  std::string kind;  ///< "unavailable", "failed", "deadline"
  std::string text;
};

/// The report of one probe.
struct RankReport {
  std::optional<Identity> identity;
  std::map<std::string, Progress> groups;  ///< by the group's name
  std::vector<ProbeError> errors;
  bool done = false;
  std::string end;    ///< how it exited by itself without being done: "was killed by SIGSEGV; ..."
  std::string stuck;  ///< the state in which it survived SIGKILL; empty: it was reaped
};

/// A node's clock compared with the leader's.
struct ClockOffset {
  double seconds = 0;     ///< ahead
  double round_trip = 0;  ///< of the message that reported it; the error of the offset is at most half of it
};

/// For the whole job: the input of the checks of ranks and groups.
struct Observations {
  const plan::Plan& plan;
  std::vector<std::string> hosts{};  ///< names of the nodes; empty if this machine is the only one
  std::vector<std::optional<ClockOffset>> clocks{};  ///< by node; empty if this machine is the only one
  Deadlines deadlines{};
  std::vector<Rank> ranks{};
  std::vector<GroupTrial> groups{};
  std::vector<RankReport> reports{};  ///< one per rank once the probes have run
  std::vector<Fingerprint> fingerprints{};
  bool went = false;  ///< the identities were fit, and the ranks were told to continue
  PreflightLevel level = PreflightLevel::standard;
  bool apart = false;             ///< the groups have no rank in common, and none waits for another
  std::vector<Figure> figures{};  ///< of all nodes
  std::vector<NodeSummary> nodes{};

  [[nodiscard]] const plan::Role& role_of(const Rank& rank) const {
    return plan.role_of(plan.processes[rank.process]);
  }
  /// The nodes of some ranks, without duplicates, in rank order; none if this machine is the only one.
  [[nodiscard]] std::vector<std::string> hosts_of(const std::vector<std::size_t>& ranks) const;
  [[nodiscard]] bool crosses_nodes(const GroupTrial& group) const;
  /// The node of a group that is within one node; none for one that crosses nodes.
  [[nodiscard]] std::vector<std::string> host_of(const GroupTrial& group) const;
};

/// The value of a variable in a process's environment, or nothing.
std::optional<std::string> variable_of(const plan::BoundProcess& process, std::string_view name);
/// "20 s", "1.5 s".
std::string seconds_text(Duration duration);
/// "8 B", "22118400 B", "128MiB": a message's size, exact.
std::string message_text(std::uint64_t bytes);
/// "1.5 GiB": for people to compare, not to compute with.
std::string size_text(std::uint64_t bytes);
/// "95.1 µs", "2.24 ms".
std::string time_text(double seconds);
/// "40 s", "12 min", "3 h", "9 days".
std::string age_text(double seconds);

}  // namespace nlaunch::preflight

#pragma once
#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/collective.h"
#include "base/units.h"
#include "base/words.h"

/// The plan: a value, made before anything starts, complete as far as a login node can know it. Texts may
/// hold `${...}` references to what only a node knows; launch/ resolves them. Everything above this layer
/// reads the plan and nothing that it was made from. A list of members below a structure is what plan.json
/// has of it, in that order.
namespace nlaunch::plan {

using nlaunch::name_of;

/// Where in the order of precedence an operation stands: later wins.
enum class Layer { inherited, modules, site, venv, experiment, role, overlay, command_line, nlaunch };
BOOST_DESCRIBE_ENUM(Layer, inherited, modules, site, venv, experiment, role, overlay, command_line, nlaunch)
std::string_view name_of(Layer layer);

/// One change to an environment, with the place where it was asked for.
struct EnvOp {
  enum class Kind {
    set,
    unset,
    prepend,  ///< in front of what is there, with a colon between
    append,
    fallback,  ///< set where nobody else has
  };
  BOOST_DESCRIBE_NESTED_ENUM(Kind, set, unset, prepend, append, fallback)
  Kind kind = Kind::set;
  std::string name;
  std::string value;  ///< may hold references; empty for unset
  Layer layer = Layer::role;
  std::string origin;  ///< "grpo.yaml:12:5", "--env learner:A=1", "nlaunch"
  Condition when;
  bool masked = false;  ///< read back from a saved plan that keeps no value that looks like a secret
};

/// When a process counts as ready; exactly one way, or none: ready once started.
struct Ready {
  std::string http;                             ///< URL that answers 2xx
  std::string tcp;                              ///< "HOST:PORT" that accepts a connection
  std::string log;                              ///< regular expression on a line of its output
  std::string file;                             ///< path that exists
  std::vector<std::string> exec;                ///< program that ends with 0
  std::optional<Duration> delay;                ///< time after the start
  bool exited = false;                          ///< it has exited with 0; any other end is a failure
  Duration timeout = std::chrono::minutes(10);  ///< 0: none, as `exited` has it where nobody gives one
  [[nodiscard]] bool given() const {
    return !http.empty() || !tcp.empty() || !log.empty() || !file.empty() || !exec.empty() ||
           delay.has_value() || exited;
  }
};
BOOST_DESCRIBE_STRUCT(Ready, (), (http, tcp, log, file, exec, delay, exited, timeout))

/// How it is found that a process which was ready does not answer any more.
struct Alive {
  std::string http;               ///< URL that answers 2xx
  std::string tcp;                ///< "HOST:PORT" that accepts a connection
  std::vector<std::string> exec;  ///< program that ends with 0
  Duration every = std::chrono::seconds(10);
  Duration timeout = std::chrono::seconds(10);  ///< of one look
  unsigned failures = 3;                        ///< one after the other
  Duration after{};                             ///< from when it is ready to the first look
};
BOOST_DESCRIBE_STRUCT(Alive, (), (http, tcp, exec, every, timeout, failures, after))

/// How it is found that a server answers and does nothing.
struct Throughput {
  std::string metrics;  ///< URL of what Prometheus would read
  std::string counter;  ///< grows with what it does: "vllm:generation_tokens_total"
  std::string busy;     ///< above 0 while it has something to do: "vllm:num_requests_running"
  Duration every = std::chrono::seconds(10);
  Duration within = std::chrono::seconds(60);  ///< it has to grow once while it is busy
};
BOOST_DESCRIBE_STRUCT(Throughput, (), (metrics, counter, busy, every, within))

/// How one that has started again shows that it has the weights of now; until then it is stale.
struct Fresh {
  std::string http;  ///< URL that answers 2xx
  std::string log;   ///< regular expression on a line of its output since that start
};
BOOST_DESCRIBE_STRUCT(Fresh, (), (http, log))

/// How a process is told that it has changed which replicas of these roles can be addressed.
struct OnChange {
  std::vector<std::string> of;    ///< roles
  int signal = 0;                 ///< to the process alone; 0: none
  std::string post;               ///< URL that is sent a JSON object
  std::vector<std::string> exec;  ///< program, with NLAUNCH_CHANGE_* in its environment
};
BOOST_DESCRIBE_STRUCT(OnChange, (), (of, signal, post, exec))

/// A unit of several processes of a role, which is ready when the first of them is, and fails and starts
/// again as one.
struct Replica {
  std::uint32_t nodes = 1;
  std::uint32_t per_node = 1;  ///< processes on each of them
  [[nodiscard]] std::uint32_t size() const { return nodes * per_node; }
};
BOOST_DESCRIBE_STRUCT(Replica, (), (nodes, per_node))

/// Which processes of a role have a place in common: those of a replica; without replicas those on `nodes`
/// nodes that follow each other, or all.
struct KeepTogether {
  Closeness within = Closeness::node;
  std::optional<std::uint32_t> nodes;  ///< nothing: all that the role or the replica is on
  std::string origin;                  ///< where it was asked for
};
BOOST_DESCRIBE_STRUCT(KeepTogether, (), (within, nodes, origin))

struct Role : RoleSettings {
  std::string name;
  std::vector<std::string> command;  ///< empty for a role that another one spawns
  std::string command_origin;        ///< where it was asked for
  std::vector<std::string> wrapper;  ///< in front of the command, as it was asked for; see container.h
  std::string wrapper_origin;
  std::optional<Launcher> launcher;  ///< in front of the command: it starts a rank for each GPU of a process
  std::string workdir;               ///< absolute; ${run.dir} and ${node.scratch} may stand in front
  std::string workdir_origin;        ///< where it was asked for; empty: the experiment file's own folder
  std::string venv;                  ///< absolute, or empty
  std::uint32_t count = 0;           ///< processes in the whole job
  std::optional<Replica> replica;    ///< a process's index counts through one replica after the other
  std::optional<KeepTogether> keep_together;
  std::vector<std::string> pools;            ///< on whose nodes they may be; empty: all
  std::uint32_t gpus = 0;                    ///< for each process
  std::vector<std::string> share_gpus_with;  ///< roles on whose GPUs its processes are, at the same time
  std::optional<double> gpu_memory;   ///< share of the memory of each of its GPUs that a process may use
  std::uint16_t rendezvous_port = 0;  ///< on the node of process 0; as wished, see Process::ports
  std::vector<std::string> ports;     ///< names; a process's numbers stand in the same order
  std::vector<std::string> preload;   ///< names of libraries
  PreloadScope scope = PreloadScope::process;
  std::vector<EnvOp> env;  ///< all layers above `modules`, lowest first
  Ready ready;
  std::optional<Alive> alive;
  std::optional<Throughput> throughput;
  std::optional<Fresh> fresh;
  std::optional<OnChange> on_change;
  bool ends_run = false;  ///< the run ends well when all such processes have exited 0
  std::vector<std::string> spawned_by;
  std::string classify;   ///< glob on the command line of a spawned process
  std::string heartbeat;  ///< file of each process whose new time is progress; may hold references
};
BOOST_DESCRIBE_STRUCT(Role, (),
                      (name, kind, command, command_origin, workdir, workdir_origin, venv, count, replica,
                       keep_together, pools, gpus, any_cpu, share_gpus_with, gpu_memory, rendezvous,
                       rendezvous_port, ports, preload, scope, ready, alive, throughput, fresh, on_change,
                       heartbeat, stop, restart, tolerate, standby, ends_run, exit_ok, leave, spawned_by,
                       classify, wrapper, wrapper_origin, launcher, env))

/// Processes in a replica of the role; 1 where it has none.
inline std::uint32_t replica_size(const Role& role) {
  return role.replica ? role.replica->size() : 1;
}
/// Replicas of the role: its processes, where each stands for itself.
inline std::uint32_t replicas(const Role& role) {
  return role.count / replica_size(role);
}
/// Those that others are told of at the beginning: the first of them, without those that stand by.
inline std::uint32_t active_replicas(const Role& role) {
  return replicas(role) - std::min(role.standby, replicas(role));
}

/// A process of the role starts ranks of its own, a launcher's, and is a node to them.
inline bool makes_ranks(const Role& role) {
  return role.gpus > 1 || role.launcher.has_value();
}

/// One instance of a role. Holds only what differs from its siblings.
struct Process {
  std::uint32_t role = 0;   ///< index into Plan::roles
  std::uint32_t index = 0;  ///< within the role
  std::int32_t rank = -1;   ///< where the role has a rendezvous
  std::uint32_t node = 0;
  std::uint32_t local_rank = 0;  ///< among the role's processes on its node
  std::uint32_t local_size = 1;
  std::uint32_t node_rank = 0;       ///< of the node among the nodes that the role is on
  std::vector<std::uint16_t> gpus;   ///< of its node, counted from 0
  std::vector<std::uint16_t> ports;  ///< as wished; the node may move a port that is taken
};

enum class GroupKind { node, world, tensor_parallel, weight_sync };
BOOST_DESCRIBE_ENUM(GroupKind, node, world, tensor_parallel, weight_sync)
std::string_view name_of(GroupKind kind);

/// One GPU of one process: what one rank of a communicator drives.
struct Member {
  std::uint32_t process = 0;  ///< index into Plan::processes
  std::uint16_t gpu = 0;      ///< of the process's node
};

/// The ranks that talk through one communicator, in rank order.
struct Group {
  std::string name;  ///< "learner world", "engine.0 tensor parallel", "weight sync", "node 0"
  GroupKind kind = GroupKind::node;
  Backend backend = Backend::nccl;
  std::vector<Member> members;
};

struct GpuRef {
  std::uint32_t node = 0;
  std::uint16_t gpu = 0;
};

/// A shared object that the site names.
struct Library {
  std::string path;  ///< a glob that must fit exactly one file; may hold references
  std::optional<VersionRange> version;
  std::string origin;
};
BOOST_DESCRIBE_STRUCT(Library, (), (path, version, origin))

/// Environment modules and shell files, loaded once a node in a shell of their own.
struct Modules {
  std::string init;  ///< shell file that defines `module`; empty: the usual places
  bool reset = false;
  std::vector<std::string> load;
  std::string origin;
  std::vector<std::pair<std::string, std::string>> set{};  ///< variables that the files below read
  std::vector<std::string> source{};                       ///< shell files, before any module
  std::vector<std::string> use{};  ///< folders of modulefiles: `module use`, after the reset
  [[nodiscard]] bool loads() const { return reset || !use.empty() || !load.empty(); }
  [[nodiscard]] bool any() const { return loads() || !source.empty() || !set.empty(); }
};
BOOST_DESCRIBE_STRUCT(Modules, (), (init, reset, use, load, set, source, origin))

/// Where a secret comes from. Its value is in no plan.
struct Secret {
  enum class Source { env, file, netrc };
  BOOST_DESCRIBE_NESTED_ENUM(Source, env, file, netrc)
  std::string name;  ///< the variable that it becomes
  Source source = Source::env;
  std::string from;  ///< env: the variable; file: the path; netrc: the machine
  std::string origin;
};
BOOST_DESCRIBE_STRUCT(Secret, (), (name, source, from, origin))

/// One way of the weights to the engines.
struct WeightSync {
  std::string name{};  ///< of one of several; empty: the only one
  SyncBackend backend = SyncBackend::nccl;
  std::uint32_t world_size = 0;  ///< ranks of its group; 0: there is none
  std::uint16_t port = 0;        ///< on the node where it meets
  /// Who is in it, in rank order: a role, with all GPUs of its processes, or "learner.0", a process: a
  /// learner's with its first GPU, an engine's with all. Empty: learner 0, and then the engines.
  std::vector<std::string> order{};
  std::string master{};  ///< the process on whose node it meets; empty: the first in the order
  std::string path{};    ///< of `disk`: the folder; may hold references
};
BOOST_DESCRIBE_STRUCT(WeightSync, (), (name, backend, world_size, port, order, master, path))

/// A figure below which a measurement fails, where its conditions fit.
struct Expectation {
  std::optional<std::uint32_t> gpus_per_node;  ///< ranks of the group on each node
  std::optional<VersionRange> nodes;
  std::uint64_t size = 0;  ///< bytes of the message
  double min = 0;          ///< bus bandwidth, bytes/s
  std::string origin;
  double limit = 0;  ///< what the links can carry, bytes/s; 0: not said
};

struct Expected {
  std::vector<Expectation> all_reduce_busbw;
  std::vector<std::string> bus_ids;  ///< of each node's GPUs, as the site says; may be empty
  std::string intra_node;            ///< transport within a node: "P2P", "SHM", "NET/..."; empty: not judged
  std::string inter_node;            ///< between nodes
};
BOOST_DESCRIBE_STRUCT(Expected, (), (bus_ids, intra_node, inter_node, all_reduce_busbw))

struct Preflight {
  PreflightLevel level = PreflightLevel::standard;
  bool strict = false;  ///< stop after *unknown* too
};
BOOST_DESCRIBE_STRUCT(Preflight, (), (level, strict))

struct Node {
  std::uint32_t count = 1;
  std::uint32_t gpus = 0;       ///< on each node
  std::uint32_t cpus = 0;       ///< on each node, as the profile says; 0: not said
  bool cpu_slots = false;       ///< `gpus` counts CPU slots: there is no GPU
  std::string gpu_model;        ///< as the profile or the machine says; may be empty
  std::string arch;             ///< "x86_64", "aarch64"
  std::string interface;        ///< prefix of the network interface that carries the job; may be empty
  std::string nic_kind;         ///< "cxi", "ib", "efa", ...; may be empty
  std::uint32_t nic_count = 0;  ///< of that kind on each node; 0: not said
  std::string scratch;          ///< folder on the node's own disk
};
BOOST_DESCRIBE_STRUCT(Node, (),
                      (count, gpus, cpus, cpu_slots, gpu_model, arch, interface, nic_kind, nic_count,
                       scratch))

/// Where the site's nodes and their parts stand, as far as its profile says.
struct Topology {
  std::optional<SlurmTopology> slurm;         ///< what Slurm knows of it; nothing: it is not asked
  std::optional<std::uint32_t> domain_nodes;  ///< in an NVLink domain
  std::optional<std::uint32_t> switch_nodes;  ///< at a switch
  std::vector<std::uint32_t> numa;            ///< the NUMA node of each GPU; may be empty
  std::vector<std::string> nics;              ///< the NIC nearest to each GPU; may be empty
};
BOOST_DESCRIBE_STRUCT(Topology, (), (slurm, domain_nodes, switch_nodes, numa, nics))

/// The nodes of a pool are borrowed: each is a job of its own, which may come late and be taken away.
struct Elastic {
  std::uint32_t min = 0;  ///< so many are at work before the stage after them starts
};
BOOST_DESCRIBE_STRUCT(Elastic, (), (min))

/// A range of the run's nodes, which are alike.
struct Pool {
  std::string name;
  std::uint32_t first = 0;  ///< the others follow: `node.count` in all
  Node node;
  std::optional<Elastic> elastic{};  ///< nothing: they are of the run's own job
};
BOOST_DESCRIBE_STRUCT(Pool, (), (name, first, node, elastic))

/// A long option of a submit command, without its dashes.
struct Directive {
  std::string name;
  std::string value;  ///< empty: a flag
  std::string origin;
};
BOOST_DESCRIBE_STRUCT(Directive, (), (name, value, origin))

/// One part of a heterogeneous job: the nodes of pools that are asked for in the same way.
struct SlurmComponent {
  std::vector<std::string> pools;
  std::uint32_t nodes = 0;   ///< of the plan
  std::uint32_t spares = 0;  ///< besides
  std::vector<Directive> directives;
};
BOOST_DESCRIBE_STRUCT(SlurmComponent, (), (pools, nodes, spares, directives))

/// What Slurm is told; empty under another scheduler.
struct Slurm {
  std::vector<Directive> directives;  ///< of the site, the experiment's over them
  std::vector<std::string> submit;    ///< programs; the first on PATH submits
  std::vector<std::string> srun;      ///< further options of every step
  std::string template_file;          ///< of the batch script, absolute; empty: nlaunch's own
  std::uint32_t spares = 0;           ///< nodes of the job that the plan does not need
  std::string bad_nodes;              ///< the site's ledger; empty: none
  Duration bad_nodes_ttl{};
  std::vector<SlurmComponent> components{};  ///< of a heterogeneous job, in its order; empty: one for all
  std::vector<SlurmComponent> borrowed{};    ///< a job for each of these nodes, of one elastic pool each
};
BOOST_DESCRIBE_STRUCT(Slurm, (),
                      (directives, components, borrowed, submit, srun, template_file, spares, bad_nodes,
                       bad_nodes_ttl))

/// A folder of the container, and where Beaker takes it from.
struct BeakerMount {
  std::string path;
  std::string kind;      ///< "beaker", "weka", "host", "secret" or "result"
  std::string source;    ///< its name there
  std::string sub_path;  ///< empty: all of it
};
BOOST_DESCRIBE_STRUCT(BeakerMount, (), (path, kind, source, sub_path))

/// A variable of the container that Beaker fills from a secret of the workspace.
struct BeakerSecret {
  std::string name;
  std::string secret;
};
BOOST_DESCRIBE_STRUCT(BeakerSecret, (), (name, secret))

/// What Beaker is told; empty under another scheduler. An empty text is left to Beaker.
struct Beaker {
  std::vector<std::string> submit;  ///< programs; the first on PATH submits
  std::string workspace, budget, description;
  std::string image;  ///< "docker://TAG", else the name of a Beaker image
  std::vector<std::string> cluster, hostname;
  std::string priority;
  std::optional<bool> preemptible, auto_resume;
  std::optional<Duration> min_runtime, timeout;
  Duration start_timeout{};           ///< for all replicas to be there, Beaker's and nlaunch's own
  std::vector<BeakerMount> datasets;  ///< by path
  std::vector<BeakerSecret> secrets;  ///< one for each secret of the plan
  std::string token;                  ///< the secret by which replicas know each other
  std::string program;                ///< nlaunch in the container
  std::string result;                 ///< folder whose files Beaker keeps
  std::string memory, shared_memory;
  bool host_networking = true;
  std::uint16_t port = 0;  ///< on which the leader listens
};
BOOST_DESCRIBE_STRUCT(Beaker, (),
                      (submit, workspace, budget, description, image, cluster, hostname, priority,
                       preemptible, auto_resume, min_runtime, timeout, start_timeout, token, program, result,
                       memory, shared_memory, host_networking, port, datasets, secrets))

/// What Flux is told; empty under another scheduler.
struct Flux {
  std::vector<Directive> directives;  ///< options of flux batch
  std::vector<std::string> submit;    ///< programs; the first on PATH submits
};
BOOST_DESCRIBE_STRUCT(Flux, (), (directives, submit))

/// What `nlaunch bench` times.
struct BenchWorkload {
  Workload work;
  std::vector<std::uint32_t> groups;  ///< indices into Plan::groups
  Targets targets;
  std::string origin;
};
struct Bench {
  std::vector<BenchWorkload> workloads;
  Duration timeout{};  ///< for the ranks to meet, and for the steps of a workload
};

/// A number that the processes print.
struct Metric {
  std::string name;
  std::string pattern;  ///< regular expression; its first group is the number
};
BOOST_DESCRIBE_STRUCT(Metric, (), (name, pattern))

/// What is watched while the run goes on.
struct Watch {
  /// Regular expression. Its groups `step`, `total` and `seconds`; without these names, its first is the step
  /// and its second the step's seconds.
  std::string progress;
  Duration start = std::chrono::minutes(60);  ///< until the first progress: models are loaded
  Duration stall = std::chrono::minutes(10);  ///< without progress
  double slow = 2;                            ///< times the median of the steps before
  OnStall on_stall = OnStall::dump;
  std::vector<Metric> metrics;
};
BOOST_DESCRIBE_STRUCT(Watch, (), (progress, start, stall, slow, on_stall, metrics))

/// Where the learners save, and how it is seen what they have saved.
struct Checkpoint {
  std::string dir;     ///< each checkpoint is a folder in it; ${run.dir} may stand in front; empty: not said
  std::string folder;  ///< regular expression on the whole name of such a folder; its first group is the step
  std::string complete;  ///< a file that a complete one has; empty: see `tracker`
  std::string tracker;   ///< a file of `dir` with the step of the newest complete one; empty: any is complete
  std::string
      partial;        ///< regular expression on the name that a folder has until it is complete; empty: none
  std::string saved;  ///< regular expression on a learner's line; its first group is the path
  Duration wait =
      std::chrono::minutes(2);      ///< at most, for one that is being written, before the learners stop
  std::vector<std::string> resume;  ///< behind the learners' commands where there is one
};
BOOST_DESCRIBE_STRUCT(Checkpoint, (), (dir, folder, complete, tracker, partial, saved, wait, resume))

struct Plan {
  std::string name;
  std::string experiment;  ///< path of the experiment file
  std::string site;
  std::string site_path;            ///< path of the profile, or "built in"
  std::string scheduler = "local";  ///< a name of base/scheduler_traits.h
  Slurm slurm;
  Beaker beaker;
  Flux flux;
  std::optional<Walltime> walltime;
  /// All nodes of the run's own job; with pools, `gpus` is what a node has at most.
  Node node;
  std::vector<Pool> pools;  ///< as the experiment names them, elastic ones last; empty: the nodes are alike
  Topology topology;
  std::vector<Role> roles;
  std::vector<Process> processes;  ///< by role, then index
  std::vector<Group> groups;
  std::vector<GpuRef> idle_gpus;
  std::vector<std::vector<std::uint32_t>>
      stages;  ///< role indices; a stage starts when the one before is ready
  std::map<std::string, Library> libraries;
  Modules modules;
  std::vector<Secret> secrets;
  Backend backend = Backend::nccl;  ///< what the groups talk through that are no weight sync
  std::vector<WeightSync> weight_syncs{WeightSync{}};  ///< one at least
  Expected expected;
  Preflight preflight;
  Bench bench;
  std::optional<Watch> watch;
  AuditMode audit = AuditMode::report;
  std::map<int, SignalRule> signals;
  Restart restart;  ///< of the whole job
  std::optional<Checkpoint> checkpoint;
  Duration leader_grace{};  ///< for how long agents keep what they have without a leader; 0: they end it
  std::vector<std::string> warnings;
  std::vector<std::string> sources;  ///< files that it was made from, absolute
  std::map<std::string, std::string> vars;

  [[nodiscard]] const Role& role_of(const Process& process) const { return roles[process.role]; }
  /// Nodes of the run's own job, and behind them those of the elastic pools.
  [[nodiscard]] std::uint32_t all_nodes() const {
    return pools.empty() ? node.count : pools.back().first + pools.back().node.count;
  }
  /// It is of an elastic pool.
  [[nodiscard]] bool is_borrowed(std::uint32_t index) const;
  /// "rollout.3": a borrowed node, as long as none has come to its place.
  [[nodiscard]] std::string name_of_borrowed(std::uint32_t index) const;
  /// "learner.0"; of replicas "engine.2.1", the second process of the third
  [[nodiscard]] std::string name_of(const Process& process) const;
  [[nodiscard]] const Role* find_role(std::string_view role_name) const;
  /// What the node of that index is like. Its `count` is that of its pool.
  [[nodiscard]] const Node& node_of(std::uint32_t index) const;
  /// The pool that it is of; nullptr where there are none.
  [[nodiscard]] const Pool* pool_of(std::uint32_t index) const;
  /// Of a role: what the nodes are like that its processes are on, the first of them.
  [[nodiscard]] const Node& node_of(const Role& role) const;
};

/// Where a process stands in its replica.
struct InReplica {
  std::uint32_t index = 0;   ///< of the replica
  std::uint32_t rank = 0;    ///< 0: the leader
  std::uint32_t leader = 0;  ///< index of the leader within the role
};
InReplica in_replica(const Role& role, const Process& process);

/// The GPUs that a process may touch: its own, and those of the processes on its node that it spawns.
std::vector<std::uint16_t> gpus_in_reach(const Plan& plan, const Process& process);

}  // namespace nlaunch::plan

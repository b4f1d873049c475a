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

/// The plan: a value, made before anything starts, as complete as a login node can make it. Strings can
/// contain `${...}` references to values that only a node knows; launch/ resolves them. Everything above this
/// layer reads the plan and none of its inputs. The list of members below a structure is what plan.json
/// contains of it, in that order.
namespace nlaunch::plan {

using nlaunch::name_of;

/// The order of precedence of operations: later wins.
enum class Layer { inherited, modules, site, venv, experiment, role, overlay, command_line, nlaunch };
BOOST_DESCRIBE_ENUM(Layer, inherited, modules, site, venv, experiment, role, overlay, command_line, nlaunch)
std::string_view name_of(Layer layer);

/// One change to an environment, with the location of the setting.
struct EnvOp {
  enum class Kind {
    set,
    unset,
    prepend,  ///< in front of the existing value, separated by a colon
    append,
    fallback,  ///< set only if nothing else has set it
  };
  BOOST_DESCRIBE_NESTED_ENUM(Kind, set, unset, prepend, append, fallback)
  Kind kind = Kind::set;
  std::string name;
  std::string value;  ///< can contain references; empty for unset
  Layer layer = Layer::role;
  std::string origin;  ///< "grpo.yaml:12:5", "--env learner:A=1", "nlaunch"
  Condition when;
  bool masked = false;  ///< read from a saved plan, which does not contain values that look like secrets
};

/// When a process is ready; exactly one way, or none: ready once started.
struct Ready {
  std::string http;               ///< URL that returns 2xx
  std::string tcp;                ///< "HOST:PORT" that accepts connections
  std::string log;                ///< regular expression for a line of its output
  std::string file;               ///< path that exists
  std::vector<std::string> exec;  ///< program that exits with code 0
  std::optional<Duration> delay;  ///< time after the start
  bool exited = false;            ///< ready when it has exited with code 0; any other exit is a failure
  Duration timeout = std::chrono::minutes(10);  ///< 0: none, the default for `exited`
  std::optional<ReadyServer> server{};          ///< the server whose health path `http` is
  std::string origin{};                         ///< location of the setting
  std::string timeout_origin{};                 ///< likewise; empty: the default
  [[nodiscard]] bool given() const {
    return !http.empty() || !tcp.empty() || !log.empty() || !file.empty() || !exec.empty() ||
           delay.has_value() || exited;
  }
};
BOOST_DESCRIBE_STRUCT(Ready, (),
                      (http, tcp, log, file, exec, delay, exited, timeout, server, origin, timeout_origin))

/// How to detect that a ready process no longer responds.
struct Alive {
  std::string http;               ///< URL that returns 2xx
  std::string tcp;                ///< "HOST:PORT" that accepts connections
  std::vector<std::string> exec;  ///< program that exits with code 0
  Duration every = std::chrono::seconds(10);
  Duration timeout = std::chrono::seconds(10);  ///< of one check
  unsigned failures = 3;                        ///< consecutive failures
  Duration after{};                             ///< from ready to the first check
};
BOOST_DESCRIBE_STRUCT(Alive, (), (http, tcp, exec, every, timeout, failures, after))

/// How to detect a server that responds but makes no progress.
struct Throughput {
  std::string metrics;  ///< URL of the Prometheus metrics
  std::string counter;  ///< grows as the server works: "vllm:generation_tokens_total"
  std::string busy;     ///< above 0 while the server has work: "vllm:num_requests_running"
  Duration every = std::chrono::seconds(10);
  Duration within = std::chrono::seconds(60);  ///< it must grow within this time while the server is busy
};
BOOST_DESCRIBE_STRUCT(Throughput, (), (metrics, counter, busy, every, within))

/// How a restarted process shows that it has the current weights; until then it is stale.
struct Fresh {
  std::string http;  ///< URL that returns 2xx
  std::string log;   ///< regular expression for a line of its output since that start
};
BOOST_DESCRIBE_STRUCT(Fresh, (), (http, log))

/// How to notify a process that the set of addressable replicas of these roles has changed.
struct OnChange {
  std::vector<std::string> of;    ///< roles
  int signal = 0;                 ///< to the process only; 0: none
  std::string post;               ///< URL to which a JSON object is posted
  std::vector<std::string> exec;  ///< program, with NLAUNCH_CHANGE_* in its environment
};
BOOST_DESCRIBE_STRUCT(OnChange, (), (of, signal, post, exec))

/// A unit of several processes of a role, which is ready when the first of them is, and fails and restarts as
/// one.
struct Replica {
  std::uint32_t nodes = 1;
  std::uint32_t per_node = 1;  ///< number of processes on each of them
  [[nodiscard]] std::uint32_t size() const { return nodes * per_node; }
};
BOOST_DESCRIBE_STRUCT(Replica, (), (nodes, per_node))

/// Which processes of a role must be close to each other: those of a replica; without replicas, those on
/// `nodes` consecutive nodes, or all.
struct KeepTogether {
  Closeness within = Closeness::node;
  std::optional<std::uint32_t> nodes;  ///< nothing: all nodes of the role or the replica
  std::string origin;                  ///< location of the setting
};
BOOST_DESCRIBE_STRUCT(KeepTogether, (), (within, nodes, origin))

struct Role : RoleSettings {
  std::string name;
  std::string origin;                ///< location of its definition; empty in older plans
  std::vector<std::string> command;  ///< empty for a role that another one spawns
  std::string command_origin;        ///< location of the setting
  std::vector<std::string> wrapper;  ///< in front of the command, as written; see container.h
  std::string wrapper_origin;
  std::optional<Launcher> launcher;  ///< in front of the command: starts one rank per GPU of a process
  std::string workdir;               ///< absolute; can start with ${run.dir} or ${node.scratch}
  std::string workdir_origin;        ///< location of the setting; empty: the experiment file's own directory
  std::string venv;                  ///< absolute, or empty
  std::uint32_t count = 0;           ///< processes in the whole job
  std::optional<Replica> replica;    ///< the index of a process counts through one replica after the other
  std::optional<KeepTogether> keep_together;
  std::vector<std::string> pools;            ///< pools whose nodes they can use; empty: all
  std::uint32_t gpus = 0;                    ///< per process
  std::vector<std::string> share_gpus_with;  ///< roles whose GPUs its processes use at the same time
  std::optional<double> gpu_memory;          ///< share of each GPU's memory that a process can use
  std::uint16_t rendezvous_port = 0;         ///< on the node of process 0; preferred, see Process::ports
  std::vector<std::string> ports;            ///< names; a process's numbers are in the same order
  std::string metrics;  ///< the one of them under which it serves Prometheus metrics; empty: none is known
  std::vector<std::string> preload;  ///< names of libraries
  PreloadScope scope = PreloadScope::process;
  std::vector<EnvOp> env;  ///< all layers above `modules`, lowest first
  Ready ready;
  std::optional<Alive> alive;
  std::optional<Throughput> throughput;
  std::optional<Fresh> fresh;
  std::optional<OnChange> on_change;
  bool ends_run = false;  ///< the run finishes when all such processes have exited with code 0
  std::vector<std::string> spawned_by;
  std::string classify;   ///< glob for the command line of a spawned process
  std::string heartbeat;  ///< file of each process whose changed modification time is progress; can contain
                          ///< references
};
BOOST_DESCRIBE_STRUCT(Role, (),
                      (name, origin, kind, command, command_origin, workdir, workdir_origin, venv, count,
                       replica, keep_together, pools, gpus, any_cpu, share_gpus_with, gpu_memory, rendezvous,
                       rendezvous_port, ports, metrics, preload, scope, ready, alive, throughput, fresh,
                       on_change, heartbeat, stop, restart, tolerate, standby, ends_run, exit_ok, leave,
                       spawned_by, classify, wrapper, wrapper_origin, launcher, env))

/// Processes in a replica of the role; 1 without replicas.
inline std::uint32_t replica_size(const Role& role) {
  return role.replica ? role.replica->size() : 1;
}
/// Replicas of the role: its processes, if each is independent.
inline std::uint32_t replicas(const Role& role) {
  return role.count / replica_size(role);
}
/// The replicas announced to other roles at the start: the first ones, without the standbys.
inline std::uint32_t active_replicas(const Role& role) {
  return replicas(role) - std::min(role.standby, replicas(role));
}

/// A process of the role starts its own ranks, through a launcher, and acts as a node for them.
inline bool makes_ranks(const Role& role) {
  return role.gpus > 1 || role.launcher.has_value();
}

/// One instance of a role. Contains only what differs from its siblings.
struct Process {
  std::uint32_t role = 0;   ///< index into Plan::roles
  std::uint32_t index = 0;  ///< within the role
  std::int32_t rank = -1;   ///< if the role has a rendezvous
  std::uint32_t node = 0;
  std::uint32_t local_rank = 0;  ///< among the role's processes on its node
  std::uint32_t local_size = 1;
  std::uint32_t node_rank = 0;       ///< of the node among the nodes that the role uses
  std::vector<std::uint16_t> gpus;   ///< of its node, counted from 0
  std::vector<std::uint16_t> ports;  ///< preferred; the node can replace a port that is in use
};

enum class GroupKind { node, world, tensor_parallel, weight_sync };
BOOST_DESCRIBE_ENUM(GroupKind, node, world, tensor_parallel, weight_sync)
std::string_view name_of(GroupKind kind);

/// One GPU of one process: what one rank of a communicator drives.
struct Member {
  std::uint32_t process = 0;  ///< index into Plan::processes
  std::uint16_t gpu = 0;      ///< of the process's node
};

/// The ranks of one communicator, in rank order.
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

/// A shared object defined by the site.
struct Library {
  std::string path;  ///< a glob that must match exactly one file; can contain references
  std::optional<VersionRange> version;
  std::string origin;
};
BOOST_DESCRIBE_STRUCT(Library, (), (path, version, origin))

/// Environment modules and shell files, loaded once per node in a separate shell.
struct Modules {
  std::string init;  ///< shell file that defines `module`; empty: the usual places
  bool reset = false;
  std::vector<std::string> load;
  std::string origin;
  std::vector<std::pair<std::string, std::string>> set{};  ///< environment variables for the files below
  std::vector<std::string> source{};  ///< shell files to source before any module is loaded
  std::vector<std::string> use{};     ///< directories of modulefiles: `module use`, after the reset
  [[nodiscard]] bool loads() const { return reset || !use.empty() || !load.empty(); }
  [[nodiscard]] bool any() const { return loads() || !source.empty() || !set.empty(); }
};
BOOST_DESCRIBE_STRUCT(Modules, (), (init, reset, use, load, set, source, origin))

/// Where a secret comes from. A plan never contains its value.
struct Secret {
  enum class Source { env, file, netrc };
  BOOST_DESCRIBE_NESTED_ENUM(Source, env, file, netrc)
  std::string name;  ///< the variable that it is passed in
  Source source = Source::env;
  std::string from;  ///< env: the variable; file: the path; netrc: the machine
  std::string origin;
};
BOOST_DESCRIBE_STRUCT(Secret, (), (name, source, from, origin))

/// One method of moving the weights to the engines.
struct WeightSync {
  std::string name{};  ///< name, if there are several; empty: the only one
  SyncBackend backend = SyncBackend::nccl;
  std::uint32_t world_size = 0;  ///< ranks of its group; 0: there is no group
  std::uint16_t port = 0;        ///< on the node of the rendezvous
  /// Its members, in rank order: a role, with all GPUs of its processes, or "learner.0", a process: a learner
  /// with its first GPU, an engine with all. Empty: learner 0, then the engines.
  std::vector<std::string> order{};
  std::string master{};  ///< the process on whose node the rendezvous is; empty: the first member
  std::string path{};    ///< of `disk`: the directory; can contain references
};
BOOST_DESCRIBE_STRUCT(WeightSync, (), (name, backend, world_size, port, order, master, path))

/// A value below which a measurement fails, if its conditions match.
struct Expectation {
  std::optional<std::uint32_t> gpus_per_node;  ///< ranks of the group per node
  std::optional<VersionRange> nodes;
  std::uint64_t size = 0;  ///< bytes of the message
  double min = 0;          ///< bus bandwidth, bytes/s
  std::string origin;
  double limit = 0;  ///< what the links can carry, bytes/s; 0: not set
};

struct Expected {
  std::vector<Expectation> all_reduce_busbw;
  std::vector<std::string> bus_ids;  ///< of each node's GPUs, from the site profile; can be empty
  std::string intra_node;            ///< transport within a node: "P2P", "SHM", "NET/..."; empty: not checked
  std::string inter_node;            ///< between nodes
};
BOOST_DESCRIBE_STRUCT(Expected, (), (bus_ids, intra_node, inter_node, all_reduce_busbw))

struct Preflight {
  PreflightLevel level = PreflightLevel::standard;
  bool strict = false;  ///< also stop after *unknown*
};
BOOST_DESCRIBE_STRUCT(Preflight, (), (level, strict))

struct Node {
  std::uint32_t count = 1;
  std::uint32_t gpus = 0;       ///< per node
  std::uint32_t cpus = 0;       ///< per node, from the profile; 0: not set
  bool cpu_slots = false;       ///< `gpus` counts CPU slots: there are no GPUs
  std::string gpu_model;        ///< from the profile or the machine; can be empty
  std::string arch;             ///< "x86_64", "aarch64"
  std::string interface;        ///< prefix of the network interface used by the job; can be empty
  std::string nic_kind;         ///< "cxi", "ib", "efa", ...; can be empty
  std::uint32_t nic_count = 0;  ///< NICs of that kind per node; 0: not set
  std::string scratch;          ///< directory on the node's local disk
};
BOOST_DESCRIBE_STRUCT(Node, (),
                      (count, gpus, cpus, cpu_slots, gpu_model, arch, interface, nic_kind, nic_count,
                       scratch))

/// The network location of the site's nodes and the layout of a node, as far as the profile sets them.
struct Topology {
  std::optional<SlurmTopology> slurm;         ///< what Slurm knows about it; nothing: Slurm gets no request
  std::optional<std::uint32_t> domain_nodes;  ///< in an NVLink domain
  std::optional<std::uint32_t> switch_nodes;  ///< on one switch
  std::vector<std::uint32_t> numa;            ///< the NUMA node of each GPU; can be empty
  std::vector<std::string> nics;              ///< the NIC nearest to each GPU; can be empty
};
BOOST_DESCRIBE_STRUCT(Topology, (), (slurm, domain_nodes, switch_nodes, numa, nics))

/// The nodes of a pool are borrowed: each is a separate job, which can start late and can be preempted.
struct Elastic {
  std::uint32_t min = 0;  ///< number that must have joined before the next stage starts
};
BOOST_DESCRIBE_STRUCT(Elastic, (), (min))

/// A range of the run's nodes of the same kind.
struct Pool {
  std::string name;
  std::uint32_t first = 0;  ///< first node of the range, which has `node.count` nodes
  Node node;
  std::optional<Elastic> elastic{};  ///< nothing: they belong to the run's own job
};
BOOST_DESCRIBE_STRUCT(Pool, (), (name, first, node, elastic))

/// A long option of a submit command, without dashes.
struct Directive {
  std::string name;
  std::string value;  ///< empty: a flag
  std::string origin;
};
BOOST_DESCRIBE_STRUCT(Directive, (), (name, value, origin))

/// One part of a heterogeneous job: the nodes of pools that are requested in the same way.
struct SlurmComponent {
  std::vector<std::string> pools;
  std::uint32_t nodes = 0;   ///< of the plan
  std::uint32_t spares = 0;  ///< additional nodes
  std::vector<Directive> directives;
};
BOOST_DESCRIBE_STRUCT(SlurmComponent, (), (pools, nodes, spares, directives))

/// The Slurm settings; empty under another scheduler.
struct Slurm {
  std::vector<Directive> directives;  ///< of the site, overridden by the experiment's
  std::vector<std::string> submit;    ///< programs; the first on PATH submits
  std::vector<std::string> srun;      ///< additional options of every step
  std::string template_file;          ///< of the batch script, absolute; empty: nlaunch's own
  std::uint32_t spares = 0;           ///< nodes of the job that the plan does not need
  std::string bad_nodes;              ///< the site's list of bad nodes; empty: none
  Duration bad_nodes_ttl{};
  std::vector<SlurmComponent> components{};  ///< of a heterogeneous job, in order; empty: one for all
  std::vector<SlurmComponent> borrowed{};    ///< one job per node of these, each of one elastic pool
};
BOOST_DESCRIBE_STRUCT(Slurm, (),
                      (directives, components, borrowed, submit, srun, template_file, spares, bad_nodes,
                       bad_nodes_ttl))

/// A directory of the container, and where Beaker gets it from.
struct BeakerMount {
  std::string path;
  std::string kind;      ///< "beaker", "weka", "host", "secret" or "result"
  std::string source;    ///< its name in Beaker
  std::string sub_path;  ///< empty: all of it
};
BOOST_DESCRIBE_STRUCT(BeakerMount, (), (path, kind, source, sub_path))

/// A variable of the container that Beaker sets from a secret of the workspace.
struct BeakerSecret {
  std::string name;
  std::string secret;
};
BOOST_DESCRIBE_STRUCT(BeakerSecret, (), (name, secret))

/// The Beaker settings; empty under another scheduler. Beaker decides about empty strings.
struct Beaker {
  std::vector<std::string> submit;  ///< programs; the first on PATH submits
  std::string workspace, budget, description;
  std::string image;  ///< "docker://TAG", else the name of a Beaker image
  std::vector<std::string> cluster, hostname;
  std::string priority;
  std::optional<bool> preemptible, auto_resume;
  std::optional<Duration> min_runtime, timeout;
  Duration start_timeout{};           ///< for all replicas to start, Beaker's and nlaunch's own
  std::vector<BeakerMount> datasets;  ///< by path
  std::vector<BeakerSecret> secrets;  ///< one for each secret of the plan
  std::string token;                  ///< secret that replicas use to authenticate each other
  std::string program;                ///< path of nlaunch in the container
  std::string result;                 ///< directory whose files Beaker keeps
  std::string memory, shared_memory;
  bool host_networking = true;
  std::uint16_t port = 0;  ///< on which the leader listens
};
BOOST_DESCRIBE_STRUCT(Beaker, (),
                      (submit, workspace, budget, description, image, cluster, hostname, priority,
                       preemptible, auto_resume, min_runtime, timeout, start_timeout, token, program, result,
                       memory, shared_memory, host_networking, port, datasets, secrets))

/// The Flux settings; empty under another scheduler.
struct Flux {
  std::vector<Directive> directives;  ///< options of flux batch
  std::vector<std::string> submit;    ///< programs; the first on PATH submits
};
BOOST_DESCRIBE_STRUCT(Flux, (), (directives, submit))

/// What `nlaunch bench` measures.
struct BenchWorkload {
  Workload work;
  std::vector<std::uint32_t> groups;  ///< indices into Plan::groups
  Targets targets;
  std::string origin;
};
struct Bench {
  std::vector<BenchWorkload> workloads;
  Duration timeout{};  ///< limit for the ranks to connect, and for the steps of a workload
};

/// A number that the processes print.
struct Metric {
  std::string name;
  std::string pattern;  ///< regular expression; its first group is the number
};
BOOST_DESCRIBE_STRUCT(Metric, (), (name, pattern))

/// What to watch during the run.
struct Watch {
  /// Regular expression. Its groups are `step`, `total` and `seconds`; without these names, the first group
  /// is the step and the second the step's seconds.
  std::string progress;
  Duration start = std::chrono::minutes(60);  ///< limit for the first progress: models are loaded
  Duration stall = std::chrono::minutes(10);  ///< limit without progress
  double slow = 2;                            ///< factor of the median of the previous steps
  OnStall on_stall = OnStall::dump;
  std::vector<Metric> metrics;
};
BOOST_DESCRIBE_STRUCT(Watch, (), (progress, start, stall, slow, on_stall, metrics))

/// Where the learners save, and how to recognize what they saved.
struct Checkpoint {
  std::string dir;  ///< contains one directory per checkpoint; can start with ${run.dir}; empty: not set
  std::string
      folder;  ///< regular expression for the whole name of such a directory; its first group is the step
  std::string complete;  ///< a file that exists in a complete checkpoint; empty: see `tracker`
  std::string tracker;   ///< file in `dir` with the step of the newest complete one; empty: any is complete
  std::string partial;   ///< regular expression for the name of a directory until it is complete; empty: none
  std::string saved;     ///< regular expression for a learner's output line; its first group is the path
  Duration wait = std::chrono::minutes(2);  ///< limit for one being written, before the learners are stopped
  std::vector<std::string> resume;          ///< appended to the learners' commands if there is a checkpoint
};
BOOST_DESCRIBE_STRUCT(Checkpoint, (), (dir, folder, complete, tracker, partial, saved, wait, resume))

/// Who is told what of a run.
struct Notify {
  std::vector<NotifyOn> on;
  std::vector<std::string> exec;  ///< gets the notice as JSON on its standard input; empty: none
  std::optional<Secret> webhook;  ///< where its URL is
};
BOOST_DESCRIBE_STRUCT(Notify, (), (on, exec, webhook))

/// Where the metrics of the run go to.
struct MetricsExport {
  /// On the leader's node, for node_exporter's textfile collector: absolute, see `metrics_file_of`. Empty:
  /// none.
  std::string file;
  std::string listen;  ///< "127.0.0.1:9400" on that node, where port 0 is any free one; empty: no port
};
BOOST_DESCRIBE_STRUCT(MetricsExport, (), (file, listen))

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
  /// All nodes of the run's own job; with pools, `gpus` is the maximum per node.
  Node node;
  std::vector<Pool> pools;  ///< as named in the experiment, elastic ones last; empty: all nodes are alike
  Topology topology;
  std::vector<Role> roles;
  std::vector<Process> processes;  ///< sorted by role, then index
  std::vector<Group> groups;
  std::vector<GpuRef> idle_gpus;
  std::vector<std::vector<std::uint32_t>>
      stages;  ///< role indices; a stage starts when the previous one is ready
  std::map<std::string, Library> libraries;
  Modules modules;
  std::vector<Secret> secrets;
  Backend backend = Backend::nccl;                     ///< backend of the groups that are not a weight sync
  std::vector<WeightSync> weight_syncs{WeightSync{}};  ///< at least one
  Expected expected;
  Preflight preflight;
  Bench bench;
  std::optional<Watch> watch;
  AuditMode audit = AuditMode::report;
  std::map<int, SignalRule> signals;
  Restart restart;  ///< of the whole job
  std::optional<Checkpoint> checkpoint;
  std::optional<Notify> notify;          ///< nothing: nobody is notified
  std::optional<MetricsExport> metrics;  ///< nothing: they are not exported
  /// How many agents connect to nlaunch directly, and to each agent that relays; 0: all of them; nullopt: as
  /// many as suit the number of nodes.
  std::optional<std::uint32_t> fan_out;
  Duration leader_grace{};  ///< how long agents keep their processes without a leader; 0: they stop them
  std::vector<std::string> warnings;
  std::vector<std::string> sources;  ///< files that it was built from, absolute
  std::map<std::string, std::string> vars;

  [[nodiscard]] const Role& role_of(const Process& process) const { return roles[process.role]; }
  /// The nodes of the run's own job, followed by those of the elastic pools.
  [[nodiscard]] std::uint32_t all_nodes() const {
    return pools.empty() ? node.count : pools.back().first + pools.back().node.count;
  }
  /// Whether the node belongs to an elastic pool.
  [[nodiscard]] bool is_borrowed(std::uint32_t index) const;
  /// "rollout.3": the name of a borrowed node until one has joined.
  [[nodiscard]] std::string name_of_borrowed(std::uint32_t index) const;
  /// "learner.0"; with replicas "engine.2.1", the second process of the third replica.
  [[nodiscard]] std::string name_of(const Process& process) const;
  [[nodiscard]] const Role* find_role(std::string_view role_name) const;
  /// The properties of the node with that index. `count` is that of its pool.
  [[nodiscard]] const Node& node_of(std::uint32_t index) const;
  /// The pool of the node; nullptr without pools.
  [[nodiscard]] const Pool* pool_of(std::uint32_t index) const;
  /// The properties of the nodes that a role uses, from the first of them.
  [[nodiscard]] const Node& node_of(const Role& role) const;
};

/// The position of a process in its replica.
struct InReplica {
  std::uint32_t index = 0;   ///< of the replica
  std::uint32_t rank = 0;    ///< 0: the leader
  std::uint32_t leader = 0;  ///< index of the leader within the role
};
InReplica in_replica(const Role& role, const Process& process);

/// The GPUs that a process can use: its own, and those of the processes on its node that it spawns.
std::vector<std::uint16_t> gpus_in_reach(const Plan& plan, const Process& process);

}  // namespace nlaunch::plan

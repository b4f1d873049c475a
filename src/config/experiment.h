#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "base/source.h"
#include "base/words.h"
#include "config/beaker.h"
#include "config/bench.h"
#include "config/checkpoint.h"
#include "config/problems.h"

/// The experiment file as typed values with their locations. Nothing is resolved here: strings can contain
/// references, and the plan handles interactions between keys.
namespace nlaunch::config {

/// One line of an environment block.
struct EnvEntry {
  enum class Kind { set, unset, prepend, append };
  Kind kind = Kind::set;
  Text name;
  Text value;      ///< empty for unset
  Condition when;  ///< of the `when` entry that contains it
};
using EnvBlock = std::vector<EnvEntry>;

/// A named set of settings, for --with.
struct Overlay {
  Text name;
  EnvBlock env;
  /// Settings that override the experiment, like --set: "preflight.level" → "quick", in YAML.
  std::vector<std::pair<Text, Text>> set;
};

struct Ready {
  SourceSpan span;
  std::optional<Located<ReadyServer>> server;
  bool exited = false;  ///< ready when it has exited with code 0; without a `timeout` there is no limit
  std::optional<Text> http, tcp, log, file;
  std::vector<Text> exec;
  std::optional<Duration> delay;
  std::optional<Located<Duration>> timeout;
};

/// How to detect that a process no longer responds; the plan supplies defaults for unset values.
struct Alive {
  SourceSpan span;
  std::optional<Text> http, tcp;
  std::vector<Text> exec;
  std::optional<Duration> every, timeout, after;
  std::optional<std::uint32_t> failures;
};

/// How to detect a server that responds but makes no progress: a counter of its metrics does not change while
/// it is busy.
struct Throughput {
  SourceSpan span;
  std::optional<Located<ReadyServer>> server;  ///< instead of the next three
  std::optional<Text> metrics, counter, busy;
  std::optional<Duration> every, within;
};

/// Whom to notify, and how, when the set of addressable replicas of other roles changes: exactly one of three
/// ways.
struct OnChange {
  SourceSpan span;
  std::vector<Text> of;
  int signal = 0;  ///< 0: none
  std::optional<Text> post;
  std::vector<Text> exec;
};

/// How a restarted process shows that it has the current weights: exactly one of two ways.
struct Fresh {
  SourceSpan span;
  std::optional<Text> http, log;
};

/// The nodes of the pool join and leave during the run.
struct Elastic {
  SourceSpan span;
  Located<std::uint32_t> min{0, {}};  ///< number that must have joined before the next stage starts
};

/// Nodes of the same kind.
struct Pool {
  Text name;
  Located<std::uint32_t> nodes{1, {}};         ///< maximum, for an elastic pool
  std::optional<Elastic> elastic;              ///< nothing: its nodes belong to the run's own job
  std::optional<Located<std::uint32_t>> gpus;  ///< per node; 0: none are used or requested
  std::optional<std::uint32_t> cpus;
  std::optional<Text> gpu, interface;
  std::vector<std::pair<Text, Text>> directives;  ///< for its nodes only; they override those of the run
};

/// A unit of several processes, which becomes ready, fails and restarts as one.
struct Replica {
  SourceSpan span;
  Located<std::uint32_t> nodes{1, {}};
  Located<std::uint32_t> per_node{1, {}};  ///< number of processes on each of them
  [[nodiscard]] std::uint32_t size() const { return nodes.value * per_node.value; }
};

/// Which nodes of a role must be close to each other.
struct KeepTogether {
  SourceSpan span;
  Located<Closeness> within{Closeness::node, {}};
  std::optional<Located<std::uint32_t>>
      nodes;  ///< number of consecutive nodes that form a group; nothing: all
};

struct Role : RoleSettings {
  Text name;
  bool whole = true;  ///< no error was found in it, so a missing part is really missing
  std::optional<Located<std::uint32_t>> per_node;
  std::optional<Located<std::uint32_t>> count;
  enum class Per { job, node };
  BOOST_DESCRIBE_NESTED_ENUM(Per, job, node)
  std::optional<Located<Per>> per;
  std::optional<Text> except;      ///< with `per: node`: the role whose node is left out
  std::optional<Replica> replica;  ///< `count` is then the number of replicas
  std::optional<KeepTogether> keep_together;
  std::vector<Text> pools;  ///< pools whose nodes it can use; empty: all
  Located<std::uint32_t> gpus{0, {}};
  std::vector<Text> share_gpus_with;  ///< roles whose GPUs it uses at the same time
  std::optional<Located<double>>
      gpu_memory;  ///< share of each GPU's memory that a process can use, above 0, at most 1
  std::optional<Located<Launcher>> launcher;
  std::vector<Text> launcher_options;  ///< of the launcher itself
  std::vector<Text> command;           ///< with a launcher: the script, without the launcher
  std::vector<Text> wrapper;
  std::optional<Text> workdir;
  std::optional<Text> venv;
  std::vector<Text> ports;
  std::optional<Text> metrics;  ///< name of the port on which it serves Prometheus metrics
  std::vector<Text> preload;
  std::optional<PreloadScope> scope;
  EnvBlock env;
  std::optional<Ready> ready;  ///< for a task: exited, with its time limit
  std::optional<Alive> alive;
  std::optional<Throughput> throughput;
  std::optional<Fresh> fresh;
  std::optional<OnChange> on_change;
  SourceSpan standby_span;   ///< of `standby` in RoleSettings
  SourceSpan tolerate_span;  ///< of `tolerate` in RoleSettings
  std::optional<bool> ends_run;
  std::vector<Text> spawned_by;
  std::optional<Text> classify;
};

/// One method of moving the weights to the engines.
struct WeightSync {
  Text name;  ///< name, if there are several; empty: the only one
  Located<SyncBackend> backend{SyncBackend::nccl, {}};
  std::vector<Text> order;     ///< "learner.0", "engine": the members of the group, in rank order
  std::optional<Text> master;  ///< "engine.0": the process on whose node the rendezvous is
  std::optional<Text> path;    ///< of `disk`: the directory
};

struct Secret {
  Text name;
  enum class Source { env, file, netrc };
  Source source = Source::env;
  Text from;  ///< env: the variable (default: the name itself); file: the path; netrc: the machine
};

/// What to watch during a run.
struct Watch {
  std::optional<Text> progress, heartbeat;
  std::optional<Duration> start, stall;
  std::optional<double> slow;
  std::optional<OnStall> on_stall;
  std::vector<std::pair<Text, Text>> metrics;
};

/// Who is told what of a run.
struct Notify {
  std::vector<NotifyOn> on;  ///< empty: `stall` and `end`
  std::vector<Text> exec;    ///< gets the notice as JSON on its standard input
  std::optional<Secret> webhook;
};

/// Where the metrics of a run go to; at least one of the two.
struct MetricsExport {
  std::optional<Text> file;           ///< for node_exporter's textfile collector
  std::optional<std::string> listen;  ///< "127.0.0.1:9400"
};

struct Experiment {
  std::string path;                  ///< absolute
  std::vector<std::string> extends;  ///< the base files, absolute, the most basic first
  Text name;
  Located<std::uint32_t> nodes{1, {}};  ///< without pools
  std::vector<Pool> pools;              ///< in file order, elastic ones last; empty: all nodes are alike
  bool cpu_slots = false;               ///< on nodes without GPUs, `gpus` counts CPU slots
  std::optional<Text> workdir;
  std::optional<Text> venv;
  std::vector<std::pair<Text, Text>> vars;  ///< in file order
  bool vars_whole = true;                   ///< like Role::whole
  EnvBlock env;
  std::vector<Role> roles;
  bool roles_whole = true;               ///< like Role::whole, for the roles' names
  std::vector<std::vector<Text>> start;  ///< stages; empty: all start at the same time, without tasks
  std::vector<WeightSync> weight_syncs{WeightSync{}};  ///< at least one
  std::vector<Secret> secrets;
  std::optional<Walltime> walltime;
  PreflightLevel preflight_level = PreflightLevel::standard;
  bool preflight_strict = false;
  AuditMode audit = AuditMode::report;
  std::optional<Watch> watch;
  std::optional<Bench> bench;
  std::optional<Checkpoint> checkpoint;
  std::optional<Notify> notify;
  std::optional<MetricsExport> metrics;
  std::optional<Located<Duration>> leader_grace;  ///< how long a run continues without nlaunch
  Restart restart;
  std::map<int, SignalRule> signals;
  std::vector<Overlay> overlays;
  std::vector<std::pair<Text, Text>> slurm;  ///< sbatch options of this experiment; they override the site's
  Beaker beaker;                             ///< likewise
};

/// A setting from the command line: `--set KEY.PATH=VALUE`.
struct Setting {
  Text path;
  Text value;  ///< YAML
};
/// Parses "KEY.PATH=VALUE"; spans point into the option as it was typed.
Result<Setting> parse_setting(const std::string& option, const std::string& typed);

/// Reads an experiment file and applies `settings` over it, first to last. The settings of overlays of this
/// file that are named in `with` are applied before them. All errors go to `problems`, and the experiment
/// contains whatever could be read. The return value is an error, with all problems, if nothing could be
/// read.
Result<Experiment> read_experiment(const std::string& path, const std::vector<Setting>& settings,
                                   const std::vector<std::string>& with, Problems& problems);
/// The same, for callers that need an experiment without errors.
Result<Experiment> load_experiment(const std::string& path, const std::vector<Setting>& settings,
                                   const std::vector<std::string>& with);

}  // namespace nlaunch::config

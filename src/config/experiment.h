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

/// The experiment file as typed values that know their place. Nothing is resolved here: texts may hold
/// references, and what one key means for another is the plan's business.
namespace nlaunch::config {

/// One line of an environment block.
struct EnvEntry {
  enum class Kind { set, unset, prepend, append };
  Kind kind = Kind::set;
  Text name;
  Text value;      ///< empty for unset
  Condition when;  ///< of the `when` row that it stands in
};
using EnvBlock = std::vector<EnvEntry>;

/// A named bundle of settings, for --with.
struct Overlay {
  Text name;
  EnvBlock env;
  /// Settings over the experiment, as with --set: "preflight.level" → "quick", in YAML.
  std::vector<std::pair<Text, Text>> set;
};

struct Ready {
  SourceSpan span;
  std::optional<Located<ReadyServer>> server;
  bool exited = false;  ///< when it has exited with 0; without a `timeout` it may take as long as it likes
  std::optional<Text> http, tcp, log, file;
  std::vector<Text> exec;
  std::optional<Duration> delay;
  std::optional<Duration> timeout;
};

/// How it is found that a process does not answer any more; what is not written has the plan's default.
struct Alive {
  SourceSpan span;
  std::optional<Text> http, tcp;
  std::vector<Text> exec;
  std::optional<Duration> every, timeout, after;
  std::optional<std::uint32_t> failures;
};

/// How it is found that a server answers and does nothing: a counter of its metrics stands still while it is
/// busy.
struct Throughput {
  SourceSpan span;
  std::optional<Located<ReadyServer>> server;  ///< in place of the next three
  std::optional<Text> metrics, counter, busy;
  std::optional<Duration> every, within;
};

/// Who is told when it changes which replicas of other roles can be addressed, and how: one way of three.
struct OnChange {
  SourceSpan span;
  std::vector<Text> of;
  int signal = 0;  ///< 0: none
  std::optional<Text> post;
  std::vector<Text> exec;
};

/// How one that has started again shows that it has the weights of now: one way of two.
struct Fresh {
  SourceSpan span;
  std::optional<Text> http, log;
};

/// The nodes of a pool come and go while the run goes on.
struct Elastic {
  SourceSpan span;
  Located<std::uint32_t> min{0, {}};  ///< so many are there before what comes after them starts
};

/// Nodes that are alike.
struct Pool {
  Text name;
  Located<std::uint32_t> nodes{1, {}};         ///< of an elastic pool, at most
  std::optional<Elastic> elastic;              ///< nothing: they are of the run's own job
  std::optional<Located<std::uint32_t>> gpus;  ///< on each node; 0: none is used, and none asked for
  std::optional<std::uint32_t> cpus;
  std::optional<Text> gpu, interface;
  std::vector<std::pair<Text, Text>> directives;  ///< for its nodes alone, over those of the run
};

/// A unit of several processes, which is ready, fails and starts again as one.
struct Replica {
  SourceSpan span;
  Located<std::uint32_t> nodes{1, {}};
  Located<std::uint32_t> per_node{1, {}};  ///< processes on each of them
  [[nodiscard]] std::uint32_t size() const { return nodes.value * per_node.value; }
};

/// Which nodes of a role have a place in common.
struct KeepTogether {
  SourceSpan span;
  Located<Closeness> within{Closeness::node, {}};
  std::optional<Located<std::uint32_t>> nodes;  ///< so many that follow each other; nothing: all
};

struct Role : RoleSettings {
  Text name;
  bool whole = true;  ///< no mistake was found in it: what it lacks, it does not have
  std::optional<Located<std::uint32_t>> per_node;
  std::optional<Located<std::uint32_t>> count;
  enum class Per { job, node };
  BOOST_DESCRIBE_NESTED_ENUM(Per, job, node)
  std::optional<Located<Per>> per;
  std::optional<Text> except;      ///< of `per: node`: not on the node where this role runs
  std::optional<Replica> replica;  ///< `count` is then a number of these
  std::optional<KeepTogether> keep_together;
  std::vector<Text> pools;  ///< on whose nodes it may stand; empty: all
  Located<std::uint32_t> gpus{0, {}};
  std::vector<Text> share_gpus_with;          ///< roles on whose GPUs it stands, at the same time
  std::optional<Located<double>> gpu_memory;  ///< share of the memory of each of its GPUs, above 0, at most 1
  std::optional<Located<Launcher>> launcher;
  std::vector<Text> launcher_options;  ///< of its own
  std::vector<Text> command;           ///< with a launcher: the script, without it
  std::vector<Text> wrapper;
  std::optional<Text> workdir;
  std::optional<Text> venv;
  std::vector<Text> ports;
  std::vector<Text> preload;
  std::optional<PreloadScope> scope;
  EnvBlock env;
  std::optional<Ready> ready;  ///< of a task: exited, with its time limit
  std::optional<Alive> alive;
  std::optional<Throughput> throughput;
  std::optional<Fresh> fresh;
  std::optional<OnChange> on_change;
  SourceSpan standby_span;   ///< of `standby`, which RoleSettings has
  SourceSpan tolerate_span;  ///< of `tolerate`, which RoleSettings has
  std::optional<bool> ends_run;
  std::vector<Text> spawned_by;
  std::optional<Text> classify;
};

/// One way of the weights to the engines.
struct WeightSync {
  Text name;  ///< of one of several; empty: the only one
  Located<SyncBackend> backend{SyncBackend::nccl, {}};
  std::vector<Text> order;     ///< "learner.0", "engine": who is in the group, in rank order
  std::optional<Text> master;  ///< "engine.0": on whose node it meets
  std::optional<Text> path;    ///< of `disk`: the folder
};

struct Secret {
  Text name;
  enum class Source { env, file, netrc };
  Source source = Source::env;
  Text from;  ///< env: the variable (by default the name itself); file: the path; netrc: the machine
};

/// What is watched during a run.
struct Watch {
  std::optional<Text> progress, heartbeat;
  std::optional<Duration> start, stall;
  std::optional<double> slow;
  std::optional<OnStall> on_stall;
  std::vector<std::pair<Text, Text>> metrics;
};

struct Experiment {
  std::string path;                  ///< absolute
  std::vector<std::string> extends;  ///< the files below it, absolute, the most basic first
  Text name;
  Located<std::uint32_t> nodes{1, {}};  ///< without pools
  std::vector<Pool> pools;              ///< in file order, elastic ones last; empty: all nodes are alike
  bool cpu_slots = false;               ///< where a node has no GPU, `gpus` counts CPU slots
  std::optional<Text> workdir;
  std::optional<Text> venv;
  std::vector<std::pair<Text, Text>> vars;  ///< in file order
  bool vars_whole = true;                   ///< as Role::whole
  EnvBlock env;
  std::vector<Role> roles;
  bool roles_whole = true;               ///< as Role::whole, of their names
  std::vector<std::vector<Text>> start;  ///< stages; empty: all at once, with no task among them
  std::vector<WeightSync> weight_syncs{WeightSync{}};  ///< one at least
  std::vector<Secret> secrets;
  std::optional<Walltime> walltime;
  PreflightLevel preflight_level = PreflightLevel::standard;
  bool preflight_strict = false;
  AuditMode audit = AuditMode::report;
  std::optional<Watch> watch;
  std::optional<Bench> bench;
  std::optional<Checkpoint> checkpoint;
  std::optional<Located<Duration>> leader_grace;  ///< for how long a run goes on without nlaunch
  Restart restart;
  std::map<int, SignalRule> signals;
  std::vector<Overlay> overlays;
  std::vector<std::pair<Text, Text>> slurm;  ///< sbatch options of this experiment, over the site's
  Beaker beaker;                             ///< likewise
};

/// A setting from the command line: `--set KEY.PATH=VALUE`.
struct Setting {
  Text path;
  Text value;  ///< YAML
};
/// Takes "KEY.PATH=VALUE" apart; spans point into the option as it was typed.
Result<Setting> parse_setting(const std::string& option, const std::string& typed);

/// Reads an experiment file with `settings` applied over it, first to last. Overlays of this file that `with`
/// names have their settings applied below these. What is wrong goes to `problems`, all of it, and the
/// experiment is as much as could be read. An error, which says all: nothing could be.
Result<Experiment> read_experiment(const std::string& path, const std::vector<Setting>& settings,
                                   const std::vector<std::string>& with, Problems& problems);
/// The same for those who want one without mistakes.
Result<Experiment> load_experiment(const std::string& path, const std::vector<Setting>& settings,
                                   const std::vector<std::string>& with);

}  // namespace nlaunch::config

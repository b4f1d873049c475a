#pragma once
#include <string_view>
#include <vector>

namespace nlaunch {

/// How a scheduler handles an experiment's `walltime:`.
enum class WalltimeUse {
  honoured,  ///< the end is announced, and the run continues as set by `then`
  ignored,   ///< with a warning
  refused,   ///< with an error
};

/// What the layers below scheduler/ need to know about a scheduler. They query what it can do, never which
/// one it is.
struct SchedulerTraits {
  std::string_view name;   ///< in profiles: "slurm"
  int order = 0;           ///< position in lists of names
  std::string_view title;  ///< in messages: "Slurm"
  /// The submit command, by its usual name; empty: jobs are not submitted.
  std::string_view submit;
  /// The command that gives a user nodes to run commands on, without its options ("salloc"); empty: there is
  /// none.
  std::string_view allocate;
  bool this_machine = false;    ///< a run has this node only, whose GPUs are detected
  bool submits_within = false;  ///< a job that does not fit can submit one that does
  bool shares_files = true;     ///< files of the submitting host are on the nodes, under the same paths
  bool spares = false;          ///< can allocate more nodes than the plan needs
  bool pools = false;           ///< can give nodes of several kinds to one run
  bool lends = false;           ///< can give a running run further nodes, each with its own job
  bool switches = false;        ///< reports the switch of a node
  bool directives = false;      ///< accepts `scheduler: {directives: ...}`
  bool srun = false;            ///< srun starts the processes of a node
  std::string_view step = {};   ///< the program that starts agents; empty: they start without one
  std::string_view job_variable = {};  ///< holds the id of the job that a process is in
  std::string_view rank_variable =
      {};  ///< holds the number of an agent's node, if the scheduler starts agents
  WalltimeUse walltime = WalltimeUse::honoured;
  std::string_view why_no_walltime =
      {};  ///< if it is not supported: the text after "`walltime` has no effect "
};

/// All registered schedulers, in order.
std::vector<const SchedulerTraits*> all_schedulers();

/// Nothing for an unknown name.
const SchedulerTraits* find_scheduler(std::string_view name);

/// For a known name: config and plan::from_json reject all others.
const SchedulerTraits& traits_of(std::string_view name);

}  // namespace nlaunch

#pragma once
#include <string_view>
#include <vector>

namespace nlaunch {

/// What becomes of an experiment's `walltime:` under a scheduler.
enum class WalltimeUse {
  honoured,  ///< the end is announced, and the run goes on as `then` says
  ignored,   ///< with a warning
  refused,   ///< with an error
};

/// What the layers below scheduler/ have to know of a scheduler. They ask for what it can do, and never for
/// which one it is.
struct SchedulerTraits {
  std::string_view name;   ///< as a profile has it: "slurm"
  int order = 0;           ///< in lists of names
  std::string_view title;  ///< for people: "Slurm"
  /// The program that submits, as people call it; empty: jobs are not submitted.
  std::string_view submit;
  /// What gives a person nodes to run commands on, without its options ("salloc"); empty: there is nothing.
  std::string_view allocate;
  bool this_machine = false;           ///< a run has this one node, whose GPUs are looked at
  bool submits_within = false;         ///< a job that does not fit can submit one that does
  bool shares_files = true;            ///< files of who submits are on the nodes, under the same paths
  bool spares = false;                 ///< gives more nodes than the plan needs
  bool pools = false;                  ///< gives nodes of several kinds to one run
  bool lends = false;                  ///< gives a run that goes on further nodes, each by a job of its own
  bool switches = false;               ///< says at which switch a node is
  bool directives = false;             ///< takes `scheduler: {directives: ...}`
  bool srun = false;                   ///< processes of a node are started by srun
  std::string_view step = {};          ///< the program that starts agents; empty: they come by themselves
  std::string_view job_variable = {};  ///< has the id of the job that a process is in
  std::string_view rank_variable =
      {};  ///< has the number of an agent's node, where the scheduler starts agents
  WalltimeUse walltime = WalltimeUse::honoured;
  std::string_view why_no_walltime = {};  ///< where it is not honoured: behind "`walltime` has no meaning "
};

/// All that are registered, in their order.
std::vector<const SchedulerTraits*> all_schedulers();

/// Nothing for a name that is none's.
const SchedulerTraits* find_scheduler(std::string_view name);

/// Of a name that is known: config and plan::from_json let no other through.
const SchedulerTraits& traits_of(std::string_view name);

}  // namespace nlaunch

#pragma once
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/diagnostic.h"
#include "cli/console.h"
#include "config/site.h"
#include "launch/install.h"
#include "launch/machine.h"
#include "plan/build.h"
#include "plan/plan.h"

namespace nlaunch::cli {

/// The options that select a plan.
struct PlanArgs {
  std::string experiment;
  std::string plan_file;  ///< --plan: a frozen plan instead of an experiment
  std::string site;
  std::vector<std::string> site_dirs;
  std::vector<std::string> set;
  std::vector<std::string> with;
  std::vector<std::string> env;
  std::optional<std::uint32_t> nodes;
  std::uint32_t spares = 0;
  std::map<std::string, std::uint32_t> nodes_of, spares_of;  ///< by pool
  std::vector<std::string> nodes_given, spares_given;        ///< as they were written
  [[nodiscard]] plan::PlanOptions plan_options() const {
    return {nodes, spares, with, env, nodes_of, spares_of};
  }
};
enum class Experiment { required, optional };
/// An experiment, or a frozen plan instead of it. `args` must outlive the app's parsing.
void add_plan_options(Command app, PlanArgs& args, Experiment experiment);
/// The heading of these options in help.
inline constexpr const char* kPlanOptions = "Plan options";
/// All options except those that select the experiment.
void add_site_options(Command app, PlanArgs& args);

/// What a script that is recorded finds on the cluster.
struct ClusterArgs {
  std::vector<std::string> prints;    ///< "TEXT=OUTPUT", as parted_prints reads it
  std::vector<std::string> existing;  ///< paths

  /// The prints as shell::RecordRequest wants them.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> parted_prints() const;
};
/// Its options, --prints and --exists.
void add_cluster_options(Command app, ClusterArgs& args);
/// "'x' has no = after the name", or empty.
std::string has_equals(const std::string& word);

/// The site profile that the options name, or that matches the machine.
Result<config::Site> load_site(const PlanArgs& args, const Context& context, launch::MachineSource& machine);

/// Builds a plan from files and options: reads, checks and resolves them.
Result<plan::Plan> load_plan(const PlanArgs& args, const Context& context, launch::MachineSource& machine);

/// A plan with every GPU of this machine in one group (two CPU slots over Gloo if there is no GPU), for
/// checks without an experiment. Does not query the scheduler: a prolog has a job id but no node list.
Result<plan::Plan> load_machine_plan(const PlanArgs& args, const Context& context,
                                     launch::MachineSource& machine);

/// Like load_machine_plan, but in an allocation of the site's scheduler the group has all GPUs of its nodes.
Result<plan::Plan> load_allocation_plan(const PlanArgs& args, const Context& context,
                                        launch::MachineSource& machine);

}  // namespace nlaunch::cli

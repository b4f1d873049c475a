#include "commands/bench_drill.h"

#include <algorithm>
#include <set>

#include "base/exit_code.h"
#include "base/json.h"
#include "base/text.h"
#include "launch/run_dir/run_folder.h"
#include "plan/json.h"
#include "preflight/groups/drills.h"
#include "preflight/groups/trials.h"
#include "report/drill_text.h"
#include "scheduler/scheduler.h"
#include "session/interrupts.h"
#include "session/local_target.h"
#include "supervise/stop_signal.h"
#include "sys/files.h"

namespace nlaunch::commands {

using namespace cli;
using namespace session;
namespace {

constexpr std::string_view kAll = "all";
/// For the work before the drill itself, and for a rank that is stuck inside a call to report it.
constexpr Duration kSlack = std::chrono::seconds(10);

/// The largest group of the plan, in the form that probes can run.
preflight::GroupTrial largest_trial(const plan::Plan& plan, const std::vector<preflight::Rank>& ranks) {
  const auto largest = std::ranges::max_element(
      plan.groups, {}, [](const plan::Group& group) { return group.members.size(); });
  return preflight::trial_of(*largest, ranks);
}

std::vector<preflight::DrillRow> play(const std::string& which, const preflight::GroupTrial& group,
                                      AttemptHost& place, const Context& context) {
  std::vector<preflight::DrillRow> rows;
  preflight::Deadlines deadlines;
  deadlines.op = preflight::kDrillDeadline + kSlack;
  for (const auto& one : preflight::drill_cases()) {
    if (which != kAll && which != one.name) continue;
    if (Interrupts::received() != 0) break;
    if (!context.console.quiet)
      context.console.say(fmt::format("drill {}{}{} ...\n", one.name, one.arm.empty() ? "" : ": ", one.arm));
    const auto trial = preflight::drill_trial(one, group);
    const auto measured = trial.not_run.empty() ? place.measure({trial}, deadlines) : preflight::Measured{};
    rows.push_back(preflight::judge_drill(one, trial, measured));
  }
  return rows;
}

int drill(const DrillArgs& args, const plan::Plan& plan, const Context& context, RunTarget& target) {
  if (plan.groups.empty()) {
    context.console.say(
        "nlaunch bench: a drill needs two ranks that communicate, and this plan has no group\n");
    return exit_code::usage;
  }
  auto paths = launch::make_run_folder(args.runs_dir, plan.name);
  if (!paths) return context.console.error(paths.error());
  auto saved = launch::make_attempt_folder(*paths, 0);
  if (saved) saved = sys::write_file_atomically(paths->folder / "plan.json", plan::to_text(plan, 2) + "\n");
  if (!saved) return context.console.error(saved.error());
  const auto guardian = supervise::enter_guarded([&context](const supervise::SupervisorLost& lost) {
    context.console.say(fmt::format("nlaunch bench: the supervisor {}\n", lost.status.str()));
  });
  const Interrupts interrupts;
  const auto place = target.next(guardian);
  if (const auto refused = place->bind(*paths)) return refused->exit_code;
  const auto ranks = place->ranks();
  if (!ranks) return context.console.error(ranks.error());
  const auto group = largest_trial(plan, *ranks);
  const auto rows = play(args.which, group, *place, context);
  context.console.result(
      args.json ? json_text(preflight::to_json(rows), 2) + "\n"
                : report::drill_text(group.name, group.members.size(), rows, context.console.result_paint));
  if (const int signal = Interrupts::received(); signal != 0) return supervise::exit_code_of_stop(signal);
  const bool shown = std::ranges::any_of(rows, [](const auto& row) { return !row.shows.empty(); });
  return shown ? exit_code::ok : exit_code::preflight_unknown;
}

}  // namespace

void add_drill_option(Command command, std::string& which) {
  std::vector<std::string> names{std::string(kAll)};
  for (const auto& one : preflight::drill_cases()) names.emplace_back(one.name);
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());  // one case has several arms
  command
      .option("--drill", which,
              "Provoke a failure to show what it looks like here; each is stopped at a deadline")
      .one_of(names);
}

int run_drills(const DrillArgs& args, const PlanArgs& wanted, const Context& context) {
  launch::MachineSource machine(launch::find_install());
  const bool here = wanted.experiment.empty() && wanted.plan_file.empty();
  const auto plan =
      here ? load_allocation_plan(wanted, context, machine) : load_plan(wanted, context, machine);
  if (!plan) return context.console.error(plan.error());
  if (traits_of(plan->scheduler).allocate.empty()) {
    LocalTarget target(*plan, false, context, machine);  // a waiting rank keeps its GPU busy
    return drill(args, *plan, context, target);
  }
  const auto job = scheduler::current_allocation(plan->scheduler, context.environment);
  if (!job) return context.console.error(job.error());
  const auto why = *job ? (*job)->misfit(*plan) : scheduler::describe(*plan);
  if (!why.empty()) {
    context.console.say(fmt::format("nlaunch bench: {}\n", why));
    return exit_code::usage;
  }
  return drill(args, *plan, context, *(*job)->target(*plan, false, context));
}

}  // namespace nlaunch::commands

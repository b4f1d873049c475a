#include <unistd.h>

#include <memory>

#include "base/exit_code.h"
#include "base/text.h"
#include "cli/load.h"
#include "launch/job/job_script.h"
#include "launch/run_dir/run_folder.h"
#include "plan/update.h"
#include "report/update_text.h"
#include "session/run_request.h"
#include "session/run_view.h"
#include "supervise/events.h"
#include "supervise/run_attempt.h"
#include "sys/files.h"

// `nlaunch update`: restarts roles of a running run with other programs or settings.
namespace nlaunch::commands {

using namespace cli;
using namespace session;
namespace {

struct UpdateArgs {
  std::string run;
  PlanArgs plan;
  std::string runs_dir = "runs";
  bool yes = false;
};

int update(const UpdateArgs& args, const Context& context) {
  const auto view = view_run(args.runs_dir, args.run);
  if (!view) return context.console.error(view.error());
  if (const auto own = check_owner(*view); !own) return context.console.error(own.error());
  const auto refuse = [&](const std::string& why) {
    context.console.say(fmt::format("nlaunch update: {}\n", why));
    return int{exit_code::bad_input};
  };
  if (!view->alive) return refuse(fmt::format("run {} is not running: {}", view->id, view->state));
  const auto before = launch::plan_of_run(view->folder);
  if (!before) return context.console.error(before.error());
  launch::MachineSource machine(launch::find_install());
  auto after = load_plan(args.plan, context, machine);
  if (!after) return context.console.error(after.error());
  after->metrics = before->metrics;  // the run goes on exporting as it was asked to

  const auto change = plan::update_of(*before, *after);
  context.console.result(report::update_text(change, context.console.result_paint));
  if (!change.refused.empty())
    return refuse(fmt::format("{} cannot change during the run", text::join(change.refused, ", ")));
  if (change.roles.empty()) {
    context.console.say(
        fmt::format("run {} already has this plan; if only code changed, use `nlaunch restart {} ROLE`\n",
                    view->id, view->id));
    return exit_code::ok;
  }
  if (!args.yes) {
    context.console.say("nothing has changed yet: restart these roles with --yes\n");
    return exit_code::ok;
  }
  const auto text = launch::plan_text(*after);
  if (!text) return context.console.error(text.error());
  const auto name = fmt::format("{}{}-{}.json", supervise::kUpdatePlan, supervise::utc_stamp(), ::getpid());
  const auto file = supervise::attempt_folder(view->folder, view->attempt) / name;
  if (const auto written = sys::write_file_atomically(file, *text); !written)
    return context.console.error(written.error());
  return ask_run(args.runs_dir, args.run, {supervise::RunRequest::Kind::update, name}, context);
}

void add_update(Command program, Context& context) {
  auto args = std::make_shared<UpdateArgs>();
  auto command = program.subcommand("update", "Restart roles of a run with other programs or settings")
                     .examples({"nlaunch update grpo grpo.yaml",
                                "nlaunch update grpo grpo.yaml --set vars.temperature=0.7 --yes"});
  command.option("RUN", args->run, kRunHelp).required();
  add_plan_options(command, args->plan, Experiment::required);
  command.option("--runs-dir", args->runs_dir, "Directory that contains the runs [default: runs]");
  command.flag("--yes", args->yes, "Apply the update; without it, only show what would change");
  command.when_called(
      [args, &context] { context.run = [args, &context] { return update(*args, context); }; });
}

const Registered<cli::CommandEntry> update_command{{"update", 143, add_update, CommandGroup::run}};

}  // namespace

}  // namespace nlaunch::commands

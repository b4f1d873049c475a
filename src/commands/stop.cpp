#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <thread>

#include "base/exit_code.h"
#include "cli/console.h"
#include "launch/run_dir/run_folder.h"
#include "scheduler/scheduler.h"
#include "session/run_view.h"
#include "supervise/stop_signal.h"

namespace nlaunch::commands {

using namespace cli;
using namespace session;
namespace {

constexpr std::chrono::milliseconds kBetween{100};

struct StopArgs {
  std::string run;
  std::string runs_dir = "runs";
  bool now = false;
};

/// The scheduler of a run: that of its plan, else the first one whose jobs have ids.
const scheduler::Scheduler& scheduler_of(const RunView& view) {
  const auto plan = launch::plan_of_run(view.folder);
  if (plan && !traits_of(plan->scheduler).job_variable.empty())
    if (const auto* own = scheduler::find(plan->scheduler)) return *own;
  const auto all = all_schedulers();
  const auto first = std::ranges::find_if(all, [](const auto* one) { return !one->job_variable.empty(); });
  return *scheduler::find((*first)->name);
}

/// Through the scheduler: a waiting job is removed from the queue; a running one receives the same signal as
/// from Ctrl-C.
int stop_job(const RunView& view, bool now, const Context& context) {
  if (view.job.empty()) {
    context.console.say(
        fmt::format("nlaunch stop: run {} is running on another host; stop it there\n", view.id));
    return exit_code::internal;
  }
  const bool waits = view.pid == 0;
  using scheduler::Cancel;
  const auto how = waits ? Cancel::waiting : now ? Cancel::at_once : Cancel::politely;
  if (const auto told = scheduler_of(view).cancel(view.job, how, context.environment); !told)
    return context.console.error(told.error());
  context.console.result(
      fmt::format("job {} of run {} {}\n", view.job, view.id,
                  waits ? "was removed from the queue" : "was told to stop; watch it with nlaunch logs -f"));
  return exit_code::ok;
}

/// The pid is signalled only while it writes the events of this run. A process that is about to exit has
/// already closed them; then this waits for its exit.
Result<RunView> make_sure_of_pid(RunView view, const std::string& runs_dir) {
  constexpr int kTries = 20;
  for (int i = 0; i < kTries; ++i) {
    if (!view.alive || view.elsewhere || writes_its_events(view)) return view;
    std::this_thread::sleep_for(kBetween);
    auto again = view_run(runs_dir, view.folder.string());
    if (!again) return again;
    view = std::move(*again);
  }
  return failure("run.pid",
                 "run {} records pid {}, which is an nlaunch but does not write this run's events: the "
                 "directory was copied or changed, so no signal was sent",
                 view.id, view.pid);
}

/// Like Ctrl-C in its terminal: the first stops it gracefully, the second kills it.
int run_stop(const StopArgs& args, const Context& context) {
  auto view = view_run(args.runs_dir, args.run);
  if (!view) return context.console.error(view.error());
  if (const auto own = check_owner(*view); !own) return context.console.error(own.error());
  view = make_sure_of_pid(std::move(*view), args.runs_dir);
  if (!view) return context.console.error(view.error());
  if (!view->alive) {
    context.console.result(fmt::format("run {} is not running: {}\n", view->id, view->state));
    return exit_code::ok;
  }
  if (view->elsewhere) return stop_job(*view, args.now, context);
  if (::kill(view->pid, supervise::stop_signal()) != 0 && errno != ESRCH) {
    context.console.say(fmt::format("nlaunch stop: cannot signal run {} (pid {}): {}\n", view->id, view->pid,
                                    std::strerror(errno)));
    return exit_code::internal;
  }
  if (args.now) ::kill(view->pid, supervise::stop_signal());
  ::kill(view->pid, SIGCONT);  // Ctrl-Z may have stopped it
  while (view && view->alive) {
    std::this_thread::sleep_for(kBetween);
    view = view_run(args.runs_dir, view->folder.string());
  }
  if (!view) return context.console.error(view.error());
  context.console.result(fmt::format("run {} stopped: {}\n", view->id, view->state));
  return exit_code::ok;
}

void add_stop(Command program, Context& context) {
  auto args = std::make_shared<StopArgs>();
  auto command = program.subcommand("stop", "Stop a run gracefully and wait until it has ended")
                     .examples({"nlaunch stop grpo", "nlaunch stop grpo --now"});
  command.option("RUN", args->run, kRunHelp).required();
  command.option("--runs-dir", args->runs_dir, "Directory that contains the runs [default: runs]");
  command.flag("--now", args->now, "Kill immediately, without the grace period");
  command.when_called(
      [args, &context] { context.run = [args, &context] { return run_stop(*args, context); }; });
}

const Registered<cli::CommandEntry> stop_command{{"stop", 140, add_stop, CommandGroup::run}};

}  // namespace

}  // namespace nlaunch::commands

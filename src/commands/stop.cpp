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

/// What a run was submitted to: the scheduler of its plan, else the first whose jobs have ids.
const scheduler::Scheduler& scheduler_of(const RunView& view) {
  const auto plan = launch::plan_of_run(view.folder);
  if (plan && !traits_of(plan->scheduler).job_variable.empty())
    if (const auto* own = scheduler::find(plan->scheduler)) return *own;
  const auto all = all_schedulers();
  const auto first = std::ranges::find_if(all, [](const auto* one) { return !one->job_variable.empty(); });
  return *scheduler::find((*first)->name);
}

/// By a word to the scheduler: a job that waits is taken out of the queue, one that runs hears what Ctrl-C
/// would say.
int stop_job(const RunView& view, bool now, const Context& context) {
  if (view.job.empty()) {
    context.console.say(
        fmt::format("nlaunch stop: run {} goes on on another host; stop it there\n", view.id));
    return exit_code::internal;
  }
  const bool waits = view.pid == 0;
  using scheduler::Cancel;
  const auto how = waits ? Cancel::waiting : now ? Cancel::at_once : Cancel::politely;
  if (const auto told = scheduler_of(view).cancel(view.job, how, context.environment); !told)
    return context.console.error(told.error());
  context.console.result(fmt::format(
      "job {} of run {} {}\n", view.job, view.id,
      waits ? "is taken out of the queue" : "is told to stop; nlaunch logs -f shows how it ends"));
  return exit_code::ok;
}

/// The pid is signalled only while it writes the events of this very run. One that is about to end has closed
/// them already; its end is waited for.
Result<RunView> make_sure_of_pid(RunView view, const std::string& runs_dir) {
  constexpr int kTries = 20;
  for (int i = 0; i < kTries; ++i) {
    if (!view.alive || view.elsewhere || writes_its_events(view)) return view;
    std::this_thread::sleep_for(kBetween);
    auto again = view_run(runs_dir, view.folder.string());
    if (!again) return again;
    view = std::move(*again);
  }
  return failure(
      "run.pid",
      "run {} names pid {}, which is an nlaunch but does not write this run's events: the folder was "
      "copied or changed, and nothing is signalled",
      view.id, view.pid);
}

/// As Ctrl-C in its terminal: once it stops gracefully, a second time it kills.
int run_stop(const StopArgs& args, const Context& context) {
  auto view = view_run(args.runs_dir, args.run);
  if (!view) return context.console.error(view.error());
  if (const auto own = check_owner(*view); !own) return context.console.error(own.error());
  view = make_sure_of_pid(std::move(*view), args.runs_dir);
  if (!view) return context.console.error(view.error());
  if (!view->alive) {
    context.console.result(fmt::format("run {} is not going on: {}\n", view->id, view->state));
    return exit_code::ok;
  }
  if (view->elsewhere) return stop_job(*view, args.now, context);
  if (::kill(view->pid, supervise::stop_signal()) != 0 && errno != ESRCH) {
    context.console.say(fmt::format("nlaunch stop: run {} (pid {}) cannot be reached: {}\n", view->id,
                                    view->pid, std::strerror(errno)));
    return exit_code::internal;
  }
  if (args.now) ::kill(view->pid, supervise::stop_signal());
  ::kill(view->pid, SIGCONT);  // Ctrl-Z may have stopped it
  while (view && view->alive) {
    std::this_thread::sleep_for(kBetween);
    view = view_run(args.runs_dir, view->folder.string());
  }
  if (!view) return context.console.error(view.error());
  context.console.result(fmt::format("run {} is stopped: {}\n", view->id, view->state));
  return exit_code::ok;
}

void add_stop(Command program, Context& context) {
  auto args = std::make_shared<StopArgs>();
  auto command = program.subcommand("stop", "Stops a run gracefully and waits for its end");
  command.option("RUN", args->run, kRunHelp).required();
  command.option("--runs-dir", args->runs_dir, "Where run directories are (runs)");
  command.flag("--now", args->now, "Kill at once, without the grace");
  command.when_called(
      [args, &context] { context.run = [args, &context] { return run_stop(*args, context); }; });
}

const Registered<cli::CommandEntry> stop_command{{"stop", 140, add_stop}};

}  // namespace

}  // namespace nlaunch::commands

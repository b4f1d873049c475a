#include <csignal>
#include <thread>

#include "base/exit_code.h"
#include "cli/context.h"
#include "cli/run_view.h"

namespace nlaunch::cli {
namespace {

struct Args {
  std::string run;
  std::string runs_dir = "runs";
  bool now = false;
};

/// As Ctrl-C in its terminal: once it stops gracefully, a second time it kills.
int run(const Args& args, const Context& context) {
  auto view = view_run(args.runs_dir, args.run);
  if (!view) return complain(context, view.error());
  if (!view->alive) {
    print(fmt::format("run {} is not going on: {}\n", view->id, view->state));
    return exit_code::ok;
  }
  constexpr std::chrono::milliseconds kBetween{100};
  ::kill(view->pid, SIGINT);
  if (args.now) {
    std::this_thread::sleep_for(kBetween);  // two of a kind that arrive together are one
    ::kill(view->pid, SIGINT);
  }
  while (view && view->alive) {
    std::this_thread::sleep_for(kBetween);
    view = view_run(args.runs_dir, view->folder.string());
  }
  if (!view) return complain(context, view.error());
  print(fmt::format("run {} is stopped: {}\n", view->id, view->state));
  return exit_code::ok;
}

}  // namespace

void add_stop(CLI::App& app, Context& context) {
  auto args = std::make_shared<Args>();
  auto* command = app.add_subcommand("stop", "Stops a run gracefully and waits for its end");
  command->add_option("RUN", args->run, "A run's path, id, or name (its latest)")->required();
  command->add_option("--runs-dir", args->runs_dir, "Where run directories are (runs)");
  command->add_flag("--now", args->now, "Kill at once, without the grace");
  command->callback([args, &context] { context.run = [args, &context] { return run(*args, context); }; });
}

}  // namespace nlaunch::cli

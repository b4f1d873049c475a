#include <nlohmann/json.hpp>

#include "cli/context.h"
#include "cli/run_view.h"

namespace nlaunch::cli {
namespace {

struct Args {
  std::string run;
  std::string runs_dir = "runs";
  bool json = false;
};

int run(const Args& args, const Context& context) {
  const auto view = view_run(args.runs_dir, args.run);
  if (!view) return complain(context, view.error());
  if (args.json) {
    nlohmann::ordered_json out{{"run", view->id},
                               {"folder", view->folder.string()},
                               {"pid", view->pid},
                               {"alive", view->alive},
                               {"state", view->state},
                               {"attempt", view->attempt},
                               {"processes", nlohmann::ordered_json::array()}};
    for (const auto& process : view->processes) {
      out["processes"].push_back(
          {{"name", process.name}, {"pid", process.pid}, {"alive", process.alive}, {"state", process.state}});
    }
    print(out.dump(2) + "\n");
    return 0;
  }
  const auto paint = context.out();
  print(fmt::format("run {} (pid {}, attempt {}): {}\n", paint.bold(view->id), view->pid, view->attempt,
                    view->state));
  report::Table table({"process", "pid", "state"});
  for (const auto& process : view->processes) {
    table.add({process.name, process.pid > 0 ? std::to_string(process.pid) : "",
               process.alive ? paint.green(process.state) : process.state});
  }
  print(table.str(paint));
  return 0;
}

}  // namespace

void add_ps(CLI::App& app, Context& context) {
  auto args = std::make_shared<Args>();
  auto* command = app.add_subcommand("ps", "The processes of a run");
  command->add_option("RUN", args->run, "A run's path, id, or name (its latest)")->required();
  command->add_option("--runs-dir", args->runs_dir, "Where run directories are (runs)");
  command->add_flag("--json", args->json, "As JSON");
  command->callback([args, &context] { context.run = [args, &context] { return run(*args, context); }; });
}

}  // namespace nlaunch::cli

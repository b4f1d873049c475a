#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "base/json.h"
#include "cli/console.h"
#include "launch/run_dir/run_folder.h"
#include "session/run_view.h"

namespace nlaunch::commands {

using namespace cli;
using namespace session;
namespace {

struct PsArgs {
  std::string run;
  std::string runs_dir = "runs";
  bool json = false;
};

/// All runs, by name, the newest first.
int list_runs(const PsArgs& args, const Context& context) {
  std::error_code error;
  std::set<std::filesystem::path> names;
  for (const auto& entry : std::filesystem::directory_iterator(args.runs_dir, error))
    names.insert(entry.path());
  auto json = nlohmann::ordered_json::array();
  const auto paint = context.console.result_paint;
  report::Table table({"name", "run", "state", "since (UTC)"});
  for (const auto& name : names) {
    for (const auto& folder : launch::runs_of(name)) {
      const auto view = view_run(args.runs_dir, folder.string());
      if (!view) {
        if (std::filesystem::exists(folder, error)) context.console.error(view.error());
        continue;  // else it was removed meanwhile
      }
      json.push_back({{"name", view->name},
                      {"run", view->id},
                      {"folder", view->folder.string()},
                      {"alive", view->alive},
                      {"state", view->state},
                      {"since", view->since}});
      table.add({view->name, view->id, view->alive ? paint.green(view->state) : view->state,
                 view->since.substr(0, sizeof("2026-01-31T12:00:00") - 1)});
    }
  }
  if (args.json) {
    context.console.result(json_text(json, 2) + "\n");
  } else if (json.empty()) {
    context.console.result(fmt::format("no runs in '{}'; --runs-dir looks elsewhere\n",
                                       std::filesystem::absolute(args.runs_dir).string()));
  } else {
    context.console.result(table.str(paint));
  }
  return 0;
}

int run_ps(const PsArgs& args, const Context& context) {
  if (args.run.empty()) return list_runs(args, context);
  const auto view = view_run(args.runs_dir, args.run);
  if (!view) return context.console.error(view.error());
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
    context.console.result(json_text(out, 2) + "\n");
    return 0;
  }
  const auto paint = context.console.result_paint;
  context.console.result(fmt::format("run {} (pid {}, attempt {}): {}\n", paint.bold(view->id), view->pid,
                                     view->attempt, view->state));
  report::Table table({"process", "pid", "state"});
  for (const auto& process : view->processes) {
    table.add({process.name, process.pid > 0 ? std::to_string(process.pid) : "",
               process.alive ? paint.green(process.state) : process.state});
  }
  context.console.result(table.str(paint));
  return 0;
}

void add_ps(Command program, Context& context) {
  auto args = std::make_shared<PsArgs>();
  auto command = program.subcommand("ps", "The runs, or the processes of one");
  command.option("RUN", args->run, fmt::format("{}; without, all runs", kRunHelp));
  command.option("--runs-dir", args->runs_dir, "Where run directories are (runs)");
  command.flag("--json", args->json, "As JSON");
  command.when_called(
      [args, &context] { context.run = [args, &context] { return run_ps(*args, context); }; });
}

const Registered<cli::CommandEntry> ps_command{{"ps", 120, add_ps}};

}  // namespace

}  // namespace nlaunch::commands

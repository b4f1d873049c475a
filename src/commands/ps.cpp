#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/json.h"
#include "base/text.h"
#include "cli/console.h"
#include "launch/run_dir/run_folder.h"
#include "record/run_files.h"
#include "report/run_report.h"
#include "report/top.h"
#include "session/live_run.h"
#include "session/run_view.h"
#include "supervise/events.h"
#include "supervise/run_attempt.h"
#include "sys/files.h"

namespace nlaunch::commands {

using namespace cli;
using namespace session;
namespace {

struct PsArgs {
  std::string run;
  std::string runs_dir = "runs";
  bool json = false;
};

double seconds_between(const std::string& from, double until) {
  const auto begin = supervise::parse_utc(from);
  return begin ? std::max(0.0, until - *begin) : 0;
}

/// The last training step that a run reported.
std::string last_step(const RunView& view) {
  const auto attempt = supervise::attempt_folder(view.folder, view.attempt);
  if (!sys::is_folder_itself(attempt)) return "";
  const auto lines = text::split(text::trim(tail_of(attempt / "steps.jsonl")), '\n');
  const auto step = lines.empty() ? nlohmann::ordered_json() : parse_ordered_json(lines.back());
  const auto& number = record::at(step, "step");
  return number.is_number() ? json_text(number) : "";
}

nlohmann::ordered_json json_of(const RunView& view) {
  nlohmann::ordered_json out{{"name", view.name},   {"run", view.id},      {"folder", view.folder.string()},
                             {"alive", view.alive}, {"state", view.state}, {"since", view.since},
                             {"site", view.site},   {"nodes", view.nodes}, {"started", view.started},
                             {"ended", view.ended}};
  out["exit_code"] = view.exit_code ? nlohmann::ordered_json(*view.exit_code) : nlohmann::ordered_json();
  return out;
}

/// All runs by name, newest first.
int list_runs(const PsArgs& args, const Context& context) {
  std::error_code error;
  std::set<std::filesystem::path> names;
  for (const auto& entry : std::filesystem::directory_iterator(args.runs_dir, error))
    names.insert(entry.path());
  auto json = nlohmann::ordered_json::array();
  const auto paint = context.console.result_paint;
  const double now = unix_now();
  report::Table table({"name", "run", "state", "exit", "step", "age", "duration", "site", "nodes"});
  table.leave_out({8, 7, 6});  // nodes, site, duration
  report::Table preflights({"preflight of", "run"});
  for (const auto& name : names) {
    for (const auto& folder : launch::runs_of(name)) {
      const auto view = view_run(args.runs_dir, folder.string());
      if (!view) {
        if (std::filesystem::exists(folder, error)) context.console.error(view.error());
        continue;  // it has been removed in the meantime
      }
      json.push_back(json_of(*view));
      if (view->preflight_only) {
        preflights.add({view->name, view->id});
        continue;
      }
      const bool failed = view->exit_code.value_or(view->alive ? 0 : 1) != 0;
      const auto until = supervise::parse_utc(view->ended).value_or(now);
      const bool has_begun = !view->started.empty();
      table.add({view->name, view->id,
                 view->alive ? paint.green(view->state)
                 : failed    ? paint.red(view->state)
                             : view->state,
                 view->exit_code ? std::to_string(*view->exit_code) : "", last_step(*view),
                 has_begun ? report::time_span(seconds_between(view->started, now)) : "",
                 has_begun ? report::time_span(seconds_between(view->started, until)) : "", view->site,
                 view->nodes > 0 ? std::to_string(view->nodes) : ""});
    }
  }
  if (args.json) {
    context.console.result(json_text(json, 2) + "\n");
  } else if (json.empty()) {
    context.console.result(fmt::format("no runs in '{}'; look elsewhere with --runs-dir\n",
                                       std::filesystem::absolute(args.runs_dir).string()));
  } else {
    const auto gap = table.empty() || preflights.empty() ? "" : "\n";
    context.console.result((table.empty() ? "" : table.str(paint)) + gap +
                           (preflights.empty() ? "" : preflights.str(paint)));
  }
  return 0;
}

/// With what its log and its node say of each process, where the run has begun.
std::vector<report::TopProcess> looked_at(const RunView& view, const std::string& runs_dir) {
  std::error_code error;
  if (!std::filesystem::exists(view.folder / "events.jsonl", error)) return {};
  auto live = LiveRun::open(runs_dir, view.folder.string());
  if (!live) return {};
  auto processes = live->refresh().processes;
  for (auto& process : processes) live->look_at(process);
  return processes;
}

std::string process_table(const RunView& view, const std::string& runs_dir, const report::Paint& paint) {
  std::map<std::string, report::TopProcess> looked;
  for (auto& process : looked_at(view, runs_dir)) looked.emplace(process.name, process);
  constexpr std::size_t kMostOfLine = 120;
  report::Table table({"process", "node", "gpu", "pid", "state", "last line"});
  table.leave_out({3, 2});  // pid, gpu
  table.shorten_last();
  for (const auto& process : view.processes) {
    const auto more = looked.find(process.name);
    const bool known = more != looked.end();
    table.add({process.name, process.host, known ? more->second.gpus : "",
               process.pid > 0 ? std::to_string(process.pid) : "",
               process.alive ? paint.green(process.state) : process.state,
               known ? report::fitted(text::printable(more->second.last_line), kMostOfLine) : ""});
  }
  return table.str(paint);
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
                               {"links", nlohmann::ordered_json::array()},
                               {"processes", nlohmann::ordered_json::array()}};
    for (const auto& link : view->links)
      out["links"].push_back({{"kind", link.kind}, {"url", link.url}, {"process", link.process}});
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
  for (const auto& link : view->links) context.console.result(link.str() + "\n");
  context.console.result(process_table(*view, args.runs_dir, paint));
  return 0;
}

void add_ps(Command program, Context& context) {
  auto args = std::make_shared<PsArgs>();
  auto command = program.subcommand("ps", "List the runs, or the processes of one run")
                     .examples({"nlaunch ps", "nlaunch ps grpo"});
  command.option("RUN", args->run, fmt::format("{}; omit it to list all runs", kRunHelp));
  command.option("--runs-dir", args->runs_dir, "Directory that contains the runs [default: runs]");
  command.flag("--json", args->json, "Print JSON");
  command.when_called(
      [args, &context] { context.run = [args, &context] { return run_ps(*args, context); }; });
}

const Registered<cli::CommandEntry> ps_command{{"ps", 120, add_ps, CommandGroup::see}};

}  // namespace

}  // namespace nlaunch::commands

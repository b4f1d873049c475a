#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/units.h"
#include "cli/console.h"
#include "launch/run_dir/run_folder.h"
#include "report/run_report.h"
#include "session/run_view.h"
#include "sys/files.h"

namespace nlaunch::commands {

using namespace cli;
using namespace session;
namespace {

namespace fs = std::filesystem;

struct ReportArgs {
  std::string run;
  std::string runs_dir = "runs";
  std::string html;
  std::string since;
  bool all = false;
  bool json = false;
};

/// A run that was read, and where its files stay while it is reported.
struct Reported {
  std::unique_ptr<record::RunFiles> files;
  report::RunReport report;
};

/// `metrics`: their values are in the logs, which may be large.
Result<Reported> read(const std::string& runs_dir, const std::string& run, bool metrics) {
  const auto view = view_run(runs_dir, run);
  if (!view) return std::unexpected(view.error());
  auto files = record::read_run(fs::canonical(view->folder), record::Parts::without_nodes);
  if (!files) return std::unexpected(files.error());
  Reported out{std::make_unique<record::RunFiles>(std::move(*files)), {}};
  out.report = report::report_of(*out.files, view->state, unix_now(), view->alive, metrics);
  return out;
}

/// The run of the same name that was started before this one.
void add_run_before(report::RunReport& report, const std::string& runs_dir) {
  const auto runs = launch::runs_of(report.files->folder.parent_path());
  auto at = std::ranges::find(runs, report.files->folder.filename(),
                              [](const fs::path& run) { return run.filename(); });
  if (at == runs.end()) return;
  for (++at; at != runs.end(); ++at) {
    auto before = read(runs_dir, at->string(), true);
    // One that was refused tells nothing of the time of steps.
    if (!before || before->report.timeline.processes.empty()) continue;
    report.before = {at->filename().string(), before->report.state, std::move(before->report.timeline),
                     std::move(before->report.metrics)};
    return;
  }
}

int report_one(const ReportArgs& args, const Context& context) {
  auto read_one = read(args.runs_dir, args.run, true);
  if (!read_one) return context.console.error(read_one.error());
  auto& report = read_one->report;
  for (const auto& damage : read_one->files->damaged.items()) context.console.warn(damage.message);
  add_run_before(report, args.runs_dir);
  if (!args.html.empty()) {
    if (const auto saved = sys::write_named_file(args.html, report::run_report_html(report)); !saved)
      return context.console.error(saved.error());
  }
  context.console.result(args.json ? json_text(report::run_report_json(report), 2) + "\n"
                                   : report::run_report_text(report, context.console.result_paint));
  return 0;
}

int report_all(const ReportArgs& args, const Context& context) {
  double from = 0;
  if (!args.since.empty()) from = unix_now() - static_cast<double>(parse_duration(args.since)->count()) / 1e3;
  std::error_code error;
  std::vector<fs::path> names;
  for (const auto& entry : fs::directory_iterator(args.runs_dir, error)) names.push_back(entry.path());
  std::ranges::sort(names);
  std::vector<std::unique_ptr<record::RunFiles>> files;
  std::vector<report::RunReport> reports;
  for (const auto& name : names) {
    for (const auto& folder : launch::runs_of(name)) {
      auto one = read(args.runs_dir, folder.string(), args.json);
      if (!one) {
        context.console.warn(one.error().first_message());
        continue;
      }
      if (one->report.timeline.began < from || one->report.timeline.processes.empty()) continue;
      files.push_back(std::move(one->files));
      reports.push_back(std::move(one->report));
    }
  }
  if (args.json) {
    auto out = nlohmann::ordered_json::array();
    for (const auto& report : reports) out.push_back(report::run_report_json(report));
    context.console.result(json_text(out, 2) + "\n");
  } else if (reports.empty()) {
    context.console.result(fmt::format("no run in '{}' started a process{}; --runs-dir looks elsewhere\n",
                                       fs::absolute(args.runs_dir).string(),
                                       args.since.empty() ? "" : " in the last " + args.since));
  } else {
    context.console.result(report::runs_report_text(reports, context.console.result_paint));
  }
  return 0;
}

void check_usage(const ReportArgs& args) {
  if (args.all && !args.run.empty()) excluded("RUN", "--all");
  if (!args.all && args.run.empty()) missing("RUN (or --all)");
  if (!args.since.empty() && !args.all) wrong_usage("--since needs --all");
  if (!args.html.empty() && args.all) excluded("--html", "--all");
}

void add_report(Command program, Context& context) {
  auto args = std::make_shared<ReportArgs>();
  auto command = program.subcommand("report", "Show how a run went and where its time went")
                     .examples({"nlaunch report grpo", "nlaunch report grpo --html report.html",
                                "nlaunch report --all --since 30d"});
  command.option("RUN", args->run, kRunHelp);
  command.flag("--all", args->all, "All runs: a line for each, and where their time went");
  command.option("--since", args->since, "With --all: only runs that started within this time, such as 30d")
      .value_name("TIME")
      .checked([](const std::string& text) {
        const auto time = parse_duration(text);
        return time ? std::string() : time.error();
      });
  command.option("--html", args->html, "Also write a page with charts").value_name("FILE");
  command.option("--runs-dir", args->runs_dir, "Directory that contains the runs [default: runs]");
  command.flag("--json", args->json, "Print JSON");
  command.when_called([args, &context] {
    check_usage(*args);
    context.run = [args, &context] {
      return args->all ? report_all(*args, context) : report_one(*args, context);
    };
  });
}

const Registered<cli::CommandEntry> report_command{{"report", 135, add_report, CommandGroup::see}};

}  // namespace

}  // namespace nlaunch::commands

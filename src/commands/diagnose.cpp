#include <nlohmann/json.hpp>

#include "diagnose/diagnose.h"

#include <algorithm>

#include "base/exit_code.h"
#include "base/json.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/console.h"
#include "diagnose/signature.h"
#include "report/diagnose_text.h"
#include "session/interrupts.h"
#include "session/run_view.h"
#include "sys/topology.h"

namespace nlaunch::commands {

using namespace cli;
using namespace session;
namespace {

constexpr unsigned kMostThreads = 16;  // more wait for the file system, or for the one that judges

struct DiagnoseArgs {
  std::vector<std::string> paths;
  std::string patience;
  std::string runs_dir = "runs";
  bool all = false;
  bool list = false;
  bool json = false;
};

int list(const DiagnoseArgs& args, const Context& context) {
  context.console.result(args.json ? json_text(report::signatures_json(), 2) + "\n"
                                   : report::signatures_text(context.console.result_paint));
  return exit_code::ok;
}

/// If it is not a path, it may be the id or name of a run.
std::string path_of(const std::string& named, const std::string& runs_dir) {
  std::error_code error;
  if (named == "-" || std::filesystem::exists(std::filesystem::symlink_status(named, error))) return named;
  const auto run = find_run(runs_dir, named);
  return run ? run->string() : named;
}

int run_diagnose(const DiagnoseArgs& args, const Context& context) {
  if (args.list) return list(args, context);
  if (args.paths.empty()) {
    context.console.say(
        "nlaunch diagnose: missing PATH: logs, directories, archives, a run of nlaunch, or - for standard "
        "input\n");
    return exit_code::usage;
  }
  diagnose::Options options;
  if (!args.patience.empty()) {
    const auto patience = parse_duration(args.patience);
    if (!patience) {
      context.console.say(
          fmt::format("nlaunch diagnose: --patience {}: {}\n", args.patience, patience.error()));
      return exit_code::usage;
    }
    options.patience = *patience;
  }
  const Interrupts interrupts;
  options.enough = [] { return Interrupts::received() != 0; };
  options.threads = std::min(kMostThreads, static_cast<unsigned>(sys::allowed_cpus().size()));
  std::vector<std::string> paths;
  for (const auto& named : args.paths) paths.push_back(path_of(named, args.runs_dir));
  const auto diagnosis = diagnose::diagnose(paths, options);
  if (!diagnosis.unread.empty()) context.console.error(diagnosis.unread);
  if (diagnosis.inputs.empty()) return exit_code::bad_input;
  if (args.json) {
    context.console.result(json_text(report::diagnose_json(diagnosis), 2) + "\n");
  } else {
    context.console.result(report::diagnose_text(diagnosis, context.console.result_paint, args.all));
  }
  if (diagnosis.unread.has_errors()) return exit_code::bad_input;
  return diagnosis.findings.empty() ? exit_code::ok : exit_code::diagnose_found;
}

void add_diagnose(Command program, Context& context) {
  auto args = std::make_shared<DiagnoseArgs>();
  auto command = program.subcommand("diagnose", "Find out from logs what went wrong: cause, culprit and fix")
                     .examples({"nlaunch diagnose grpo", "nlaunch diagnose slurm-1234.out",
                                "nlaunch diagnose logs/ --all"});
  command.option(
      "PATH", args->paths,
      "Logs of any program: files, directories, archives, - for standard input; or a run's path, id or name");
  command.option("--patience", args->patience, "How long to read from a pipe that stays open [default: 10m]")
      .value_name("TIME");
  command.option("--runs-dir", args->runs_dir, "Directory that contains the runs [default: runs]");
  command.flag("--all", args->all, "Show all findings, including notes");
  command.flag("--list", args->list, "List the known signatures");
  command.flag("--json", args->json, "Print JSON");
  command.when_called(
      [args, &context] { context.run = [args, &context] { return run_diagnose(*args, context); }; });
}

const Registered<cli::CommandEntry> diagnose_command{
    {"diagnose", 165, add_diagnose, CommandGroup::see, exit_code::kDiagnoseMeanings}};

}  // namespace

}  // namespace nlaunch::commands

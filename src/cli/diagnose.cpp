#include "diagnose/diagnose.h"

#include "base/exit_code.h"
#include "base/json.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/context.h"
#include "cli/interrupt.h"
#include "cli/run_view.h"
#include "diagnose/signature.h"
#include "report/diagnose_text.h"

namespace nlaunch::cli {
namespace {

struct Args {
  std::vector<std::string> paths;
  std::string patience;
  std::string runs_dir = "runs";
  bool all = false;
  bool list = false;
  bool json = false;
};

int list(const Args& args, const Context& context) {
  print(args.json ? json_text(report::signatures_json(), 2) + "\n" : report::signatures_text(context.out()));
  return exit_code::ok;
}

/// What is no path may be a run, by its id or name.
std::string path_of(const std::string& named, const std::string& runs_dir) {
  std::error_code error;
  if (named == "-" || std::filesystem::exists(std::filesystem::symlink_status(named, error))) return named;
  const auto run = find_run(runs_dir, named);
  return run ? run->string() : named;
}

int run(const Args& args, const Context& context) {
  if (args.list) return list(args, context);
  if (args.paths.empty()) {
    say("nlaunch diagnose: what? Logs, folders or archives, a run of nlaunch, or - for standard input\n");
    return exit_code::usage;
  }
  diagnose::Options options;
  if (!args.patience.empty()) {
    const auto patience = parse_duration(args.patience);
    if (!patience) {
      say(fmt::format("nlaunch diagnose: --patience {}: {}\n", args.patience, patience.error()));
      return exit_code::usage;
    }
    options.patience = *patience;
  }
  const Interrupts interrupts;
  options.enough = [] { return Interrupts::received() != 0; };
  std::vector<std::string> paths;
  for (const auto& named : args.paths) paths.push_back(path_of(named, args.runs_dir));
  const auto diagnosis = diagnose::diagnose(paths, options);
  if (!diagnosis.unread.empty()) complain(context, diagnosis.unread);
  if (diagnosis.inputs.empty()) return exit_code::bad_input;
  if (args.json) {
    print(json_text(report::diagnose_json(diagnosis), 2) + "\n");
  } else {
    print(report::diagnose_text(diagnosis, context.out(), args.all));
  }
  if (diagnosis.unread.has_errors()) return exit_code::bad_input;
  return diagnosis.findings.empty() ? exit_code::ok : exit_code::diagnose_found;
}

}  // namespace

void add_diagnose(CLI::App& app, Context& context) {
  auto args = std::make_shared<Args>();
  auto* command = app.add_subcommand("diagnose", "What went wrong, from logs: cause, culprit and fix");
  command->add_option(
      "PATH", args->paths,
      "Logs of any program: files, folders, archives, - for standard input; or a run's path, id or name");
  command->add_option("--patience", args->patience, "How long a pipe without an end is read (10m)");
  command->add_option("--runs-dir", args->runs_dir, "Where run directories are (runs)");
  command->add_flag("--all", args->all, "Everything that was found, notes too");
  command->add_flag("--list", args->list, "The signatures that are looked for");
  command->add_flag("--json", args->json, "As JSON");
  command->callback([args, &context] { context.run = [args, &context] { return run(*args, context); }; });
}

}  // namespace nlaunch::cli

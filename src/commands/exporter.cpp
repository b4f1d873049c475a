#include <sys/stat.h>
#include <unistd.h>

#include "base/exit_code.h"
#include "cli/console.h"
#include "session/exporter.h"

// `nlaunch exporter`: exports the metrics of a run, for the nlaunch that leads it and that started this
// process.
namespace nlaunch::commands {

using namespace cli;
namespace {

struct ExporterArgs {
  std::string run;
  std::string file;
};

int run_exporter(const ExporterArgs& args, const Context& context) {
  struct stat input {};
  if (::fstat(STDIN_FILENO, &input) != 0 || !S_ISSOCK(input.st_mode)) {
    context.console.say("nlaunch exporter: nlaunch itself starts this command\n");
    return exit_code::usage;
  }
  session::export_metrics(args.run, args.file);
  return exit_code::ok;
}

void add_exporter(Command program, Context& context) {
  auto args = std::make_shared<ExporterArgs>();
  auto command = program.subcommand("exporter", "Export the metrics of a run");
  command.option("RUN", args->run, "Run directory").required();
  command.option("--file", args->file, "File for node_exporter's textfile collector");
  command.when_called(
      [args, &context] { context.run = [args, &context] { return run_exporter(*args, context); }; });
}

const Registered<cli::CommandEntry> exporter_command{{"exporter", 240, add_exporter}};

}  // namespace

}  // namespace nlaunch::commands

#include <memory>

#include "base/exit_code.h"
#include "base/text.h"
#include "cli/console.h"
#include "session/run_request.h"
#include "session/run_view.h"

// `nlaunch restart`, `drain` and `scale`: what a run is asked for while it goes on.
namespace nlaunch::commands {

using namespace cli;
using namespace session;
namespace {

using supervise::RunRequest;

struct SteerArgs {
  std::string run;
  std::string what;
  std::string runs_dir = "runs";
};

/// What all three have in common; `read` makes a request of what was typed, or says what is wrong with it.
using Read = std::expected<RunRequest, std::string> (*)(const std::string& what);
void add(Command program, Context& context, const std::string& name, const std::string& help,
         const std::string& what, const std::string& what_help, Read read) {
  auto args = std::make_shared<SteerArgs>();
  auto command = program.subcommand(name, help);
  command.option("RUN", args->run, kRunHelp).required();
  command.option(what, args->what, what_help).required();
  command.option("--runs-dir", args->runs_dir, "Where run directories are (runs)");
  command.when_called([args, read, name, &context] {
    context.run = [args, read, name, &context] {
      const auto request = read(args->what);
      if (request) return ask_run(args->runs_dir, args->run, *request, context);
      context.console.say(fmt::format("nlaunch {}: {}\n", name, request.error()));
      return int{exit_code::usage};
    };
  });
}

std::expected<RunRequest, std::string> scale_of(const std::string& what) {
  const auto equals = what.find('=');
  const auto count =
      equals == std::string::npos ? std::nullopt : text::whole_number<std::uint32_t>(what.substr(equals + 1));
  if (!count) return std::unexpected(fmt::format("'{}' is not ROLE=N", text::printable(what)));
  return RunRequest{RunRequest::Kind::scale, what.substr(0, equals), *count};
}

void add_restart(Command program, Context& context) {
  add(program, context, "restart", "Starts processes of a run again, with the same plan", "WHAT",
      "A role, or one replica of it: engine, engine.3",
      [](const std::string& what) -> std::expected<RunRequest, std::string> {
        return RunRequest{RunRequest::Kind::restart, what};
      });
}

void add_drain(Command program, Context& context) {
  add(program, context, "drain", "Stops what a run has on a node and leaves it; a spare takes its place",
      "NODE", "Name of the node, as nlaunch ps has it",
      [](const std::string& what) -> std::expected<RunRequest, std::string> {
        return RunRequest{RunRequest::Kind::drain, what};
      });
}

void add_scale(Command program, Context& context) {
  add(program, context, "scale", "Stops replicas of a role, or starts those again that were stopped so",
      "ROLE=N", "So many of the plan's replicas are to run", scale_of);
}

const Registered<cli::CommandEntry> restart_command{{"restart", 142, add_restart}};
const Registered<cli::CommandEntry> drain_command{{"drain", 144, add_drain}};
const Registered<cli::CommandEntry> scale_command{{"scale", 146, add_scale}};

}  // namespace

}  // namespace nlaunch::commands

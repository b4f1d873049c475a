#include <memory>

#include "base/exit_code.h"
#include "base/text.h"
#include "cli/console.h"
#include "session/run_request.h"
#include "session/run_view.h"

// `nlaunch restart`, `drain` and `scale`: requests to a running run.
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

/// The common part; `read` turns the argument into a request, or returns the problem with it.
using Read = std::expected<RunRequest, std::string> (*)(const std::string& what);
void add(Command program, Context& context, const std::string& name, const std::string& help,
         const std::vector<std::string>& examples, const std::string& what, const std::string& what_help,
         Read read) {
  auto args = std::make_shared<SteerArgs>();
  auto command = program.subcommand(name, help).examples(examples);
  command.option("RUN", args->run, kRunHelp).required();
  command.option(what, args->what, what_help).required();
  command.option("--runs-dir", args->runs_dir, "Directory that contains the runs [default: runs]");
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
  if (!count) return std::unexpected(fmt::format("expected ROLE=N, got '{}'", text::printable(what)));
  return RunRequest{RunRequest::Kind::scale, what.substr(0, equals), *count};
}

void add_restart(Command program, Context& context) {
  add(program, context, "restart", "Restart processes of a run, with the same plan",
      {"nlaunch restart grpo engine", "nlaunch restart grpo engine.3"}, "WHAT",
      "Role or replica, such as engine or engine.3",
      [](const std::string& what) -> std::expected<RunRequest, std::string> {
        return RunRequest{RunRequest::Kind::restart, what};
      });
}

void add_drain(Command program, Context& context) {
  add(program, context, "drain",
      "Stop what a run has on a node and leave the node; a spare node takes its place",
      {"nlaunch drain grpo nid001234", "nlaunch drain 48213 nid001234"}, "NODE",
      "Name of the node, as in nlaunch ps",
      [](const std::string& what) -> std::expected<RunRequest, std::string> {
        return RunRequest{RunRequest::Kind::drain, what};
      });
}

void add_scale(Command program, Context& context) {
  add(program, context, "scale", "Stop replicas of a role, or start stopped ones again",
      {"nlaunch scale grpo engine=2", "nlaunch scale grpo engine=4"}, "ROLE=N",
      "Number of the plan's replicas that should run", scale_of);
}

const Registered<cli::CommandEntry> restart_command{{"restart", 142, add_restart, CommandGroup::run}};
const Registered<cli::CommandEntry> drain_command{{"drain", 144, add_drain, CommandGroup::run}};
const Registered<cli::CommandEntry> scale_command{{"scale", 146, add_scale, CommandGroup::run}};

}  // namespace

}  // namespace nlaunch::commands

#include <sys/prctl.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <thread>

#include "base/exit_code.h"
#include "base/scheduler_traits.h"
#include "base/text.h"
#include "cli/console.h"
#include "fleet/agent.h"
#include "fleet/beaker_target.h"
#include "fleet/tree.h"
#include "launch/install.h"
#include "launch/job/allocation.h"
#include "launch/job/places.h"
#include "launch/job/pyxis.h"
#include "launch/job/step.h"
#include "launch/machine.h"
#include "plan/json.h"
#include "sys/files.h"
#include "sys/spawn.h"

// `nlaunch agent`: runs on a node, started by `nlaunch run`.
namespace nlaunch::commands {

using namespace cli;
using namespace session;
namespace {

/// srun ends the step as soon as one task fails, and sometimes loses the last output of that task.
constexpr Duration kForLastWords = std::chrono::milliseconds(300);
constexpr Duration kToConnect = std::chrono::minutes(2);
constexpr std::uint64_t kLargestFile = 1U << 30U;

std::optional<std::uint32_t> index_of(const std::string& host, const std::vector<std::string>& nodes) {
  const auto found = std::ranges::find(nodes, host);
  return found == nodes.end() ? std::nullopt
                              : std::optional(static_cast<std::uint32_t>(found - nodes.begin()));
}

Result<plan::Plan> plan_of(const launch::Step& step) {
  const auto text = sys::read_regular_file(step.plan, kLargestFile);
  if (!text) return std::unexpected(text.error());
  return plan::from_json(*text, step.plan);
}

/// Through which agents this one connects, and whether it relays for others.
void find_relays(const launch::Step& step, std::uint32_t node, fleet::Agent::Options& options) {
  const auto port_of = [&](std::uint32_t relay) {
    return static_cast<std::uint16_t>(step.relay_port + relay);
  };
  for (const auto relay : fleet::relays_of(node, step.fan_out))
    if (relay < step.relays.size()) options.relays.push_back({step.relays[relay], port_of(relay)});
  if (node < step.relays.size()) options.relay_port = port_of(node);
}

/// `given`: the node of the plan, for an agent that takes a place later.
int agent_of_step(const std::string& step_file, std::optional<unsigned> given, const Context& context) {
  const auto host = launch::node_name(context.environment);
  const auto complain_here = [&](const Diagnostics& why) {
    context.console.say(fmt::format(
        "nlaunch agent on {}: error: {}; the run directory must be on a file system that all nodes "
        "share (--runs-dir)\n",
        host, why.first_message()));
    std::this_thread::sleep_for(kForLastWords);
    return exit_code::bad_input;
  };
  auto step = launch::read_step(step_file);
  if (!step) return complain_here(step.error());
  auto plan = plan_of(*step);
  if (!plan) return complain_here(plan.error());
  const auto& traits = traits_of(plan->scheduler);
  const auto id = std::string(sys::env_value(context.environment, traits.rank_variable));
  const auto index = given                 ? given
                     : step->nodes.empty() ? text::whole_number<std::uint32_t>(id)
                                           : index_of(host, step->nodes);
  if (!index || *index >= plan->all_nodes()) {
    context.console.say(fmt::format(
        "nlaunch agent on {}: error: {} is not a node of the plan: agents are started by {}\n", host,
        step->nodes.empty() ? fmt::format("{}='{}'", traits.rank_variable, text::printable(id)) : "this",
        traits.step));
    return exit_code::usage;
  }
  fleet::Agent::Options options{
      {step->addresses, step->port, step->token, "", *index, kToConnect}, host, "", true, step_file};
  if (!given) find_relays(*step, *index, options);
  const auto guardian = fleet::enter_agent(host, context);
  return fleet::Agent(std::move(options), std::move(*plan), context, guardian).run();
}

/// For the batch script of a borrowed node: starts the agent as a step of that job, just as the agents of the
/// run's own job are steps of theirs. Returns only on failure.
int agent_by_srun(const std::string& step_file, unsigned node, const Context& context) {
  const auto complain = [&](const std::string& why) {
    context.console.say(fmt::format("nlaunch agent: error: {}\n", why));
    return exit_code::bad_input;
  };
  const auto step = launch::read_step(step_file);
  if (!step) return complain(step.error().first_message());
  const auto plan = plan_of(*step);
  if (!plan) return complain(plan.error().first_message());
  const auto allocation = launch::find_allocation(context.environment);
  if (!allocation) return complain(allocation.error().first_message());
  if (!*allocation || (*allocation)->nodes.size() != 1)
    return complain("this job does not have exactly one node");
  const auto install = launch::find_install();
  const auto run_folder = std::filesystem::path(step->plan).parent_path().string();
  auto command = launch::pyxis_options(*plan, install, run_folder);
  for (const auto& word : {install.program, std::string("agent"), std::string("--step"), step_file,
                           std::string("--node"), std::to_string(node)})
    command.push_back(word);
  const auto words = launch::srun_command(*plan, **allocation, (*allocation)->nodes, command);
  const auto program = sys::find_program(words.front(), sys::env_value(context.environment, "PATH"), "");
  if (!program) return complain(program.error().first_message());
  sys::become(*program, words, launch::srun_environment(context.environment));
  return complain(fmt::format("cannot execute {}: {}", *program, std::strerror(errno)));
}

/// Prints where this node is in the network.
int say_where(const Context& context) {
  const auto machine = launch::discover(launch::find_install().probe);
  context.console.result(
      launch::place_line(launch::node_name(context.environment),
                         launch::place_of(context.environment, machine ? *machine : launch::this_host())));
  return exit_code::ok;
}

void add_agent(Command program, Context& context) {
  auto step = std::make_shared<std::string>();
  auto plan = std::make_shared<std::string>();
  auto command = program.subcommand("agent", "Run the agent of a node (started by `nlaunch run`)");
  auto of_step = command.option("--step", *step, "step.json of the attempt");
  command.option("--leader", *plan, "On the leader of replicas: the run's plan.json").excludes(of_step);
  auto node = std::make_shared<std::optional<unsigned>>();
  command.option("--node", *node, "With --step: number of this node in the plan");
  auto by_srun = std::make_shared<bool>(false);
  command.flag("--by-srun", *by_srun,
               "With --step: in a separate job, start the agent as a step of that job");
  auto where = std::make_shared<bool>(false);
  command.flag("--where", *where, "Before the run's step: print where this node is in the network")
      .excludes(of_step);
  command.when_called([step, plan, node, by_srun, where, &context] {
    context.run = [step, plan, node, by_srun, where, &context] {
      if (*by_srun) return agent_by_srun(*step, node->value_or(0), context);
      // If the parent is killed, nothing else notifies this process.
      ::prctl(PR_SET_PDEATHSIG, SIGTERM);
      if (*where) return say_where(context);
      return plan->empty() ? agent_of_step(*step, *node, context) : fleet::agent_of_leader(*plan, context);
    };
  });
}

const Registered<cli::CommandEntry> agent_command{{"agent", 220, add_agent}};

}  // namespace

}  // namespace nlaunch::commands

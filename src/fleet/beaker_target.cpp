#include "fleet/beaker_target.h"

#include "base/exit_code.h"
#include "base/text.h"
#include "emit/beaker_spec.h"
#include "fleet/agent.h"
#include "fleet/leader.h"
#include "launch/bind/bind.h"
#include "launch/job/step.h"
#include "launch/run_dir/run_folder.h"
#include "sys/files.h"
#include "sys/spawn.h"

namespace nlaunch::fleet {
namespace {

/// Beaker sends SIGTERM to a job that it stops, and SIGKILL some time later; it does not document when.
constexpr Duration kKillWait = std::chrono::seconds(30);

std::string token_of(const std::vector<std::string>& environment) {
  return std::string(text::trim(sys::env_value(environment, emit::kTokenVariable)));
}

class Replicas : public AgentLauncher {
 public:
  Replicas(const plan::Plan& plan, const launch::Replica& replica, const session::Caller& caller)
      : plan_(plan), replica_(replica), caller_(caller) {}

  [[nodiscard]] std::vector<std::string> nodes() const override {
    return std::vector<std::string>(replica_.count);
  }
  [[nodiscard]] std::string starter() const override { return "the agent of this node"; }
  [[nodiscard]] std::string log() const override { return "agent.log"; }
  Result<std::vector<Start>> start(const launch::RunPaths& paths, std::uint16_t /*port*/,
                                   const std::string& /*token*/) override {
    return std::vector{Start{{(sys::executable_folder() / "nlaunch").string(), "agent", "--leader",
                              (paths.folder / "plan.json").string()},
                             caller_.environment}};
  }
  [[nodiscard]] std::string token() const override { return token_of(caller_.environment); }
  [[nodiscard]] std::uint16_t port() const override { return plan_.beaker.port; }
  [[nodiscard]] Duration patience() const override { return plan_.beaker.start_timeout; }
  [[nodiscard]] Duration kill_wait() const override { return kKillWait; }
  [[nodiscard]] bool shares_a_folder() const override { return false; }
  [[nodiscard]] std::string look_at(const std::string& host) const override {
    return fmt::format("check the node and the log of the replica that ran on {}", host);
  }

 private:
  const plan::Plan& plan_;
  const launch::Replica& replica_;
  const session::Caller& caller_;
};

Agent::Options options_for(const plan::Plan& plan, const launch::Replica& replica,
                           std::vector<std::string> addresses, const session::Caller& caller) {
  return {{std::move(addresses), plan.beaker.port, token_of(caller.environment), "", replica.rank,
           plan.beaker.start_timeout},
          replica.host,
          plan.beaker.result,
          false};
}

}  // namespace

std::string misfit(const plan::Plan& plan, const launch::Replica& replica,
                   const std::vector<std::string>& environment) {
  constexpr std::size_t kLeast = 16;  // a shorter one could be guessed from the network traffic
  if (replica.count != plan.node.count) {
    return fmt::format("the plan has {}, but this task has {}", text::count(plan.node.count, "node"),
                       text::count(replica.count, "replica"));
  }
  if (replica.count == 1) return "";
  const auto token = token_of(environment);
  if (token.size() >= kLeast) return "";
  return fmt::format(
      "{} {}: replicas authenticate each other with it. The spec reads it from the Beaker secret '{}'; "
      "create it once in the workspace: openssl rand -hex 32 | beaker secret write {}",
      emit::kTokenVariable,
      token.empty() ? "is not set" : fmt::format("has fewer than {} characters", kLeast), plan.beaker.token,
      plan.beaker.token);
}

std::unique_ptr<session::AttemptHost> BeakerTarget::next(const supervise::GuardianLink& guardian) {
  return std::make_unique<Leader>(plan_, share_, std::make_unique<Replicas>(plan_, replica_, caller_),
                                  caller_, guardian);
}

supervise::GuardianLink enter_agent(const std::string& host, const session::Caller& caller) {
  return supervise::enter_guarded([host, console = caller.console](const supervise::SupervisorLost& lost) {
    console.say(fmt::format("nlaunch agent on {}: its supervisor {}; {} killed\n", host, lost.status.str(),
                            text::count(lost.swept.killed.size(), "process")));
    // An agent announces not the run directory, whose summary others write, but its scratch directory.
    if (!lost.run_folder.empty()) launch::remove_scratch(lost.run_folder);
  });
}

int follow_leader(const plan::Plan& plan, const launch::Replica& replica, const session::Caller& caller) {
  if (!caller.console.quiet) {
    caller.console.say(fmt::format("nlaunch agent on {}: replica {} of {}; the leader is {}\n", replica.host,
                                   replica.rank, replica.count, replica.leader));
  }
  const auto guardian = enter_agent(replica.host, caller);
  for (;;) {
    Agent agent(options_for(plan, replica, {replica.leader}, caller), plan, caller, guardian);
    const int code = agent.run();
    if (!agent.wanted_again()) return code;
  }
}

int agent_of_leader(const std::string& plan_file, const session::Caller& caller) {
  const auto plan = launch::read_plan(plan_file);
  if (!plan) return caller.console.error(plan.error());
  const auto replica = launch::find_replica(caller.environment);
  if (!replica) return caller.console.error(replica.error());
  if (!*replica) {
    caller.console.say("nlaunch agent: not running in a Beaker replica\n");
    return exit_code::usage;
  }
  const auto guardian = enter_agent((*replica)->host, caller);
  // The leader's own name may not resolve on its own host.
  return Agent(options_for(*plan, **replica, {(*replica)->leader, "127.0.0.1"}, caller), *plan, caller,
               guardian)
      .run();
}

}  // namespace nlaunch::fleet

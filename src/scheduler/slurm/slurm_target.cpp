#include "scheduler/slurm/slurm_target.h"

#include <algorithm>

#include "base/text.h"
#include "fleet/leader.h"
#include "launch/install.h"
#include "launch/job/bad_nodes.h"
#include "launch/job/node_order.h"
#include "launch/job/pyxis.h"
#include "launch/job/slurm_job.h"
#include "scheduler/step.h"
#include "sys/files.h"

namespace nlaunch::scheduler {
namespace {

/// Keeps in the site's list a node that its administrator must mend. What came of it, as a sentence; empty:
/// nothing.
std::string record_bad(const plan::Plan& plan, const preflight::Suspect& suspect) {
  const auto& file = plan.slurm.bad_nodes;
  if (file.empty() || suspect.responsible != preflight::Responsible::admin) return "";
  const auto recorded = launch::record_bad_node(file, suspect.host, suspect.reason, sys::user_name());
  return recorded ? fmt::format("{} is now in {} ({})", suspect.host, file, suspect.reason)
                  : recorded.error().first_message();
}

/// A step of the allocation: srun starts an agent on each node.
class SlurmStep : public StepLauncher {
 public:
  struct Choice {
    std::vector<std::string> nodes;
    std::string refusal;  ///< why they cannot have the run; empty: they can
    std::set<std::string> out;
    launch::Places places;
  };
  SlurmStep(const plan::Plan& plan, const launch::Allocation& allocation, Choice choice,
            const session::Caller& caller)
      : StepLauncher(plan), allocation_(allocation), choice_(std::move(choice)), caller_(caller) {}

  [[nodiscard]] std::string unfit() const override { return choice_.refusal; }

  [[nodiscard]] std::vector<std::string> nodes() const override { return choice_.nodes; }
  [[nodiscard]] std::vector<std::string> hosts_for(std::uint32_t node) const override {
    return launch::hosts_for(plan(), allocation_, choice_.out, choice_.places, node, choice_.nodes.at(node));
  }
  std::string note_unfit(const preflight::Suspect& suspect) override {
    choice_.out.insert(suspect.host);
    return record_bad(plan(), suspect);
  }
  [[nodiscard]] std::string log() const override { return "srun.log"; }
  [[nodiscard]] Duration kill_wait() const override { return launch::kill_wait(caller_.environment); }
  [[nodiscard]] std::string look_at(const std::string& host) const override {
    return "look at the node: `scontrol show node " + host + "`, and at srun.log of the attempt";
  }

 private:
  /// srun counts them in the order of the allocation.
  [[nodiscard]] bool counts_as_planned() const override {
    auto rest = allocation_.nodes.begin();
    return std::ranges::all_of(choice_.nodes, [&](const std::string& node) {
      rest = std::find(rest, allocation_.nodes.end(), node);
      return rest != allocation_.nodes.end();
    });
  }
  [[nodiscard]] bool divides() const override { return true; }
  [[nodiscard]] Start start_agents(const launch::RunPaths& paths, const std::vector<std::string>& hosts,
                                   const std::vector<std::string>& agent) const override {
    auto command = launch::pyxis_options(plan(), launch::find_install(), paths.folder.string());
    command.insert(command.end(), agent.begin(), agent.end());
    return {launch::srun_command(plan(), allocation_, hosts, command),
            launch::srun_environment(caller_.environment)};
  }

  const launch::Allocation& allocation_;
  Choice choice_;
  const session::Caller& caller_;
};

}  // namespace

SlurmTarget::SlurmTarget(const plan::Plan& plan, const launch::Allocation& allocation, bool share,
                         const session::Caller& caller)
    : plan_(plan), allocation_(allocation), share_(share), caller_(caller) {}

std::unique_ptr<session::AttemptHost> SlurmTarget::next(const supervise::GuardianLink& guardian) {
  auto nodes = choose();
  auto refusal = nodes ? std::string() : nodes.error();
  if (!nodes) nodes = std::vector(allocation_.nodes.begin(), allocation_.nodes.begin() + plan_.node.count);
  return std::make_unique<fleet::Leader>(
      plan_, share_,
      std::make_unique<SlurmStep>(plan_, allocation_,
                                  SlurmStep::Choice{std::move(*nodes), std::move(refusal), out_,
                                                    places_ ? places_->places : launch::Places()},
                                  caller_),
      caller_, guardian);
}

std::expected<std::vector<std::string>, std::string> SlurmTarget::choose() {
  std::string trouble;
  if (!places_ && launch::needs_places(plan_, caller_.environment)) {
    if (auto answered = launch::ask_places(plan_, allocation_, out_, caller_.environment))
      places_ = std::move(*answered);
    else
      trouble = answered.error().first_message();
  }
  if (places_) trouble = places_->trouble;
  auto nodes = launch::choose_nodes(plan_, allocation_, out_, places_ ? places_->places : launch::Places());
  if (nodes || trouble.empty()) return nodes;
  return std::unexpected(fmt::format("{}; {}", nodes.error(), trouble));
}

bool SlurmTarget::leave_out(const std::vector<preflight::Suspect>& suspects) {
  const auto before = out_;
  std::vector<std::string> names;
  for (const auto& suspect : suspects) {
    if (out_.insert(suspect.host).second) names.push_back(suspect.host);
  }
  if (names.empty() || !choose()) {
    out_ = before;
    return false;
  }
  const auto rest = static_cast<std::size_t>(std::ranges::count_if(
      allocation_.nodes, [this](const std::string& node) { return !out_.contains(node); }));
  caller_.console.say(fmt::format("nlaunch: {} {} left out; {} of job {} remain for the {} of the plan\n",
                                  text::join(names, ", "), names.size() == 1 ? "is" : "are",
                                  text::count(rest, "node"), allocation_.job_id, plan_.node.count));
  return true;
}

void SlurmTarget::record(const std::vector<preflight::Suspect>& suspects) {
  for (const auto& suspect : suspects) {
    if (const auto said = record_bad(plan_, suspect); !said.empty())
      caller_.console.say(fmt::format("nlaunch: {}\n", said));
  }
}

}  // namespace nlaunch::scheduler

#include "scheduler/slurm/slurm_target.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "fleet/leader.h"
#include "fleet/node_lender.h"
#include "launch/install.h"
#include "launch/job/bad_nodes.h"
#include "launch/job/job_script.h"
#include "launch/job/node_order.h"
#include "launch/job/pyxis.h"
#include "launch/job/slurm_job.h"
#include "scheduler/step.h"
#include "sys/files.h"

namespace nlaunch::scheduler {
namespace {

/// Adds a node that its administrator must repair to the site's list. Returns what was done as a sentence;
/// empty: nothing.
std::string record_bad(const plan::Plan& plan, const preflight::Suspect& suspect) {
  const auto& file = plan.slurm.bad_nodes;
  if (file.empty() || suspect.responsible != preflight::Responsible::admin) return "";
  const auto recorded = launch::record_bad_node(file, suspect.host, suspect.reason, sys::user_name());
  return recorded ? fmt::format("{} was added to {} ({})", suspect.host, file, suspect.reason)
                  : recorded.error().first_message();
}

/// Jobs of one node each.
class SlurmLender : public fleet::NodeLender {
 public:
  using Start = fleet::AgentLauncher::Start;
  SlurmLender(const plan::Plan& plan, const session::Caller& caller) : plan_(plan), caller_(caller) {}

  Result<void> prepare(const launch::RunPaths& paths) override {
    paths_ = paths;
    auto program = launch::find_submit_command(plan_, caller_.environment);
    if (!program) return std::unexpected(program.error());
    submit_ = std::move(*program);
    for (const auto& pool : plan_.slurm.borrowed) {
      auto script = launch::make_borrowing_script(plan_, pool, paths, launch::find_install().program);
      if (!script) return std::unexpected(script.error());
      scripts_[pool.pools.front()] = std::move(*script);
    }
    return {};
  }

  [[nodiscard]] Start ask(std::uint32_t node, const std::set<std::string>& out) const override {
    const auto& pool = plan_.pool_of(node)->name;
    std::vector<std::string> words{submit_};
    const auto options = without(pool, out);
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), {scripts_.at(pool).string(), std::to_string(node)});
    return {std::move(words), outside_of_the_job()};
  }
  [[nodiscard]] std::string job_in(std::string_view said) const override {
    return launch::submitted_id(said);
  }
  [[nodiscard]] Start list() const override {
    return {{"squeue", "--noheader", "--all", "--format=%A", "--user=" + sys::user_name()},
            outside_of_the_job()};
  }
  [[nodiscard]] Start give_back(const std::vector<std::string>& jobs) const override {
    std::vector<std::string> words{"scancel", "--"};
    words.insert(words.end(), jobs.begin(), jobs.end());
    return {std::move(words), outside_of_the_job()};
  }
  [[nodiscard]] std::string log_of(const std::string& job) const override {
    return launch::borrowing_log(paths_, job).string();
  }

 private:
  /// The options that exclude hosts, including those that the site's list and the pool itself exclude: they
  /// replace the script's.
  [[nodiscard]] std::vector<std::string> without(const std::string& pool,
                                                 const std::set<std::string>& out) const {
    auto slurm = plan_.slurm;
    const auto own = std::ranges::find_if(
        slurm.borrowed, [&](const plan::SlurmComponent& one) { return one.pools.front() == pool; });
    slurm.components.clear();
    slurm.directives = own->directives;
    auto bad = launch::read_ledger(slurm.bad_nodes, slurm.bad_nodes_ttl).value_or(launch::BadNodeList());
    for (const auto& host : out) bad.nodes.push_back({host, 0, "", ""});
    return launch::exclude(slurm, bad).options;
  }
  /// A job submitted from within another is not one of its steps, and queries here concern all jobs.
  [[nodiscard]] std::vector<std::string> outside_of_the_job() const {
    auto environment = caller_.environment;
    std::erase_if(environment, [](const std::string& entry) {
      constexpr std::array kOfSlurm{"SLURM_", "SBATCH_", "SRUN_", "SQUEUE_", "SCANCEL_", "PMI"};
      const bool scheduler =
          std::ranges::any_of(kOfSlurm, [&](const char* prefix) { return entry.starts_with(prefix); });
      const bool cluster = entry.starts_with("SLURM_CONF=") || entry.starts_with("SLURM_CLUSTER_NAME=");
      return (scheduler && !cluster) || entry.starts_with("CUDA_VISIBLE_DEVICES=");
    });
    return environment;
  }

  const plan::Plan& plan_;
  const session::Caller& caller_;
  launch::RunPaths paths_;
  std::string submit_;
  std::map<std::string, std::filesystem::path> scripts_;  ///< by pool
};

/// A step of the allocation: srun starts an agent on each node.
class SlurmStep : public StepLauncher {
 public:
  struct Choice {
    std::vector<std::string> nodes;
    std::string refusal;  ///< why the nodes cannot have the run; empty if they can
    std::set<std::string> out;
    launch::Places places;
  };
  SlurmStep(const plan::Plan& plan, const launch::Allocation& allocation, Choice choice,
            const session::Caller& caller)
      : StepLauncher(plan),
        allocation_(allocation),
        choice_(std::move(choice)),
        caller_(caller),
        lender_(plan, caller) {}

  [[nodiscard]] std::string unfit() const override { return choice_.refusal; }

  [[nodiscard]] std::vector<std::string> nodes() const override { return choice_.nodes; }
  [[nodiscard]] std::vector<std::string> hosts_for(std::uint32_t node) const override {
    return launch::hosts_for(plan(), allocation_, choice_.out, choice_.places, node, choice_.nodes.at(node));
  }
  [[nodiscard]] fleet::NodeLender* lender() override {
    return plan().slurm.borrowed.empty() ? nullptr : &lender_;
  }
  std::string note_unfit(const preflight::Suspect& suspect) override {
    choice_.out.insert(suspect.host);
    return record_bad(plan(), suspect);
  }
  [[nodiscard]] std::string log() const override { return "srun.log"; }
  [[nodiscard]] Duration kill_wait() const override { return launch::kill_wait(caller_.environment); }
  [[nodiscard]] std::string look_at(const std::string& host) const override {
    return "check the node (`scontrol show node " + host + "`) and srun.log of the attempt";
  }

 private:
  /// srun numbers them in the order of the allocation.
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
  SlurmLender lender_;
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
  caller_.console.say(fmt::format("nlaunch: {} {} excluded; {} of job {} remain for the {} of the plan\n",
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

#include <algorithm>
#include <chrono>

#include "base/text.h"
#include "fleet/leader.h"
#include "session/interrupts.h"

// What the nodes are asked before their processes start, or instead of that.
namespace nlaunch::fleet {
namespace {

/// Each program that a node runs has half a minute, each measurement of level deep a minute.
constexpr Duration kToLook = std::chrono::minutes(5);

}  // namespace

bool Leader::look(const preflight::Options& options) {
  for (auto& agent : agents_) agent.findings.reset();
  send_all(message::Look{options.level});
  const auto answered = [&] {
    const auto number =
        std::ranges::count_if(own(), [](const Agent& one) { return one.findings.has_value(); });
    options.tell(fmt::format("{} of {} checked", number, text::count(own().size(), "node")));
    return static_cast<std::size_t>(number) == own().size();
  };
  return wait_for(answered, kToLook);
}

preflight::Examination Leader::examination(const preflight::Options& options) {
  std::vector<std::string> addresses;
  std::vector<std::string> names;
  for (const auto& node : directory()) {
    if (names.size() == own().size()) break;
    addresses.push_back(node.address);
    names.push_back(node.host);
  }
  return {.plan = plan_,
          .options = options,
          .folder = paths_.attempt,
          .hosts = std::move(names),
          .addresses = std::move(addresses),
          .cancelled = [this] { return session::Interrupts::received() != 0 || !guardian_.alive(); },
          .probes = [this](const preflight::ProbeStart& start) { return make_probes(start); }};
}

preflight::Report Leader::check(const preflight::Options& options) {
  const auto begin = std::chrono::steady_clock::now();
  auto clocks = compare_clocks();  // while the agents are idle
  const bool all = look(options);
  auto asked = examination(options);
  asked.clocks = std::move(clocks);
  if (all) checked_ = findings();
  auto report = all ? preflight::examine(loop_, asked, findings()) : report_of_absent();
  probes_ = nullptr;
  report.level = options.level;
  report.elapsed = std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now() - begin);
  return report;
}

Result<std::vector<preflight::Rank>> Leader::ranks() {
  if (!look({.level = PreflightLevel::quick})) {
    const auto absent = report_of_absent().rows.front();
    return failure("launch.node", "{}: {}", absent.subject, absent.value);
  }
  ranks_.clear();
  for (const auto& node : findings()) ranks_.insert(ranks_.end(), node.ranks.begin(), node.ranks.end());
  return ranks_;
}

preflight::Measured Leader::measure(std::vector<preflight::GroupTrial> trials,
                                    const preflight::Deadlines& deadlines) {
  const preflight::Options options;
  auto asked = examination(options);
  asked.deadlines = deadlines;
  auto measured = preflight::measure(loop_, asked, ranks_, std::move(trials));
  probes_ = nullptr;
  return measured;
}

std::vector<preflight::Findings> Leader::findings() const {
  std::vector<preflight::Findings> all;
  for (const auto& agent : own()) all.push_back(agent.findings.value());
  return all;
}

std::unique_ptr<preflight::Probes> Leader::make_probes(const preflight::ProbeStart& start) {
  const auto spec = std::filesystem::path(start.folder).lexically_relative(paths_.attempt) / "spec.json";
  if (const auto why = distribute(spec)) caller_.console.say(fmt::format("nlaunch: {}\n", *why));
  std::vector<std::string> lost;
  for (const auto& agent : own()) lost.push_back(agent.lost);
  auto probes = std::make_unique<preflight::RemoteProbes>(
      loop_, lost,
      [this](std::uint32_t node, const preflight::ProbeCommand& command) { send(node, as_message(command)); },
      preflight::RemoteProbes::Options{start.ranks, start.wanted, start.folder, ++probe_runs_});
  probes_ = probes.get();
  return probes;
}

}  // namespace nlaunch::fleet

#include <algorithm>

#include "base/json.h"
#include "base/text.h"
#include "fleet/leader.h"
#include "session/interrupts.h"
#include "sys/files.h"
#include "sys/net_check.h"

// Takes over a run whose nlaunch has exited and whose agents keep their processes.
namespace nlaunch::fleet {
namespace {

using namespace std::chrono_literals;

/// For the other agents, once one has connected: each looks for a leader every second, and a file server may
/// delay a file.
constexpr Duration kForTheOthers = 30s;
/// For a leader to accept a connection, if there is one.
constexpr Duration kToAnswer = 2s;
constexpr std::uint64_t kLargestRecord = 1U << 30U;

}  // namespace

std::optional<session::AttemptHost::Refused> Leader::take_over(const launch::RunPaths& paths) {
  begin(paths);
  taken_over_ = true;
  if (!launcher_->shares_a_folder())
    return refuse("its nodes share no directory in which its agents could find another nlaunch");
  const auto before = load_nodes();
  if (!before) return refuse(before.error().first_message());
  if (const auto where = find_listener(*before); !where.empty())
    return refuse(fmt::format("the nlaunch of this run still answers at {}", where));
  token_ = before->token;
  if (auto refused = open_reception()) return refused;
  if (const auto told = launcher_->announce(paths_, admission_->port(), token_); !told)
    return refuse(told.error().first_message());
  auto refused = await_agents();
  // Agents that join later must still find their leader.
  if (refused) (void)launch::write_step(*before, launch::step_file(paths_));
  led_by_another_ = refused.has_value();
  return refused;
}

/// The address where another process listens in place of the previous leader; empty: none.
std::string Leader::find_listener(const launch::Step& step) {
  std::string where;
  for (const auto& address : step.addresses) {
    if (address.starts_with("127.") || !where.empty()) continue;  // loopback exists on any machine
    const auto endpoint = sys::parse_endpoint(fmt::format("{}:{}", address, step.port));
    if (!endpoint) continue;
    const auto check = sys::NetCheck::tcp(loop_, *endpoint, kToAnswer, [&](const sys::CheckResult& why) {
      if (!why) where = fmt::format("{}:{}", address, step.port);
      loop_.stop();
    });
    loop_.run();
  }
  return where;
}

/// As the previous leader wrote them.
Result<launch::Step> Leader::load_nodes() {
  auto step = launch::read_step(launch::step_file(paths_));
  if (!step) return step;
  const auto text = sys::read_regular_file(paths_.attempt / "nodes.json", kLargestRecord);
  if (!text) return std::unexpected(text.error());
  const auto nodes = launch::read_nodes(*text);
  if (!nodes) return std::unexpected(nodes.error());
  if (nodes->size() != agents_.size())
    return failure("fleet.nodes", "'{}' has {}, but the plan has {}",
                   (paths_.attempt / "nodes.json").string(), text::count(nodes->size(), "node"),
                   agents_.size());
  for (std::size_t node = 0; node < agents_.size(); ++node) {
    const auto& known = (*nodes)[node];
    agents_[node].host = known.host;
    agents_[node].hello.host = known.host;
    agents_[node].hello.address = known.address;
    agents_[node].hello.ports = known.ports;
  }
  load_jobs();
  lock_ =
      parse_ordered_json(sys::read_regular_file(paths_.folder / "lock.json", kLargestRecord).value_or(""));
  return step;
}

std::optional<session::AttemptHost::Refused> Leader::await_agents() {
  using Clock = std::chrono::steady_clock;
  kill_wait_ = launcher_->kill_wait();
  std::optional<Clock::time_point> first;
  const auto all_or_enough = [&] {
    const bool some = std::ranges::any_of(agents_, [](const Agent& agent) { return agent.has_connected(); });
    if (some && !first) first = Clock::now();
    const bool all = std::ranges::all_of(
        agents_, [](const Agent& agent) { return agent.has_connected() || !agent.lost.empty(); });
    return all || (first && Clock::now() > *first + kForTheOthers);
  };
  const auto deadline = Clock::now() + plan_.leader_grace;
  const auto stopped = [&] { return session::Interrupts::received() != 0 || !guardian_.alive(); };
  while (!all_or_enough() && misfit_.empty() && !stopped() && Clock::now() < deadline) run_loop_briefly();
  if (!misfit_.empty()) return refuse(misfit_);
  if (stopped()) return refuse("it was stopped before it took over the run");
  if (!first)
    return refuse(
        fmt::format("no agent of the run connected within {}: the agents have stopped their processes or "
                    "already have a leader",
                    format_duration(plan_.leader_grace)));
  for (auto& agent : agents_)
    if (!agent.has_connected() && agent.lost.empty())
      agent.lost = "its agent did not connect to the nlaunch that took over the run";
  return std::nullopt;
}

}  // namespace nlaunch::fleet

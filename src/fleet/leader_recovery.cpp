#include <fcntl.h>

#include <algorithm>
#include <bit>
#include <csignal>

#include "base/text.h"
#include "fleet/leader.h"
#include "preflight/examine.h"
#include "preflight/search/suspects.h"
#include "sys/files.h"
#include "sys/spawn.h"

// Replacing nodes that are lost while the run continues without them: another agent takes the place, on a
// spare node or on the same one. The other nodes do not notice.
namespace nlaunch::fleet {
namespace {

using namespace std::chrono_literals;

/// From the start of its program until an agent has checked its node. One that hangs on a dead node is given
/// up.
constexpr Duration kToJoin = 90s;

}  // namespace

void Leader::recover(std::uint32_t node) {
  if (joining_.contains(node)) return;
  const auto& agent = agents_[node];
  if (plan_.is_borrowed(node)) {
    if (take_back(node)) return;
    if (agent.has_connected()) history_.failed(place_of(node, agent.host), since_supervised());
    give_back(node);
    joining_[node] = {};
    return try_next(node);
  }
  history_.failed(agent.host, since_supervised());
  if (const auto replica = led_from(node); !replica.empty()) {
    return tell_trouble(
        fmt::format("{} is not replaced: the other nodes of {} use its address, which another "
                    "node would not have",
                    agent.host, replica));
  }
  if (launcher_->hosts_for(node).empty()) {
    return tell_trouble(
        fmt::format("{} is not replaced: {} starts all agents together and cannot start another one",
                    agent.host, launcher_->starter()));
  }
  joining_[node] = {};
  try_next(node);
}

/// A drain was requested, and nothing runs there any more.
void Leader::release(std::uint32_t node) {
  send(node, message::Bye{0});
  agents_[node].lost = "it was drained";
  lose_relay(node);
  stop_preparing(node);
  history_.rule_out(agents_[node].hello.host);
  recover(node);
}

void Leader::try_next(std::uint32_t node) {
  auto& joining = joining_.at(node);
  joining.host.clear();
  std::set<std::string> in_use;
  for (std::uint32_t other = 0; other < agents_.size(); ++other) {
    if (const auto its = joining_.find(other); its != joining_.end())
      in_use.insert(its->second.host);
    else if (agents_[other].lost.empty())
      in_use.insert(agents_[other].host);
  }
  const auto candidates =
      plan_.is_borrowed(node) ? std::vector{plan_.name_of_borrowed(node)} : launcher_->hosts_for(node);
  if (plan_.is_borrowed(node)) in_use.clear();  // its name stands for whichever node joins
  const auto choice = history_.choose(candidates, in_use, since_supervised());
  // A host in use may be free later.
  joining.timer = loop_.after(choice ? choice->wait : kToJoin, [this, node, choice] {
    const auto joining = joining_.find(node);
    if (joining == joining_.end()) return;
    joining->second.timer.reset();
    if (backend_ == nullptr || backend_->is_ending()) return;
    choice ? bring(node, choice->host) : try_next(node);
  });
  if (choice) joining.host = choice->host;
}

void Leader::bring(std::uint32_t node, const std::string& host) {
  if (plan_.is_borrowed(node)) return borrow(node);
  auto& joining = joining_.at(node);
  const auto start = launcher_->start_again(paths_, node, host);
  const auto pid = start_program(start);
  if (!pid) return join_failed(node, pid.error().first_message());
  joining.starter = *pid;
  starters_again_.insert(*pid);
  loop_.on_child(*pid, [this, node, pid = *pid](sys::WaitStatus status) {
    starters_again_.erase(pid);
    const auto joining = joining_.find(node);
    if (joining == joining_.end() || joining->second.starter != pid) return;
    joining->second.starter = -1;
    if (agents_[node].joins) return;  // its connection reports the reason
    const auto log = starter_log();
    const auto said = text::trim(log);
    join_failed(node, fmt::format("{} {}: {}", launcher_->starter(), status.str(),
                                  text::printable(said.substr(said.rfind('\n') + 1))));
  });
  give_up_later(node);
}

void Leader::give_up_later(std::uint32_t node) {
  joining_.at(node).timer = loop_.after(kToJoin, [this, node] {
    const auto joining = joining_.find(node);
    if (joining == joining_.end()) return;
    joining->second.timer.reset();
    if (joining->second.starter >= 0) ::kill(joining->second.starter, SIGTERM);
    join_failed(node, fmt::format("no agent was ready within {}", format_duration(kToJoin)));
  });
}

/// An agent has connected to fill the place of a lost one.
void Leader::begin_join(AdmissionServer::AdmittedAgent arrived) {
  const auto node = arrived.node;
  auto& agent = agents_[node];
  if (auto& timer = joining_.at(node).timer)
    loop_.cancel(*timer);  // it can connect while another one is about to be tried
  give_up_later(node);
  drop_relayed(node);
  agent = {.host = joining_.at(node).host = unique_name(node, arrived.hello.host)};
  set_channel(node, std::move(arrived));
  agent.joins = true;
  bound_now_.reset();
  if (const auto written =
          sys::write_file_atomically(paths_.attempt / "nodes.json", launch::nodes_text(directory()));
      !written) {
    return join_failed(node, written.error().first_message());
  }
  send(node, message::Bind{});
}

/// Handles its answers, in order.
void Leader::continue_join(std::uint32_t node) {
  auto& agent = agents_[node];
  if (agent.refused) return join_failed(node, agent.refused->sentence);
  if (!agent.bound) return;
  const bool is_checked = !checked_.empty();
  if (is_checked && !agent.findings) {
    if (!std::exchange(agent.looks, true)) send(node, message::Look{PreflightLevel::quick});
    return;
  }
  if (is_checked) {
    if (const auto suspect = unfit_to_join(node)) {
      const auto said = launcher_->note_unfit(*suspect);
      history_.rule_out(agent.hello.host);
      return join_failed(node, suspect->reason + (said.empty() ? "" : "; " + said));
    }
    if (!plan_.is_borrowed(node)) checked_[node] = *agent.findings;
  }
  auto joining = joining_.extract(node);
  if (joining.mapped().timer) loop_.cancel(*joining.mapped().timer);
  agent.joins = false;
  history_.joined(place_of(node, agent.host));
  if (const auto job = jobs_.find(node); job != jobs_.end()) {
    job->second.host = agent.hello.host;
    save_jobs();
  }
  if (backend_ == nullptr || backend_->is_ending()) return;
  send(node, message::Supervise{kill_wait_});
  backend_->rejoin(node, agent.host);
}

/// The verdict of a quick preflight about this node; findings of the others are reused. A borrowed node is
/// judged as one more node of the run's own job.
std::optional<preflight::Suspect> Leader::unfit_to_join(std::uint32_t node) {
  const preflight::Options options{.level = PreflightLevel::quick};
  auto all = checked_;
  auto asked = examination(options);
  if (plan_.is_borrowed(node)) {
    auto& more = all.emplace_back(*agents_[node].findings);
    for (auto& rank : more.ranks) rank.node = static_cast<std::uint32_t>(checked_.size());
    asked.hosts.push_back(agents_[node].host);
    asked.addresses.push_back(agents_[node].hello.address);
  } else {
    all[node] = *agents_[node].findings;
  }
  const auto nodes = all.size();
  const auto report = preflight::examine(loop_, asked, std::move(all));
  for (const auto& suspect : preflight::suspects(report, nodes))
    if (suspect.host == agents_[node].host) return suspect;
  return std::nullopt;
}

void Leader::join_failed(std::uint32_t node, const std::string& why) {
  auto& joining = joining_.at(node);
  auto& agent = agents_[node];
  if (joining.timer) loop_.cancel(*joining.timer);
  joining.timer.reset();
  joining.starter = -1;
  if (std::exchange(agent.joins, false)) {
    send(node, message::Bye{0});
    agent.lost = why;
  }
  if (backend_ == nullptr || backend_->is_ending()) return;
  const auto host = joining.host;
  history_.failed(place_of(node, host), since_supervised());
  if (plan_.is_borrowed(node)) {
    give_back(node);
    // A node that is unavailable for hours is not reported every minute.
    if (const auto times = history_.failures_of(place_of(node, host)); std::has_single_bit(times))
      tell_trouble(fmt::format("no node could be borrowed for {}: {}", plan_.name_of_borrowed(node), why));
  } else {
    tell_trouble(fmt::format("{} could not replace node {} of the plan: {}", host, node, why));
  }
  try_next(node);
}

/// "engine.0", a replica over several nodes whose leader was on this one; empty if there is none.
std::string Leader::led_from(std::uint32_t node) const {
  for (const auto& process : plan_.processes) {
    const auto& role = plan_.role_of(process);
    const auto at = plan::in_replica(role, process);
    if (process.node == node && at.rank == 0 && role.replica && role.replica->nodes > 1)
      return fmt::format("{}.{}", role.name, at.index);
  }
  return "";
}

void Leader::tell_trouble(const std::string& sentence) {
  tell_({since_supervised(), supervise::process_event::Trouble{sentence}});
}

Duration Leader::since_supervised() const {
  return std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now() - supervised_since_);
}

}  // namespace nlaunch::fleet

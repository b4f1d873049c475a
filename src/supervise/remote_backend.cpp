#include "supervise/remote_backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <set>
#include <utility>

namespace nlaunch::supervise {
namespace {

/// Failures on several nodes arrive in a different order than they happened, and the effects of a lost node
/// (its peers fail, srun ends the step) can arrive before the news of the loss: such effects are held
/// briefly.
constexpr Duration kHold = std::chrono::milliseconds(150);
/// Clocks of two nodes are compared by messages, which take at most this long on a busy machine.
constexpr Duration kClocksTell = std::chrono::milliseconds(10);

bool ended_by_signal(const ProcessEvent& process_event) {
  const auto* ended = std::get_if<process_event::Ended>(&process_event.what);
  return ended != nullptr && ended->status.by_signal();
}

/// From outside the run: nothing in it sends SIGKILL before its outcome is decided.
bool was_killed(const ProcessEvent& process_event) {
  const auto* ended = std::get_if<process_event::Ended>(&process_event.what);
  return ended != nullptr && ended->status.signal() == SIGKILL;
}

}  // namespace

RemoteBackend::RemoteBackend(sys::Loop& loop, const plan::Plan& plan, const Rules& rules, Options options)
    : loop_(loop), options_(std::move(options)) {
  for (auto& host : options_.hosts) nodes_.push_back({.host = host});
  for (std::uint32_t node = 0; node < nodes_.size(); ++node) {
    nodes_[node].lost = plan.is_borrowed(node);
    nodes_[node].came = !nodes_[node].lost;
  }
  for (ProcessIndex process = 0; process < rules.processes.size(); ++process) {
    node_of_.push_back(plan.processes[rules.processes[process].process].node);
    nodes_[node_of_.back()].processes.push_back(process);
  }
}

RemoteBackend::~RemoteBackend() {
  if (release_) loop_.cancel(*release_);
  if (deadline_) loop_.cancel(*deadline_);
}

void RemoteBackend::send(std::uint32_t node, const NodeCommand& command) {
  if (!nodes_[node].lost) options_.send(node, command);
}

void RemoteBackend::send_all(const NodeCommand& command) {
  for (std::uint32_t node = 0; node < nodes_.size(); ++node) send(node, command);
}

void RemoteBackend::perform(const NodeAction& action) {
  const node_command::Perform command{action};
  std::visit(
      [&](const auto& what) {
        if constexpr (requires { what.process; }) {
          send(node_of_[what.process], command);
        } else {
          send_all(command);
        }
      },
      action);
  if (!std::holds_alternative<action::Collect>(action)) return;
  // The collector waits for all nodes that have processes, so it must not wait for missing nodes.
  for (const auto& node : nodes_) {
    if (!node.lost || node.processes.empty()) continue;
    const auto why =
        node.came ? fmt::format("node {} is lost", node.host) : fmt::format("{} has no node yet", node.host);
    options_.tell({since_start(), process_event::Collected{why}});
  }
}

void RemoteBackend::recover(const std::vector<ProcessIndex>& processes) {
  std::set<std::uint32_t> nodes;
  for (const auto process : processes) nodes.insert(node_of_[process]);
  for (const auto node : nodes)
    if (options_.recover) options_.recover(node);
}

void RemoteBackend::release(const std::vector<ProcessIndex>& processes) {
  std::set<std::uint32_t> nodes;
  for (const auto process : processes) nodes.insert(node_of_[process]);
  for (const auto node : nodes) {
    if (std::exchange(nodes_[node].lost, true)) continue;
    if (options_.release) options_.release(node);
  }
}

void RemoteBackend::rejoin(std::uint32_t index, const std::string& host) {
  auto& node = nodes_[index];
  node.host = host;
  node.lost = node.ended = false;
  node.came = true;
  node.offset.reset();
  options_.tell({since_start(), process_event::NodeBack{host, node.processes}});
}

void RemoteBackend::ending() {
  ending_ = true;
  send_all(node_command::Ending{});
}

void RemoteBackend::finish(std::optional<ProcessIndex> of, std::function<void(BackendEnd)> done) {
  done_ = std::move(done);
  send_all(node_command::Finish{of});
  deadline_ = loop_.after(options_.for_the_end, [this] {
    deadline_.reset();
    for (auto& node : nodes_) {
      if (node.lost || node.ended) continue;
      end_.survivors.push_back(node.host + " did not confirm that nothing is left running there");
      node.ended = true;
    }
    conclude_if_done();
  });
  conclude_if_done();
}

void RemoteBackend::conclude_if_done() {
  const bool all = std::ranges::all_of(nodes_, [](const State& node) { return node.lost || node.ended; });
  if (!all || !done_) return;
  if (deadline_) loop_.cancel(*deadline_);
  deadline_.reset();
  // Not from within the call that requested it.
  loop_.post([done = std::exchange(done_, nullptr), end = std::move(end_)] { done(end); });
}

void RemoteBackend::on_event(std::uint32_t index, ProcessEvent process_event) {
  auto& node = nodes_[index];
  const auto offset = since_start() - process_event.at;
  if (!node.offset || offset < *node.offset) node.offset = offset;
  process_event.at += *node.offset;
  pass_on(std::move(process_event));
}

void RemoteBackend::on_end(std::uint32_t index, BackendEnd end) {
  const auto add = [](std::vector<std::string>& all, std::vector<std::string>& more) {
    all.insert(all.end(), more.begin(), more.end());
  };
  add(end_.left_behind, end.left_behind);
  add(end_.survivors, end.survivors);
  add(end_.last_lines, end.last_lines);
  end_.lost_bytes += end.lost_bytes;
  end_.log_when_decided.merge(end.log_when_decided);
  end_.oom_kills += end.oom_kills;
  nodes_[index].ended = true;
  conclude_if_done();
}

void RemoteBackend::pass_on(ProcessEvent process_event) {
  const auto* ended = std::get_if<process_event::Ended>(&process_event.what);
  const bool failed = ended != nullptr && !ended->status.ok();
  if (!failed && !std::holds_alternative<process_event::Signal>(process_event.what))
    return options_.tell(std::move(process_event));
  held_.emplace(process_event.at, std::move(process_event));
  if (!release_) release_ = loop_.after(kHold, [this] { release(); });
}

void RemoteBackend::release() {
  release_.reset();
  auto held = std::exchange(held_, {});
  if (held.empty()) return;
  // A killed process is a cause, never a consequence, whatever the clocks say: the first messages of a node
  // on a busy machine place its events too late.
  for (auto one = held.begin(); one != held.end();) {
    if (!was_killed(one->second)) {
      ++one;
      continue;
    }
    options_.tell(std::move(one->second));
    one = held.erase(one);
  }
  if (held.empty()) return;
  // Among events too close to order, a process killed by a signal is the cause of one that gave up.
  const auto close = held.upper_bound(held.begin()->first + kClocksTell);
  for (const bool by_signal : {true, false}) {
    for (auto one = held.begin(); one != close; ++one) {
      if (ended_by_signal(one->second) == by_signal) options_.tell(one->second);
    }
  }
  for (auto one = close; one != held.end(); ++one) options_.tell(std::move(one->second));
}

void RemoteBackend::lose(std::uint32_t index, const std::string& why) {
  auto& node = nodes_[index];
  if (std::exchange(node.lost, true)) return;
  // Its last reports are older than the loss.
  std::erase_if(held_, [&](const auto& entry) {
    const auto* ended = std::get_if<process_event::Ended>(&entry.second.what);
    return ended != nullptr && node_of_[ended->process] == index;
  });
  if (!node.ended) options_.tell({since_start(), process_event::NodeLost{node.host, why, node.processes}});
  conclude_if_done();
}

Duration RemoteBackend::since_start() const {
  return std::chrono::duration_cast<Duration>(Clock::now() - start_);
}

}  // namespace nlaunch::supervise

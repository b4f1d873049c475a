#include <algorithm>

#include "fleet/leader.h"
#include "launch/job/step.h"
#include "sys/files.h"

// What nodes tell each other: their names and, if they share no directory, the files that they have in
// common.
namespace nlaunch::fleet {

/// If the scheduler does not name a node, its agent does. Two replicas can be on one machine.
void Leader::name_nodes() {
  std::map<std::string, std::size_t> seen;
  for (auto& agent : own()) {
    if (agent.host.empty()) agent.host = agent.hello.host;
    if (const auto before = seen[agent.host]++; before > 0) agent.host += fmt::format("-{}", before + 1);
  }
}

/// The agent on our own machine may have connected over loopback: the others reach it at the address at which
/// they reached us.
launch::NodeAddresses Leader::directory() const {
  std::string ours;
  for (const auto& agent : agents_) {
    if (!agent.lost.empty() || !agent.channel) continue;
    if (!agent.channel->connection().peer_address().starts_with("127."))
      ours = agent.channel->connection().own_address();
  }
  launch::NodeAddresses nodes;
  for (const auto& agent : agents_) {
    const auto& hello = agent.hello;
    const bool inside = hello.address.starts_with("127.") && !ours.empty();
    nodes.push_back({agent.host, inside ? ours : hello.address, hello.ports});
    const auto node = static_cast<std::uint32_t>(nodes.size() - 1);
    if (hello.host.empty() && plan_.is_borrowed(node)) nodes.back().ports = launch::ports_of(plan_, node);
  }
  return nodes;
}

/// HOST:PORT at which it is reached.
std::string Leader::address_of(const plan::Process& process) {
  if (!bound_now_) {
    bound_now_ = Bound{directory(), plan_};
    if (!launch::take_ports(bound_now_->plan, bound_now_->nodes)) return "";
  }
  const auto index = static_cast<std::size_t>(&process - plan_.processes.data());
  return fmt::format("{}:{}", launch::address_of(bound_now_->nodes, process),
                     bound_now_->plan.processes[index].ports.front());
}

std::vector<std::string> Leader::hosts() const {
  std::vector<std::string> names;
  for (const auto& agent : agents_) names.push_back(agent.host);
  return names;
}

/// Sends a file to each node. Returns why it could not.
std::optional<std::string> Leader::distribute(const std::string& file) {
  constexpr std::uint64_t kLargest = 32U << 20U;
  if (launcher_->shares_a_folder()) return std::nullopt;
  const auto text = sys::read_regular_file(launch::common_file(paths_, file).value(), kLargest);
  if (!text) return text.error().first_message();
  send_all(message::Keep{file, *text});
  return std::nullopt;
}

/// Distributes what one node has written for all.
void Leader::collect_files() {
  for (const auto& agent : own()) {
    for (const auto& [file, text] : agent.bound->files) {
      const auto path = launch::common_file(paths_, file);
      if (!path) continue;
      auto kept = sys::make_private_folder(path->parent_path());
      if (kept) kept = sys::write_file_atomically(*path, text);
      const auto why = kept ? distribute(file) : kept.error().first_message();
      if (why) caller_.console.say(fmt::format("nlaunch: {}\n", *why));
    }
  }
}

void Leader::leave() {
  if (!launcher_->shares_a_folder() || led_by_another_) return;
  // Whoever exits from here on is not lost: see ~Leader.
  left_ = std::ranges::all_of(own(), [](const Agent& agent) { return agent.lost.empty(); });
  send_all(message::Bye{});
}

/// Gives every node the results before any of them leaves: the scheduler may end all of the job as soon as
/// one node has failed.
void Leader::conclude(int exit_code) {
  constexpr Duration kToSettle = std::chrono::seconds(30);
  if (launcher_->shares_a_folder()) return;
  for (const char* file : {"summary.json", "preflight.json", "audit.json"}) {
    std::error_code error;
    if (std::filesystem::exists(launch::common_file(paths_, file).value(), error)) distribute(file);
  }
  send_all(message::Settle{});
  const auto settled = [this] {
    return std::ranges::all_of(agents_,
                               [](const Agent& agent) { return !agent.takes_part() || agent.settled; });
  };
  const auto deadline = std::chrono::steady_clock::now() + kToSettle;
  waiting_ = settled;
  while (!settled() && std::chrono::steady_clock::now() < deadline) {
    const auto patience = loop_.after(kToSettle, [this] { loop_.stop(); });
    loop_.run();
    loop_.cancel(patience);
  }
  waiting_ = nullptr;
  send_all(message::Bye{exit_code});
  concluded_ = true;
}

}  // namespace nlaunch::fleet

#include <set>

#include "fleet/leader.h"

// The ways to the agents: their own connections, or those of the agents that relay for them. An agent that
// loses its relay comes back on another way, and the conversation with it continues.
namespace nlaunch::fleet {
namespace {

/// For a lost relay to close its connections itself, and for agents to come back at the end of a run.
constexpr Duration kForTheRest = std::chrono::seconds(5);

/// Others follow for the same node in the same turn of the loop.
bool is_one_of_many(const Message& message) {
  namespace command = supervise::node_command;
  return std::holds_alternative<message::Supervise>(message) ||
         std::holds_alternative<command::Perform>(message) ||
         std::holds_alternative<command::Ending>(message);
}

}  // namespace

void Leader::send(std::uint32_t node, const Message& message) {
  auto& agent = agents_[node];
  if (!agent.takes_part()) return;
  const auto text = std::make_shared<const std::string>(encode(message));
  if (agent.relayed) agent.relayed->conversation.sent(text);
  carry(node, *text, is_one_of_many(message));
}

/// Each relay gets it once, for all agents below it as well.
void Leader::send_all(const Message& message) {
  const auto text = std::make_shared<const std::string>(encode(message));
  std::set<std::uint32_t> relays;
  for (auto& agent : agents_) {
    if (!agent.takes_part() || !agent.relayed) continue;
    agent.relayed->conversation.sent(text);
    if (agent.relayed->relay) relays.insert(*agent.relayed->relay);
  }
  const auto for_all = relays.empty() ? "" : addressed({Address::To::all}, *text);
  for (std::uint32_t node = 0; node < agents_.size(); ++node) {
    if (agents_[node].takes_part() && !agents_[node].relayed)
      carry(node, relays.contains(node) ? for_all : *text, is_one_of_many(message));
  }
}

/// To an agent that takes part. While it has no relay, nothing is sent: it gets what it lacks when it is
/// back.
void Leader::carry(std::uint32_t node, std::string_view text, bool is_one_of_many) {
  const auto& agent = agents_[node];
  if (agent.relayed && !agent.relayed->relay) return;
  auto& channel = *agents_[agent.relayed ? *agent.relayed->relay : node].channel;
  const auto line = agent.relayed ? addressed({Address::To::node, node}, text) : std::string(text);
  is_one_of_many ? channel.queue(line) : channel.send(line);
}

/// From the agent at the other end of a connection: its own, or of an agent that it relays for.
void Leader::on_text(std::uint32_t peer, std::string_view text) {
  const auto read = read_address(text);
  if (!read || read->address.to == Address::To::peer) return on_message(peer, text);
  const auto [to, node] = read->address;
  if (to == Address::To::all || node >= agents_.size() || node == peer)
    return lose(peer, "its agent relayed a message from a node that does not exist");
  if (!agents_[peer].lost.empty()) return;  // whoever is below it looks for another way
  if (to == Address::To::arrival) return arrive(peer, node, read->text);
  const auto& relayed = agents_[node].relayed;
  if (relayed && relayed->relay == peer) on_message(node, read->text);  // else it came back another way
}

void Leader::arrive(std::uint32_t peer, std::uint32_t node, std::string_view text) {
  auto message = decode(text);
  auto* hello = message ? std::get_if<message::Hello>(&*message) : nullptr;
  if (hello == nullptr) return lose(peer, "its agent relayed an invalid message");
  admit({.node = node, .hello = std::move(*hello), .relay = peer});
}

/// Nothing is relayed there any more. The relay may not know that it is lost: its connection is closed, so
/// that the agents below notice.
void Leader::lose_relay(std::uint32_t relay) {
  bool has_relayed = false;
  for (std::uint32_t node = 0; node < agents_.size(); ++node) {
    if (!agents_[node].relayed || agents_[node].relayed->relay != relay) continue;
    has_relayed = true;
    set_adrift(node);
  }
  if (!has_relayed || !agents_[relay].channel) return;
  agents_[relay].channel->set({});
  loop_.after(kForTheRest, [gone = std::shared_ptr<SealedChannel>(std::move(agents_[relay].channel))] {});
}

void Leader::drop_relayed(std::uint32_t node) {
  auto& relayed = agents_[node].relayed;
  if (relayed && relayed->timer) loop_.cancel(*relayed->timer);
  relayed.reset();
}

/// Those that are looking for another way hear of the end, too.
void Leader::wait_for_adrift() {
  const auto deadline = std::chrono::steady_clock::now() + kForTheRest;
  const auto is_adrift = [](const Agent& agent) {
    return agent.takes_part() && agent.relayed && !agent.relayed->relay;
  };
  while (admission_ && !led_by_another_ && std::ranges::any_of(agents_, is_adrift) &&
         std::chrono::steady_clock::now() < deadline)
    run_loop_briefly();
}

/// Its relay is lost.
void Leader::set_adrift(std::uint32_t node) {
  auto& relayed = *agents_[node].relayed;
  relayed.relay.reset();
  if (relayed.timer || !agents_[node].lost.empty()) return;
  relayed.timer = loop_.after(kToComeBack, [this, node] {
    agents_[node].relayed->timer.reset();
    lose(node,
         fmt::format("its agent did not connect again within {} after the agent that relayed for it was lost",
                     format_duration(kToComeBack)));
  });
}

/// An agent lost its way before anything that it said had arrived.
bool Leader::begins_again(const AdmissionServer::AdmittedAgent& arrived) const {
  const auto& agent = agents_[arrived.node];
  if (arrived.hello.received.value_or(0) != 0 || backend_ != nullptr || !agent.lost.empty()) return false;
  if (!agent.has_connected()) return arrived.hello.received.has_value() && !taken_over_;
  return agent.relayed && agent.hello.agent == arrived.hello.agent &&
         agent.relayed->conversation.received() == 0;
}

void Leader::start_over(AdmissionServer::AdmittedAgent arrived) {
  const auto node = arrived.node;
  const auto before = agents_[node].relayed ? agents_[node].relayed->conversation : Conversation();
  const bool waits = arrived.hello.received.has_value();
  set_channel(node, std::move(arrived));
  if (waits) carry(node, encode(message::Resume{0}), true);
  for (const auto& text : before.unconfirmed()) {
    if (auto& relayed = agents_[node].relayed) relayed->conversation.sent(text);
    carry(node, *text, true);
  }
  if (waiting_) loop_.stop();
}

/// An agent is back on another way.
void Leader::resume(AdmissionServer::AdmittedAgent arrived) {
  const auto node = arrived.node;
  auto& agent = agents_[node];
  if (!agent.relayed->conversation.confirmed(*arrived.hello.received)) return dismiss(std::move(arrived));
  const auto conversation = agent.relayed->conversation;
  drop_relayed(node);
  if (arrived.relay)
    agent.relayed = {conversation, arrived.relay};
  else
    take_channel(node, std::move(arrived.channel));
  carry(node, encode(message::Resume{conversation.received()}), true);
  for (const auto& text : conversation.unconfirmed()) carry(node, *text, true);
}

void Leader::on(std::uint32_t node, const message::Confirm& confirm) {
  if (auto& relayed = agents_[node].relayed; relayed && !relayed->conversation.confirmed(confirm.count))
    lose(node, "its agent confirmed messages that were not sent");
}

/// From its relay.
void Leader::on(std::uint32_t node, const message::Gone& gone) {
  if (!agents_[node].relayed) return;
  if (gone.may_return) return set_adrift(node);
  // It may have lost patience with its relay, and connects another way.
  if (agents_[node].relayed->conversation.has_not_begun()) return drop_relayed(node);
  agents_[node].relayed->relay.reset();
  lose(node, "the connection to its agent " + gone.why);
}

}  // namespace nlaunch::fleet

#include "fleet/relay.h"

#include <utility>

namespace nlaunch::fleet {

Result<std::unique_ptr<Relay>> Relay::open(sys::Loop& loop, const sys::ListenAt& at,
                                           AdmissionServer::Options options, Handlers handlers) {
  std::unique_ptr<Relay> relay(new Relay(loop, std::move(handlers)));
  // Whoever is refused here asks the leader next, which says why.
  const auto ignore = [](const std::string& /*why*/) {};
  auto server = AdmissionServer::open(
      loop, at, std::move(options),
      {[own = relay.get()](AdmissionServer::AdmittedAgent arrived) { own->admit(std::move(arrived)); },
       ignore, ignore});
  if (!server) return std::unexpected(server.error());
  relay->server_ = std::move(*server);
  return relay;
}

void Relay::admit(AdmissionServer::AdmittedAgent arrived) {
  if (arrived.output) return add_output(std::move(arrived.output));
  const auto node = arrived.node;
  const auto known = agents_.find(node);
  if (known != agents_.end() && known->second.id != arrived.hello.agent)
    return close_later(std::move(arrived.channel));  // the leader decides between two agents of one node
  if (known != agents_.end()) remove(node, "was replaced", true);
  arrived.channel->set({.message = [this, node](std::string_view text) { pass_up(node, text); },
                        .closed = [this, node](const std::string& why) { lose(node, why); }});
  agents_[node] = {arrived.hello.agent, std::move(arrived.channel)};
  routes_[node] = node;
  handlers_.up(addressed({Address::To::arrival, node}, encode(arrived.hello)));
}

void Relay::add_output(std::unique_ptr<sys::Channel> channel) {
  const auto* key = channel.get();
  channel->set({.line = [this](std::string_view line) { handlers_.output(line); },
                .closed =
                    [this, key] {
                      close_later(std::move(outputs_.extract(key).mapped()));
                      if (is_empty()) handlers_.empty();
                    }});
  outputs_[key] = std::move(channel);
}

void Relay::pass_up(std::uint32_t child, std::string_view text) {
  const auto read = read_address(text);
  if (!read) return lose(child, "carried a text without an address");
  const auto& address = read->address;
  if (address.to == Address::To::peer) return handlers_.up(addressed({Address::To::node, child}, text));
  if (address.to == Address::To::arrival) routes_[address.node] = child;
  const auto route = routes_.find(address.node);
  if (address.to != Address::To::all && route != routes_.end() && route->second == child)
    handlers_.up(std::string(text));
}

void Relay::down(const Address& address, std::string_view text) {
  if (address.to == Address::To::all) {
    // At once: this agent may be about to do something that takes long.
    for (const auto& [child, agent] : agents_) agent.channel->send(addressed(address, text));
    return;
  }
  const auto route = routes_.find(address.node);
  if (route == routes_.end()) return;
  const auto child = route->second;
  agents_.at(child).channel->queue(child == address.node ? std::string(text) : addressed(address, text));
}

void Relay::lose(std::uint32_t child, const std::string& why) {
  remove(child, why, false);
  if (is_empty()) handlers_.empty();
}

void Relay::remove(std::uint32_t child, const std::string& why, bool is_back) {
  std::shared_ptr<SealedChannel> channel(std::move(agents_.extract(child).mapped().channel));
  channel->set({});
  close_later(std::move(channel));
  std::erase_if(routes_, [&](const auto& route) {
    if (route.second != child) return false;
    handlers_.up(addressed({Address::To::node, route.first},
                           encode(message::Gone{why, is_back || route.first != child})));
    return true;
  });
}

/// This may be called by the channel itself.
void Relay::close_later(std::shared_ptr<void> channel) {
  loop_.post([channel = std::move(channel)] {});
}

}  // namespace nlaunch::fleet

#include "fleet/admission.h"

#include "base/json.h"
#include "launch/handshake.h"

namespace nlaunch::fleet {

using launch::End;
using nlohmann::json;

Result<std::unique_ptr<AdmissionServer>> AdmissionServer::open(sys::Loop& loop, std::uint16_t port,
                                                               Options options, Handlers handlers) {
  std::unique_ptr<AdmissionServer> made(new AdmissionServer(loop, std::move(options), std::move(handlers)));
  auto listener = sys::Listener::open(
      loop, [own = made.get()](auto channel) { own->accept(std::move(channel)); }, port);
  if (!listener) return std::unexpected(listener.error());
  made->listener_ = std::move(*listener);
  return made;
}

void AdmissionServer::accept(std::unique_ptr<sys::Channel> channel) {
  auto* key = channel.get();
  PendingConnection pending{std::move(channel), launch::new_token()};
  if (pending.challenge.empty()) return;  // without randomness nobody is let in
  key->set({.line = [this, key](std::string_view line) { hear(key, line); },
            .closed = [this, key] { loop_.post([this, key] { pending_.erase(key); }); }});
  key->send(json_text(json{{"challenge", pending.challenge}}));
  pending_[key] = std::move(pending);
}

void AdmissionServer::hear(sys::Channel* key, std::string_view line) {
  const auto found = pending_.find(key);
  if (found == pending_.end()) return;
  auto pending = std::move(found->second);
  pending_.erase(found);
  auto hello = launch::verified(End::pending, options_.token, pending.challenge, line);
  if (hello) return admit(std::move(pending), std::move(*hello));
  const auto who = pending.channel->peer_address();
  send_away(std::move(pending), json_text(json{{"refused", "token"}}));
  handlers_.stranger(fmt::format("somebody at {} does not know the token, and was refused", who));
}

void AdmissionServer::admit(PendingConnection pending, json hello) {
  const auto node = hello.value("node", options_.nodes);
  const auto plan = hello.value("plan", "");
  const auto challenge = hello.value("challenge", "");
  const auto host = hello.value("host", pending.channel->peer_address());
  if (plan != options_.plan || node >= options_.nodes) {
    constexpr std::size_t kEnough = 12;
    const auto why =
        plan != options_.plan
            ? fmt::format("{} has another plan ({}) than the one who decides ({})", host,
                          plan.substr(0, kEnough), options_.plan.substr(0, kEnough))
            : fmt::format("{} says that it is node {} of a plan that has {}", host, node, options_.nodes);
    send_away(std::move(pending),
              launch::signed_line(End::host, options_.token, challenge, {{"refused", why}}));
    return handlers_.misfit(why);
  }
  if (!hello.contains("output")) {
    pending.channel->send(launch::signed_line(End::host, options_.token, challenge,
                                              {{"welcome", options_.assignment}, {"plan", options_.plan}}));
  }
  handlers_.arrived({node, std::move(hello), std::move(pending.channel)});
}

/// Not destroyed from within its own call; what was sent last still goes out.
void AdmissionServer::send_away(PendingConnection pending, const std::string& line) {
  pending.channel->set({});
  pending.channel->send(line);
  loop_.post([gone = std::shared_ptr<sys::Channel>(std::move(pending.channel))] {});
}

}  // namespace nlaunch::fleet

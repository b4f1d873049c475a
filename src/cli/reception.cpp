#include "cli/reception.h"

#include "base/json.h"
#include "launch/handshake.h"

namespace nlaunch::cli {

using launch::End;
using nlohmann::json;

Result<std::unique_ptr<Reception>> Reception::open(sys::Loop& loop, std::uint16_t port, Options options,
                                                   Handlers handlers) {
  std::unique_ptr<Reception> made(new Reception(loop, std::move(options), std::move(handlers)));
  auto listener = sys::Listener::open(
      loop, [own = made.get()](auto channel) { own->accept(std::move(channel)); }, port);
  if (!listener) return std::unexpected(listener.error());
  made->listener_ = std::move(*listener);
  return made;
}

void Reception::accept(std::unique_ptr<sys::Channel> channel) {
  auto* key = channel.get();
  Visitor visitor{std::move(channel), launch::new_token()};
  if (visitor.challenge.empty()) return;  // without randomness nobody is let in
  key->set({.line = [this, key](std::string_view line) { hear(key, line); },
            .closed = [this, key] { loop_.post([this, key] { visitors_.erase(key); }); }});
  key->send(json_text(json{{"challenge", visitor.challenge}}));
  visitors_[key] = std::move(visitor);
}

void Reception::hear(sys::Channel* key, std::string_view line) {
  const auto found = visitors_.find(key);
  if (found == visitors_.end()) return;
  auto visitor = std::move(found->second);
  visitors_.erase(found);
  auto hello = launch::verified(End::visitor, options_.token, visitor.challenge, line);
  if (hello) return let_in(std::move(visitor), std::move(*hello));
  const auto who = visitor.channel->peer_address();
  send_away(std::move(visitor), json_text(json{{"refused", "token"}}));
  handlers_.stranger(fmt::format("somebody at {} does not know the token, and was refused", who));
}

void Reception::let_in(Visitor visitor, json hello) {
  const auto node = hello.value("node", options_.nodes);
  const auto plan = hello.value("plan", "");
  const auto challenge = hello.value("challenge", "");
  const auto host = hello.value("host", visitor.channel->peer_address());
  if (plan != options_.plan || node >= options_.nodes) {
    constexpr std::size_t kEnough = 12;
    const auto why =
        plan != options_.plan
            ? fmt::format("{} has another plan ({}) than the one who decides ({})", host,
                          plan.substr(0, kEnough), options_.plan.substr(0, kEnough))
            : fmt::format("{} says that it is node {} of a plan that has {}", host, node, options_.nodes);
    send_away(std::move(visitor),
              launch::signed_line(End::host, options_.token, challenge, {{"refused", why}}));
    return handlers_.misfit(why);
  }
  if (!hello.contains("output")) {
    visitor.channel->send(launch::signed_line(End::host, options_.token, challenge,
                                              {{"welcome", options_.assignment}, {"plan", options_.plan}}));
  }
  handlers_.arrived({node, std::move(hello), std::move(visitor.channel)});
}

/// Not destroyed from within its own call; what was sent last still goes out.
void Reception::send_away(Visitor visitor, const std::string& line) {
  visitor.channel->set({});
  visitor.channel->send(line);
  loop_.post([gone = std::shared_ptr<sys::Channel>(std::move(visitor.channel))] {});
}

}  // namespace nlaunch::cli

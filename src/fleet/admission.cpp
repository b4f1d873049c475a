#include "fleet/admission.h"

#include <algorithm>

namespace nlaunch::fleet {

using launch::End;

namespace {

/// A hello has some hundred bytes, including its ports and addresses.
constexpr std::size_t kLongestHello = 16 << 10;
/// In addition to two from each node, which arrive at the same time.
constexpr std::size_t kMostStrangers = 64;

}  // namespace

Result<std::unique_ptr<AdmissionServer>> AdmissionServer::open(sys::Loop& loop, const sys::ListenAt& at,
                                                               Options options, Handlers handlers) {
  std::unique_ptr<AdmissionServer> made(new AdmissionServer(loop, std::move(options), std::move(handlers)));
  auto listener = sys::Listener::open(
      loop, [own = made.get()](auto channel) { own->accept(std::move(channel)); }, at);
  if (!listener) return std::unexpected(listener.error());
  made->listener_ = std::move(*listener);
  return made;
}

AdmissionServer::~AdmissionServer() {
  for (const auto& [key, pending] : pending_) loop_.cancel(pending.deadline);
}

void AdmissionServer::accept(std::unique_ptr<sys::Channel> channel) {
  auto* key = channel.get();
  PendingConnection pending{std::move(channel), launch::new_token()};
  if (pending.challenge.empty()) return;  // without randomness nobody is admitted
  make_room();
  pending.number = ++came_;
  pending.deadline = loop_.after(options_.patience, [this, key] { pending_.erase(key); });
  key->set({.line = [this, key](std::string_view line) { on_message(key, line); },
            .closed =
                [this, key, number = pending.number] {
                  loop_.post([this, key, number, alive = std::weak_ptr(alive_)] {
                    if (alive.expired()) return;
                    const auto found = pending_.find(key);
                    if (found != pending_.end() && found->second.number == number) forget(key);
                  });
                },
            .longest_line = kLongestHello});
  key->send(encode(message::Challenge{pending.challenge}));
  pending_[key] = std::move(pending);
}

void AdmissionServer::make_room() {
  if (pending_.size() < kMostStrangers + 2 * std::size_t{options_.nodes}) return;
  const auto oldest =
      std::ranges::min_element(pending_, {}, [](const auto& one) { return one.second.number; });
  forget(oldest->first);
}

void AdmissionServer::forget(sys::Channel* key) {
  const auto found = pending_.find(key);
  if (found == pending_.end()) return;
  loop_.cancel(found->second.deadline);
  pending_.erase(found);
}

void AdmissionServer::on_message(sys::Channel* key, std::string_view line) {
  const auto found = pending_.find(key);
  if (found == pending_.end()) return;
  auto pending = std::move(found->second);
  loop_.cancel(pending.deadline);
  pending_.erase(found);
  const auto who = pending.channel->peer_address();
  const auto message = decode(line);
  const auto* proved = message ? std::get_if<launch::Signed>(&*message) : nullptr;
  if (proved == nullptr || !launch::is_proved(End::agent, options_.token, pending.challenge, *proved)) {
    reject(std::move(pending), message::Refused{"token"});
    return handlers_.stranger(fmt::format("rejected a connection from {}: it does not know the token", who));
  }
  const auto says = decode(proved->says);
  if (const auto* hello = says ? std::get_if<message::Hello>(&*says) : nullptr)
    return admit(std::move(pending), *hello);
  if (const auto* hello = says ? std::get_if<message::OutputHello>(&*says) : nullptr)
    return admit(std::move(pending), *hello);
  reject(std::move(pending), message::Refused{"hello"});
  handlers_.stranger(
      fmt::format("rejected a connection from {}: it knows the token but sent no valid hello{}", who,
                  says ? "" : ": " + says.error().first_message()));
}

std::string AdmissionServer::misfit(const std::string& host, const std::string& plan, std::uint32_t node,
                                    bool comes_back) const {
  constexpr std::size_t kEnough = 12;
  if (plan != options_.plan && (!comes_back || plan != before_)) {
    return fmt::format("{} has a different plan ({}) than the leader ({})", host, plan.substr(0, kEnough),
                       options_.plan.substr(0, kEnough));
  }
  if (node < options_.nodes) return "";
  return fmt::format("{} claims to be node {}, but the plan has {}", host, node, options_.nodes);
}

void AdmissionServer::admit(PendingConnection pending, const message::Hello& hello) {
  const auto why = misfit(hello.host, hello.plan, hello.node, hello.received.has_value());
  if (!why.empty()) {
    reject(std::move(pending), signed_for(hello.challenge, message::Refused{why}));
    return handlers_.misfit(why);
  }
  pending.channel->send(encode(signed_for(hello.challenge, message::Welcome{options_.assignment})));
  const SealedChannel::Key key{End::leader, options_.token, pending.challenge, hello.challenge};
  handlers_.arrived(
      {hello.node, hello, std::make_unique<SealedChannel>(loop_, std::move(pending.channel), key)});
}

/// It does not wait for an answer.
void AdmissionServer::admit(PendingConnection pending, const message::OutputHello& hello) {
  const auto why = misfit(pending.channel->peer_address(), hello.plan, hello.node, true);
  if (!why.empty()) {
    reject(std::move(pending), message::Refused{why});
    return handlers_.misfit(why);
  }
  handlers_.arrived({.node = hello.node, .output = std::move(pending.channel)});
}

launch::Signed AdmissionServer::signed_for(const std::string& challenge, const Message& message) const {
  return launch::sign(End::leader, options_.token, challenge, encode(message));
}

/// Destroyed later, not from within its own call, so that the last message is still sent.
void AdmissionServer::reject(PendingConnection pending, const Message& message) {
  pending.channel->set({});
  pending.channel->send(encode(message));
  loop_.post([gone = std::shared_ptr<sys::Channel>(std::move(pending.channel))] {});
}

}  // namespace nlaunch::fleet

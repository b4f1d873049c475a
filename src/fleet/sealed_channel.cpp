#include "fleet/sealed_channel.h"

#include <utility>

#include "base/sha256.h"

namespace nlaunch::fleet {
namespace {

using launch::End;

constexpr char kSeparator = '\x1e';
/// Well below the longest line of a channel.
constexpr std::size_t kMostPending = std::size_t{1} << 20U;

launch::LineProof proof_for(const SealedChannel::Key& key, End by) {
  return {by, key.token, key.leader_challenge, key.agent_challenge};
}

}  // namespace

SealedChannel::SealedChannel(sys::Loop& loop, std::unique_ptr<sys::Channel> channel, const Key& key)
    : loop_(loop),
      channel_(std::move(channel)),
      sent_(proof_for(key, key.end)),
      received_(proof_for(key, key.end == End::leader ? End::agent : End::leader)),
      handlers_(std::make_shared<Handlers>()) {}

SealedChannel::~SealedChannel() {
  *handlers_ = {};
  flush();
}

void SealedChannel::set(Handlers handlers) {
  *handlers_ = std::move(handlers);
  channel_->set({.line = [this](std::string_view line) { on_line(line); },
                 .closed =
                     [handlers = handlers_] {
                       if (const auto then = std::exchange(handlers->closed, nullptr)) then("was closed");
                     }});
}

void SealedChannel::send(std::string_view text) {
  add(text);
  flush();
}

void SealedChannel::queue(std::string_view text) {
  if (pending_.empty()) {
    loop_.post([this, alive = std::weak_ptr(alive_)] {
      if (!alive.expired()) flush();
    });
  }
  add(text);
  if (pending_.size() > kMostPending) flush();
}

void SealedChannel::add(std::string_view text) {
  if (!pending_.empty()) pending_ += kSeparator;
  pending_ += text;
}

void SealedChannel::flush() {
  if (pending_.empty()) return;
  channel_->send(sent_.next(pending_) + " " + pending_);
  pending_.clear();
}

/// The handlers may destroy this object, or be replaced: what is needed after a call is kept in locals.
void SealedChannel::on_line(std::string_view line) {
  const auto handlers = handlers_;
  const auto space = line.find(' ');
  auto text = space == std::string_view::npos ? std::string_view() : line.substr(space + 1);
  if (space != std::string_view::npos && same_secret(line.substr(0, space), received_.next(text))) {
    for (auto end = std::string_view::npos; handlers->message; text.remove_prefix(end + 1)) {
      end = text.find(kSeparator);
      const auto then = handlers->message;
      then(text.substr(0, end));
      if (end == std::string_view::npos) return;
    }
    return;
  }
  channel_->set({});
  handlers->message = nullptr;
  if (const auto then = std::exchange(handlers->closed, nullptr)) then("carried an unsigned line");
}

}  // namespace nlaunch::fleet

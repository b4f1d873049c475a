#include "fleet/sealed_channel.h"

#include <utility>

#include "base/sha256.h"

namespace nlaunch::fleet {
namespace {

using launch::End;

launch::LineProof proof_for(const SealedChannel::Key& key, End by) {
  return {by, key.token, key.leader_challenge, key.agent_challenge};
}

}  // namespace

SealedChannel::SealedChannel(std::unique_ptr<sys::Channel> channel, const Key& key)
    : channel_(std::move(channel)),
      sent_(proof_for(key, key.end)),
      received_(proof_for(key, key.end == End::leader ? End::agent : End::leader)) {}

SealedChannel::~SealedChannel() = default;

void SealedChannel::set(Handlers handlers) {
  handlers_ = std::make_shared<Handlers>(std::move(handlers));
  channel_->set({.line = [this](std::string_view line) { on_line(line); },
                 .closed =
                     [handlers = handlers_] {
                       if (const auto then = std::exchange(handlers->closed, nullptr)) then("was closed");
                     }});
}

void SealedChannel::send(std::string_view text) {
  channel_->send(sent_.next(text) + " " + std::string(text));
}

/// The handlers may destroy this object: what is needed after a call is kept in locals.
void SealedChannel::on_line(std::string_view line) {
  const auto handlers = handlers_;
  const auto space = line.find(' ');
  const auto text = space == std::string_view::npos ? std::string_view() : line.substr(space + 1);
  if (space != std::string_view::npos && same_secret(line.substr(0, space), received_.next(text))) {
    if (handlers->line) handlers->line(text);
    return;
  }
  channel_->set({});
  handlers->line = nullptr;
  if (const auto then = std::exchange(handlers->closed, nullptr)) then("carried an unsigned line");
}

}  // namespace nlaunch::fleet

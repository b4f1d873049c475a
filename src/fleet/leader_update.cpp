#include "fleet/leader.h"
#include "launch/job/handshake.h"

// Another plan during the run: all nodes are bound to it, and then all adopt it, or none does.
namespace nlaunch::fleet {
namespace {

/// For modules on a slow file system. The requester waits a minute longer.
constexpr Duration kForAllToPrepare = std::chrono::minutes(2);

}  // namespace

void Leader::prepare(const supervise::Rebinding& rebinding, supervise::Rebinder::Done done) {
  if (!launcher_->shares_a_folder())
    return done("its nodes share no directory in which they could find the plan");
  for (const auto& [node, joining] : joining_)
    if (agents_[node].joins)
      return done(agents_[node].host + " is about to join the run: try again in a moment");
  const auto fingerprint = launch::fingerprint(rebinding.after);
  if (!fingerprint) return done(fingerprint.error().first_message());
  preparing_ = Preparing{.file = rebinding.file, .fingerprint = *fingerprint, .done = std::move(done)};
  preparing_->timer = loop_.after(kForAllToPrepare, [this] {
    if (!preparing_) return;
    preparing_->why = fmt::format("not all nodes had the plan within {}", format_duration(kForAllToPrepare));
    preparing_->awaited.clear();
    check_if_prepared();
  });
  for (std::uint32_t node = 0; node < agents_.size(); ++node) {
    const auto& agent = agents_[node];
    if (!agent.takes_part()) continue;
    preparing_->awaited.insert(node);
  }
  send_all(message::Prepare{rebinding.file, rebinding.roles});  // a relay passes it on before it obeys
  check_if_prepared();
}

void Leader::on(std::uint32_t node, const message::Prepared& prepared) {
  if (!preparing_ || prepared.file != preparing_->file || preparing_->awaited.erase(node) == 0) return;
  if (prepared.why.empty())
    preparing_->prepared.insert(node);
  else if (preparing_->why.empty())
    preparing_->why = agents_[node].host + ": " + prepared.why;
  check_if_prepared();
}

/// A lost node gets the plan when it is back.
void Leader::stop_preparing(std::uint32_t node) {
  if (!preparing_ || preparing_->awaited.erase(node) == 0) return;
  check_if_prepared();
}

void Leader::check_if_prepared() {
  if (!preparing_ || !preparing_->awaited.empty()) return;
  auto prepared = *std::exchange(preparing_, std::nullopt);
  loop_.cancel(prepared.timer);
  prepared_ = std::move(prepared.prepared);
  expected_ = std::move(prepared.fingerprint);
  prepared.done(prepared.why);
}

void Leader::adopt() {
  admission_->expect(expected_);
  for (const auto node : prepared_) send(node, message::Adopt{});
}

}  // namespace nlaunch::fleet

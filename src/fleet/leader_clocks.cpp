#include "base/json.h"
#include "fleet/leader.h"

// What time the nodes take it to be.
namespace nlaunch::fleet {
namespace {

/// Three messages each way; who is slower than this has no time to tell.
constexpr Duration kPatience = std::chrono::seconds(10);

}  // namespace

std::vector<std::optional<preflight::ClockOffset>> Leader::compare_clocks() {
  preflight::ClockExchange clocks(agents_.size());
  clocks_ = &clocks;
  for (const auto& agent : agents_) {
    if (agent.lost.empty()) agent.channel->send(json_text(preflight::ClockExchange::question()));
  }
  wait_for([&] { return clocks.complete(); }, kPatience);
  clocks_ = nullptr;
  return clocks.offsets();
}

void Leader::hear_time(std::uint32_t node, const nlohmann::json& message) {
  if (clocks_ == nullptr) return;  // it comes too late
  if (clocks_->hear(node, message)) {
    agents_[node].channel->send(json_text(preflight::ClockExchange::question()));
  } else if (waiting_ && waiting_()) {
    loop_.stop();
  }
}

}  // namespace nlaunch::fleet

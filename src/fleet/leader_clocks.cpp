#include "fleet/leader.h"

// What time the nodes take it to be.
namespace nlaunch::fleet {
namespace {

/// Three messages each way; who is slower than this has no time to tell.
constexpr Duration kPatience = std::chrono::seconds(10);

}  // namespace

std::vector<std::optional<preflight::ClockOffset>> Leader::compare_clocks() {
  preflight::ClockExchange clocks(own().size());
  clocks_ = &clocks;
  for (std::uint32_t node = 0; node < own().size(); ++node) send(node, preflight::ClockExchange::question());
  wait_for([&] { return clocks.complete(); }, kPatience);
  clocks_ = nullptr;
  return clocks.offsets();
}

void Leader::on(std::uint32_t node, const preflight::ClockAnswer& answer) {
  if (clocks_ == nullptr) return;  // it comes too late
  if (clocks_->on_answer(node, answer)) {
    send(node, preflight::ClockExchange::question());
  } else {
    look_whether_done();
  }
}

}  // namespace nlaunch::fleet

#include "fleet/leader.h"

// Comparison of the nodes' clocks.
namespace nlaunch::fleet {
namespace {

/// Three messages each way; a slower node is left out.
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
  if (clocks_ == nullptr) return;  // too late
  if (clocks_->on_answer(node, answer)) {
    send(node, preflight::ClockExchange::question());
  } else {
    check_if_done();
  }
}

}  // namespace nlaunch::fleet

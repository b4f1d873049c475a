#include "preflight/clocks.h"

#include <algorithm>

namespace nlaunch::preflight {
namespace {

constexpr int kClockRounds = 3;

std::int64_t now() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(since).count();
}

}  // namespace

ClockQuestion ClockExchange::question() {
  return {now()};
}

ClockAnswer ClockExchange::answer(const ClockQuestion& question) {
  const auto received = now();
  return {question.asked, received, now()};
}

bool ClockExchange::on_answer(std::uint32_t node, const ClockAnswer& answer) {
  constexpr double kNanosecond = 1e-9;
  const auto heard = now();
  const auto& [asked, received, answered] = answer;
  const ClockOffset offset{static_cast<double>((received - asked) + (answered - heard)) / 2 * kNanosecond,
                           static_cast<double>((heard - asked) - (answered - received)) * kNanosecond};
  auto& of = nodes_.at(node);
  if (!of.best || offset.round_trip < of.best->round_trip) of.best = offset;
  return ++of.answers < kClockRounds;
}

bool ClockExchange::complete() const {
  return std::ranges::all_of(nodes_, [](const Node& node) { return node.answers >= kClockRounds; });
}

std::vector<std::optional<ClockOffset>> ClockExchange::offsets() const {
  std::vector<std::optional<ClockOffset>> out;
  for (const auto& node : nodes_) out.push_back(node.best);
  return out;
}

}  // namespace nlaunch::preflight

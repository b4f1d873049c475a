#include "preflight/clocks.h"

#include <algorithm>

namespace nlaunch::preflight {
namespace {

using nlohmann::json;

constexpr int kClockRounds = 3;

std::int64_t now() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(since).count();
}

}  // namespace

json ClockExchange::question() {
  return {{"clock", {now()}}};
}

json ClockExchange::answer(const json& question) {
  const auto received = now();
  auto times = question.at("clock");
  times.push_back(received);
  times.push_back(now());
  return {{"clock", std::move(times)}};
}

bool ClockExchange::hear(std::uint32_t node, const json& answer) {
  constexpr double kNanosecond = 1e-9;
  const auto heard = now();
  const auto& times = answer.at("clock");
  const auto asked = times.at(0).get<std::int64_t>();
  const auto received = times.at(1).get<std::int64_t>();
  const auto answered = times.at(2).get<std::int64_t>();
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

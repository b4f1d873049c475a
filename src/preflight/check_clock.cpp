#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "preflight/checks.h"

namespace nlaunch::preflight {
namespace {

constexpr auto kCheck = "clock";
/// Seconds. NTP keeps clocks of one room within a few milliseconds.
constexpr double kWarn = 0.05;
constexpr double kFail = 2;

/// The node in the middle, to whose clock the others are compared: with one of three clocks wrong it is a
/// right one.
std::optional<std::size_t> middle_of(const Observations& observations) {
  std::vector<std::size_t> nodes;
  for (std::size_t node = 0; node < observations.clocks.size(); ++node) {
    if (observations.clocks[node]) nodes.push_back(node);
  }
  if (nodes.empty()) return std::nullopt;
  std::ranges::sort(nodes, {}, [&](std::size_t node) { return observations.clocks[node]->seconds; });
  return nodes[(nodes.size() - 1) / 2];
}

double difference(const Observations& observations, std::size_t node, std::size_t middle) {
  return observations.clocks[node]->seconds - observations.clocks[middle]->seconds;
}

Row judge(const Observations& observations, std::size_t node, std::size_t middle) {
  const double seconds = difference(observations, node, middle);
  const auto& host = observations.hosts[node];
  auto row = warned(
      kCheck, host,
      fmt::format("its clock is {} {} that of {}", time_text(std::abs(seconds)),
                  seconds > 0 ? "ahead of" : "behind", observations.hosts[middle]),
      "less than 50 ms between two nodes",
      {"set the clocks by NTP (chronyc tracking says how it stands): files and logs have wrong times, and "
       "what expires expires at the wrong one",
       Responsible::admin});
  // Of two clocks nobody can tell which one is wrong.
  if (observations.hosts.size() > 2) row.hosts = {host};
  return row;
}

}  // namespace

std::vector<Row> check_clock(const Observations& observations) {
  const auto middle = middle_of(observations);
  if (observations.clocks.empty()) return {};
  std::vector<Row> rows;
  double widest = 0;
  for (std::size_t node = 0; node < observations.clocks.size(); ++node) {
    if (!observations.clocks[node]) {
      rows.push_back(unknown(kCheck, observations.hosts[node], "its agent did not answer in time"));
      continue;
    }
    const double apart = std::abs(difference(observations, node, *middle));
    const double doubt =
        (observations.clocks[node]->round_trip + observations.clocks[*middle]->round_trip) / 2;
    widest = std::max(widest, apart);
    if (apart - doubt <= kWarn) continue;
    rows.push_back(judge(observations, node, *middle));
    if (apart - doubt > kFail) rows.back().status = Status::fail;
  }
  if (rows.empty())
    rows.push_back(passed(kCheck, "all nodes", fmt::format("at most {} apart", time_text(widest))));
  return rows;
}

std::vector<Figure> clock_figures(const Observations& observations) {
  const auto middle = middle_of(observations);
  std::vector<Figure> out;
  for (std::size_t node = 0; node < observations.clocks.size(); ++node) {
    if (!observations.clocks[node]) continue;
    const auto& host = observations.hosts[node];
    out.push_back(
        {"clock", host, host, observations.hosts[*middle], difference(observations, node, *middle), "s"});
  }
  return out;
}

}  // namespace nlaunch::preflight

#include "preflight/timeline.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json.h"

namespace nlaunch::preflight {

void Timeline::add(std::string lane, std::string name, Clock::time_point begin, Clock::time_point end) {
  phases_.push_back({std::move(lane), std::move(name), begin, end});
}

std::string Timeline::trace() const {
  using nlohmann::ordered_json;
  using std::chrono::microseconds;
  const auto first =
      phases_.empty() ? Clock::time_point() : std::ranges::min(phases_, {}, &Phase::begin).begin;
  const auto since = [](Clock::time_point from, Clock::time_point to) {
    return std::chrono::duration_cast<microseconds>(to - from).count();
  };
  std::vector<std::string> lanes;
  auto events = ordered_json::array();
  for (const auto& phase : phases_) {
    const auto known = std::ranges::find(lanes, phase.lane);
    const auto row = known - lanes.begin();
    if (known == lanes.end()) {
      lanes.push_back(phase.lane);
      events.push_back(
          {{"ph", "M"}, {"name", "thread_name"}, {"pid", 0}, {"tid", row}, {"args", {{"name", phase.lane}}}});
      events.push_back({{"ph", "M"},
                        {"name", "thread_sort_index"},
                        {"pid", 0},
                        {"tid", row},
                        {"args", {{"sort_index", row}}}});
    }
    events.push_back({{"ph", "X"},
                      {"name", phase.name},
                      {"pid", 0},
                      {"tid", row},
                      {"ts", since(first, phase.begin)},
                      {"dur", since(phase.begin, phase.end)}});
  }
  return json_text(ordered_json{{"traceEvents", events}, {"displayTimeUnit", "ms"}}, 1) + "\n";
}

}  // namespace nlaunch::preflight

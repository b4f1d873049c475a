#include "preflight/timeline.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace nlaunch::preflight {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

TEST(Timeline, IsATraceWithARowForEachLane) {
  Timeline timeline;
  const auto begin = Timeline::Clock::now();
  timeline.add("rank 0", "load libnccl", begin + 2ms, begin + 5ms);
  timeline.add("nlaunch", "probes", begin, begin + 9ms);
  timeline.add("rank 0", "join node", begin + 5ms, begin + 7500us);
  std::vector<std::string> rows;
  std::vector<json> spans;
  const auto trace = json::parse(timeline.trace());
  for (const auto& event : trace.at("traceEvents")) {
    if (event.at("ph") == "X") spans.push_back(event);
    if (event.at("name") == "thread_name") rows.push_back(event.at("args").at("name"));
  }
  EXPECT_EQ(rows, (std::vector<std::string>{"rank 0", "nlaunch"}));
  ASSERT_EQ(spans.size(), 3U);
  EXPECT_EQ(
      spans[0],
      json({{"ph", "X"}, {"name", "load libnccl"}, {"pid", 0}, {"tid", 0}, {"ts", 2000}, {"dur", 3000}}));
  EXPECT_EQ(spans[1],
            json({{"ph", "X"}, {"name", "probes"}, {"pid", 0}, {"tid", 1}, {"ts", 0}, {"dur", 9000}}));
  EXPECT_EQ(spans[2],
            json({{"ph", "X"}, {"name", "join node"}, {"pid", 0}, {"tid", 0}, {"ts", 5000}, {"dur", 2500}}));
}

TEST(Timeline, CanBeEmpty) {
  EXPECT_EQ(json::parse(Timeline().trace()).at("traceEvents"), json::array());
}

}  // namespace
}  // namespace nlaunch::preflight

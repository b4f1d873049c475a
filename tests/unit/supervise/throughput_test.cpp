#include "supervise/throughput.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace nlaunch::supervise {
namespace {

using namespace std::chrono_literals;

constexpr const char* kMetrics =
    "# HELP vllm:generation_tokens_total Number of generation tokens processed.\n"
    "# TYPE vllm:generation_tokens_total counter\n"
    "vllm:generation_tokens_total{engine=\"0\",model_name=\"a} b\"} 100.0\n"
    "vllm:generation_tokens_total{engine=\"1\",model_name=\"a} b\"} 2.5e+01\n"
    "vllm:generation_tokens_total_created{engine=\"0\"} 1.7e+09\n"
    "vllm:num_requests_running{engine=\"0\"} 3.0 1700000000\r\n"
    "plain 7\n"
    "broken{ 8\n"
    "text x\n"
    "no_value";

TEST(Metric, IsTheSumOfItsSamples) {
  EXPECT_EQ(metric(kMetrics, "vllm:generation_tokens_total"), 125);
  EXPECT_EQ(metric(kMetrics, "vllm:num_requests_running"), 3);
  EXPECT_EQ(metric(kMetrics, "plain"), 7);
  for (const auto* none : {"vllm:generation_tokens", "broken", "text", "no_value", "absent"})
    EXPECT_FALSE(metric(kMetrics, none)) << none;
  EXPECT_FALSE(metric("", "plain"));
}

/// What is said of a server, look after look, ten seconds apart.
class Throughput : public testing::Test {
 protected:
  std::string look(double tokens, double running) {
    now += 10s;
    return watch.look(fmt::format("tokens {}\nrunning {}\n", tokens, running), now).value_or("");
  }
  plan::Throughput what{.metrics = "", .counter = "tokens", .busy = "running", .within = 30s};
  ThroughputWatch watch{what};
  Duration now{};
};

TEST_F(Throughput, ACounterThatStandsStillWhileItIsBusyIsToldOf) {
  EXPECT_EQ(look(5, 2), "");
  EXPECT_EQ(look(5, 2), "");
  EXPECT_EQ(look(5, 2), "");
  EXPECT_EQ(look(5, 2), "tokens has been stuck at 5 for 30s while running is 2");
}

TEST_F(Throughput, OneThatIsNotBusyMayStandStill) {
  for (int i = 0; i < 9; ++i) EXPECT_EQ(look(5, 0), "");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(look(5, 1), "") << "its time begins when it is busy";
  EXPECT_EQ(look(5, 1), "tokens has been stuck at 5 for 30s while running is 1");
}

TEST_F(Throughput, EachTokenBeginsItsTimeAnew) {
  for (int i = 0; i < 9; ++i) EXPECT_EQ(look(5 + i / 3, 1), "");
}

TEST_F(Throughput, ServersWithoutTheMetricsAreNotJudged) {
  for (int i = 0; i < 9; ++i) EXPECT_FALSE(watch.look("other 5\n", now += 10s));
  for (int i = 0; i < 9; ++i) EXPECT_FALSE(watch.look("tokens 5\n", now += 10s));
}

}  // namespace
}  // namespace nlaunch::supervise

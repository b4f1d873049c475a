#include "evidence/readers/server.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace nlaunch::evidence {
namespace {

using Counters = std::map<std::string, double>;

TEST(Counters, AreSumsOverTheLabels) {
  EXPECT_EQ(counters_of(R"(# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="a } b"} 3.0
vllm:num_requests_running{engine="1",model_name="a } b"} 1.0
vllm:num_requests_waiting_by_reason{engine="0",reason="capacity"} 7.0
vllm:generation_tokens_total{engine="0"} 1.282888e+06
vllm:generation_tokens_created{engine="0"} 1.7e+09
sglang:num_queue_reqs NaN
sglang:num_running_reqs 2 1700000000
)"),
            (Counters{{"vllm:num_requests_running", 4},
                      {"vllm:generation_tokens_total", 1282888},
                      {"sglang:num_running_reqs", 2}}));
  EXPECT_EQ(counters_of("{\"detail\":\"Not Found\"}\n\nvllm:num_requests_running"), Counters());
}

nlohmann::json look(double running, double waiting, double tokens) {
  return {{"status", 200},
          {"counters",
           {{"vllm:num_requests_running", running},
            {"vllm:num_requests_waiting", waiting},
            {"vllm:generation_tokens_total", tokens},
            {"vllm:prompt_tokens_total", 100}}}};
}

Server said(nlohmann::json first, nlohmann::json second, int is_paused = 404) {
  return read_server({{"health", {{"status", 200}}},
                      {"is_paused", {{"status", is_paused}}},
                      {"metrics", {std::move(first), std::move(second)}}});
}

TEST(ReadServer, KnowsAnEngineThatHasNothingToDo) {
  EXPECT_TRUE(said(look(0, 0, 50), look(0, 0, 50)).idle);
  EXPECT_FALSE(said(look(1, 0, 50), look(0, 0, 51)).idle);
  EXPECT_FALSE(said({{"status", 404}}, {{"status", 404}}).idle);
  EXPECT_FALSE(said(look(0, 0, 50), look(0, 0, 50), 0).idle)
      << "what its core does not answer counts for nothing";
  EXPECT_TRUE(said(look(0, 0, 50), look(0, 0, 50), 0).core_silent);
}

TEST(ReadServer, CountsTheRequestsThatGetNoToken) {
  EXPECT_EQ(said(look(3, 1, 50), look(3, 1, 50)).stalled, 4);
  EXPECT_EQ(said(look(3, 1, 50), look(3, 1, 51)).stalled, 0);
  EXPECT_EQ(said(look(3, 1, 50), look(0, 0, 50)).stalled, 0);
}

TEST(ReadServer, SaysWhatIsWrongWithItsHealth) {
  EXPECT_EQ(read_server({{"health", {{"error", "no answer in time"}}}}).health,
            "does not answer on its health path: no answer in time");
  EXPECT_EQ(read_server({{"health", {{"status", 503}}}}).health, "answers 503 on its health path");
  EXPECT_TRUE(read_server({{"is_paused", {{"status", 200}, {"paused", true}}}}).paused);
}

}  // namespace
}  // namespace nlaunch::evidence

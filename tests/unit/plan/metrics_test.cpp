#include "plan/metrics.h"

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "plan/json.h"
#include "unit/plan/support.h"

namespace nlaunch::plan {
namespace {

using Metrics = PlanFiles;

constexpr const char* kLocal = "scheduler: {kind: local}\n";
constexpr const char* kLearner = "roles:\n  learner: {kind: learner, command: [python, train.py]}\n";

TEST_F(Metrics, GoToAFileAndAPort) {
  const auto plan = plan_of(std::string(kLearner) + R"(vars: {folder: "~/textfiles"}
metrics: {file: "${vars.folder}/${run.name}-${run.id}.prom", port: 9400}
)",
                            kLocal);
  ASSERT_TRUE(plan.metrics);
  EXPECT_EQ(plan.metrics->file, "/home/user/textfiles/${run.name}-${run.id}.prom");
  EXPECT_EQ(plan.metrics->listen, "127.0.0.1:9400");
  EXPECT_EQ(metrics_file_of(plan, "/runs/test/20260131-120000-7"),
            "/home/user/textfiles/test-20260131-120000-7.prom");
  const auto again = from_json(to_json(plan).dump(), "plan.json");
  ASSERT_TRUE(again.has_value());
  ASSERT_TRUE(again->metrics);
  EXPECT_EQ(again->metrics->file, plan.metrics->file);
  EXPECT_EQ(again->metrics->listen, plan.metrics->listen);
}

TEST_F(Metrics, AreOptional) {
  EXPECT_FALSE(to_json(plan_of(kLearner, kLocal)).contains("metrics"));
  const auto port = plan_of(std::string(kLearner) + "metrics: {port: \"0.0.0.0:0\"}\n", kLocal);
  EXPECT_EQ(to_json(port)["metrics"].dump(), R"({"listen":"0.0.0.0:0"})");
  const auto file = plan_of(std::string(kLearner) + "metrics: {file: \"${run.dir}/run.prom\"}\n", kLocal);
  EXPECT_EQ(to_json(file)["metrics"].dump(), R"({"file":"${run.dir}/run.prom"})");
  EXPECT_EQ(metrics_file_of(file, "/runs/test/7"), "/runs/test/7/run.prom");
}

TEST_F(Metrics, AFileIsKnownBeforeANodeIs) {
  EXPECT_EQ(mistakes(std::string(kLearner) + "metrics: {file: \"${node.scratch}/run.prom\"}\n", kLocal),
            (std::vector<std::string>{"5:17 'metrics.file' cannot contain '${node.scratch}' -> write a path; "
                                      "${run.id}, ${run.name} and ${run.dir} are replaced"}));
}

/// The port of an engine with the ports `http` and `other`.
std::string port_of(const std::vector<std::string>& command, config::Role role = {}) {
  for (const auto* port : {"http", "other"}) role.ports.push_back({port, {}});
  for (const auto& word : command) role.command.push_back({word, {}});
  return metrics_port(role);
}

TEST(MetricsPort, IsThatOfAServerThatIsKnown) {
  const std::string reference = "${self.ports.http}";
  for (const auto& words : std::vector<std::vector<std::string>>{
           {"vllm", "serve", "m", "--port", reference},
           {"vllm", "serve", "m", "--port=" + reference},
           {"uv", "run", "vllm", "serve", "m", "--port", reference},
           {"python", "-m", "vllm.entrypoints.openai.api_server", "--port", reference},
           {"python", "-m", "sglang.launch_server", "--enable-metrics", "--port", reference}})
    EXPECT_EQ(port_of(words), "http") << text::join(words, " ");
  for (const auto& words : std::vector<std::vector<std::string>>{
           {"vllm", "serve", "m"},
           {"vllm", "serve", "m", "--port"},
           {"vllm", "serve", "m", "--port", "8000"},
           {"vllm", "serve", "m", "--port", "${self.ports.none}"},
           {"trl", "vllm-serve", "--port", reference},
           {"python", "-m", "vllm.entrypoints.api_server", "--port", reference},
           {"python", "-m", "sglang.launch_server", "--port", reference},
           {"python", "-m", "http.server", reference}})
    EXPECT_EQ(port_of(words), "") << text::join(words, " ");
}

TEST(MetricsPort, IsAsTheRoleSays) {
  const std::vector<std::string> vllm{"vllm", "serve", "m", "--port", "${self.ports.http}"};
  config::Role says;
  says.metrics = {"other", {}};
  EXPECT_EQ(port_of(vllm, says), "other");
  config::Role throughput;
  throughput.throughput.emplace().server = {ReadyServer::sglang, {}};
  EXPECT_EQ(port_of({"serve"}, throughput), "http");
  const auto with_url = [](const std::string& url) {
    config::Role role;
    role.throughput.emplace().metrics = {url, {}};
    return role;
  };
  EXPECT_EQ(port_of({"serve"}, with_url("http://${self.host}:${self.ports.other}/metrics")), "other");
  EXPECT_EQ(port_of({"serve"}, with_url("http://${self.host}:${self.ports.other}/stats")), "");
  EXPECT_EQ(port_of({"serve"}, with_url("http://n1:8000/metrics")), "");
  config::Role ready;
  ready.ready.emplace().server = {ReadyServer::vllm, {}};
  EXPECT_EQ(port_of({"bash", "-c", "exec vllm serve m"}, ready), "http");
  ready.ready->server = {ReadyServer::sglang, {}};
  EXPECT_EQ(port_of({"bash", "-c", "exec python -m sglang.launch_server"}, ready), "");
}

TEST_F(Metrics, OfARoleAreInThePlan) {
  const auto plan = plan_of(R"(roles:
  engine: {kind: engine, ports: [http, stats], metrics: stats, command: [serve]}
  learner: {kind: learner, command: [python, train.py]}
)",
                            kLocal);
  EXPECT_EQ(plan.roles[0].metrics, "stats");
  EXPECT_EQ(to_json(plan)["roles"][0]["metrics"], "stats");
  EXPECT_FALSE(to_json(plan)["roles"][1].contains("metrics"));
}

}  // namespace
}  // namespace nlaunch::plan

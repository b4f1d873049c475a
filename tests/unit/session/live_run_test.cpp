#include "session/live_run.h"

#include <gtest/gtest.h>

#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "plan/json.h"
#include "session/run_view.h"
#include "supervise/events.h"
#include "sys/files.h"

namespace nlaunch::session {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

/// A run directory of two engines, the second of which is a replica of two processes, and a learner that
/// shares the GPU of the first.
class RunDirectory : public ::testing::Test {
 protected:
  RunDirectory() {
    std::string pattern = (fs::temp_directory_path() / "nlaunch-live-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    fs::create_directories(folder_ / "attempt-0" / "gpu-use");
    plan_.name = "grpo";
    plan_.node.gpus = 2;
    plan_.roles.resize(3);
    auto& engine = plan_.roles[0];
    engine.name = "engine";
    engine.kind = RoleKind::engine;
    engine.ports = {"meet", "http"};
    engine.metrics = "http";
    engine.ready.log = "ready";
    engine.count = 1;
    auto& big = plan_.roles[1];
    big = engine;
    big.name = "big";
    big.replica = plan::Replica{1, 2};
    big.count = 2;
    plan_.roles[2].name = "learner";
    plan_.roles[2].ports = {"http"};
    plan_.roles[2].count = 1;
    plan_.processes = {{.role = 0, .gpus = {0}, .ports = {1, 2}},
                       {.role = 1, .index = 0, .gpus = {1}, .ports = {3, 4}},
                       {.role = 1, .index = 1, .ports = {5, 6}},
                       {.role = 2, .gpus = {0}, .ports = {7}}};
    plan_.stages = {{0, 1, 2}};
  }
  ~RunDirectory() override { fs::remove_all(folder_); }

  /// Writes the plan, and events that begin an attempt.
  LiveRun begin() {
    write("plan.json", json_text(plan::to_json(plan_), 2));
    tell({{"event", "run"}, {"host", "another-host"}, {"pid", 1}, {"start_ticks", 0}});
    tell({{"event", "attempt-started"}, {"attempt", 0}});
    auto run = LiveRun::open(folder_.parent_path(), folder_);
    EXPECT_TRUE(run.has_value()) << render(run.error());
    return std::move(*run);
  }
  void tell(Json event) {
    event["time"] = supervise::utc_of(std::time(nullptr));
    std::ofstream(folder_ / "events.jsonl", std::ios::app) << json_text(event) << '\n';
  }
  void start(const std::string& process, const std::string& host = "") {
    Json event{{"event", "process-started"}, {"process", process}};
    if (!host.empty()) event["host"] = host;
    tell(event);
  }
  void ready(const std::string& process) { tell({{"event", "process-ready"}, {"process", process}}); }
  void write(const std::string& name, const std::string& content) const {
    std::ofstream(folder_ / name) << content;
  }
  /// One a target: "ADDRESS PROCESS REPLICA".
  static std::vector<std::string> targets(LiveRun& run) {
    std::vector<std::string> out;
    for (const auto& target : run.targets(run.refresh()))
      out.push_back(target.address + " " + target.process + " " + target.replica);
    return out;
  }

  using Lines = std::vector<std::string>;
  fs::path folder_;
  plan::Plan plan_;
};

TEST_F(RunDirectory, TargetsAreTheServersThatAreReady) {
  auto run = begin();
  for (const auto* process : {"engine.0", "big.0.0", "big.0.1", "learner.0"}) start(process);
  ready("engine.0");
  EXPECT_EQ(targets(run), Lines{});  // where it is bound is not known
  write("attempt-0/bound.here.json", R"({"processes": [{"name": "engine.0", "ports": [101, 102]},
    {"name": "big.0.0", "ports": [103, 104]}, {"name": "learner.0", "ports": [107]},
    {"name": "nobody", "ports": [1]}, {"name": "big.0.1"}, 7]})");
  EXPECT_EQ(targets(run), Lines{"127.0.0.1:102 engine.0 0"});
  ready("big.0.0");
  EXPECT_EQ(targets(run), (Lines{"127.0.0.1:102 engine.0 0", "127.0.0.1:104 big.0.0 0"}));
  tell({{"event", "process-ended"}, {"process", "engine.0"}, {"how", "exited with code 1"}});
  EXPECT_EQ(targets(run), Lines{"127.0.0.1:104 big.0.0 0"});
}

TEST_F(RunDirectory, TargetsOnSeveralNodesAreWhereTheNodesAreNow) {
  plan_.node.count = 2;
  plan_.processes[0].node = 1;
  plan_.weight_syncs.front().port = 9;
  auto run = begin();
  start("engine.0", "n2");
  ready("engine.0");
  EXPECT_EQ(targets(run), Lines{});
  const auto nodes = [](const std::string& host, const std::string& address) {
    return R"([{"host": "n1", "address": "10.0.0.1", "ports": [9, 3, 4, 5, 6, 7]},
      {"host": ")" +
           host + R"(", "address": ")" + address + R"(", "ports": [201, 202]}])";
  };
  write("attempt-0/nodes.json", nodes("n2", "10.0.0.2"));
  EXPECT_EQ(targets(run), Lines{"10.0.0.2:202 engine.0 0"});
  write("attempt-0/nodes.json", nodes("n3", "fd00::3"));
  EXPECT_EQ(targets(run), Lines{"[fd00::3]:202 engine.0 0"});
  write("attempt-0/nodes.json", "[{}]");
  EXPECT_EQ(targets(run), Lines{});
}

TEST_F(RunDirectory, GpusAreThoseOfProcessesThatRun) {
  auto run = begin();
  for (const auto* process : {"engine.0", "learner.0"}) start(process);
  write("attempt-0/bound.here.json",
        R"({"gpus": [{"bus_id": "A", "uuid": "GPU-1"}, {"bus_id": "B", "uuid": ""}]})");
  const auto sample = [&](double at) {
    return json_text(Json{{"at", at},
                          {"gpus",
                           {{{"bus_id", "A"}, {"busy", 93}, {"memory_used", 5e9}, {"memory_total", 8e9}},
                            {{"bus_id", "B"}, {"busy", 1}, {"power", 100.5}},
                            {{"bus_id", "C"}, {"busy", 2}}}}}) +
           "\n";
  };
  const auto now = unix_now();
  EXPECT_TRUE(run.gpus(run.refresh()).empty());
  write("attempt-0/gpu-use/here.jsonl",
        "{\"error\": \"x\"}\n" + sample(now - 5) + sample(now) + R"({"at": 1)");
  auto gpus = run.gpus(run.refresh());
  ASSERT_EQ(gpus.size(), 1U);
  EXPECT_EQ(gpus[0].host, "here");
  EXPECT_EQ(gpus[0].number, 0U);
  EXPECT_EQ(gpus[0].uuid, "GPU-1");
  EXPECT_EQ(gpus[0].bus_id, "A");
  EXPECT_EQ(gpus[0].processes, (Lines{"engine.0", "learner.0"}));
  EXPECT_EQ(gpus[0].busy, 93);
  EXPECT_EQ(gpus[0].memory_used, 5e9);
  EXPECT_EQ(gpus[0].memory_total, 8e9);
  EXPECT_EQ(gpus[0].power, std::nullopt);
  start("big.0.0");
  gpus = run.gpus(run.refresh());
  ASSERT_EQ(gpus.size(), 2U);
  EXPECT_EQ(gpus[1].number, 1U);
  EXPECT_EQ(gpus[1].uuid, "");
  EXPECT_EQ(gpus[1].power, 100.5);
  write("attempt-0/gpu-use/here.jsonl", sample(now - 3600));  // its sampler has died
  EXPECT_TRUE(run.gpus(run.refresh()).empty());
}

TEST_F(RunDirectory, APlanThatWasUpdatedIsReadAgain) {
  auto run = begin();
  start("engine.0");
  ready("engine.0");
  write("attempt-0/bound.here.json", R"({"processes": [{"name": "engine.0", "ports": [101, 102]}]})");
  EXPECT_EQ(targets(run), Lines{"127.0.0.1:102 engine.0 0"});
  plan_.roles[0].metrics = "meet";
  ASSERT_TRUE(sys::write_file_atomically(folder_ / "plan.json", json_text(plan::to_json(plan_), 2)));
  EXPECT_EQ(targets(run), Lines{"127.0.0.1:101 engine.0 0"});
  ASSERT_TRUE(sys::write_file_atomically(folder_ / "plan.json", "{"));
  EXPECT_EQ(targets(run), Lines{"127.0.0.1:101 engine.0 0"});  // what is no plan changes nothing
}

TEST_F(RunDirectory, AHostIsNoPath) {
  auto run = begin();
  start("engine.0", "../../elsewhere");
  fs::create_directories(folder_ / "elsewhere");
  write("elsewhere.jsonl", json_text(Json{{"at", unix_now()}, {"gpus", Json::array()}}) + "\n");
  EXPECT_TRUE(run.gpus(run.refresh()).empty());
}

}  // namespace
}  // namespace nlaunch::session

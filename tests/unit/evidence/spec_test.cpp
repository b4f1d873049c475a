#include "evidence/spec.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace nlaunch::evidence {
namespace {

// It goes as text to another node.
TEST(Spec, IsTheSameAfterTheWay) {
  Subject subject;
  subject.name = "learner.3";
  subject.rank = 3;
  subject.pid = 4711;
  subject.ended = "exited with code 1";
  subject.ended_at = 2.5;
  subject.killed_parts = {"VLLM::EngineCore (pid 12) was killed by SIGKILL 69.7s into the run"};
  subject.log = "/run/log";
  subject.url = "http://127.0.0.1:8000/health";
  subject.ras = "127.0.0.1:28028";
  subject.recorder_pipe = "/run/pipe.";
  subject.recorder_dump = "/run/dump.";
  subject.nccl_logs = "/run/nccl.*";
  subject.gpus = {"00000000:1B:00.0"};
  Spec spec;
  spec.folder = "/run/evidence/1";
  spec.host = "nid1";
  spec.deadline = std::chrono::milliseconds(2500);
  spec.probe = "/opt/nlaunch-probe";
  spec.gpu_use = "/run/gpu-use/nid1";
  spec.secrets = {"HF_TOKEN"};
  spec.ending = "learner.0 exited with code 1";
  spec.processes = {subject, Subject()};
  spec.processes[1].name = "engine.0";
  const auto there = spec_from(to_json(spec).dump());
  ASSERT_TRUE(there) << there.error().first_message();
  EXPECT_EQ(to_json(*there), to_json(spec));
  EXPECT_EQ(there->deadline, spec.deadline);
  ASSERT_EQ(there->processes.size(), 2U);
  EXPECT_EQ(there->processes[0].rank, 3);
  EXPECT_EQ(there->processes[0].ended_at, 2.5);
  EXPECT_EQ(there->processes[0].killed_parts, subject.killed_parts);
  EXPECT_EQ(there->processes[0].gpus, subject.gpus);
  EXPECT_FALSE(there->processes[1].rank);
  EXPECT_EQ(there->processes[1].pid, 0);
}

TEST(Spec, HasThirtySecondsWhereNothingIsSaid) {
  const auto spec = spec_from(R"({"folder": "f", "host": "h", "processes": [{"name": "a", "rank": null}]})");
  ASSERT_TRUE(spec);
  EXPECT_EQ(spec->deadline, std::chrono::seconds(30));
  EXPECT_FALSE(spec->processes[0].rank);
  EXPECT_EQ(spec->processes[0].ended_at, 0);
}

TEST(Spec, SaysWhatIsMissing) {
  const auto spec = spec_from(R"({"folder": "f", "processes": []})");
  ASSERT_FALSE(spec);
  EXPECT_TRUE(spec.error().first_message().starts_with("cannot read what to collect: "));
  EXPECT_NE(spec.error().first_message().find("key 'host' not found"), std::string::npos);
}

}  // namespace
}  // namespace nlaunch::evidence

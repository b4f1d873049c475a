#include "plan/bound_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace nlaunch::plan {
namespace {

TEST(BoundJson, HoldsWhatTheNodeFilledInAndNoSecret) {
  Plan plan;
  plan.name = "demo";
  BoundNode node;
  node.host = "nid1";
  node.scratch = "/tmp/x";
  node.gpus = {{"0", "00000000:3B:00.0", "GPU-1"}};
  node.libraries["nccl"] = {"/opt/libnccl.so.2", "2.28.9"};
  node.secret_names = {"HF"};
  node.masker.add("hunter22");
  node.dropped = {"NCCL_DEBUG"};
  node.notes = {"a note"};
  BoundProcess process;
  process.name = "learner.0";
  process.argv = {"train", "--key=hunter22"};
  process.env = {{"A", "1"}, {"HF", "open"}, {"MY_API_KEY", "looks"}, {"URL", "http://hunter22@x"}};
  process.wrapper = {"bwrap", "hunter22"};
  process.workdir = "/work";
  process.cpus = {0, 1};
  process.ports = {8000};
  process.preload = {"/opt/libnccl.so.2"};
  node.processes = {process};
  auto out = to_json(plan, node);
  EXPECT_EQ(out["format"], "nlaunch bound");
  out.erase("format");
  out.erase("version");
  EXPECT_EQ(
      out.dump(),
      R"({"host":"nid1","run":"demo","scratch":"/tmp/x",)"
      R"("gpus":[{"visible":"0","bus_id":"00000000:3B:00.0","uuid":"GPU-1"}],)"
      R"("libraries":{"nccl":{"path":"/opt/libnccl.so.2","version":"2.28.9"}},)"
      R"("secrets":["HF"],"dropped":["NCCL_DEBUG"],"notes":["a note"],)"
      R"("processes":[{"name":"learner.0","argv":["train","--key=***"],"workdir":"/work","cpus":[0,1],)"
      R"("ports":[8000],"preload":["/opt/libnccl.so.2"],)"
      R"("env":{"A":"1","HF":"***","MY_API_KEY":"***","URL":"http://***@x"},"wrapper":["bwrap","***"]}]})");
}

TEST(BoundJson, WithoutAWrapperThereIsNone) {
  BoundNode node;
  node.processes.resize(1);
  EXPECT_FALSE(to_json(Plan(), node)["processes"][0].contains("wrapper"));
}

}  // namespace
}  // namespace nlaunch::plan

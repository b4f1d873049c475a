#include "probe/rank/spec.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "probe/nvml/nvml.h"
#include "probe/output.h"

namespace nlaunch::probe {
namespace {

TEST(Spec, GroupsOfTheSameRanksShareACommunicator) {
  Spec spec;
  spec.groups = {{"node", Collective::all_reduce, Backend::nccl, {0, 1, 2}, {}, {}, false},
                 {"world", Collective::all_reduce, Backend::nccl, {0, 1}, {}, {}, false},
                 {"sync", Collective::broadcast, Backend::nccl, {0, 1, 2}, {}, {}, false},
                 {"turned", Collective::broadcast, Backend::nccl, {1, 0, 2}, {}, {}, false},
                 {"other backend", Collective::broadcast, Backend::gloo, {0, 1, 2}, {}, {}, false}};
  std::vector<std::size_t> keys;
  for (std::size_t i = 0; i < spec.groups.size(); ++i) keys.push_back(spec.communicator_of(i));
  EXPECT_EQ(keys, (std::vector<std::size_t>{0, 1, 0, 3, 4}));
}

TEST(Spec, SaysWhichKeyIsMissing) {
  const auto path = testing::TempDir() + "nlaunch-bad-spec.json";
  std::ofstream(path) << R"({"folder": "/tmp"})";
  const auto spec = read_spec(path);
  std::remove(path.c_str());
  ASSERT_FALSE(spec);
  EXPECT_EQ(text_of(spec.error()),
            path +
                " is not a preflight spec: [json.exception.out_of_range.403] key 'join_ms' not "
                "found");
}

TEST(Spec, ReadsADrill) {
  const auto path = testing::TempDir() + "nlaunch-drill-spec.json";
  std::ofstream(path) << R"({"folder":"/tmp","join_ms":1,"op_ms":1,"ranks":[],"groups":[{"name":"g",
    "op":"all_reduce","backend":"nccl","members":[0,1],"sizes":[],"drill":{"name":"order-mismatch","bytes":64,
    "communicators":2,"captured":true,"env":{"NCCL_LAUNCH_ORDER_IMPLICIT":"1"},"deadline_ms":1500,
    "does":[[{"communicator":1,"stream":1,"part":1}],[]]}}]})";
  const auto spec = read_spec(path);
  std::remove(path.c_str());
  ASSERT_TRUE(spec) << text_of(spec.error());
  const auto& drill = spec->groups.front().drill.value();
  EXPECT_EQ(drill.name, "order-mismatch");
  EXPECT_EQ(drill.communicators, 2);
  EXPECT_TRUE(drill.captured);
  EXPECT_EQ(drill.env.at("NCCL_LAUNCH_ORDER_IMPLICIT"), "1");
  EXPECT_EQ(drill.deadline, std::chrono::milliseconds(1500));
  EXPECT_EQ(drill.does, (std::vector<std::vector<DrillLaunch>>{{{1, 1, 1}}, {}}));
}

TEST(FullBusId, KeepsTheDomain) {
  EXPECT_EQ(full_bus_id("0009:01:00.0"), "00000009:01:00.0");
  EXPECT_EQ(full_bus_id("00000000:3b:00.0"), "00000000:3B:00.0");
  EXPECT_EQ(full_bus_id("gibberish"), "");
}

}  // namespace
}  // namespace nlaunch::probe

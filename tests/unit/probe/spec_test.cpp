#include "probe/spec.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

#include "probe/nvml.h"
#include "probe/output.h"

namespace nlaunch::probe {
namespace {

TEST(Spec, GroupsOfTheSameRanksShareACommunicator) {
  Spec spec;
  spec.groups = {{"node", Op::all_reduce, Backend::nccl, {0, 1, 2}, {}, false},
                 {"world", Op::all_reduce, Backend::nccl, {0, 1}, {}, false},
                 {"sync", Op::broadcast, Backend::nccl, {0, 1, 2}, {}, false},
                 {"turned", Op::broadcast, Backend::nccl, {1, 0, 2}, {}, false},
                 {"other backend", Op::broadcast, Backend::gloo, {0, 1, 2}, {}, false}};
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
                " is no preflight spec: [json.exception.out_of_range.403] key 'join_ms' not "
                "found");
}

TEST(FullBusId, KeepsTheDomain) {
  EXPECT_EQ(full_bus_id("0009:01:00.0"), "00000009:01:00.0");
  EXPECT_EQ(full_bus_id("00000000:3b:00.0"), "00000000:3B:00.0");
  EXPECT_EQ(full_bus_id("gibberish"), "");
}

}  // namespace
}  // namespace nlaunch::probe

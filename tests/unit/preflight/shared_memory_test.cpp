#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "unit/preflight/fixture.h"

namespace nlaunch::preflight {
namespace {

using nlohmann::json;

json file(const std::string& name, std::uint64_t mebibytes, int age, const json& used,
          const std::string& user = "") {
  return {{"name", name}, {"bytes", mebibytes << 20U}, {"age", age},
          {"used", used}, {"mine", user.empty()},      {"user", user.empty() ? "me" : user}};
}

Lines rows(const json& files) {
  const Machine machine(1, 1);
  NodeObservations observations{.plan = machine.plan, .node = machine.node};
  observations.answers["shared-memory"] = {{{"folder", "/dev/shm"}, {"files", files}}, ""};
  return lines(run_check("shared-memory", observations));
}

TEST(SharedMemory, WhatIsInUseOrJustBegunIsFine) {
  const Lines fine{"pass | /dev/shm | nothing of programs that have ended |  |  | "};
  EXPECT_EQ(rows(json::array()), fine);
  EXPECT_EQ(rows({file("nccl-a", 32, 9000, true), file("nccl-b", 32, 5, false)}), fine);
}

TEST(SharedMemory, OnesOwnLeftoversCanBeRemoved) {
  EXPECT_EQ(rows({file("nccl-AbCdEf", 32, 7200, false), file("torch_77_1_0", 1, 300, false)}),
            (Lines{"warn | /dev/shm | 2 files, 33.0 MiB: nccl-AbCdEf (32.0 MiB, 2 h old), torch_77_1_0 (1.0 "
                   "MiB, 5 min old) | "
                   "nothing of programs that have ended | remove them: rm /dev/shm/nccl-AbCdEf "
                   "/dev/shm/torch_77_1_0 | user"}));
}

TEST(SharedMemory, OthersAreNamedByTheirOwners) {
  EXPECT_EQ(rows(json::array({file("nccl-a", 32, 260000, false, "bob")})),
            (Lines{"warn | /dev/shm, of bob | 1 file, 32.0 MiB: nccl-a (32.0 MiB, 3 days old) | nothing of "
                   "programs that have "
                   "ended | bob or an administrator can remove them | admin"}));
}

TEST(SharedMemory, WhatCannotBeSeenIsNotJudged) {
  EXPECT_EQ(rows(json::array({file("nccl-a", 32, 7200, nullptr)})),
            (Lines{"skip | /dev/shm | 1 file, 32.0 MiB: nccl-a (32.0 MiB, 2 h old); whether a program uses "
                   "them cannot be seen "
                   "from here, where other processes are hidden |  |  | "}));
}

}  // namespace
}  // namespace nlaunch::preflight

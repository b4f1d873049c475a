#include "launch/job/replica.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "launch/job/step.h"

namespace nlaunch::launch {
namespace {

std::string why_not(const std::vector<std::string>& environment) {
  const auto found = find_replica(environment);
  return found ? "" : found.error().first_message();
}

TEST(FindReplica, BeakersVariablesSayWhichOne) {
  const auto found =
      find_replica({"BEAKER_REPLICA_RANK=2", "BEAKER_REPLICA_COUNT=3",
                    "BEAKER_LEADER_REPLICA_HOSTNAME=jupiter-1", "BEAKER_NODE_HOSTNAME=jupiter-3"});
  ASSERT_TRUE(found && *found);
  EXPECT_EQ((*found)->rank, 2U);
  EXPECT_EQ((*found)->count, 3U);
  EXPECT_EQ((*found)->leader, "jupiter-1");
  EXPECT_EQ((*found)->host, "jupiter-3");
}

TEST(FindReplica, ElsewhereThereIsNone) {
  const auto found = find_replica({"PATH=/bin", "BEAKER_JOB_ID=x"});
  ASSERT_TRUE(found);
  EXPECT_FALSE(*found);
}

TEST(FindReplica, WhatContradictsItselfIsAnError) {
  EXPECT_EQ(why_not({"BEAKER_REPLICA_RANK=3", "BEAKER_REPLICA_COUNT=3"}),
            "BEAKER_REPLICA_RANK='3' and BEAKER_REPLICA_COUNT='3' do not describe a replica");
  EXPECT_EQ(why_not({"BEAKER_REPLICA_RANK=1"}),
            "BEAKER_REPLICA_RANK='1' and BEAKER_REPLICA_COUNT='' do not describe a replica");
  EXPECT_EQ(why_not({"BEAKER_REPLICA_RANK=-1", "BEAKER_REPLICA_COUNT=2x"}),
            "BEAKER_REPLICA_RANK='-1' and BEAKER_REPLICA_COUNT='2x' do not describe a replica");
  EXPECT_EQ(why_not({"BEAKER_REPLICA_RANK=0", "BEAKER_REPLICA_COUNT=2"}),
            "BEAKER_LEADER_REPLICA_HOSTNAME is not set: the task needs leaderSelection and hostNetworking");
}

TEST(CommonFile, NobodyWritesElsewhere) {
  const RunPaths paths{"id", "/r/n/id", "/r/n/id/attempt-0"};
  EXPECT_EQ(common_file(paths, "summary.json"), "/r/n/id/summary.json");
  EXPECT_EQ(common_file(paths, "nodes.json"), "/r/n/id/attempt-0/nodes.json");
  EXPECT_EQ(common_file(paths, "preflight/spec.json"), "/r/n/id/attempt-0/preflight/spec.json");
  EXPECT_EQ(common_file(paths, "preflight/pairs-1/spec.json"),
            "/r/n/id/attempt-0/preflight/pairs-1/spec.json");
  EXPECT_EQ(common_file(paths, "env/engine.json"), "/r/n/id/attempt-0/env/engine.json");
  for (const char* name : {"", "plan.json", "/etc/passwd", "../x", "preflight/../spec.json", "preflight/x/y",
                           "env/..", "env/.", "env/", "env/../x", "env//x", "env/a/b", "logs/x", "addrs"}) {
    EXPECT_FALSE(common_file(paths, name)) << name;
  }
}

}  // namespace
}  // namespace nlaunch::launch

#include <gtest/gtest.h>

#include "preflight/checks.h"

namespace nlaunch::preflight {
namespace {

/// A learner on two nodes, to be within one NVLink domain, whose GPUs are in these domains.
std::vector<Row> rows_of(const std::vector<std::string>& domains) {
  plan::Plan plan;
  plan.node.count = 2;
  plan::Role learner;
  learner.name = "learner";
  learner.count = 2;
  learner.keep_together = {Closeness::domain, std::nullopt, "grpo.yaml:4:5"};
  plan.roles.push_back(learner);
  Observations observations{.plan = plan, .hosts = {"n1", "n2"}};
  for (std::uint32_t node = 0; node < 2; ++node) {
    plan::Process process;
    process.index = process.node = node;
    plan.processes.push_back(process);
    Rank rank;
    rank.process = rank.node = node;
    observations.ranks.push_back(rank);
    RankReport report;
    report.identity = Identity{};
    report.identity->domain = domains[node];
    observations.reports.push_back(report);
  }
  return run_check("together", observations);
}

TEST(Together, NodesOfOneDomainPass) {
  const auto rows = rows_of({"a.1", "a.1"});
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].status, Status::pass);
  EXPECT_EQ(rows[0].subject, "learner, 2 nodes");
  EXPECT_EQ(rows[0].value, "all in a.1");
}

TEST(Together, NodesOfTwoFailByTheirNames) {
  const auto rows = rows_of({"a.1", "a.2"});
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].status, Status::fail);
  EXPECT_EQ(rows[0].value, "n1 in a.1; n2 in a.2");
  EXPECT_EQ(rows[0].expected, "one NVLink domain (grpo.yaml:4:5)");
  EXPECT_EQ(rows[0].hosts, (std::vector<std::string>{"n1", "n2"}));
}

TEST(Together, WhatNvmlDoesNotNameIsUnknown) {
  EXPECT_EQ(rows_of({"", ""})[0].status, Status::unknown);
  EXPECT_EQ(rows_of({"a.1", ""})[0].status, Status::unknown);
}

}  // namespace
}  // namespace nlaunch::preflight

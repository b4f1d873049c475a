#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "preflight/ask/remote_probes.h"
#include "preflight/findings.h"
#include "preflight/report/report_json.h"
#include "unit/preflight/fixture.h"

/// What changes where a job has several nodes.
namespace nlaunch::preflight {
namespace {

/// Two learners, each on a node of its own.
struct TwoNodes : Machine {
  TwoNodes() : Machine(2, 0) {
    plan.node.count = 2;
    plan.processes[1].node = 1;
    plan.groups.erase(plan.groups.begin());  // "node 0"
    node.host = "a";
  }
  [[nodiscard]] Observations job() const {
    auto out = healthy();
    out.hosts = {"a", "b"};
    return out;
  }
};

TEST(Nodes, ARanksNameHasItsNode) {
  const TwoNodes machine;
  EXPECT_EQ(make_ranks(machine.plan, machine.node)[0].subject, "learner rank 0 (a GPU 0)");
}

TEST(Nodes, AGroupThatCrossesThemIsTried) {
  const TwoNodes machine;
  const auto rows = run_check("collectives", machine.job());
  ASSERT_EQ(rows.size(), 2);
  EXPECT_EQ(rows[0].subject, "learner world");
  EXPECT_EQ(machine.job().groups[0].sizes.back(), 1U << 30U) << "as large as where LL128 is known to fail";
  EXPECT_EQ(rows[1].check, "send_recv");
  EXPECT_EQ(rows[0].status, Status::pass) << rows[0].value;
}

TEST(Nodes, WhoDidNotJoinIsBlamedWithItsNode) {
  const TwoNodes machine;
  auto observations = machine.job();
  for (auto& report : observations.reports) report.groups["learner world"].results.clear();
  observations.reports[1].groups.clear();
  const auto rows = run_check("collectives", observations);
  EXPECT_EQ(rows[0].value, "learner rank 1 (a GPU 1) did not join within 20 s; rank 0 did");
  EXPECT_EQ(rows[0].hosts, (Lines{"b"}));
}

TEST(Nodes, ARoleThatLoadsAnotherLibraryOnOneNodeIsNamedWithIt) {
  const TwoNodes machine;
  auto observations = machine.job();
  observations.ranks[1].library.version = "2.27.7";
  EXPECT_EQ(lines(run_check("nccl-version", observations))[0],
            "fail | learner world | learner on b loads 2.27.7 (/venv/libnccl.so.2, NCCL wheel); learner on a "
            "loads 2.28.9 (/venv/libnccl.so.2, NCCL wheel) | one version of NCCL in the group | make these "
            "roles load one version: the same `preload:`, or the same wheel in their environments (vLLM also "
            "accepts VLLM_NCCL_SO_PATH) | user");
}

TEST(Nodes, TheSpecHasTheAddressOfEachRanksNode) {
  const TwoNodes machine;
  const auto spec = make_spec(machine.job(), "/f", {"10.0.0.1", "10.0.0.2"});
  EXPECT_EQ(spec["ranks"][0]["address"], "10.0.0.1");
  EXPECT_EQ(spec["ranks"][1]["address"], "10.0.0.2");
}

TEST(Nodes, FindingsArriveAsTheyWere) {
  const Machine machine(1, 1);
  Findings findings{run_check("limits", machine.of_node()), machine.observations().ranks};
  findings.rows[0].hosts = {"a"};
  findings.ranks[0].slow = {"NCCL_P2P_DISABLE=1"};
  const auto json = to_json(findings);
  EXPECT_EQ(to_json(findings_from_json(json)), json);
}

}  // namespace
}  // namespace nlaunch::preflight

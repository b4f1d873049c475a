#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "unit/preflight/host_fixture.h"

namespace nlaunch::preflight {
namespace {

nlohmann::json fabric(const std::string& provider, int domains) {
  nlohmann::json out{{"event", "fabric"},
                     {"version", "1.22"},
                     {"path", "/opt/lib.so.1"},
                     {"provider", provider},
                     {"domains", nlohmann::json::array()}};
  for (int i = 0; i < domains; ++i) {
    out["domains"].push_back({{"name", fmt::format("{}{}", provider, i)},
                              {"fabric", provider},
                              {"provider", provider},
                              {"link", "up"},
                              {"gbits", 200},
                              {"opened", true}});
  }
  if (domains == 0) out["provider_error"] = "No data available";
  return out;
}

TEST(CheckFabric, SaysWhatEachRoleHas) {
  EXPECT_EQ(lines(run_check("fabric", Cluster("cxi", 4).with("fabric/learner", fabric("cxi", 4)))),
            (Lines{"pass | learner | libfabric 1.22 (/opt/lib.so.1): 4 x cxi |  |  | "}));
  EXPECT_EQ(lines(run_check("fabric", Cluster("").with("fabric/learner", fabric("tcp", 2)))),
            (Lines{"pass | learner | libfabric 1.22 (/opt/lib.so.1): 2 x tcp |  |  | "}));
}

TEST(CheckFabric, AProviderThatRefusesTheJobFailsIt) {
  auto said = fabric("cxi", 2);
  said["domains"][1]["opened"] = false;
  said["domains"][1]["error"] = "Function not implemented";
  EXPECT_EQ(faults(run_check("fabric", Cluster("cxi", 2).with("fabric/learner", said))),
            (Lines{"fail | learner | cxi1 of libfabric 1.22 (/opt/lib.so.1) cannot be opened: Function not "
                   "implemented | 2 x cxi | the job has no permission to use these NICs: start it in an srun "
                   "step (which gives it a VNI), let containers keep SLINGSHOT_*, and check "
                   "FI_MR_CACHE_MONITOR; FI_LOG_LEVEL=info shows more | user"}));
}

TEST(CheckFabric, AMissingProviderIsAWarningWhereNcclNeedsIt) {
  const std::string fix =
      "load the site's libfabric (a module, or LD_LIBRARY_PATH): NCCL's plugin uses another one only if it "
      "bundles it, and NCCL without its plugin uses TCP";
  EXPECT_EQ(faults(run_check("fabric", Cluster("cxi", 4).with("fabric/learner", fabric("cxi", 0)))),
            (Lines{"warn | learner | libfabric 1.22 (/opt/lib.so.1) offers no cxi: No data available | a "
                   "libfabric with the cxi provider | " +
                   fix + " | user"}));
  EXPECT_EQ(lines(run_check("fabric", Cluster("efa").with("fabric/learner", {{"error", "not found"}}))),
            (Lines{"warn | learner | not found | a libfabric with the efa provider | " + fix + " | user"}));
  EXPECT_EQ(lines(run_check("fabric", Cluster("ib").with("fabric/learner", {{"error", "not found"}}))),
            (Lines{"skip | learner | libfabric is not needed here: not found |  |  | "}));
}

TEST(CheckFabric, CountsThoseWhoseLinkIsUp) {
  auto said = fabric("cxi", 4);
  said["domains"][2]["link"] = "down";
  EXPECT_EQ(
      faults(run_check("fabric", Cluster("cxi", 4).with("fabric/learner", said))),
      (Lines{"warn | learner | libfabric 1.22 (/opt/lib.so.1): 4 x cxi, 1 with its link down | 4 x cxi | "
             "see the rows of 'nics': NCCL does not use what libfabric does not show | user"}));
}

TEST(CheckFabric, KnowsTheProviderOfAKind) {
  Machine machine(1, 0);
  for (const auto& [kind, provider] : std::map<std::string, std::string>{{"cxi", "cxi"},
                                                                         {"efa", "efa"},
                                                                         {"ib", "verbs"},
                                                                         {"roce", "verbs"},
                                                                         {"", "tcp"},
                                                                         {"tcpxo", "tcp"}}) {
    machine.plan.node.nic_kind = kind;
    EXPECT_EQ(inquiry_of("fabric").arguments(machine.of_node(), nullptr), (Lines{provider})) << kind;
  }
}

TEST(CheckFabric, WhereNcclDoesNotNeedItARefusalIsNoFailure) {
  auto said = fabric("verbs", 2);
  said["domains"][0]["opened"] = false;
  said["domains"][0]["error"] = "No such device";
  const auto rows = lines(run_check("fabric", Cluster("ib", 2).with("fabric/learner", said)));
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_TRUE(rows[0].starts_with(
      "warn | learner | verbs0 of libfabric 1.22 (/opt/lib.so.1) cannot be opened: No such "
      "device | 2 x verbs | FI_LOG_LEVEL=info shows more; in a container"));
  auto tcp = fabric("tcp", 1);
  tcp["domains"][0]["opened"] = false;
  tcp["domains"][0]["error"] = "no";
  EXPECT_EQ(lines(run_check("fabric", Cluster("").with("fabric/learner", tcp))),
            Lines{"skip | learner | libfabric is not needed here: no |  |  | "});
}

TEST(CheckFabric, OnOneNodeARefusalIsAWarning) {
  auto said = fabric("cxi", 1);
  said["domains"][0]["opened"] = false;
  Cluster cluster("cxi");
  EXPECT_EQ(worst(run_check("fabric", cluster.with("fabric/learner", said))), Status::fail);
  cluster.plan.node.count = 1;
  EXPECT_EQ(worst(run_check("fabric", cluster.with("fabric/learner", said))), Status::warn);
}

TEST(CheckFabric, FewerThanTheSiteHasIsAWarning) {
  EXPECT_EQ(faults(run_check("fabric", Cluster("cxi", 4).with("fabric/learner", fabric("cxi", 3)))).size(),
            1U);
  EXPECT_EQ(faults(run_check("fabric", Cluster("cxi", 4).with("fabric/learner", fabric("cxi", 5)))), Lines{});
  EXPECT_EQ(faults(run_check("fabric", Cluster("ib", 4).with("fabric/learner", fabric("verbs", 3)))),
            Lines{});
  auto said = fabric("cxi", 5);
  said["domains"][0]["link"] = "down";
  EXPECT_EQ(faults(run_check("fabric", Cluster("cxi", 4).with("fabric/learner", said))).size(), 1U);
}

TEST(CheckFabric, WhatIsNotBuiltOrDoesNotAnswerIsUnknown) {
  EXPECT_EQ(lines(run_check("fabric",
                            Cluster("cxi").with("fabric/learner", {{"not_built", true},
                                                                   {"provider_error", "built without it"}}))),
            Lines{"unknown | learner | built without it |  |  | "});
  EXPECT_EQ(lines(run_check("fabric", Cluster("cxi").without("fabric/learner", "it did not answer"))),
            Lines{"unknown | learner | it did not answer |  |  | "});
  EXPECT_TRUE(run_check("fabric", Cluster("cxi").of_node()).empty());
}

TEST(CheckFabric, WithoutAReasonItListsNoDomain) {
  auto said = fabric("verbs", 0);
  said.erase("provider_error");
  EXPECT_EQ(
      lines(run_check("fabric", Cluster("ib").with("fabric/learner", said))),
      Lines{"skip | learner | libfabric 1.22 (/opt/lib.so.1) offers no verbs: it lists no domain |  |  | "});
}

}  // namespace
}  // namespace nlaunch::preflight

#include <gtest/gtest.h>

#include "unit/preflight/host_fixture.h"

namespace nlaunch::preflight {
namespace {

/// With the variables that Slurm gives to a step.
Cluster slingshot(std::uint32_t count) {
  Cluster cluster("cxi", count);
  for (const auto* name : {"SLINGSHOT_VNIS", "SLINGSHOT_SVC_IDS", "SLINGSHOT_DEVICES"})
    cluster.set(0, name, "1");
  return cluster;
}

TEST(CheckNics, PassesHealthyMachines) {
  EXPECT_EQ(lines(run_check("nics", slingshot(4).with("nics", recorded("nics-gh200")))),
            (Lines{"pass | cxi | 4 usable, 200 Gb/s | 4 x cxi |  | ",
                   "pass | learner | has the job's SLINGSHOT_ variables |  |  | "}));
  EXPECT_EQ(lines(run_check("nics", Cluster("ib", 8).with("nics", recorded("nics-h100")))),
            (Lines{"pass | ib | 8 usable, 400 Gb/s | 8 x ib |  | "}));
  EXPECT_EQ(lines(run_check("nics", Cluster("efa").with("nics", recorded("nics-p5")))),
            (Lines{"pass | efa | 2 usable, 100 Gb/s | efa NICs |  | "}));
}

TEST(CheckNics, NamesEachThatIsNotWell) {
  EXPECT_EQ(
      faults(run_check("nics", slingshot(4).with("nics", recorded("nics-sick-gh200")))),
      (Lines{"fail | cxi | 2 of 3 usable | 4 x cxi | report the node, or correct node.nics in the site "
             "profile | admin",
             "warn | cxi1 (hsn1) | 100 Gb/s | 200 Gb/s, like the others | report the node: its link came up "
             "slower than expected | admin",
             "fail | cxi2 (hsn2) | the link is down (down) | 4 x cxi | report the node: check the cable, the "
             "switch port and the NIC itself | admin",
             "fail | 0003:01:00.0 (17db:0501) | has no driver | 4 x cxi | load its driver, or report the "
             "node | admin"}));
  EXPECT_EQ(
      faults(run_check("nics", Cluster("ib", 2).with("nics", recorded("nics-sick-h100")))),
      (Lines{"fail | ib | 0 of 2 usable | 2 x ib | report the node, or correct node.nics in the site "
             "profile | admin",
             "fail | mlx5_0 | /dev/infiniband/uverbs0 cannot be opened: No such file or directory | 2 x ib | "
             "in a container: pass /dev/infiniband/uverbs0 through (--device); otherwise the user needs "
             "permission to use it | user",
             "fail | mlx5_1 | the link is down (DOWN, Polling) | 2 x ib | report the node: check the cable, "
             "the switch port and the NIC itself | admin"}));
}

TEST(CheckNics, WhereEnoughAreUpTheOthersAreAWarning) {
  for (const auto& row : run_check("nics", slingshot(2).with("nics", recorded("nics-sick-gh200"))))
    EXPECT_NE(row.status, Status::fail) << line(row);
}

TEST(CheckNics, ARunOnOneNodeIsNotRefused) {
  auto cluster = slingshot(4);
  cluster.plan.node.count = 1;
  EXPECT_EQ(worst(run_check("nics", cluster.with("nics", recorded("nics-sick-gh200")))), Status::warn);
  cluster.plan.sources.clear();  // the node itself is checked, for whatever is to run there
  EXPECT_EQ(worst(run_check("nics", cluster.with("nics", recorded("nics-sick-gh200")))), Status::fail);
}

TEST(CheckNics, TellsWhatThereIsWhereTheKindIsNot) {
  EXPECT_EQ(lines(run_check("nics", Cluster("efa", 32).with("nics", recorded("nics-h100")))),
            (Lines{"fail | efa | none of this kind; found: 8 x ib, 400 Gb/s; 1 x roce, 25 Gb/s | 32 x "
                   "efa | report the node, or correct node.nics in the site profile | admin"}));
  EXPECT_EQ(lines(run_check("nics", Cluster("").with("nics", recorded("nics-h100")))),
            (Lines{"pass | this machine | 8 x ib, 400 Gb/s; 1 x roce, 25 Gb/s |  |  | "}));
  EXPECT_EQ(lines(run_check("nics", Cluster("tcpxo", 8).with("nics", recorded("nics-h100")))),
            (Lines{"skip | tcpxo | unknown kind of NIC; the known kinds are: cxi, ib, roce, "
                   "efa |  |  | "}));
}

TEST(CheckNics, WantsWhatSlurmGivesToAStep) {
  auto cluster = slingshot(4);
  cluster.set(0, "SLINGSHOT_VNIS", "");
  EXPECT_EQ(faults(run_check("nics", cluster.with("nics", recorded("nics-gh200")))),
            (Lines{"warn | learner | no SLINGSHOT_VNIS in its environment | those that Slurm sets for a step "
                   "| without them the NICs may refuse the job (\"Invalid VNI\"): start it in an srun step, "
                   "and let containers and wrappers keep SLINGSHOT_* | user"}));
}

TEST(CheckNics, AProbeThatCannotSayBlamesNobody) {
  EXPECT_EQ(lines(run_check(
                "nics", Cluster("ib", 8).without("nics", "nlaunch-probe nics did not answer within 5 s"))),
            (Lines{"unknown | ib | nlaunch-probe nics did not answer within 5 s |  |  | "}));
  EXPECT_EQ(
      lines(run_check("nics", Cluster("").without("nics", "nlaunch-probe nics did not answer within 5 s"))),
      Lines{});
}

nlohmann::json nic(const std::string& device, double gbits, bool up = true) {
  return {{"name", device}, {"kind", "ib"},   {"driver", "mlx5_core"},
          {"up", up},       {"gbits", gbits}, {"device", device}};
}

Lines of_nics(std::uint32_t wanted, const std::vector<nlohmann::json>& all,
              const nlohmann::json& idle = nlohmann::json::array()) {
  return faults(run_check("nics", Cluster("ib", wanted).with("nics", {{"nics", all}, {"idle", idle}})));
}

TEST(CheckNics, WithoutANumberOneIsEnough) {
  EXPECT_EQ(of_nics(0, {nic("a", 200)}), Lines{});
  EXPECT_EQ(of_nics(0, {nic("a", 200), nic("b", 200, false)}).size(), 1U);
  EXPECT_TRUE(of_nics(0, {nic("a", 200), nic("b", 200, false)})[0].starts_with(
      "warn | b | the link is down | ib NICs"));
  EXPECT_TRUE(of_nics(0, {nic("b", 200, false)})[0].starts_with("fail | ib | 0 of 1 usable | ib NICs"));
  EXPECT_TRUE(of_nics(0, {})[0].starts_with("fail | ib | none of this kind; found: none | ib NICs"));
}

TEST(CheckNics, OneThatIsMissingIsAFault) {
  EXPECT_EQ(of_nics(2, {nic("a", 200), nic("b", 200)}), Lines{});
  EXPECT_TRUE(
      of_nics(3, {nic("a", 200), nic("b", 200)})[0].starts_with("fail | ib | 2 of 2 usable | 3 x ib"));
}

TEST(CheckNics, ASlowerLinkIsTold) {
  EXPECT_EQ(of_nics(0, {nic("a", 200), nic("b", 0)}), Lines{}) << "its speed is not known";
  EXPECT_EQ(of_nics(0, {nic("a", 200), nic("b", 199)}),
            Lines{"warn | b | 199 Gb/s | 200 Gb/s, like the others | report the node: its link came up "
                  "slower than expected | admin"});
  EXPECT_EQ(of_nics(0, {nic("a", 200), nic("b", 400, false)}).size(), 1U)
      << "a link that is down has no speed";
}

TEST(CheckNics, ACardWithoutADriverMayBeOneOfThese) {
  const auto card = [](const std::string& kind) {
    return nlohmann::json::array({{{"bus_id", "0000:01:00.0"}, {"id", "15b3:1021"}, {"kind", kind}}});
  };
  EXPECT_TRUE(of_nics(2, {nic("a", 200)}, card("mlx5"))
                  .at(1)
                  .starts_with("fail | 0000:01:00.0 (15b3:1021) | has no driver"));
  EXPECT_TRUE(of_nics(1, {nic("a", 200)}, card("mlx5")).at(0).starts_with("warn | 0000:01:00.0"));
  EXPECT_TRUE(of_nics(0, {nic("a", 200)}, card("ib")).at(0).starts_with("warn | 0000:01:00.0"));
  EXPECT_TRUE(of_nics(0, {}, card("ib")).at(1).starts_with("fail | 0000:01:00.0"));
  EXPECT_EQ(of_nics(1, {nic("a", 200)}, card("cxi")), Lines{});
  Cluster roce("roce");
  auto one = nic("a", 25);
  one["kind"] = "roce";
  EXPECT_EQ(faults(run_check("nics", roce.with("nics", {{"nics", nlohmann::json::array({one})},
                                                        {"idle", card("mlx5")}})))
                .size(),
            1U);
  Cluster efa("efa");
  one["kind"] = "efa";
  EXPECT_EQ(faults(run_check(
                "nics", efa.with("nics", {{"nics", nlohmann::json::array({one})}, {"idle", card("mlx5")}}))),
            Lines{});
}

TEST(CheckNics, TheFastestOfAKindIsSummedUp) {
  auto unknown = nic("c", 0);
  unknown["kind"] = "efa";
  EXPECT_EQ(
      lines(run_check("nics", Cluster("").with("nics", {{"nics", {nic("a", 100), nic("b", 200), unknown}}}))),
      Lines{"pass | this machine | 1 x efa; 2 x ib, 200 Gb/s |  |  | "});
  EXPECT_EQ(lines(run_check("nics", Cluster("").with("nics", {{"nics", nlohmann::json::array()}}))), Lines{});
  EXPECT_TRUE(run_check("nics", Cluster("").of_node()).empty());
}

TEST(CheckNics, OfOneNodeSlurmsVariablesAreNotWanted) {
  auto cluster = slingshot(4);
  cluster.set(0, "SLINGSHOT_VNIS", "");
  cluster.plan.node.count = 1;
  EXPECT_EQ(faults(run_check("nics", cluster.with("nics", recorded("nics-gh200")))), Lines{});
}

}  // namespace
}  // namespace nlaunch::preflight

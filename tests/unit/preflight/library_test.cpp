#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "unit/preflight/fixture.h"

namespace nlaunch::preflight {
namespace {

LibraryFact loaded(const std::string& version, const std::string& by = "loader") {
  return {"/lib/libnccl.so.2", version, by, ""};
}

TEST(CheckLibraries, SaysWhichAndWhy) {
  const Machine machine(1, 1);
  auto observations = machine.of_node();
  observations.libraries[0] = {"/opt/nccl.so", "2.28.9", "preload", ""};
  EXPECT_EQ(lines(run_check("nccl", observations)),
            (Lines{"pass | learner | 2.28.9 /opt/nccl.so (preload) |  |  | ",
                   "pass | engine | 2.28.9 /venv/libnccl.so.2 (NCCL wheel) |  |  | "}));
}

TEST(CheckLibraries, TellsNoneFromOneThatDoesNotLoad) {
  const Machine machine(1, 1);
  auto observations = machine.of_node();
  observations.libraries[0] = {"", "", "loader", "not found: looked for libnccl.so.2 in the system folders"};
  observations.libraries[1] = {"/etc/passwd", "", "VLLM_NCCL_SO_PATH",
                               "cannot be loaded: invalid ELF header"};
  EXPECT_EQ(
      lines(run_check("nccl", observations)),
      (Lines{
          "unknown | learner | no libnccl was found (loader): not found: looked for libnccl.so.2 in the "
          "system "
          "folders |  |  | ",
          "fail | engine | /etc/passwd (VLLM_NCCL_SO_PATH): cannot be loaded: invalid ELF header | a libnccl "
          "that loads | name a library that is there, or install it | user"}));
}

TEST(CheckVersions, RefusesTwoVersionsInTheWeightSyncGroup) {
  const Machine machine(1, 1);
  auto observations = machine.observations();
  observations.ranks[0].library = loaded("2.28.9", "preload");
  observations.ranks[1].library = loaded("2.28.3");
  EXPECT_EQ(
      lines(run_check("nccl-version", observations)),
      (Lines{"fail | weight sync | learner loads 2.28.9 (/lib/libnccl.so.2, preload); engine loads 2.28.3 "
             "(/lib/libnccl.so.2, loader) | one version of NCCL in the group | let these roles load one "
             "version: "
             "the same `preload:`, or the same wheel in their environments (vLLM also takes "
             "VLLM_NCCL_SO_PATH) | "
             "user"}));
}

TEST(CheckVersions, AcceptsOneVersionFromTwoPaths) {
  const Machine machine(1, 1);
  auto observations = machine.observations();
  observations.ranks[1].library.path = "/elsewhere/libnccl.so.2";
  EXPECT_EQ(lines(run_check("nccl-version", observations)),
            (Lines{"pass | weight sync | 2.28.9 | one version |  | "}));
}

TEST(CheckVersions, HoldsTheSitesRange) {
  Machine machine(1, 1);
  machine.plan.libraries["nccl"] = {"/x", *VersionRange::parse(">=2.29"), "site.yaml:9:3"};
  EXPECT_EQ(faults(run_check("nccl-version", machine.observations())),
            (Lines{"fail | learner | 2.28.9 (/venv/libnccl.so.2, NCCL wheel) | >=2.29 (site.yaml:9:3) | "
                   "install an NCCL "
                   "in that range, or `preload:` one | user",
                   "fail | engine | 2.28.9 (/venv/libnccl.so.2, NCCL wheel) | >=2.29 (site.yaml:9:3) | "
                   "install an NCCL "
                   "in that range, or `preload:` one | user"}));
}

TEST(CheckDenyList, KnowsTheProxyLeakOnArm) {
  const Machine machine(1, 0);
  for (const auto* version : {"2.28.9", "2.29.2"}) {
    auto observations = machine.of_node(version);
    observations.machine.arch = "aarch64";
    EXPECT_EQ(faults(run_check("nccl-known-bad", observations)).size(), 1) << version;
  }
  for (const auto* version : {"2.28.3", "2.28.7", "2.29.3", "2.30.7"}) {
    auto observations = machine.of_node(version);
    observations.machine.arch = "aarch64";
    EXPECT_TRUE(faults(run_check("nccl-known-bad", observations)).empty()) << version;
  }
  EXPECT_TRUE(faults(run_check("nccl-known-bad", machine.of_node("2.28.9"))).empty()) << "x86_64";
}

struct Guard {
  std::vector<std::pair<std::string, std::string>> env;
  bool refused;
};

TEST(CheckDenyList, WantsAnLl128GuardOnGraceHopperOverSlingshot) {
  const std::vector<Guard> guards{{{}, true},
                                  {{{"NCCL_PROTO", "^LL128"}}, false},
                                  {{{"NCCL_PROTO", "Simple"}}, false},
                                  {{{"NCCL_PROTO", "LL,Simple"}}, false},
                                  {{{"NCCL_PROTO", "LL128,Simple"}}, true},
                                  {{{"NCCL_PROTO", "^LL"}}, true},
                                  {{{"NCCL_LL128_C2C", "0"}}, false},
                                  {{{"FI_CXI_RDZV_THRESHOLD", "0"}}, true},
                                  {{{"FI_CXI_RDZV_THRESHOLD", "0"}, {"FI_CXI_RDZV_GET_MIN", "0"}}, false}};
  for (const auto& guard : guards) {
    Machine machine(1, 0);
    machine.plan.roles.pop_back();
    machine.plan.node.gpu_model = "GH200";
    machine.plan.node.nic_kind = "cxi";
    machine.plan.node.count = 2;
    for (const auto& [name, value] : guard.env) machine.set(0, name, value);
    const auto found = faults(run_check("nccl-known-bad", machine.of_node("2.27.7")));
    EXPECT_EQ(!found.empty(), guard.refused) << (guard.env.empty() ? "" : guard.env[0].second);
    EXPECT_TRUE(faults(run_check("nccl-known-bad", machine.of_node("2.26.2"))).empty());
  }
}

TEST(MakeTrials, SplitsANodeOfTwoVersionsAndLeavesTheMixedGroupOut) {
  const Machine machine(2, 2);
  const auto observations = machine.observations({"2.28.9", "2.28.3"});
  std::vector<std::string> seen;
  for (const auto& trial : make_trials(observations)) {
    seen.push_back(fmt::format("{}: {}{}", trial.name, fmt::join(trial.members, " "),
                               trial.transport ? ", transport" : ""));
  }
  EXPECT_EQ(seen, (Lines{"node 0, NCCL 2.28.3: 2 3, transport", "node 0, NCCL 2.28.9: 0 1, transport",
                         "learner world: 0 1", "node 0, NCCL 2.28.3, neighbours: 2 3",
                         "node 0, NCCL 2.28.9, neighbours: 0 1"}));
}

TEST(MakeTrials, DoesNotTryAWeightSyncOfTwoVersions) {
  const Machine machine(1, 1);
  const auto observations = machine.observations({"2.28.9", "2.28.3"});
  const auto trials = make_trials(observations);
  ASSERT_EQ(trials.size(), 1);
  EXPECT_EQ(trials[0].name, "weight sync");
  EXPECT_EQ(trials[0].not_run, "not run: its ranks load different versions of NCCL");
}

TEST(MakeTrials, MeasuresTheSameRanksOnce) {
  const auto trials = make_trials(Machine(2, 0).observations());
  ASSERT_EQ(trials.size(), 3);
  EXPECT_EQ(trials[0].name + trials[0].not_run, "node 0");
  EXPECT_EQ(trials[1].name, "learner world");
  EXPECT_EQ(trials[1].not_run, "not run: the same ranks as 'node 0'");
}

TEST(MakeTrials, AddsTheSizeThatTheSiteJudges) {
  Machine machine(2, 0);
  machine.plan.expected.all_reduce_busbw = {{2, VersionRange::parse("1").value(), 1U << 30U, 1e11, "site"},
                                            {4, std::nullopt, 512U << 20U, 1e11, "site"}};
  EXPECT_EQ(machine.observations().groups[0].sizes,
            (std::vector<std::uint64_t>{8, 1U << 20U, 22118400, 128U << 20U, 1U << 30U}));
}

TEST(MakeTrials, SweepsTheLargestGroupAtLevelDeep) {
  const Machine machine(4, 0);
  auto observations = machine.observations();
  observations.level = PreflightLevel::deep;
  const auto trials = make_trials(observations);
  const std::vector<std::uint64_t> all{
      8,        32,         128,         512,         2048,      8192,
      32768,    131072,     524288,      1U << 20U,   2U << 20U, 8U << 20U,
      22118400, 32U << 20U, 128U << 20U, 512U << 20U, 2U << 30U, std::uint64_t{4} << 30U};
  EXPECT_EQ(trials[0].sizes, all);
  EXPECT_EQ(trials[2].sizes, (std::vector<std::uint64_t>{1U << 20U, 128U << 20U})) << trials[2].name;
}

TEST(MakeRanks, TakesTheDeviceAsTheRoleWould) {
  Machine machine(2, 2);
  machine.set(1, "LOCAL_RANK", "0");
  const auto ranks = make_ranks(machine.plan, machine.node);
  EXPECT_EQ(ranks[0].device, 0);
  EXPECT_EQ(ranks[1].device, 0) << "a torch rank obeys its LOCAL_RANK";
  EXPECT_EQ(ranks[3].device, 0) << "an engine sees only its own GPU";
  EXPECT_EQ(ranks[3].subject, "engine.1 (GPU 3)");
}

}  // namespace
}  // namespace nlaunch::preflight

#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <set>

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
          "unknown | learner | libnccl not found (loader): not found: looked for libnccl.so.2 in the system "
          "folders |  |  | ",
          "fail | engine | /etc/passwd (VLLM_NCCL_SO_PATH): cannot be loaded: invalid ELF header | a libnccl "
          "that loads | name an existing library, or install it | user"}));
}

TEST(CheckVersions, RefusesTwoVersionsInTheWeightSyncGroup) {
  const Machine machine(1, 1);
  auto observations = machine.observations();
  observations.ranks[0].library = loaded("2.28.9", "preload");
  observations.ranks[1].library = loaded("2.28.3");
  EXPECT_EQ(lines(run_check("nccl-version", observations)),
            (Lines{"fail | weight sync | learner loads 2.28.9 (/lib/libnccl.so.2, preload); engine loads "
                   "2.28.3 (/lib/libnccl.so.2, loader) | one version of NCCL in the group | make these roles "
                   "load one version: the same `preload:`, or the same wheel in their environments (vLLM "
                   "also accepts VLLM_NCCL_SO_PATH) | user"}));
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
                   "install an NCCL version in that range, or `preload:` one | user",
                   "fail | engine | 2.28.9 (/venv/libnccl.so.2, NCCL wheel) | >=2.29 (site.yaml:9:3) | "
                   "install an NCCL version in that range, or `preload:` one | user"}));
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

std::vector<std::string> shown(const std::vector<GroupTrial>& trials) {
  std::vector<std::string> out;
  for (const auto& trial : trials) {
    out.push_back(fmt::format("{}: {}{}{}", trial.name, fmt::join(trial.members, " "),
                              trial.transport ? ", transport" : "",
                              trial.not_run.empty() ? "" : ", " + trial.not_run));
  }
  return out;
}

TEST(MakeTrials, LeavesOutWhatCannotBeTried) {
  const Machine machine(2, 1);
  auto observations = machine.observations();
  observations.ranks[2].no_probe = "it does not start there";
  EXPECT_EQ(shown(make_trials(observations)), (Lines{
                                                  "node 0: 0 1 2, not run: it does not start there",
                                                  "learner world: 0 1, transport",
                                              }));
  observations.ranks[2].no_probe.clear();
  for (auto& rank : observations.ranks) rank.library.version.clear();
  EXPECT_EQ(shown(make_trials(observations))[0],
            "node 0: 0 1 2, not run: no libnccl found for engine.0 (GPU 2)");
}

TEST(MakeTrials, OfANodeWithAnUnknownVersionItIsToldSo) {
  const Machine machine(2, 2);
  auto observations = machine.observations({"2.28.9", ""});
  EXPECT_EQ(shown(make_trials(observations)),
            (Lines{"node 0, NCCL not found: 2 3, not run: no libnccl found for engine.1 (GPU 3)",
                   "node 0, NCCL 2.28.9: 0 1, transport",
                   "learner world: 0 1, not run: the same ranks as 'node 0, NCCL "
                   "2.28.9'",
                   "node 0, NCCL 2.28.9, neighbours: 0 1"}));
}

TEST(MakeTrials, OneRankOfAVersionIsNoGroup) {
  const Machine machine(2, 1);
  EXPECT_EQ(shown(make_trials(machine.observations({"2.28.9", "2.28.3"}))),
            (Lines{"node 0, NCCL 2.28.9: 0 1, transport",
                   "learner world: 0 1, not run: the same ranks as 'node 0, NCCL "
                   "2.28.9'",
                   "node 0, NCCL 2.28.9, neighbours: 0 1"}));
}

TEST(MakeTrials, ABroadcastOverTheSameRanksIsAnotherMeasurement) {
  EXPECT_EQ(shown(make_trials(Machine(1, 1).observations())),
            (Lines{"node 0: 0 1, transport", "weight sync: 0 1", "node 0, neighbours: 0 1"}));
}

TEST(MakeTrials, OverGlooTheVersionsAndTheTransportDoNotCount) {
  const Machine machine(2, 2, false);
  EXPECT_EQ(shown(make_trials(machine.observations())),
            (Lines{"node 0: 0 1 2 3", "learner world: 0 1", "node 0, neighbours: 0 1 2 3"}));
  EXPECT_EQ(make_trials(machine.observations())[0].sizes,
            (std::vector<std::uint64_t>{8, 1U << 20U, 22118400}))
      << "larger ones take too long";
}

TEST(MakeTrials, DoesNotTryTheTensorParallelGroupOfAnEngine) {
  Machine machine(2, 2);
  machine.add_group("engine.0", plan::GroupKind::tensor_parallel, Backend::nccl, 2, 2);
  EXPECT_EQ(shown(make_trials(machine.observations())).size(), 3U);
}

TEST(MakeTrials, OfGroupsWithinALargerOneTheLargestTellsTheTransport) {
  Machine machine(4, 0);
  machine.plan.groups.clear();
  machine.add_group("small", plan::GroupKind::world, Backend::nccl, 0, 2);
  machine.add_group("across", plan::GroupKind::world, Backend::nccl, 1, 3);
  machine.add_group("inner", plan::GroupKind::world, Backend::nccl, 2, 2);
  EXPECT_EQ(shown(make_trials(machine.observations())),
            (Lines{"small: 0 1, transport", "across: 1 2 3, transport", "inner: 2 3"}));
}

TEST(MakeTrials, AcrossNodesALargerMessageIsTriedAndTheNeighboursToo) {
  Machine machine(2, 0);
  machine.plan.groups.erase(machine.plan.groups.begin());
  auto observations = machine.observations();
  EXPECT_EQ(shown(make_trials(observations)), Lines{"learner world: 0 1, transport"});
  EXPECT_EQ(make_trials(observations)[0].sizes.back(), 128U << 20U);
  observations.ranks[1].node = 1;
  const auto trials = make_trials(observations);
  EXPECT_EQ(shown(trials), (Lines{"learner world: 0 1, transport", "learner world, neighbours: 0 1"}));
  EXPECT_EQ(trials[0].sizes.back(), 1U << 30U);
  EXPECT_EQ(trials[1].sizes, (std::vector<std::uint64_t>{1U << 20U, 128U << 20U}));
}

TEST(MakeTrials, TheSiteCanAskForNoLessThanAnElement) {
  Machine machine(2, 0);
  machine.plan.expected.all_reduce_busbw = {{2, std::nullopt, 3, 1e9, "site"},
                                            {2, std::nullopt, 7, 1e9, "site"}};
  EXPECT_EQ(machine.observations().groups[0].sizes,
            (std::vector<std::uint64_t>{4, 8, 1U << 20U, 22118400, 128U << 20U}));
}

TEST(TrialOf, IsTheGroupWithoutWork) {
  const Machine machine(2, 1);
  const auto observations = machine.observations();
  const auto trial = trial_of(machine.plan.groups[0], observations.ranks);
  EXPECT_EQ(shown({trial}), Lines{"node 0: 0 1 2"});
  EXPECT_TRUE(trial.sizes.empty());
  auto ranks = observations.ranks;
  ranks[0].library.version = "2.30.0";
  EXPECT_EQ(trial_of(machine.plan.groups[0], ranks).not_run,
            "not run: its ranks load different versions of NCCL");
  EXPECT_EQ(trial_of({"one", plan::GroupKind::world, Backend::gloo, {{0, 0}}}, ranks).not_run,
            "not run: a group of one rank has no peer");
}

TEST(MakeRanks, HasARankForEachGpuOfAProcess) {
  Machine machine(1, 1);
  machine.plan.processes[0].gpus = {0, 2};
  const auto ranks = make_ranks(machine.plan, machine.node);
  ASSERT_EQ(ranks.size(), 3U);
  EXPECT_EQ(ranks[1].subject, "learner rank 0 (GPU 2)");
  EXPECT_EQ(ranks[0].device, 0);
  EXPECT_EQ(ranks[1].device, 1) << "the second of those that it sees";
  EXPECT_EQ(ranks[2].bound, 1U);
  EXPECT_EQ(make_ranks(machine.plan, Machine(1, 1, false).node)[0].device, -1);
  EXPECT_EQ(make_ranks(machine.plan, Machine(1, 1, false).node)[0].subject, "learner rank 0 (CPU slot 0)");
}

TEST(MakeRanks, WithoutLocalRankThePlansCounts) {
  Machine machine(3, 0);
  std::erase_if(machine.node.processes[2].env, [](const auto& one) { return one.first == "LOCAL_RANK"; });
  EXPECT_EQ(make_ranks(machine.plan, machine.node)[2].device, 2);
}

TEST(MakeSpec, HasWhatTheProbesNeed) {
  const Machine machine(1, 1);
  auto observations = machine.observations();
  observations.groups[0].workloads = {
      {"step", {{Collective::all_gather, 64, DataType::bf16, 80}}, 3, 2, true}};
  const auto spec = make_spec(observations, "/folder");
  EXPECT_EQ(spec["folder"], "/folder");
  EXPECT_EQ(spec["join_ms"], 20000);
  EXPECT_EQ(spec["op_ms"], 20000);
  EXPECT_EQ(spec["ranks"][1].dump(),
            R"json({"address":"","device":0,"library":"/venv/libnccl.so.2","name":"engine.0 (GPU 1)"})json");
  const auto& group = spec["groups"][0];
  EXPECT_EQ(group["name"], "node 0");
  EXPECT_EQ(group["op"], "all_reduce");
  EXPECT_EQ(group["backend"], "nccl");
  EXPECT_EQ(group["members"].dump(), "[0,1]");
  EXPECT_EQ(group["transport"], true);
  EXPECT_EQ(
      group["workloads"].dump(),
      R"([{"busy":true,"name":"step","step":[{"bytes":64,"count":80,"op":"all_gather","type":"bf16"}],"steps":3,)"
      R"("warm_up":2}])");
  EXPECT_FALSE(group.contains("drill"));
  EXPECT_EQ(spec["groups"][1]["op"], "broadcast");
}

TEST(MakeSpec, NamesALibraryOnlyWhereAGroupNeedsIt) {
  const Machine machine(2, 0);
  auto observations = machine.observations();
  for (auto& group : observations.groups) group.not_run = "not run";
  auto spec = make_spec(observations, "/folder");
  EXPECT_TRUE(spec["groups"].empty());
  EXPECT_EQ(spec["ranks"][0]["library"], "");
  observations.groups[0].not_run.clear();
  observations.ranks[1].device = -1;
  spec = make_spec(observations, "/folder");
  EXPECT_EQ(spec["ranks"][0]["library"], "/venv/libnccl.so.2");
  EXPECT_EQ(spec["ranks"][1]["library"], "");
  observations.groups[0].backend = Backend::gloo;
  EXPECT_EQ(make_spec(observations, "/folder")["ranks"][0]["library"], "");
}

TEST(CheckVersions, WhereNothingIsKnownNothingIsSaid) {
  const Machine machine(1, 1);
  auto observations = machine.observations();
  for (auto& rank : observations.ranks) rank.library.version.clear();
  EXPECT_EQ(lines(run_check("nccl-version", observations)), Lines{});
  const Machine slots(1, 1, false);
  auto without = slots.observations();
  for (auto& group : without.groups) group.backend = Backend::nccl;
  for (auto& rank : without.ranks) rank.library.version = "2.28.9";
  EXPECT_EQ(lines(run_check("nccl-version", without)), Lines{}) << "no rank has a GPU";
}

TEST(CheckVersions, OfANodesOwnGroupNothingIsSaid) {
  const Machine machine(2, 2);
  EXPECT_EQ(faults(run_check("nccl-version", machine.observations({"2.28.9", "2.28.3"}))), Lines{});
  EXPECT_EQ(run_check("nccl-version", machine.observations({"2.28.9", "2.28.3"})).size(), 1U)
      << "the learners agree";
}

TEST(CheckVersions, ARangeOfTheSiteIsHeldByAll) {
  Machine machine(1, 1);
  machine.plan.libraries["nccl"] = {"/x", *VersionRange::parse(">=2.28.9"), "site.yaml:9:3"};
  EXPECT_EQ(faults(run_check("nccl-version", machine.observations({"2.28.9", "2.28.9"}))), Lines{});
  auto observations = machine.observations({"2.28.9", "2.28.9"});
  observations.ranks[1].library.version = "2.28.3";
  observations.hosts = {"n1"};
  const auto rows = run_check("nccl-version", observations);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[1].subject, "engine");
  EXPECT_EQ(rows[1].hosts, Lines{"n1"});
  machine.plan.libraries["nccl"].version.reset();
  EXPECT_EQ(faults(run_check("nccl-version", machine.observations())), Lines{});
}

/// Learners on so many nodes, of which these load another version.
Observations learners_on(const Machine& machine, const std::set<std::uint32_t>& others) {
  auto observations = machine.observations();
  for (std::uint32_t rank = 0; rank < observations.ranks.size(); ++rank) {
    observations.ranks[rank].node = rank;
    observations.hosts.push_back(fmt::format("n{}", rank));
    if (others.contains(rank)) observations.ranks[rank].library.version = "2.27.7";
  }
  return observations;
}

TEST(CheckVersions, TheNodesThatDifferFromMostAreNamed) {
  const Machine machine(7, 0);
  auto rows = run_check("nccl-version", learners_on(machine, {2}));
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].hosts, Lines{"n2"});
  EXPECT_TRUE(rows[0].value.starts_with("learner on n2 loads 2.27.7 (")) << rows[0].value;
  EXPECT_NE(rows[0].value.find("learner on n0, n1, n3, n4 and 2 more loads 2.28.9"), std::string::npos)
      << rows[0].value;
  rows = run_check("nccl-version", learners_on(machine, {0, 1, 2, 3}));
  EXPECT_EQ(rows[0].hosts, (Lines{"n4", "n5", "n6"}));
  EXPECT_NE(rows[0].value.find("learner on n0, n1, n2, n3 loads 2.27.7"), std::string::npos) << rows[0].value;
  const Machine even(6, 0);
  EXPECT_EQ(run_check("nccl-version", learners_on(even, {0, 1, 2}))[0].hosts, Lines{})
      << "half of them are not most";
}

TEST(CheckDenyList, SaysWhatIsWrongWithARelease) {
  const Machine machine(1, 1);
  auto observations = machine.of_node("2.28.9");
  observations.machine.arch = "aarch64";
  observations.libraries[1].version = "2.30.1";
  EXPECT_EQ(lines(run_check("nccl-known-bad", observations)),
            (Lines{"fail | learner | NCCL 2.28.9 (/venv/libnccl.so.2, NCCL wheel) hangs silently on aarch64: "
                   "it loses proxy slots | 2.28.7, or 2.29.3 or later | install another NCCL in this role's "
                   "environment, or `preload:` one | user",
                   "pass | this machine | engine 2.30.1 |  |  | "}));
  observations.libraries[0].version = "new";
  EXPECT_EQ(lines(run_check("nccl-known-bad", observations)),
            Lines{"pass | this machine | learner new, engine 2.30.1 |  |  | "});
  observations.libraries.clear();
  EXPECT_EQ(lines(run_check("nccl-known-bad", observations)), Lines{});
}

TEST(CheckDenyList, KnowsGraceHopperByItsGpusToo) {
  Machine machine(1, 0);
  machine.plan.roles.pop_back();
  machine.plan.node.nic_kind = "cxi";
  machine.plan.node.count = 2;
  const auto refused = [&](const std::string& version, const std::string& gpu) {
    auto observations = machine.of_node(version);
    observations.machine.gpus[0].name = gpu;
    return !faults(run_check("nccl-known-bad", observations)).empty();
  };
  EXPECT_TRUE(refused("2.27.3", "NVIDIA GH200 120GB"));
  EXPECT_FALSE(refused("2.27.2", "NVIDIA GH200 120GB"));
  EXPECT_FALSE(refused("2.27.3", "NVIDIA H200"));
  machine.plan.node.count = 1;
  EXPECT_FALSE(refused("2.27.3", "NVIDIA GH200 120GB"));
  machine.plan.node.count = 2;
  machine.plan.node.nic_kind = "ib";
  EXPECT_FALSE(refused("2.27.3", "NVIDIA GH200 120GB"));
}

TEST(CheckLibraries, WithoutGpusNoneIsNeeded) {
  EXPECT_EQ(lines(run_check("nccl", Machine(1, 1, false).of_node())),
            Lines{"skip | this machine | no GPUs: libnccl is not needed |  |  | "});
}

}  // namespace
}  // namespace nlaunch::preflight

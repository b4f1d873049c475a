#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "config/problems.h"
#include "plan/build.h"
#include "unit/plan/support.h"

// Each part of a plan, and what of the experiment and the profile it follows from.
namespace nlaunch::plan {
namespace {

using PlanParts = PlanFiles;
using Lines = std::vector<std::string>;

constexpr const char* kCluster = "scheduler: {kind: slurm}\nnode: {gpus: 4, gpu: GH200, arch: aarch64}\n";
constexpr const char* kLearner = "roles: {learner: {kind: learner, command: [t]}}\n";
constexpr const char* kLocal = "scheduler: {kind: local}\n";

TEST_F(PlanParts, EachProcessKnowsItsPlaceAmongThoseOfItsRole) {
  const auto plan = plan_of(R"(nodes: 2
roles:
  head: {kind: service, command: [h]}
  learner: {kind: learner, count: 3, gpus: 2, rendezvous: torch, command: [t]}
  tool: {kind: service, per_node: 2, rendezvous: torch, command: [x]}
)",
                            kCluster);
  Lines told;
  for (const auto& one : plan.processes) {
    told.push_back(fmt::format("{}: rank {}, node {}, local {}/{}, node rank {}, {} GPUs", plan.name_of(one),
                               one.rank, one.node, one.local_rank, one.local_size, one.node_rank,
                               one.gpus.size()));
  }
  EXPECT_EQ(told, (Lines{"head.0: rank -1, node 0, local 0/1, node rank 0, 0 GPUs",
                         "learner.0: rank 0, node 0, local 0/2, node rank 0, 2 GPUs",
                         "learner.1: rank 2, node 0, local 1/2, node rank 0, 2 GPUs",
                         "learner.2: rank 4, node 1, local 0/1, node rank 1, 2 GPUs",
                         "tool.0: rank 0, node 0, local 0/2, node rank 0, 0 GPUs",
                         "tool.1: rank 1, node 0, local 1/2, node rank 0, 0 GPUs",
                         "tool.2: rank 2, node 1, local 0/2, node rank 1, 0 GPUs",
                         "tool.3: rank 3, node 1, local 1/2, node rank 1, 0 GPUs"}));
  EXPECT_EQ(plan.roles[1].count, 3U);
  EXPECT_EQ(plan.roles[2].count, 4U);
  EXPECT_EQ(plan.weight_syncs.front().world_size, 0U);
}

TEST_F(PlanParts, PortsFollowFromTheNameAlone) {
  constexpr const char* kRoles = R"(roles:
  learner: {kind: learner, rendezvous: torch, command: [t]}
  engine: {kind: engine, count: 2, ports: [http, grpc], command: [s]}
  tool: {kind: service, rendezvous: torch, ports: [http], command: [x]}
)";
  const auto plan = plan_of(kRoles, kLocal);
  EXPECT_EQ(plan.weight_syncs.front().port, 21445);
  EXPECT_EQ(plan.roles[0].rendezvous_port, 21446);
  EXPECT_EQ(plan.roles[1].rendezvous_port, 0);
  EXPECT_EQ(plan.roles[2].rendezvous_port, 21447);
  EXPECT_TRUE(plan.processes[0].ports.empty());
  EXPECT_EQ(plan.processes[1].ports, (std::vector<std::uint16_t>{21448, 21449}));
  EXPECT_EQ(plan.processes[2].ports, (std::vector<std::uint16_t>{21450, 21451}));
  EXPECT_EQ(plan.processes[3].ports, std::vector<std::uint16_t>{21452});
  // Near the end of the range they begin again.
  const auto site = site_of(kLocal);
  auto experiment = experiment_of(kRoles);
  experiment->name.value = "atb";
  const auto other = build(*experiment, *site, facts_, {});
  ASSERT_TRUE(other) << render(other.error());
  EXPECT_EQ(other->weight_syncs.front().port, 31998);
  EXPECT_EQ(other->roles[0].rendezvous_port, 31999);
  EXPECT_EQ(other->roles[2].rendezvous_port, 20000);
}

TEST_F(PlanParts, StagesHoldTheRolesThatNlaunchStarts) {
  const auto stages = [&](const std::string& start) {
    return plan_of(R"(roles:
  first: {kind: service, command: [x]}
  second: {kind: learner, command: [t]}
  actor: {kind: service, spawned_by: [second]}
  third: {kind: service, command: [x]}
)" + start,
                   kLocal)
        .stages;
  };
  using Stages = std::vector<std::vector<std::uint32_t>>;
  EXPECT_EQ(stages(""), (Stages{std::vector<std::uint32_t>{0, 1, 3}}));
  EXPECT_EQ(stages("start: [[third, first], second]\n"),
            (Stages{std::vector<std::uint32_t>{3, 0}, std::vector<std::uint32_t>{1}}));
}

TEST_F(PlanParts, SignalsHaveTheirRules) {
  const auto rules = [&](const std::string& roles, bool unsaid) {
    const auto site = site_of(kLocal);
    auto experiment = experiment_of(roles);
    if (unsaid) experiment->signals.clear();
    const auto plan = build(*experiment, *site, facts_, {});
    Lines out;
    for (const auto& [signal, rule] : plan->signals) {
      out.push_back(fmt::format("{} {}", signal, name_of(rule.action)));
      for (const auto& role : rule.roles) out.back() += " " + role;
    }
    return out;
  };
  constexpr const char* kTwo =
      "roles:\n  tool: {kind: service, command: [x]}\n  a: {kind: learner, command: [t]}\n"
      "  b: {kind: learner, command: [t]}\n";
  const Lines to_learners{"1 stop", "10 forward a b", "12 forward a b", "15 stop"};
  EXPECT_EQ(rules(kTwo, false), to_learners);
  EXPECT_EQ(rules(kTwo, true), to_learners);
  EXPECT_EQ(rules(std::string(kTwo) + "signals: {USR1: stop, TERM: ignore}\n", false),
            (Lines{"1 stop", "10 stop", "12 forward a b", "15 ignore"}));
  EXPECT_EQ(rules("roles:\n  tool: {kind: service, command: [x]}\n", true),
            (Lines{"1 stop", "10 ignore", "12 ignore", "15 stop"}));
}

TEST_F(PlanParts, ANodeIsAsTheProfileOrTheMachineSays) {
  const auto bare = plan_of(kLearner, "scheduler: {kind: slurm}\n").node;
  EXPECT_EQ(bare.count, 1U);
  EXPECT_EQ(bare.gpus, 0U);
  EXPECT_EQ(bare.cpus, 0U);
  EXPECT_EQ(bare.arch, "") << "this machine's says nothing about the cluster's";
  EXPECT_EQ(bare.scratch, "/tmp");
  EXPECT_EQ(bare.nic_count, 0U);
  EXPECT_FALSE(bare.cpu_slots);
  EXPECT_EQ(plan_of(kLearner, kLocal).node.arch, "x86_64");
  EXPECT_EQ(plan_of(kLearner, kLocal).node.gpu_model, "");
  facts_.gpus = {"H100", "H200"};
  const auto here = plan_of(kLearner, kLocal).node;
  EXPECT_EQ(here.gpus, 2U);
  EXPECT_EQ(here.gpu_model, "H100");
  const auto said =
      plan_of("nodes: 3\n" + std::string(kLearner),
              "scheduler: {kind: slurm}\nnode: {gpus: 0, gpu: A100, arch: aarch64, cpus: 72, scratch: "
              "\"/local/${env.MODEL}\", nics: {kind: cxi, count: 4, interface: hsn}}\n",
              {5, 0, {}, {}})
          .node;
  EXPECT_EQ(said.count, 5U);
  EXPECT_EQ(said.gpus, 0U);
  EXPECT_EQ(said.gpu_model, "A100");
  EXPECT_EQ(said.arch, "aarch64");
  EXPECT_EQ(said.cpus, 72U);
  EXPECT_EQ(said.scratch, "/local/small");
  EXPECT_EQ(said.nic_kind, "cxi");
  EXPECT_EQ(said.nic_count, 4U);
  EXPECT_EQ(said.interface, "hsn");
}

TEST_F(PlanParts, ANumberOfNodesIsOneThatTheSiteHas) {
  EXPECT_EQ(mistakes(kLearner, kCluster, {0, 0, {}, {}}), Lines{"a run needs at least one node"});
  EXPECT_EQ(mistakes(kLearner, kLocal, {1, 0, {}, {}}), Lines{});
  const std::string why =
      " nodes are requested, but site 'site' is one machine -> choose --nodes 1, or a site with a "
      "scheduler: `nlaunch sites` lists them";
  EXPECT_EQ(mistakes(kLearner, kLocal, {2, 0, {}, {}}), Lines{"2" + why});
  EXPECT_EQ(mistakes("nodes: 3\n" + std::string(kLearner), kLocal), Lines{"3:8 3" + why});
  EXPECT_EQ(mistakes("nodes: 3\n" + std::string(kLearner), kLocal, {1, 0, {}, {}}), Lines{});
}

TEST_F(PlanParts, SpareNodesAreTheSchedulersToGive) {
  EXPECT_EQ(plan_of(kLearner, kCluster, {{}, 2, {}, {}}).slurm.spares, 2U);
  EXPECT_EQ(plan_of(kLearner, kCluster).slurm.spares, 0U);
  EXPECT_EQ(mistakes(kLearner, kLocal, {{}, 2, {}, {}}),
            Lines{"--spares 2: site 'site' has no scheduler that could allocate spare nodes -> remove "
                  "--spares, or choose another --site (`nlaunch sites` lists them)"});
}

TEST_F(PlanParts, GpusThatNobodyHasAreToldOfWhoAsksForThem) {
  constexpr const char* kRoles =
      "roles:\n  tool: {kind: service, command: [x]}\n  learner: {kind: learner, count: 2, gpus: 2, command: "
      "[t]}\n";
  const std::string hint =
      "set node.gpus in the profile, or --set site.node.gpus=N; for nodes without GPUs, `cpu_slots: true` "
      "with `weight_sync: {backend: gloo}` runs on their CPUs";
  EXPECT_EQ(
      mistakes(kRoles, "scheduler: {kind: slurm}\n"),
      Lines{"5:44 role 'learner' requests 2 GPUs, but site 'site' does not specify how many a node has -> " +
            hint});
  EXPECT_EQ(mistakes(kRoles, "scheduler: {kind: slurm}\nnode: {gpus: 0}\n").size(), 1U);
  const auto slots = plan_of("weight_sync: {backend: gloo}\ncpu_slots: true\n" + std::string(kRoles),
                             "scheduler: {kind: slurm}\n");
  EXPECT_TRUE(slots.node.cpu_slots);
  EXPECT_EQ(slots.node.gpus, 4U);
  EXPECT_TRUE(slots.idle_gpus.empty());
  const auto on_gpus =
      plan_of("weight_sync: {backend: gloo}\ncpu_slots: true\n" + std::string(kRoles), kCluster);
  EXPECT_FALSE(on_gpus.node.cpu_slots) << "where there are GPUs, they are taken";
  EXPECT_EQ(on_gpus.warnings, Lines{});
}

TEST_F(PlanParts, GpusThatStayIdleAreWarnedOf) {
  const auto warnings = [&](const std::string& gpus, std::uint32_t nodes) {
    return plan_of("roles: {learner: {kind: learner, gpus: " + gpus + ", command: [t]}}\n", kCluster,
                   {nodes, 0, {}, {}})
        .warnings;
  };
  EXPECT_EQ(warnings("4", 1), Lines{});
  EXPECT_EQ(warnings("3", 1), Lines{"1 GPU of 4 stays idle"});
  EXPECT_EQ(warnings("2", 1), Lines{"2 GPUs of 4 stay idle"});
  EXPECT_EQ(warnings("1", 2), Lines{"7 GPUs of 8 stay idle"});
}

TEST_F(PlanParts, AWalltimeIsForASchedulerThatEndsJobs) {
  const auto with = [&](const std::string& site) {
    return plan_of(std::string(kLearner) + "walltime: {before: 5m}\n", site).warnings;
  };
  EXPECT_EQ(with(kLocal), Lines{"`walltime` has no effect on a single machine"});
  EXPECT_EQ(with("scheduler: {kind: slurm}\n"), Lines{});
  EXPECT_EQ(plan_of(kLearner, kLocal).warnings, Lines{});
  EXPECT_EQ(plan_of(kLearner, "scheduler: {kind: flux}\n").warnings, Lines{});
}

TEST_F(PlanParts, WhatTheProfileSaysOfItsMachinesIsThere) {
  const auto plan = plan_of(kLearner, R"(scheduler: {kind: slurm}
node: {gpus: 2, bus_ids: [a, b]}
modules: {init: "/etc/${env.MODEL}.sh", reset: true, use: ["/m/${env.MODEL}"], load: ["cuda/${env.MODEL}"], set: {A: "${env.MODEL}"}, source: ["s-${env.MODEL}"]}
expect:
  all_reduce_busbw: [{gpus_per_node: 2, nodes: ">1", size: 1GiB, min: 100GB/s, limit: 200GB/s}]
  transport: {intra_node: P2P, inter_node: NET}
)");
  EXPECT_EQ(plan.modules.init, "/etc/small.sh");
  EXPECT_TRUE(plan.modules.reset);
  EXPECT_EQ(plan.modules.use, Lines{"/m/small"});
  EXPECT_EQ(plan.modules.load, Lines{"cuda/small"});
  EXPECT_EQ(plan.modules.set, (std::vector<std::pair<std::string, std::string>>{{"A", "small"}}));
  EXPECT_EQ(plan.modules.source, Lines{"s-small"});
  EXPECT_EQ(without_folder(plan.modules.origin), "site.yaml:5:10");
  ASSERT_EQ(plan.expected.all_reduce_busbw.size(), 1U);
  const auto& row = plan.expected.all_reduce_busbw[0];
  EXPECT_EQ(row.gpus_per_node, 2U);
  EXPECT_EQ(row.nodes->str(), ">1");
  EXPECT_EQ(row.size, 1U << 30U);
  EXPECT_DOUBLE_EQ(row.min, 1e11);
  EXPECT_DOUBLE_EQ(row.limit, 2e11);
  EXPECT_EQ(plan.expected.bus_ids, (Lines{"a", "b"}));
  EXPECT_EQ(plan.expected.intra_node, "P2P");
  EXPECT_EQ(plan.expected.inter_node, "NET");
  EXPECT_EQ(plan.site, "site");
  EXPECT_EQ(plan.site_path, (folder_ / "site.yaml").string());
  EXPECT_EQ(plan.sources, (Lines{(folder_ / "experiment.yaml").string(), (folder_ / "site.yaml").string()}));
}

TEST_F(PlanParts, WhatIsWatchedHasDefaults) {
  using namespace std::chrono_literals;
  const auto plain = plan_of(std::string(kLearner) + "watch: {metrics: {loss: 'loss (.*)'}}\n", kLocal);
  EXPECT_EQ(plain.watch->progress, "");
  EXPECT_EQ(plain.watch->start, 1h);
  EXPECT_EQ(plain.watch->stall, 10min);
  EXPECT_EQ(plain.watch->slow, 2);
  EXPECT_EQ(plain.watch->on_stall, OnStall::dump);
  ASSERT_EQ(plain.watch->metrics.size(), 1U);
  EXPECT_EQ(plain.watch->metrics[0].name, "loss");
  EXPECT_EQ(plain.warnings, Lines{});
  const auto said =
      plan_of(std::string(kLearner) + "watch: {start: 2h, stall: 1m, slow: 3x, on_stall: abort}\n", kLocal);
  EXPECT_EQ(said.watch->start, 2h);
  EXPECT_EQ(said.watch->stall, 1min);
  EXPECT_EQ(said.watch->slow, 3);
  EXPECT_EQ(said.watch->on_stall, OnStall::abort);
  EXPECT_EQ(plan_of(kLearner, kLocal).watch, std::nullopt);
}

TEST_F(PlanParts, SecretsComeFromWhereTheFileSays) {
  const auto plan =
      plan_of(std::string(kLearner) +
                  "secrets: {A: env, B: {env: OTHER}, C: {file: \"~/${env.MODEL}\"}, D: {netrc: host}}\n",
              kLocal);
  ASSERT_EQ(plan.secrets.size(), 4U);
  EXPECT_EQ(plan.secrets[0].from, "A");
  EXPECT_EQ(plan.secrets[1].source, Secret::Source::env);
  EXPECT_EQ(plan.secrets[1].from, "OTHER");
  EXPECT_EQ(plan.secrets[2].source, Secret::Source::file);
  EXPECT_EQ(plan.secrets[2].from, "~/small");
  EXPECT_EQ(plan.secrets[3].source, Secret::Source::netrc);
  EXPECT_EQ(without_folder(plan.secrets[3].origin), "experiment.yaml:4:65");
}

TEST_F(PlanParts, ALibraryOfRolesInDifferentVenvsIsTheCallers) {
  facts_.caller["VIRTUAL_ENV"] = "/callers";
  const auto path_with = [&](const std::string& keys, const std::string& first, const std::string& second) {
    return plan_of(keys + "roles:\n  a: {kind: learner, command: [t]" + first +
                       "}\n  b: {kind: engine, command: [s]" + second + "}\n",
                   "scheduler: {kind: local}\nlibraries: {nccl: {path: \"${env.VIRTUAL_ENV}/l\"}, aws: "
                   "{path: /a}}\n")
        .libraries.at("nccl")
        .path;
  };
  const auto with = [](const std::string& venv, const std::string& library = "nccl") {
    return ", preload: [" + library + "]" + (venv.empty() ? "" : ", venv: " + venv);
  };
  EXPECT_EQ(path_with("", with("/v"), with("/v")), "/v/l");
  EXPECT_EQ(path_with("", with("/v"), with("/w")), "/callers/l");
  EXPECT_EQ(path_with("", with("/v"), with("")), "/callers/l");
  EXPECT_EQ(path_with("", with("/v"), with("/w", "aws")), "/v/l");
  EXPECT_EQ(path_with("venv: /all\n", with("/v"), with("")), "/callers/l");
  EXPECT_EQ(path_with("venv: /all\n", with(""), with("/w") + ", wrapper: [enroot, start, x]"), "/all/l");
  EXPECT_EQ(path_with("venv: /all\n", with("/v", "aws"), ""), "/all/l");
  EXPECT_EQ(path_with("", "", ""), "/callers/l");
}

TEST_F(PlanParts, OfAFileWithMistakesOnlyThoseInNamesAreTold) {
  write("experiment.yaml", R"(version: 1
name: test
vars: {a: "${vars.a}"}
roles:
  learner: {kind: learner, preload: [nccl], command: [t, "${run.nme}"], wrapper: [docker, run, x]}
  broken: {kind: service, ports: [A], command: [x, "${self.ports.A}", "${role.broken.0.ports.b}"]}
  tool: {kind: service, command: [x, "${role.borken.count}", "${role.nobody.count}"], colour: red}
)");
  config::Problems problems;
  const auto experiment = config::read_experiment((folder_ / "experiment.yaml").string(), {}, {}, problems);
  ASSERT_TRUE(experiment);
  EXPECT_EQ(problems.count(), 2U);
  const auto site = site_of(kLocal);
  EXPECT_EQ(
      listed(mistakes_in_names(*experiment, *site, facts_, {})),
      (Lines{"5:59 unknown name '${run.nme}': did you mean '${run.name}'?",
             "5:38 site 'site' defines no library 'nccl' -> choose a profile that has it with --site "
             "(`nlaunch sites` lists them), or add it under `libraries:` of this one",
             "7:39 unknown name '${role.borken.count}': did you mean '${role.broken.count}'?",
             "7:63 unknown name '${role.nobody.count}': 'nobody' is not one of learner, broken, tool"}));
}

TEST_F(PlanParts, WhereHomeIsNotKnownATildeIsAName) {
  facts_.caller.clear();
  EXPECT_EQ(plan_of("workdir: ~/x\n" + std::string(kLearner), kLocal).roles[0].workdir,
            (folder_ / "~/x").string());
}

TEST_F(PlanParts, OfSlurmsDirectivesOnlyLogsArePaths) {
  const auto plan = plan_of(kLearner, R"(scheduler:
  kind: slurm
  directives: {output: a/%j, error: b/%j, comment: c/d}
  bad_nodes: {file: "bad-${env.MODEL}"}
)");
  Lines told;
  for (const auto& option : plan.slurm.directives) told.push_back(option.name + "=" + option.value);
  EXPECT_EQ(told, (Lines{"output=" + (folder_ / "a/%j").string(), "error=" + (folder_ / "b/%j").string(),
                         "comment=c/d"}));
  EXPECT_EQ(plan.slurm.template_file, "");
  EXPECT_EQ(plan.slurm.bad_nodes, (folder_ / "bad-small").string());
}

}  // namespace
}  // namespace nlaunch::plan

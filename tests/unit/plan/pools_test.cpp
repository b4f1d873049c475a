#include <nlohmann/json.hpp>

#include "plan/groups.h"
#include "plan/json.h"
#include "unit/plan/support.h"

namespace nlaunch::plan {
namespace {

constexpr const char* kSite =
    "scheduler: {kind: slurm, directives: {partition: gpu, gpus-per-node: 4, gres: \"gpu:4,nvme:1\"}}\n"
    "node: {gpus: 4, gpu: H100, nics: {kind: ib, count: 4, interface: ib}}\n"
    "pools:\n"
    "  cpu: {gpus: 0, cpus: 64, directives: {partition: cpu}}\n";
constexpr const char* kExperiment =
    "pools:\n"
    "  train: {nodes: 2}\n"
    "  rollout: {nodes: 4}\n"
    "  small: {nodes: 1, gpus: 2, interface: eth}\n"
    "  cpu: {nodes: 1, slurm: {mem: 200G}}\n"
    "roles:\n"
    "  learner: {kind: learner, pool: train, per_node: 4, gpus: 1, rendezvous: torch, command: [t]}\n"
    "  engine: {kind: engine, pool: rollout, count: 2, replica: {nodes: 2}, gpus: 4, ports: [http],\n"
    "           command: [s], ready: {tcp: \"${self.host}:${self.ports.http}\"}}\n"
    "  judge: {kind: engine, pool: small, gpus: 2, command: [s]}\n"
    "  reward: {kind: service, pool: cpu, per: node, command: [r]}\n"
    "  all: {kind: service, per: node, command: [a]}\n";

class Pools : public PlanFiles {
 protected:
  using Counts = std::map<std::string, std::uint32_t>;
  static PlanOptions given(const Counts& nodes, const Counts& spares = {}) {
    PlanOptions options;
    options.nodes_of = nodes;
    options.spares_of = spares;
    return options;
  }
  static std::string directives(const SlurmComponent& component) {
    std::string out;
    for (const auto& option : component.directives) out += option.name + "=" + option.value + " ";
    return out;
  }
  static std::vector<std::uint32_t> nodes_of(const Plan& plan, const std::string& role) {
    std::vector<std::uint32_t> nodes;
    for (const auto& process : plan.processes)
      if (plan.role_of(process).name == role) nodes.push_back(process.node);
    return nodes;
  }
  using Nodes = std::vector<std::uint32_t>;
  using Lines = std::vector<std::string>;
};

TEST_F(Pools, HaveTheirNodesOneAfterTheOther) {
  const auto plan = plan_of(kExperiment, kSite);
  EXPECT_EQ(plan.node.count, 8U);
  EXPECT_EQ(nodes_of(plan, "learner"), (Nodes{0, 0, 0, 0, 1, 1, 1, 1}));
  EXPECT_EQ(nodes_of(plan, "engine"), (Nodes{2, 3, 4, 5}));
  EXPECT_EQ(nodes_of(plan, "judge"), (Nodes{6}));
  EXPECT_EQ(nodes_of(plan, "reward"), (Nodes{7}));
  EXPECT_EQ(nodes_of(plan, "all"), (Nodes{0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST_F(Pools, KnowWhatTheirNodesAreLike) {
  const auto plan = plan_of(kExperiment, kSite);
  EXPECT_EQ(plan.node_of(0).gpu_model, "H100");
  EXPECT_EQ(plan.node_of(5).interface, "ib");
  EXPECT_EQ(plan.node_of(6).gpus, 2U);
  EXPECT_EQ(plan.node_of(6).interface, "eth");
  EXPECT_EQ(plan.node_of(7).gpus, 0U);
  EXPECT_EQ(plan.node_of(7).cpus, 64U) << "as the profile says of its pool 'cpu'";
  EXPECT_EQ(plan.node_of(7).nic_kind, "") << "the cards serve GPUs";
  EXPECT_EQ(plan.node_of(*plan.find_role("judge")).gpus, 2U);
}

TEST_F(Pools, ThatAskForTheSameAreOneComponent) {
  const auto plan = plan_of(kExperiment, kSite, given({{"rollout", 6}}, {{"rollout", 1}, {"cpu", 2}}));
  const auto& components = plan.slurm.components;
  ASSERT_EQ(components.size(), 3U);
  EXPECT_EQ(components[0].pools, (Lines{"train", "rollout"}));
  EXPECT_EQ(components[0].nodes, 8U);
  EXPECT_EQ(components[0].spares, 1U);
  EXPECT_EQ(directives(components[0]), "partition=gpu gpus-per-node=4 gres=gpu:4,nvme:1 ");
  EXPECT_EQ(directives(components[1]), "partition=gpu gpus-per-node=2 gres=gpu:2,nvme:1 ");
  EXPECT_EQ(directives(components[2]), "gres=nvme:1 partition=cpu mem=200G ");
  EXPECT_EQ(components[2].spares, 2U);
  EXPECT_EQ(plan.slurm.spares, 3U);
}

TEST_F(Pools, OfOneKindAreAJobLikeAnyOther) {
  const auto plan = plan_of(
      "pools: {a: {nodes: 1, slurm: {mem: 1G}}, b: {nodes: 2, slurm: {mem: 1G}}}\n"
      "roles: {learner: {kind: learner, pool: b, per_node: 1, gpus: 1, command: [t]}}\n",
      kSite);
  EXPECT_TRUE(plan.slurm.components.empty());
  EXPECT_EQ(plan.slurm.directives.back().name, "mem");
  EXPECT_EQ(nodes_of(plan, "learner"), (Nodes{1, 2}));
}

TEST_F(Pools, SurviveTheFrozenPlan) {
  const auto plan = plan_of(kExperiment, kSite);
  const auto text = to_json(plan).dump();
  const auto read = from_json(text, "plan.json");
  ASSERT_TRUE(read) << render(read.error());
  EXPECT_EQ(to_json(*read).dump(), text);
  EXPECT_EQ(read->node_of(7).gpus, 0U);
  EXPECT_EQ(replicas(*read->find_role("engine")), 2U);
  auto torn = nlohmann::json::parse(text);
  torn["pools"][1]["first"] = 3;
  EXPECT_EQ(from_json(torn.dump(), "x").error().first_message(),
            "'x' cannot be read as a plan: pool 'rollout' is out of place");
  torn = nlohmann::json::parse(text);
  torn["roles"][1]["replica"]["nodes"] = 3;
  EXPECT_EQ(from_json(torn.dump(), "x").error().first_message(),
            "'x' cannot be read as a plan: 'engine' has incomplete replicas");
  torn = nlohmann::json::parse(text);
  torn["roles"][1]["replica"]["nodes"] = 0;
  EXPECT_FALSE(from_json(torn.dump(), "x"));
  torn = nlohmann::json::parse(text);
  torn["roles"][1]["count"] = 6;
  EXPECT_EQ(from_json(torn.dump(), "x").error().first_message(),
            "'x' cannot be read as a plan: 'engine' has 4 processes, not 6");
  torn = nlohmann::json::parse(text);
  std::swap(torn["processes"][8], torn["processes"][9]);
  EXPECT_EQ(from_json(torn.dump(), "x").error().first_message(),
            "'x' cannot be read as a plan: the processes of 'engine' are not in order");
  torn = nlohmann::json::parse(text);
  torn["slurm"]["components"][0]["nodes"] = 1;
  EXPECT_EQ(from_json(torn.dump(), "x").error().first_message(),
            "'x' cannot be read as a plan: the components of the job do not cover all nodes");
}

TEST_F(Pools, AreNamedOnTheCommandLine) {
  EXPECT_EQ(mistakes(kExperiment, kSite, {3, 0, {}, {}}),
            (Lines{"--nodes 3: the experiment has 4 pools, and no pool is named -> write --nodes train=3; "
                   "the pools are train, rollout, small, cpu"}));
  EXPECT_EQ(mistakes(kExperiment, kSite, given({{"trian", 3}})),
            (Lines{"--nodes trian=3: unknown pool 'trian' -> did you mean --nodes train=3?"}));
  EXPECT_EQ(
      mistakes("roles: {tool: {kind: service, command: [t]}}\n", kSite, given({}, {{"train", 1}})),
      (Lines{"--spares train=1: unknown pool 'train' -> the experiment has no pools: write --spares 1"}));
  EXPECT_EQ(mistakes(kExperiment, kSite, given({{"train", 0}})),
            (Lines{"pool 'train' needs at least one node"}));
  constexpr const char* kOne =
      "pools: {train: {nodes: 2}}\nroles: {learner: {kind: learner, per_node: 1, gpus: 1, command: [t]}}\n";
  EXPECT_EQ(plan_of(kOne, kSite, {5, 0, {}, {}}).node.count, 5U) << "there is no other";
}

TEST_F(Pools, OfAKindOfTheirOwnNeedASchedulerThatHasThem) {
  constexpr const char* kTwo =
      "pools:\n  train: {nodes: 2}\n  cpu: {nodes: 1, gpus: 0}\n"
      "roles: {learner: {kind: learner, pool: train, per_node: 1, gpus: 1, command: [t]}}\n";
  EXPECT_EQ(mistakes(kTwo, "scheduler: {kind: flux}\nnode: {gpus: 4}\n"),
            (Lines{"5:3 pool 'cpu' has its own kind of nodes, but all nodes of a Flux job are alike "
                   "-> remove `gpus` and `slurm` from the pools, or choose another --site"}));
  EXPECT_EQ(mistakes(kTwo, "node: {gpus: 4}\n"),
            (Lines{"5:16 3 nodes are requested by 2 pools, but site 'site' is one machine -> choose a site "
                   "with a scheduler: `nlaunch sites` lists them"}));
}

TEST_F(Pools, CountCpuSlotsWhereTheyHaveNoGpus) {
  const auto plan = plan_of(
      "pools: {train: {nodes: 2}, cpu: {nodes: 1, gpus: 0}}\n"
      "cpu_slots: true\n"
      "weight_sync: {backend: gloo}\n"
      "roles:\n"
      "  learner: {kind: learner, pool: train, per_node: 2, gpus: 1, command: [t]}\n"
      "  tool: {kind: service, pool: cpu, command: [t]}\n",
      "scheduler: {kind: slurm}\nnode: {gpus: 0}\n");
  EXPECT_EQ(plan.node_of(0).gpus, 2U);
  EXPECT_EQ(plan.node_of(2).gpus, 0U);
  EXPECT_TRUE(plan.node.cpu_slots);
}

TEST_F(Pools, WithoutRoomSayWhichOneNeedsMore) {
  EXPECT_EQ(refusal(build_from(kExperiment, kSite, given({{"rollout", 3}}))),
            "experiment.yaml:10:48: error: role 'engine': 2 replicas of 2 nodes × 1 process of 4 GPUs do not "
            "fit on the pool 'rollout' (3 nodes × 4 GPUs): 1 fits, and 4 GPUs stay idle [plan.does-not-fit]\n"
            "  10 |   engine: {kind: engine, pool: rollout, count: 2, replica: {nodes: 2}, gpus: 4, ports: "
            "[http],\n"
            "     |                                                ^\n"
            "note: a process cannot span two nodes\n"
            "hint: --set roles.engine.count=1, or --nodes rollout=4\n");
}

TEST_F(Pools, ARoleOnEachNodeIsToldWhichPoolHasRoom) {
  EXPECT_EQ(mistakes("pools: {train: {nodes: 2}, cpu: {nodes: 1, gpus: 0}}\n"
                     "roles: {learner: {kind: learner, per_node: 4, gpus: 1, command: [t]}}\n",
                     kSite),
            (Lines{"4:44 role 'learner': 4 processes of 1 GPU on each node do not fit on the pools 'train' "
                   "(2 nodes × 4 GPUs) and 'cpu' (1 node × 0 GPUs): none fit on each, and 0 GPUs stay idle "
                   "-> write `pool: train`, whose nodes have enough GPUs"}));
}

TEST_F(Pools, AReplicaIsOneGroupOverItsNodes) {
  const auto plan = plan_of(kExperiment, kSite);
  std::vector<std::string> groups;
  for (const auto& group : plan.groups) {
    if (group.kind == GroupKind::tensor_parallel)
      groups.push_back(group.name + " " + std::to_string(group.members.size()));
  }
  EXPECT_EQ(groups,
            (Lines{"engine.0 tensor parallel 8", "engine.1 tensor parallel 8", "judge.0 tensor parallel 2"}));
  EXPECT_EQ(plan.weight_syncs.front().world_size, 1U + 16 + 2);
  EXPECT_EQ(sync_rank(plan, plan.weight_syncs.front(), *find_process(plan, "engine.1.1")), 13);
  EXPECT_EQ(plan.name_of(*find_process(plan, "engine.1")), "engine.1.0") << "its leader";
  EXPECT_EQ(sync_members(plan, "engine.1").size(), 8U);
  EXPECT_EQ(sync_members(plan, "engine.1.1").size(), 4U);
  for (const auto* nobody :
       {"engine.2", "engine.1.2", "learner.0.0", "engine.1.1.1", "engine.x", "nobody", ""})
    EXPECT_EQ(find_process(plan, nobody), nullptr) << nobody;
}

TEST_F(Pools, ProcessesOfARoleKnowTheirPlaceOnANode) {
  const auto plan = plan_of(
      "nodes: 2\nroles: {engine: {kind: engine, count: 2, replica: {nodes: 2}, gpus: 1, command: [s]}}\n",
      kSite);
  std::vector<std::string> seen;
  for (const auto& process : plan.processes)
    seen.push_back(plan.name_of(process) + " " + std::to_string(process.node) + " " +
                   std::to_string(process.local_rank) + "/" + std::to_string(process.local_size) + " " +
                   std::to_string(process.node_rank));
  EXPECT_EQ(seen,
            (Lines{"engine.0.0 0 0/2 0", "engine.0.1 1 0/2 1", "engine.1.0 0 1/2 0", "engine.1.1 1 1/2 1"}));
}

TEST_F(Pools, ReferencesToThemAreChecked) {
  const auto of = [&](const std::string& text) {
    return mistakes("pools: {train: {nodes: 1}}\nroles:\n  tool: {kind: service, command: [\"" + text +
                        "\"]}\n  engine: {kind: engine, replica: {nodes: 1}, ports: [http], command: [\"" +
                        text + "\"]}\n",
                    kSite);
  };
  EXPECT_EQ(of("${pool.train.hosts}"), Lines{});
  EXPECT_EQ(of("${pool.tarin.hosts}").front(),
            "5:36 unknown name '${pool.tarin.hosts}': did you mean '${pool.train.hosts}'?");
  EXPECT_EQ(of("${pool.train.host}").front(),
            "5:36 unknown name '${pool.train.host}': did you mean '${pool.train.hosts}'?");
  EXPECT_EQ(of("${self.replica.rank}"),
            (Lines{"5:36 '${self.replica.rank}': role 'tool' has no replicas: write `replica: {nodes: N}`"}));
  EXPECT_EQ(of("${self.replica.rnak}").back(),
            "6:73 unknown name '${self.replica.rnak}': did you mean '${self.replica.rank}'?");
  EXPECT_EQ(of("${self.replica.ports.htp}").back(),
            "6:73 unknown name '${self.replica.ports.htp}': did you mean '${self.replica.ports.http}'?");
  EXPECT_EQ(mistakes("roles: {tool: {kind: service, command: [\"${pool.a.hosts}\"]}}\n", kSite),
            (Lines{"3:42 '${pool.a.hosts}': the experiment has no pools"}));
}

}  // namespace
}  // namespace nlaunch::plan

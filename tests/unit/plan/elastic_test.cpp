#include "plan/elastic.h"

#include <nlohmann/json.hpp>

#include "plan/json.h"
#include "unit/plan/support.h"

namespace nlaunch::plan {
namespace {

constexpr const char* kSite =
    "scheduler: {kind: slurm, directives: {partition: gpu, gpus-per-node: 4, time: \"12:00:00\"}}\n"
    "node: {gpus: 4}\n"
    "pools:\n"
    "  rollout: {directives: {partition: preempt}}\n";
constexpr const char* kPools =
    "pools:\n"
    "  rollout: {elastic: {min: 2, max: 4}, slurm: {qos: low}}\n"
    "  train: {nodes: 2}\n"
    "weight_sync: {backend: disk, path: /weights}\n";
constexpr const char* kRoles =
    "roles:\n"
    "  learner: {kind: learner, per_node: 4, gpus: 1, rendezvous: torch, command: [t]}\n"
    "  engine: {kind: engine, pool: rollout, count: 8, gpus: 2, ports: [http], tolerate: {min: 4},\n"
    "           command: [s], ready: {tcp: \"${self.host}:${self.ports.http}\"}}\n"
    "  monitor: {kind: service, per: node, command: [m]}\n"
    "start: [[engine, monitor], [learner]]\n";

class ElasticPools : public PlanFiles {
 protected:
  using Lines = std::vector<std::string>;
};

TEST_F(ElasticPools, StandBehindTheNodesOfTheJob) {
  const auto plan = plan_of(std::string(kPools) + kRoles, kSite);
  EXPECT_EQ(plan.node.count, 2U);
  EXPECT_EQ(plan.all_nodes(), 6U);
  EXPECT_EQ(plan.pools.front().name, "train") << "in whichever order they are written";
  EXPECT_EQ(plan.pools.back().first, 2U);
  EXPECT_EQ(plan.name_of_borrowed(4), "rollout.2");
  for (const auto& process : plan.processes) {
    const auto& role = plan.role_of(process).name;
    EXPECT_EQ(plan.is_borrowed(process.node), role == "engine") << role << " is where it says to be";
  }
  const auto engines = processes_by_node(plan, plan.pools.back());
  ASSERT_EQ(engines.size(), 4U);
  for (const auto& node : engines) EXPECT_EQ(node.size(), 2U);
}

TEST_F(ElasticPools, AreJobsOfTheirOwn) {
  const auto plan = plan_of(std::string(kPools) + kRoles, kSite);
  EXPECT_TRUE(plan.slurm.components.empty()) << "the run's own job has one kind of nodes";
  ASSERT_EQ(plan.slurm.borrowed.size(), 1U);
  Lines options;
  for (const auto& option : plan.slurm.borrowed.front().directives)
    options.push_back(option.name + "=" + option.value);
  EXPECT_EQ(options, (Lines{"gpus-per-node=4", "time=12:00:00", "partition=preempt", "qos=low"}));
  EXPECT_EQ(plan.slurm.borrowed.front().pools, (Lines{"rollout"}));
}

TEST_F(ElasticPools, HaveNoGroupThatCouldBeTried) {
  const auto plan = plan_of(std::string(kPools) + kRoles, kSite);
  Lines names;
  for (const auto& group : plan.groups) names.push_back(group.name);
  EXPECT_EQ(names, (Lines{"node 0", "node 1", "learner world"}));
}

TEST_F(ElasticPools, AreTheSameInASavedPlan) {
  const auto plan = plan_of(std::string(kPools) + kRoles, kSite);
  const auto text = to_json(plan).dump();
  const auto again = from_json(text, "plan.json");
  ASSERT_TRUE(again) << render(again.error());
  EXPECT_EQ(to_json(*again).dump(), text);
  EXPECT_EQ(again->pools.back().elastic->min, 2U);
}

TEST_F(ElasticPools, MayBeLargerOnTheCommandLine) {
  PlanOptions options;
  options.nodes_of = {{"rollout", 6}};
  EXPECT_EQ(plan_of(std::string(kPools) + kRoles, kSite, options).all_nodes(), 8U);
  options.nodes_of = {{"rollout", 1}};
  EXPECT_EQ(mistakes(std::string(kPools) + kRoles, kSite, options),
            (Lines{"4:28 pool 'rollout' has 1 node, but its min is 2 -> "
                   "use a larger --nodes or a smaller min"}));
}

TEST_F(ElasticPools, WantAJobWithNodesOfItsOwn) {
  EXPECT_EQ(mistakes("pools: {rollout: {elastic: {min: 0, max: 4}}}\n"
                     "roles: {engine: {kind: engine, pool: rollout, tolerate: {min: 0}, command: [s]}}\n",
                     kSite),
            (Lines{"3:28 all pools are elastic, so the run's own job has no node -> "
                   "add a pool with at least `nodes: 1` for the learners and for nlaunch itself"}));
}

TEST_F(ElasticPools, AreJobsOfSlurm) {
  const auto of = [&](const char* site) { return mistakes(std::string(kPools) + kRoles, site); };
  EXPECT_EQ(
      of("scheduler: {kind: local}\nnode: {gpus: 8}\n"),
      (Lines{"4:22 the nodes of the elastic pool 'rollout' are small Slurm jobs, but site 'site' is one "
             "machine -> write nodes: N, or choose another --site (`nlaunch sites` lists them)"}));
  EXPECT_EQ(of("scheduler: {kind: flux}\nnode: {gpus: 4}\n"),
            (Lines{"4:22 the nodes of the elastic pool 'rollout' are small Slurm jobs, but site 'site' uses "
                   "Flux -> write nodes: N, or choose another --site (`nlaunch sites` lists them)"}));
}

TEST_F(ElasticPools, HoldNothingThatARunCannotDoWithout) {
  const auto refusal = [&](const std::string& role,
                           const std::string& sync = "weight_sync: {backend: disk, path: /w}\n") {
    const auto all = mistakes("pools: {train: {nodes: 1}, rollout: {elastic: {min: 1, max: 2}}}\n" + sync +
                                  "roles:\n  learner: {kind: learner, pool: train, command: [t], gpus: 1}\n  "
                                  "engine: {pool: rollout, " +
                                  role + "}\n",
                              kSite);
    return all.size() == 1 ? all.front().substr(all.front().find(' ') + 1)
                           : fmt::format("{}", fmt::join(all, "; "));
  };
  const std::string own = " -> put the role in a pool with `nodes`, whose nodes belong to the run's own job";
  const std::string go = ", but the nodes of the elastic pool 'rollout' come and go";
  EXPECT_EQ(refusal("kind: learner, command: [t]"),
            "the run cannot continue without role 'engine'" + go + own);
  EXPECT_EQ(refusal("kind: task, command: [t]"),
            "role 'engine' is a task that other roles wait for" + go + own);
  EXPECT_EQ(refusal("kind: engine, command: [t], tolerate: {min: 0}, count: 1, replica: {nodes: 2}"),
            "a replica of role 'engine' spans 2 nodes, while each borrowed node joins separately" + go + own);
  EXPECT_EQ(refusal("kind: engine, command: [t]"), "role 'engine' does not tolerate the loss of a process" +
                                                       go +
                                                       " -> write tolerate: {min: N}, the fewest with which "
                                                       "the run continues; with 0 it waits for the next one");
  EXPECT_EQ(refusal("kind: engine, command: [t], gpus: 4, count: 2, tolerate: {min: 0}",
                    "weight_sync: {backend: nccl}\n"),
            "the weight sync over nccl includes all of role 'engine' as ranks from the start" + go +
                " -> write weight_sync: {backend: disk}, or {backend: none} if the trainer creates its "
                "groups itself as engines join");
  EXPECT_EQ(refusal("kind: engine, command: [t], gpus: 4, count: 2, tolerate: {min: 0}"), "");
}

TEST_F(ElasticPools, BeginWithWhatHasToBeLeft) {
  const auto roles = std::string(kRoles).replace(std::string_view(kRoles).find("min: 4"), 6, "min: 5");
  EXPECT_EQ(mistakes(kPools + roles, kSite),
            (Lines{"9:85 5 of role 'engine' must remain, but the run starts with 4 -> use a smaller number "
                   "here, or a larger `elastic.min` of pool 'rollout'"}));
}

TEST_F(ElasticPools, AreKnownToNobodyAtTheStart) {
  const auto asks = [&](const std::string& name) {
    const auto all = mistakes(std::string(kPools) +
                                  "roles:\n"
                                  "  learner: {kind: learner, command: [t, \"${" +
                                  name +
                                  "}\"]}\n"
                                  "  engine: {kind: engine, pool: rollout, count: 2, ports: [http], "
                                  "tolerate: {min: 0}, command: [s]}\n",
                              kSite);
    return all.empty() ? "" : all.front().substr(all.front().find(' ') + 1);
  };
  const std::string go =
      "the nodes of the elastic pool 'rollout' come and go during the run; ${role.NAME.addrs_file} names a "
      "file that always has the current ones";
  for (const std::string name :
       {"role.engine.addrs", "role.engine.hosts", "role.engine.0.host", "role.engine.1.ports.http",
        "role.engine.ports.http", "role.engine.list|{host}|,", "pool.rollout.hosts"})
    EXPECT_EQ(asks(name), fmt::format("'${{{}}}': {}", name, go));
  for (const std::string name : {"role.engine.addrs_file", "role.engine.count", "role.engine.gpus",
                                 "pool.rollout.nodes", "pool.train.hosts", "role.learner.hosts"})
    EXPECT_EQ(asks(name), "") << name;
}

}  // namespace
}  // namespace nlaunch::plan

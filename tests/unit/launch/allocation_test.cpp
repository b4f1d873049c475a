#include "launch/job/allocation.h"
#include "launch/job/node_order.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace nlaunch::launch {
namespace {

using Names = std::vector<std::string>;

TEST(ExpandNodelist, ReadsWhatSlurmWrites) {
  EXPECT_EQ(expand_nodelist("nid001"), (Names{"nid001"}));
  EXPECT_EQ(expand_nodelist("nid[001-003,007],login1"),
            (Names{"nid001", "nid002", "nid003", "nid007", "login1"}));
  EXPECT_EQ(expand_nodelist("r[1-2]n[09-10]x"), (Names{"r1n09x", "r1n10x", "r2n09x", "r2n10x"}));
  EXPECT_EQ(expand_nodelist("a[8-11]"), (Names{"a8", "a9", "a10", "a11"}));
}

TEST(ExpandNodelist, NeverGuesses) {
  for (const auto* wrong :
       {"", "a[", "a]", "a[1-]", "a[3-1]", "a[1,,2]", "a[x-y]", ",a", "a,", "a[[1]]", "a[1-99999999]"}) {
    EXPECT_FALSE(expand_nodelist(wrong)) << wrong;
  }
}

TEST(FindAllocation, SaysWhatTheVariablesSay) {
  const auto found = find_allocation({"SLURM_JOB_ID=17", "SLURM_JOB_NODELIST=n[1-2]", "SLURM_JOB_NUM_NODES=2",
                                      "SLURM_JOB_CPUS_PER_NODE=72(x4),64", "SLURM_GPUS_PER_NODE=gh200:4"});
  ASSERT_TRUE(found && *found);
  EXPECT_EQ((*found)->nodes, (Names{"n1", "n2"}));
  EXPECT_EQ((*found)->cpus, 64);
  EXPECT_EQ((*found)->gpus, 4);
  EXPECT_FALSE(find_allocation({"HOME=/"}).value());
}

TEST(FindAllocation, NamesAContradiction) {
  const auto wrong =
      find_allocation({"SLURM_JOB_ID=17", "SLURM_JOB_NODELIST=n[1-2]", "SLURM_JOB_NUM_NODES=3"});
  ASSERT_FALSE(wrong);
  EXPECT_EQ(
      wrong.error().first_message(),
      "SLURM_JOB_NUM_NODES=3 and SLURM_JOB_NODELIST=n[1-2] contradict each other: the list has 2 nodes; are "
      "variables of another job left in this shell?");
  const auto unread = find_allocation({"SLURM_JOB_ID=17", "SLURM_JOB_NODELIST=n[1-"});
  ASSERT_FALSE(unread);
  EXPECT_EQ(unread.error().first_message(),
            "SLURM_JOB_ID=17 is set, but SLURM_JOB_NODELIST='n[1-' is not a list of nodes");
}

TEST(Misfit, GivesBothNumbers) {
  plan::Plan plan;
  plan.node.count = 3;
  plan.node.gpus = 4;
  Allocation allocation{"17", {"a", "b"}, 8, 2};
  EXPECT_EQ(misfit(plan, allocation), "job 17 has 2 nodes, but the plan uses 3");
  plan.node.count = 2;
  EXPECT_EQ(misfit(plan, allocation),
            "job 17 has 2 GPUs per node (SLURM_GPUS_PER_NODE), but the plan uses 4");
  allocation.gpus = 4;
  EXPECT_EQ(misfit(plan, allocation), "");
}

TEST(SrunCommand, HasOneTaskOnEachNodeAndTheSitesOptions) {
  plan::Plan plan;
  plan.slurm.srun = {"--network=disable_rdzv_get"};
  EXPECT_EQ(text::join(srun_command(plan, {"17", {"a", "b", "c"}, 72, {}}, {"a", "b"},
                                    {"/bin/agent", "--step", "x"}),
                       " "),
            "srun --jobid=17 --nodes=2 --ntasks=2 --ntasks-per-node=1 --nodelist=a,b --overlap "
            "--kill-on-bad-exit=1 --wait=0 --cpu-bind=none --gpu-bind=none --mem=0 --input=none "
            "--cpus-per-task=72 --network=disable_rdzv_get /bin/agent --step x");
}

/// A job of two nodes, one node and two nodes.
Allocation of_components() {
  return {"17", {"a", "b", "c", "d", "e"}, 0, {}, {{2, 72}, {1, 0}, {2, 8}}};
}

TEST(FindAllocation, OfAHeterogeneousJobHasTheNodesOfAllComponents) {
  const std::vector<std::string> environment{"SLURM_JOB_ID=17",
                                             "SLURM_HET_SIZE=2",
                                             "SLURM_JOB_NODELIST=n[1-2]",
                                             "SLURM_JOB_NUM_NODES=2",
                                             "SLURM_JOB_NODELIST_HET_GROUP_0=n[1-2]",
                                             "SLURM_JOB_NUM_NODES_HET_GROUP_0=2",
                                             "SLURM_JOB_CPUS_PER_NODE_HET_GROUP_0=72(x2)",
                                             "SLURM_JOB_NODELIST_HET_GROUP_1=c7",
                                             "SLURM_GPUS_PER_NODE=4"};
  const auto found = find_allocation(environment);
  ASSERT_TRUE(found && *found);
  EXPECT_EQ((*found)->nodes, (Names{"n1", "n2", "c7"}));
  ASSERT_EQ((*found)->components.size(), 2U);
  EXPECT_EQ((*found)->components[0].nodes, 2U);
  EXPECT_EQ((*found)->components[0].cpus, 72U);
  EXPECT_EQ((*found)->components[1].nodes, 1U);
  EXPECT_FALSE((*found)->gpus) << "it is said of the first component alone";
  auto torn = environment;
  torn.erase(torn.begin() + 7);
  EXPECT_EQ(find_allocation(torn).error().first_message(),
            "SLURM_JOB_ID=17 is set, but SLURM_JOB_NODELIST_HET_GROUP_1='' is not a list of nodes");
}

plan::Plan of_two_components(std::uint32_t first, std::uint32_t second, std::uint32_t third) {
  plan::Plan plan;
  plan.node.count = first + second + third;
  plan.slurm.components = {
      {{"train"}, first, 0, {}}, {{"cpu"}, second, 0, {}}, {{"rollout", "judge"}, third, 0, {}}};
  return plan;
}

TEST(ChooseNodes, TakesEachPoolsNodesFromItsOwnComponent) {
  const auto plan = of_two_components(1, 1, 1);
  EXPECT_EQ(choose_nodes(plan, of_components(), {}), (Names{"a", "c", "d"}));
  EXPECT_EQ(choose_nodes(plan, of_components(), {"a", "d"}), (Names{"b", "c", "e"}));
  EXPECT_FALSE(choose_nodes(plan, of_components(), {"c"})) << "another component's nodes are of another kind";
  EXPECT_EQ(misfit(plan, of_components()), "");
  EXPECT_EQ(misfit(of_two_components(2, 1, 3), of_components()),
            "component 2 of job 17 has 2 nodes, but the plan uses 3 there (rollout, judge)");
}

TEST(ChooseNodes, OfOtherComponentsThanThePlansIsAMisfit) {
  auto plan = of_two_components(1, 1, 1);
  plan.slurm.components.pop_back();
  EXPECT_EQ(misfit(plan, of_components()), "job 17 has 3 components, but the plan asks for 2");
  plan.slurm.components.clear();
  EXPECT_EQ(misfit(plan, of_components()),
            "job 17 has 3 components, but the plan asks for nodes of one kind");
}

TEST(ChooseNodes, InAnAllocationOfOnePartThePoolsAreRangesOfIt) {
  const auto plan = of_two_components(1, 1, 1);
  const Allocation one{"17", {"a", "b", "c", "d"}, 8, {}, {}};
  EXPECT_EQ(choose_nodes(plan, one, {"b"}), (Names{"a", "c", "d"}));
  EXPECT_FALSE(choose_nodes(plan, one, {"b", "c"}));
}

TEST(SrunCommand, OfAHeterogeneousJobHasASectionForEachComponentInUse) {
  EXPECT_EQ(text::join(srun_command({}, of_components(), {"a", "d", "e"}, {"/bin/agent"}), " "),
            "srun --het-group=0 --jobid=17 --nodes=1 --ntasks=1 --ntasks-per-node=1 --nodelist=a --overlap "
            "--kill-on-bad-exit=1 --wait=0 --cpu-bind=none --gpu-bind=none --mem=0 --input=none "
            "--cpus-per-task=72 /bin/agent : --het-group=2 --jobid=17 --nodes=2 --ntasks=2 "
            "--ntasks-per-node=1 --nodelist=d,e --overlap --kill-on-bad-exit=1 --wait=0 --cpu-bind=none "
            "--gpu-bind=none --mem=0 --input=none --cpus-per-task=8 /bin/agent");
}

TEST(SrunEnvironment, LeavesOutWhatSrunWouldTakeForOptions) {
  EXPECT_EQ(srun_environment({"HOME=/", "SLURM_EXPORT_ENV=NONE", "SLURM_JOB_ID=17", "SLURM_HET_SIZE=2",
                              "SLURM_NNODES=1", "SRUN_CPUS_PER_TASK=2", "SLURM_CONF=/etc/slurm.conf",
                              "SLURM_CPU_BIND=cores"}),
            (Names{"HOME=/", "SLURM_JOB_ID=17", "SLURM_HET_SIZE=2", "SLURM_CONF=/etc/slurm.conf"}));
}

}  // namespace
}  // namespace nlaunch::launch

#include "launch/job/allocation.h"

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
            "SLURM_JOB_ID=17 is set, and SLURM_JOB_NODELIST='n[1-' is no list of nodes");
}

TEST(Misfit, GivesBothNumbers) {
  plan::Plan plan;
  plan.node.count = 3;
  plan.node.gpus = 4;
  Allocation allocation{"17", {"a", "b"}, 8, 2};
  EXPECT_EQ(misfit(plan, allocation), "job 17 has 2 nodes, and the plan uses 3");
  plan.node.count = 2;
  EXPECT_EQ(misfit(plan, allocation),
            "job 17 has 2 GPUs on a node (SLURM_GPUS_PER_NODE), and the plan uses 4");
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
            "--kill-on-bad-exit=1 "
            "--wait=0 --cpu-bind=none --gpu-bind=none --mem=0 --input=none --cpus-per-task=72 "
            "--network=disable_rdzv_get /bin/agent --step x");
}

TEST(SrunEnvironment, LeavesOutWhatSrunWouldTakeForOptions) {
  EXPECT_EQ(srun_environment({"HOME=/", "SLURM_EXPORT_ENV=NONE", "SLURM_JOB_ID=17", "SLURM_NNODES=1",
                              "SRUN_CPUS_PER_TASK=2", "SLURM_CONF=/etc/slurm.conf", "SLURM_CPU_BIND=cores"}),
            (Names{"HOME=/", "SLURM_JOB_ID=17", "SLURM_CONF=/etc/slurm.conf"}));
}

}  // namespace
}  // namespace nlaunch::launch

#include <gtest/gtest.h>

#include "unit/lint/support.h"

namespace nlaunch::lint {
namespace {

using namespace support;

TEST(SubmissionUnchecked, WhereTheNextJobIsSubmittedAllTheSame) {
  const auto told = [](const std::string& text) {
    return found("submission-unchecked", script("#!/bin/bash\n" + text));
  };
  EXPECT_EQ(
      told("id=$(sbatch --parsable a.sh)\nsbatch --dependency=afterok:$id b.sh\n"),
      Texts{
          "warning job.sh:2:1 if this sbatch fails, the script submits the job of line 3 all the same, with "
          "--dependency=afterok:"});
  EXPECT_EQ(
      told("id=$(sbatch a.sh | awk '{print $4}')\nsbatch ${id:+-d afterok:$id} b.sh\n"),
      Texts{"warning job.sh:2:1 if this sbatch fails, the script submits the job of line 3 all the same, "
            "without the dependency"});
  for (const std::string fine :
       {"set -e\nid=$(sbatch --parsable a.sh)\nsbatch --dependency=afterok:$id b.sh\n",
        "id=$(sbatch --parsable a.sh) || exit 1\nsbatch --dependency=afterok:$id b.sh\n",
        "sbatch a.sh\nsbatch b.sh\n"})
    EXPECT_EQ(told(fine), Texts{}) << fine;
}

TEST(StaysPending, AJobWhosePredecessorHasFailed) {
  EXPECT_EQ(
      whole("stays-pending", script("id=$(sbatch --parsable a.sh)\nsbatch --dependency=afterok:$id b.sh\n")),
      (Texts{"if the job that this one waits for fails, this one stays pending forever",
             "its reason is then DependencyNeverSatisfied, until somebody cancels it, unless slurm.conf has "
             "kill_invalid_depend",
             "sbatch --kill-on-invalid-dep=yes, or afterany and a test of what it needs",
             "sbatch(1), --dependency, --kill-on-invalid-dep; slurm.conf(5), DependencyParameters"}));
  for (const std::string fine :
       {"id=$(sbatch --parsable a.sh)\nsbatch --kill-on-invalid-dep=yes --dependency=afterok:$id b.sh\n",
        "id=$(sbatch --parsable a.sh)\nsbatch --dependency=afterany:$id b.sh\n",
        "sbatch a.sh\nsbatch b.sh\n"})
    EXPECT_EQ(found("stays-pending", script(fine)), Texts{}) << fine;
}

TEST(SubmissionUnseen, WhereTheScriptExitsWithZero) {
  EXPECT_EQ(whole("submission-unseen", script("for i in 1 2; do\n  sbatch job.sh $i\ndone\n")),
            (Texts{"if this sbatch fails, the script still exits with 0",
                   "whatever starts the script takes the failure for a success, and a job is missing",
                   "sbatch … || exit 1", "bash(1), EXIT STATUS"}));
  EXPECT_EQ(found("submission-unseen", script("sbatch a.sh | tee id\necho submitted\n")).size(), 1U);
  for (const std::string fine :
       {"sbatch a.sh\n", "set -e\nfor i in 1 2; do\n  sbatch a.sh\ndone\n",
        "sbatch a.sh || exit 1\necho submitted\n", "#SBATCH -N 1\nsbatch a.sh\necho x\n"})
    EXPECT_EQ(found("submission-unseen", script("#!/bin/bash\n" + fine)), Texts{}) << fine;
}

TEST(SbatchArguments, AProgramIsNoBatchScript) {
  EXPECT_EQ(whole("sbatch-arguments", script("sbatch -N 1 --gpus 2 python train.py\n")),
            (Texts{"sbatch takes python for the batch script",
                   "sbatch copies its first argument and rejects what does not begin with #!",
                   "srun python …, or sbatch --wrap 'python …'", "sbatch(1), SYNOPSIS"}));
  EXPECT_EQ(found("sbatch-arguments", script("sbatch job.sh python\nsbatch --wrap 'python a.py'\n")),
            Texts{});
}

TEST(SbatchArguments, AnOptionBehindTheScript) {
  EXPECT_EQ(whole("sbatch-arguments", script("sbatch -N 1 job.sh --wait\n")),
            (Texts{"--wait is an argument of the script here: it is behind its name",
                   "sbatch reads its options only in front of the script", "sbatch --wait job.sh",
                   "sbatch(1), SYNOPSIS"}));
  for (const std::string fine : {"sbatch --wait job.sh\n", "sbatch job.sh --epochs 3\n",
                                 "sbatch job.sh --export onnx\n", "sbatch scripts/vllm\n", "sbatch job.sh\n"})
    EXPECT_EQ(found("sbatch-arguments", script(fine)), Texts{}) << fine;
}

}  // namespace
}  // namespace nlaunch::lint

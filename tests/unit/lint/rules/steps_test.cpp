#include <gtest/gtest.h>

#include "unit/lint/support.h"

namespace nlaunch::lint {
namespace {

using namespace support;

Texts cut(const std::string& list) {
  return found("export-commas", script("#SBATCH --export=" + list + "\ntrue\n"));
}

Texts cut_at(const std::string& name) {
  return {"error job.sh:1:1 --export cuts off the value of " + name + " at its comma"};
}

TEST(ExportCommas, WhatIsNoNameIsTheRestOfAValue) {
  EXPECT_EQ(cut("ALL,A=b,c"), cut_at("A"));
  EXPECT_EQ(cut("A=b,C=d,e"), cut_at("C"));
  EXPECT_EQ(cut("A=b,0X"), cut_at("A"));
  EXPECT_EQ(cut("A=b,0"), cut_at("A"));
  EXPECT_EQ(cut("A=b,9X"), cut_at("A"));
  EXPECT_EQ(cut("A=b,C-D"), cut_at("A"));
  for (const auto* list : {"ALL", "ALL,A=b", "A=b,HOME", "A=b,A1", "A=b,X_9", "A=b,_X", "A=b,http_proxy",
                           "A=b,,C=d", "none,a", "a,b,c", "A=b,"}) {
    EXPECT_EQ(cut(list), Texts{}) << list;
  }
}

TEST(ExportCommas, BehindAListAWordInCapitalsIsMoreOfIt) {
  EXPECT_EQ(cut("NCCL_DEBUG_SUBSYS=INIT,NET"), cut_at("NCCL_DEBUG_SUBSYS"));
  EXPECT_EQ(cut("NCCL_DEBUG_SUBSYS=INIT,NCCL_ALGO"), Texts{});
  EXPECT_EQ(cut("NCCL_DEBUG=INFO,NET"), Texts{});
  EXPECT_EQ(cut("MINE=INFO,NET"), Texts{});
}

TEST(ExportCommas, StepsAreLookedAtToo) {
  EXPECT_EQ(found("export-commas", script("true\nsrun --mpi=none --export=ALL,A=b,c python a.py\n")),
            Texts{"error job.sh:2:17 --export cuts off the value of A at its comma"});
  EXPECT_EQ(found("export-commas", script("srun --export-file=A=b,c python a.py\n")), Texts{});
  EXPECT_EQ(whole("export-commas", script("#SBATCH --export=A=b,c\n")).at(2),
            "use `export A=…` before srun, and --export=ALL");
}

Texts cpus(const std::string& text) {
  return found("cpus-per-task", script("#SBATCH --nodes=2\n#SBATCH --cpus-per-task=8\n" + text + "\n"));
}

TEST(CpusPerTask, AStepAsksForItself) {
  const std::string what = "srun does not inherit --cpus-per-task from the job";
  EXPECT_EQ(cpus("srun python a.py"), Texts{"warning job.sh:3:1 " + what});
  EXPECT_EQ(cpus("srun --mpi=none -N 2 python a.py\nsrun python b.py"), Texts{"warning job.sh:3:1 " + what});
  EXPECT_EQ(cpus("srun -c 8 python a.py\nsrun python b.py"), Texts{"warning job.sh:4:1 " + what});
  for (const std::string option : {"--cpus-per-tasks=8", "--exclusive -n1", "--cpu-bind=cores"})
    EXPECT_EQ(cpus("srun " + option + " python a.py").size(), 1U) << option;
  EXPECT_EQ(found("cpus-per-task", script("#SBATCH -c 8\nsrun python a.py\n")).size(), 1U);
}

TEST(CpusPerTask, AVariableOfTheProgramHoldsNoOption) {
  EXPECT_EQ(cpus("srun torchrun --rdzv_id $RANDOM a.py").size(), 1U);
  EXPECT_EQ(cpus("srun -u shifter bash -c \"$PROFILE python a.py\"").size(), 1U);
  EXPECT_EQ(cpus("srun $OPTIONS torchrun --rdzv_id $RANDOM a.py"), Texts{});
}

TEST(CpusPerTask, UnlessItDoes) {
  for (const std::string option :
       {"--cpus-per-task=8", "--cpus-per-task 8", "-c 8", "-c8", "--cpus-per-gpu=2", "--cpu-bind=none",
        "--cpu-bind=v,mask_cpu:0xf", "$OPTIONS"}) {
    EXPECT_EQ(cpus("srun --mpi=none " + option + " python a.py"), Texts{}) << option;
  }
  EXPECT_EQ(cpus("export SRUN_CPUS_PER_TASK=8\nsrun python a.py"), Texts{});
  EXPECT_EQ(cpus("srun hostname"), Texts{});
  EXPECT_EQ(cpus("python a.py"), Texts{});
  EXPECT_EQ(found("cpus-per-task", script("#SBATCH --nodes=2\nsrun python a.py\n")), Texts{});
  EXPECT_EQ(found("cpus-per-task", script("#SBATCH --cpus-per-gpu=2\nsrun python a.py\n")), Texts{});
}

TEST(StepWaits, BesideOneThatHasAllOfTheNode) {
  const std::string job = "#SBATCH -N 1 --gpus-per-node=8\n";
  const auto waits = [](const std::string& text) { return found("step-waits", script(text)); };
  EXPECT_EQ(waits(job + "srun vllm serve a &\nsleep 60\nsrun python train.py\n"),
            Texts{"warning job.sh:4:1 this step starts only when the one of line 2 has ended"});
  for (const auto* option : {"--overlap", "--exact --gpus=4", "--gres=gpu:4", "--mem=10G"})
    EXPECT_EQ(waits(job + "srun vllm serve a &\nsrun " + option + " python train.py\n"), Texts{}) << option;
  EXPECT_EQ(waits(job + "srun --overlap vllm serve a &\nsrun python train.py\n"), Texts{});
  EXPECT_EQ(waits(job + "srun python a.py &\nwait\nsrun python train.py\n"), Texts{});
  EXPECT_EQ(waits(job + "srun vllm serve a &\np=$!\npython b.py\nkill $p\nsrun python train.py\n"), Texts{});
  EXPECT_EQ(waits(job + "export SLURM_OVERLAP=1\nsrun vllm serve a &\nsrun python train.py\n"), Texts{});
  EXPECT_EQ(waits("#SBATCH -N 1\nsrun redis-server &\nsrun python train.py\n"), Texts{}) << "no GPU";
  const std::string two = "#SBATCH -N 2 --gpus-per-node=8\nn=($(scontrol show hostnames))\n";
  EXPECT_EQ(waits(two + "srun -N1 -n1 vllm serve a &\nsrun -N1 -n1 python train.py\n"), Texts{});
  EXPECT_EQ(
      waits(two + "srun -N1 -n1 -w ${n[0]} vllm serve a &\nsrun -N1 -n1 -w ${n[0]} python train.py\n").size(),
      1U);
}

TEST(NodeList, EachNodeIsAnElement) {
  const std::string job = "#SBATCH -N 2\nlist=$(scontrol show hostnames)\n";
  EXPECT_EQ(
      found("node-list",
            script(job + "nodes=(\"$list\")\nsrun -w \"${nodes[0]}\" ray start\nsrun -w \"${nodes[1]}\" "
                         "ray start\n")),
      (Texts{"error job.sh:4:1 srun -w gets several nodes in one word, separated by line breaks",
             "error job.sh:5:1 srun -w gets no node: its value is empty"}));
  EXPECT_EQ(found("node-list", script(job + "nodes=($list)\nsrun -w \"${nodes[1]}\" ray start\n")), Texts{});
  EXPECT_EQ(
      found("node-list", script(job + "nodes=($list)\nsrun -w \"${nodes[@]:0:2}\" python a.py\n")),
      Texts{
          "error job.sh:4:1 srun gets several nodes as several words: the second one is the program that it "
          "starts"});
}

TEST(RankOfShell, ATasksVariableInTheBatchScript) {
  const std::string job = "#SBATCH -N 2\n";
  EXPECT_EQ(
      found("rank-of-shell", script(job + "srun bash -c \"torchrun --node_rank $SLURM_NODEID a.py\"\n")),
      Texts{"error job.sh:2:1 $SLURM_NODEID is expanded here, by the batch script's shell"});
  EXPECT_EQ(found("rank-of-shell", script(job + "export NODE_RANK=$SLURM_PROCID\nsrun torchrun a.py\n")),
            Texts{"error job.sh:2:1 $SLURM_PROCID is expanded here, by the batch script's shell"});
  for (const auto* fine : {"srun bash -c 'torchrun --node_rank $SLURM_NODEID a.py'\n",
                           "srun bash -c \"x --rank \\$SLURM_PROCID\"\n",
                           "srun -N 1 -n 1 bash -c \"x $SLURM_NODEID\"\n", "echo $SLURM_NODEID\nsrun x\n",
                           "srun torchrun --rdzv_backend c10d --node_rank $SLURM_NODEID a.py\n"}) {
    EXPECT_EQ(found("rank-of-shell", script(job + fine)), Texts{}) << fine;
  }
}

TEST(RankOfShell, APathIsOneForAllNodes) {
  const std::string job = "#SBATCH -N 2\n";
  const std::string told = "job.sh:2:1 $SLURM_NODEID is expanded here, by the batch script's shell";
  EXPECT_EQ(found("rank-of-shell",
                  script(job + "export CACHE=/tmp/a-$SLURM_NODEID\nsrun torchrun --rdzv_id 1 a.py\n")),
            Texts{"warning " + told});
  EXPECT_EQ(found("rank-of-shell", script(job + "export CACHE=./a-${SLURM_NODEID}.json\nsrun python a.py\n")),
            Texts{"warning " + told});
}

TEST(RankOfShell, TheFirstCommandMayBeOfASubstitution) {
  EXPECT_EQ(found("rank-of-shell",
                  script("#SBATCH -N 2\nA=$(hostname)\nexport R=$SLURM_PROCID\nsrun python a.py\n")),
            Texts{"error job.sh:3:1 $SLURM_PROCID is expanded here, by the batch script's shell"});
}

TEST(RankOfShell, TheFirstNodesNameMayBeMeant) {
  const std::string job = "#SBATCH -N 2\n";
  EXPECT_EQ(found("rank-of-shell", script(job + "export LEAD_NODE=${SLURMD_NODENAME}\nsrun python a.py\n")),
            Texts{});
  EXPECT_EQ(found("rank-of-shell", script(job + "export NODE=$SLURMD_NODENAME\nsrun python a.py\n")).size(),
            1U);
}

TEST(CpusPerTask, AnSrunOverSeveralLinesIsToldOnItsFirst) {
  EXPECT_EQ(
      found("cpus-per-task", script("#SBATCH --cpus-per-task=4\nsrun \\\n  --ntasks=1 \\\n  python a.py\n")),
      Texts{"warning job.sh:2:1 srun does not inherit --cpus-per-task from the job"});
}

TEST(RankOfShell, NotIfEachTaskSetsItAgain) {
  const std::string begin = "#SBATCH -N 2\n#SBATCH --ntasks-per-node=4\nexport CACHE=/tmp/a-$SLURM_LOCALID\n";
  EXPECT_EQ(found("rank-of-shell",
                  script(begin + "srun bash -c \"export CACHE=/tmp/a-\\$SLURM_LOCALID; python a.py\"\n")),
            Texts{});
  EXPECT_EQ(found("rank-of-shell", script(begin + "srun python a.py\n")).size(), 1U);
}

TEST(ExportDrops, TheRestOfTheEnvironment) {
  EXPECT_EQ(
      whole("export-drops", script("sbatch --export=A=1,B=2 job.sbatch\n")),
      (Texts{"the job gets only these variables, not the others of this environment",
             "a list in --export replaces the environment: PATH, the modules and the virtual environment "
             "are not passed on",
             "--export=ALL,NAME=VALUE", "sbatch(1), srun(1), --export"}));
  for (const std::string fine : {"sbatch --export=ALL,A=1 job.sbatch\n", "sbatch --export=NONE job.sbatch\n",
                                 "sbatch --export ALL job.sbatch\n", "sbatch job.sbatch\n"})
    EXPECT_EQ(found("export-drops", script(fine)), Texts{}) << fine;
}

TEST(Uncomputed, AProduct) {
  EXPECT_EQ(whole("uncomputed", script("#!/bin/bash\n#SBATCH -N 2\nsrun --ntasks=2*4 python a.py\n")),
            (Texts{"Slurm does not compute 2*4", "--ntasks takes a number: the step is refused",
                   "$((A * B)) in the script, and its value here", "srun(1), --ntasks"}));
  EXPECT_EQ(found("uncomputed", script("#!/bin/bash\n#SBATCH -N 2-4\nsrun -n $((2 * 4)) python a.py\n")),
            Texts{});
}

TEST(ErrorsInValue, OfAnAddress) {
  EXPECT_EQ(
      whole("errors-in-value", script("HEAD_IP=$(srun -N1 -n1 hostname -I 2>&1)\npython a.py $HEAD_IP\n")),
      (Texts{"the messages of srun become part of HEAD_IP",
             "2>&1 adds what srun, or the site's prolog, prints as an error to the value", "leave out 2>&1",
             "bash(1), Command Substitution"}));
  for (const std::string fine : {"HEAD_IP=$(srun -N1 -n1 hostname -I)\n", "LOG=$(srun python a.py 2>&1)\n"})
    EXPECT_EQ(found("errors-in-value", script(fine)), Texts{}) << fine;
}

}  // namespace
}  // namespace nlaunch::lint

#include <gtest/gtest.h>

#include "unit/lint/support.h"

namespace nlaunch::lint {
namespace {

using namespace support;

Texts cut(const std::string& list) {
  return found("export-commas", script("#SBATCH --export=" + list + "\ntrue\n"));
}

Texts cut_at(const std::string& name) {
  return {"error job.sh:1:1 --export cuts the value of " + name + " at its comma"};
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
            Texts{"error job.sh:2:17 --export cuts the value of A at its comma"});
  EXPECT_EQ(found("export-commas", script("srun --export-file=A=b,c python a.py\n")), Texts{});
  EXPECT_EQ(whole("export-commas", script("#SBATCH --export=A=b,c\n")).at(2),
            "export A=… in front of srun, and --export=ALL");
}

Texts cpus(const std::string& text) {
  return found("cpus-per-task", script("#SBATCH --nodes=2\n#SBATCH --cpus-per-task=8\n" + text + "\n"));
}

TEST(CpusPerTask, AStepAsksForItself) {
  const std::string what = "srun does not take over --cpus-per-task from the job";
  EXPECT_EQ(cpus("srun python a.py"), Texts{"warning job.sh:3:1 " + what});
  EXPECT_EQ(cpus("srun --mpi=none -N 2 python a.py\nsrun python b.py"), Texts{"warning job.sh:3:1 " + what});
  EXPECT_EQ(cpus("srun -c 8 python a.py\nsrun python b.py"), Texts{"warning job.sh:4:1 " + what});
  EXPECT_EQ(cpus("srun --cpus-per-tasks=8 python a.py").size(), 1U);
  EXPECT_EQ(found("cpus-per-task", script("#SBATCH -c 8\nsrun python a.py\n")).size(), 1U);
}

TEST(CpusPerTask, UnlessItDoes) {
  for (const std::string option : {"--cpus-per-task=8", "--cpus-per-task 8", "-c 8", "-c8",
                                   "--cpus-per-gpu=2", "--exclusive", "--cpu-bind=none", "$OPTIONS"}) {
    EXPECT_EQ(cpus("srun --mpi=none " + option + " python a.py"), Texts{}) << option;
  }
  EXPECT_EQ(cpus("export SRUN_CPUS_PER_TASK=8\nsrun python a.py"), Texts{});
  EXPECT_EQ(cpus("srun hostname"), Texts{});
  EXPECT_EQ(cpus("python a.py"), Texts{});
  EXPECT_EQ(found("cpus-per-task", script("#SBATCH --nodes=2\nsrun python a.py\n")), Texts{});
  EXPECT_EQ(found("cpus-per-task", script("#SBATCH --cpus-per-gpu=2\nsrun python a.py\n")), Texts{});
}

TEST(Usr1, OthersTakeIt) {
  const auto said = [](const std::string& signal) {
    const auto all = whole("usr1", script("#SBATCH --time=1\n#SBATCH --signal=" + signal + "\n"));
    return all.empty() ? "" : all.at(2);
  };
  EXPECT_EQ(said("USR1@60"), "USR2, or TERM: --signal=USR2@…");
  EXPECT_EQ(said("SIGUSR1@60"), "USR2, or TERM: --signal=USR2@…");
  EXPECT_EQ(said("10@60"), "USR2, or TERM: --signal=USR2@…");
  EXPECT_EQ(said("B:USR1@60"), "USR2, or TERM: --signal=B:USR2@…");
  EXPECT_EQ(said("B:10@60"), "USR2, or TERM: --signal=B:USR2@…");
  for (const auto* other : {"USR2@60", "B:TERM@10", "12@60", "B:12@60", "110@60"})
    EXPECT_EQ(said(other), "") << other;
}

Texts late_folder(const std::string& option, const std::string& command) {
  return found("output-folder", script("#SBATCH " + option + "\n" + command + "\n"));
}

TEST(OutputFolder, TheScriptMakesItTooLate) {
  const auto told = [](const std::string& folder) {
    return Texts{"warning job.sh:1:1 the script makes " + folder +
                 " itself, where Slurm already wants to write"};
  };
  EXPECT_EQ(late_folder("--output=logs/%j.out", "mkdir -p logs"), told("logs"));
  EXPECT_EQ(late_folder("--error=logs/a/%j.err", "true\nmkdir -p x logs/a\nls"), told("logs/a"));
  EXPECT_EQ(late_folder("-o logs/%j.out", "mkdir logs/"), told("logs"));
  EXPECT_EQ(late_folder("--output=logs/%j.out", "mkdir ./logs"), told("logs"));
  EXPECT_EQ(late_folder("--output=./logs/%j.out", "mkdir logs"), told("./logs"));
  EXPECT_EQ(late_folder("--output=/a/x", "mkdir /a"), told("/a"));
}

TEST(OutputFolder, OtherFoldersAreNot) {
  for (const auto* option : {"--output=%j.out", "--output=/x", "--output=logs/%j/x", "--output=other/x",
                             "--outputs=logs/x", "--input=logs/x"}) {
    EXPECT_EQ(late_folder(option, "mkdir -p logs / logs/%j"), Texts{}) << option;
  }
  EXPECT_EQ(late_folder("--output=logs/x", "ls logs"), Texts{});
  EXPECT_EQ(late_folder("--output=logs/x", "mkdir $logs"), Texts{});
  EXPECT_EQ(found("output-folder", script("#SBATCH --output=a/x\n#SBATCH --error=b/x\nmkdir a b\n")).size(),
            1U);
}

Texts directives(const std::string& text) {
  return found("lost-directive", script(text));
}

TEST(LostDirective, AMisspeltOne) {
  for (const std::string word : {"#SBTACH", "#SBACTH", "#SABTCH", "#SBATH", "#SBTCH", "#sbatch"}) {
    EXPECT_EQ(directives("#!/bin/bash\n" + word + " --time=1\n"),
              Texts{"warning job.sh:2:1 " + word + " is not #SBATCH"});
    EXPECT_EQ(directives(word + "\t--time=1\ntrue\n").size(), 1U);
  }
  EXPECT_EQ(directives("#SBATCHES\n# SBATCH\n##SBATCH a\n"), Texts{});
}

TEST(LostDirective, OneBehindTheFirstCommand) {
  EXPECT_EQ(directives("#SBATCH --time=1\ntrue\n#SBATCH --nodes=1\n"),
            Texts{"warning job.sh:3:1 this #SBATCH stands behind the first command"});
  EXPECT_EQ(directives("#SBATCH --time=1\n# a\n#SBATCH --nodes=1\ntrue\n# a comment\n"), Texts{});
  EXPECT_EQ(directives("#SBATCH --time=1\n"), Texts{});
  EXPECT_EQ(directives("true #SBATCH\n"), Texts{});
}

}  // namespace
}  // namespace nlaunch::lint

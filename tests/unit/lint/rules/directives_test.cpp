#include <gtest/gtest.h>

#include <set>

#include "unit/lint/support.h"

namespace nlaunch::lint {
namespace {

using namespace support;

Texts late_folder(const std::string& option, const std::string& command) {
  return found("output-folder", script("#SBATCH " + option + "\n" + command + "\n"));
}

TEST(OutputFolder, TheScriptMakesItTooLate) {
  const auto told = [](const std::string& folder) {
    return Texts{"warning job.sh:1:1 the script creates " + folder + " itself, after Slurm needs it"};
  };
  EXPECT_EQ(late_folder("--output=logs/%j.out", "mkdir -p logs"), told("logs"));
  EXPECT_EQ(late_folder("--error=logs/a/%j.err", "true\nmkdir -p x logs/a\nls"), told("logs/a"));
  EXPECT_EQ(late_folder("-o logs/%j.out", "mkdir logs/"), told("logs"));
  EXPECT_EQ(late_folder("--output=logs/%j.out", "mkdir ./logs"), told("logs"));
  EXPECT_EQ(late_folder("--output=./logs/%j.out", "mkdir logs"), told("./logs"));
  EXPECT_EQ(late_folder("--output=/a/x", "mkdir /a"), told("/a"));
}

TEST(OutputFolder, OtherFoldersAreNot) {
  for (const auto* option : {"--output=%j.out", "--output=/x", "--output=logs/%u/x", "--output=other/x",
                             "--outputs=logs/x", "--input=logs/x"}) {
    EXPECT_EQ(late_folder(option, "mkdir -p logs / logs/%u"), Texts{}) << option;
  }
  EXPECT_EQ(late_folder("--output=logs/x", "ls logs"), Texts{});
  EXPECT_EQ(late_folder("--output=logs/x", "mkdir $logs"), Texts{});
  EXPECT_EQ(found("output-folder", script("#SBATCH --output=a/x\n#SBATCH --error=b/x\nmkdir a b\n")).size(),
            1U);
}

TEST(OutputFolder, ARelativeOneIsLookedFor) {
  auto input = script("#SBATCH --output=logs/%j.out\npython a.py\n");
  std::set<std::string> there;
  input.folder_exists = [&](const std::string& path) { return there.contains(path); };
  EXPECT_EQ(found("output-folder", input),
            Texts{"note job.sh:1:1 the log directory logs does not exist here"});
  there.insert("logs");
  EXPECT_EQ(found("output-folder", input), Texts{});
  for (const auto* option : {"/logs/%j.out", "%j.out", "logs/%u/%j.out"}) {
    auto other = script("#SBATCH --output=" + std::string(option) + "\npython a.py\n");
    other.folder_exists = [](const std::string&) { return false; };
    EXPECT_EQ(found("output-folder", other), Texts{}) << option;
  }
  auto here = script("#SBATCH -D ./\n#SBATCH --output=logs/%j.out\npython a.py\n");
  here.folder_exists = [](const std::string&) { return false; };
  EXPECT_EQ(found("output-folder", here).size(), 1U);
  auto elsewhere = script("#SBATCH --chdir=/work\n#SBATCH --output=logs/%j.out\npython a.py\n");
  elsewhere.folder_exists = [](const std::string&) { return false; };
  EXPECT_EQ(found("output-folder", elsewhere), Texts{});
}

TEST(OutputFolder, OneBesideTheScriptOrAboveItIsThere) {
  for (const auto* folder : {"a/b/logs", "a/logs"}) {
    auto input = script("#SBATCH --output=logs/%j.out\npython a.py\n");
    input.script->file = a_file("a/b/job.sh", input.script->file->text);
    input.folder_exists = [&](const std::string& path) { return path == folder; };
    EXPECT_EQ(found("output-folder", input), Texts{}) << folder;
  }
}

TEST(Unexpanded, NoShellReadsDirectives) {
  const auto of = [](const std::string& option) {
    const auto all = whole("unexpanded", script("#SBATCH " + option + "\npython a.py\n"));
    return all.empty() ? "" : all.at(0);
  };
  EXPECT_EQ(of("--output=$HOME/logs/%j.out"), "sbatch does not expand $HOME: --output gets it verbatim");
  EXPECT_EQ(of("-e ~/logs/%j.err"), "sbatch does not expand ~: --error gets it verbatim");
  EXPECT_EQ(of("--nodes=${NODES}"), "sbatch does not expand ${NODES}: --nodes gets it verbatim");
  EXPECT_EQ(of("--account=$A"), "sbatch does not expand $A: --account gets it verbatim");
  for (const auto* option : {"--output=%u/~x/%j", "--comment=$HOME", "--exclusive", "--output=a~/b"})
    EXPECT_EQ(of(option), "") << option;
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

TEST(LostDirective, OneWithABlank) {
  EXPECT_EQ(directives("#!/bin/bash\n# SBATCH --ntasks-per-node=1\ntrue\n"),
            Texts{"note job.sh:2:1 # SBATCH with a space is a comment: --ntasks-per-node is ignored"});
  EXPECT_EQ(directives("# SBATCH -N 2\n").size(), 1U);
  for (const auto* text : {"# SBATCH -N 2\n#SBATCH --nodes=4\n", "# SBATCH options:\n", "## SBATCH -N 2\n",
                           "true\n# SBATCH -N 2\n", "# SBATCH -\n"})
    EXPECT_EQ(directives(text), Texts{}) << text;
}

TEST(LostDirective, OneBehindTheFirstCommand) {
  EXPECT_EQ(directives("#SBATCH --time=1\ntrue\n#SBATCH --nodes=1\n"),
            Texts{"warning job.sh:3:1 this #SBATCH is after the first command"});
  EXPECT_EQ(directives("#SBATCH --time=1\n# a\n#SBATCH --nodes=1\ntrue\n# a comment\n"), Texts{});
  EXPECT_EQ(directives("#SBATCH --time=1\n"), Texts{});
  EXPECT_EQ(directives("true #SBATCH\n"), Texts{});
}

TEST(OutputFolder, NoFolderHasTheJobsNumber) {
  EXPECT_EQ(late_folder("--output=logs/%j/x.out", "true"),
            Texts{"warning job.sh:1:1 --output=logs/%j/x.out is in a directory named after the job"});
  EXPECT_EQ(late_folder("--error=logs/%5A_%a/x", "true").size(), 1U);
  EXPECT_EQ(late_folder("--output=logs/%u/%x/%j.out", "true"), Texts{});
}

TEST(SbatchOption, WhatSbatchDoesNotHave) {
  const auto said = [](const std::string& option) {
    const auto all = whole("sbatch-option", script("#SBATCH " + option + "\n"));
    return all.empty() ? "" : all.at(0) + "; " + all.at(2);
  };
  EXPECT_EQ(said("--ntask-per-nodes=4"),
            "sbatch has no option --ntask-per-nodes; --ntasks-per-node, if that is what you meant");
  EXPECT_EQ(said("--job_name=a"), "sbatch has no option --job_name; --job-name, if that is what you meant");
  EXPECT_EQ(said("--cpu-bind=none"),
            "--cpu-bind is an option of srun, not of sbatch; use srun --cpu-bind in front of the program");
  for (const auto* fine :
       {"-q debug", "--tasks-per-node=4", "--partit=gpu", "--nodes=2 # two", "--uenv=pytorch",
        "--container-image=a", "--qos debug", "--array=1-4", "--exclusive", "--tres-per-task=cpu:4"}) {
    EXPECT_EQ(said(fine), "") << fine;
  }
}

TEST(StrayWord, WhatBelongsToNoOption) {
  EXPECT_EQ(whole("stray-word", script("#SBATCH --nodelist=a b c\n")),
            (Texts{"'b' does not belong to any option",
                   "a node list uses commas, not spaces: names after a space are not part of it",
                   "--nodelist=a,b", "sbatch(1); getopt(3)"}));
  EXPECT_EQ(found("stray-word", script("#SBATCH --comment=a b\n")),
            Texts{"error job.sh:1:1 'b' does not belong to any option"});
  for (const auto* fine :
       {"--comment=\"a b\"", "--nodes 2", "-p gpu # the large one", "hetjob", "--mem=0 #all"}) {
    EXPECT_EQ(found("stray-word", script(std::string("#SBATCH ") + fine + "\n")), Texts{}) << fine;
  }
}

TEST(ArrayName, WithoutAnArray) {
  EXPECT_EQ(found("array-name", script("#SBATCH --output=a-%A_%a.out\n")),
            Texts{"note job.sh:1:1 %a is the array index, but this job is not an array"});
  EXPECT_EQ(found("array-name", script("#SBATCH --output=a-%A_%a.out\n#SBATCH --array=1-4\n")), Texts{});
  EXPECT_EQ(found("array-name", script("#SBATCH --output=a-%a.out\necho $SLURM_ARRAY_TASK_ID\n")), Texts{});
  EXPECT_EQ(found("array-name", script("#SBATCH --output=a-%A.out\n")), Texts{});
}

TEST(NoInterpreter, OfABatchScript) {
  EXPECT_EQ(found("no-interpreter", script("#SBATCH -N 1\npython a.py\n")),
            Texts{"error job.sh:1:1 sbatch refuses this script: its first line does not begin with #!"});
  EXPECT_EQ(found("no-interpreter", script("#!/bin/bash\n#SBATCH -N 1\npython a.py\n")), Texts{});
  EXPECT_EQ(found("no-interpreter", script("python a.py\n")), Texts{});
}

TEST(ArrayOutput, OneFileForAllTasks) {
  const auto output = [](const std::string& option) {
    return found("array-output",
                 script("#!/bin/bash\n#SBATCH --array=0-3\n#SBATCH " + option + "\npython a.py\n"));
  };
  EXPECT_EQ(output("--output=log.txt"), Texts{"warning job.sh:3:1 all tasks of the array write to one file"});
  EXPECT_EQ(output("-o log-%A.txt").size(), 1U);
  for (const std::string own : {"--output=%A_%a.txt", "--output=%j.txt", "--output=/dev/null", "--time=1"})
    EXPECT_EQ(output(own), Texts{}) << own;
}

TEST(LostDirective, NotOneThatAnotherReplaces) {
  EXPECT_EQ(directives("# SBATCH --mem=64G\n#SBATCH --mem-per-cpu=4G\ntrue\n"), Texts{});
  EXPECT_EQ(directives("# SBATCH --gres=gpu:4\n#SBATCH --gpus-per-node=4\ntrue\n"), Texts{});
  EXPECT_EQ(directives("# SBATCH --mem=64G\n#SBATCH -N 1\ntrue\n").size(), 1U);
}

TEST(OutputFolder, BelowTheFolderOfTheJob) {
  EXPECT_EQ(late_folder("--output=logs/%j.out", "ROOT=$SLURM_SUBMIT_DIR\nmkdir -p \"$ROOT/logs\""),
            Texts{"warning job.sh:1:1 the script creates logs itself, after Slurm needs it"});
}

TEST(OutputFolder, PatternsForTheNamesOfJobAndUser) {
  const auto said = [](const std::string& text) {
    return whole("output-folder", script("#SBATCH --job-name=sft\n" + text));
  };
  const std::string why =
      "Slurm opens this file before the script starts: if the directory is missing, the job fails without "
      "any "
      "output";
  EXPECT_EQ(said("#SBATCH --output=logs/%x/%j.out\nmkdir -p logs/$SLURM_JOB_NAME\n"),
            (Texts{"the script creates logs/%x itself, after Slurm needs it", why,
                   "run `mkdir -p logs/sft` before sbatch", "sbatch(1), --output"}));
  EXPECT_EQ(said("#SBATCH --output=/scratch/%u/logs/%j.out\nmkdir -p /scratch/$USER/logs\n"),
            (Texts{"the script creates /scratch/%u/logs itself, after Slurm needs it", why,
                   "run `mkdir -p /scratch/$USER/logs` before sbatch", "sbatch(1), --output"}));
  EXPECT_EQ(said("#SBATCH --output=logs/%x/%j.out\nmkdir -p logs\n"), Texts{});
  EXPECT_EQ(said("#SBATCH --output=logs/%N/%j.out\nmkdir -p logs/%N\n"), Texts{});
}

TEST(GpuRequests, ThatDiffer) {
  const auto of_job = [](const std::string& directives) {
    return found("gpu-requests",
                 script("#!/bin/bash\n#SBATCH --nodes=2\n" + directives + "srun python a.py\n"));
  };
  EXPECT_EQ(of_job("#SBATCH --gpus=4\n#SBATCH --gpus-per-task=4\n"),
            Texts{"warning job.sh:3:1 --gpus=4 is not what --gpus-per-task asks for: 2 nodes with 4 GPUs "
                  "each are 8"});
  EXPECT_EQ(of_job("#SBATCH --gpus=4\n#SBATCH --gres=gpu:a100:4\n").size(), 1U);
  for (const std::string right :
       {"#SBATCH --gpus=8\n#SBATCH --gpus-per-node=4\n", "#SBATCH --gpus=8\n", "#SBATCH --gpus-per-node=4\n",
        "#SBATCH --gpus=8\n#SBATCH --ntasks-per-node=4\n#SBATCH --gpus-per-task=1\n"})
    EXPECT_EQ(of_job(right), Texts{}) << right;
}

TEST(GivenTwice, WithAnotherValue) {
  const auto of_job = [](const std::string& directives) {
    return found("given-twice", script("#!/bin/bash\n" + directives + "srun python a.py\n"));
  };
  EXPECT_EQ(of_job("#SBATCH --time=1:00:00\n#SBATCH -t 2:00:00\n"),
            Texts{"warning job.sh:3:1 --time is already 1:00:00 on line 2"});
  EXPECT_EQ(
      of_job(
          "#SBATCH --time=1:00:00\n#SBATCH -t 1:00:00\n#SBATCH --mail-type=end\n#SBATCH --mail-type=fail\n"),
      Texts{});
}

TEST(StepFolder, ThatNothingCreates) {
  const auto of_step = [](const std::string& text) {
    auto input = script("#!/bin/bash\n#SBATCH --nodes=2\n" + text);
    input.folder_exists = [](const std::string& folder) { return folder == "logs"; };
    return found("step-folder", input);
  };
  EXPECT_EQ(of_step("srun --output=out/%j.log python a.py\n"),
            Texts{"warning job.sh:3:1 the directory out of this step's output does not exist here, and the "
                  "script does not create it"});
  for (const std::string right :
       {"mkdir -p out\nsrun -o out/%j.log python a.py\n", "srun -o logs/%j.log python a.py\n",
        "srun -o %j.log python a.py\n", "srun -o /data/out/%j.log python a.py\n",
        "cd /work\nsrun -o out/%j.log python a.py\n"})
    EXPECT_EQ(of_step(right), Texts{}) << right;
}

TEST(Directives, MayBeAbbreviated) {
  const auto input = script("#!/bin/bash\n#SBATCH --out=a.log --err=b.log --job-n=x\nsrun python a.py\n");
  std::vector<std::string> texts;
  for (const auto& option : input.batch) texts.push_back(option.text);
  EXPECT_EQ(texts, (std::vector<std::string>{"--output=a.log", "--error=b.log", "--job-name=x"}));
}

TEST(LostDirective, OneThatIsMisspelt) {
  const auto job = [](const std::string& line) {
    return found("lost-directive", script("#!/bin/bash\n" + line + "\n#SBATCH -N 1\npython a.py\n"));
  };
  EXPECT_EQ(job("#SBSTCH --mem=8G"), Texts{"warning job.sh:2:1 #SBSTCH is not #SBATCH"});
  EXPECT_EQ(job("#sbatch -N 2").size(), 1U);
  for (const std::string fine :
       {"#sbatch job.sh", "# sbatch --nodes=2 job.sh", "#BATCHES", "#USAGE --help", "#PBS -l a"})
    EXPECT_EQ(job(fine), Texts{}) << fine;
}

TEST(FewerTasks, ThanNodes) {
  EXPECT_EQ(whole("fewer-tasks", script("#!/bin/bash\n#SBATCH -N 4 -n 1\nsrun python a.py\n")),
            (Texts{"1 task for 4 nodes",
                   "Slurm gives the job no more nodes than it has tasks: \"can't run 1 processes on 4 nodes, "
                   "setting nnodes to 1\"",
                   "--ntasks-per-node=1", "Slurm, src/sbatch/opt.c; sbatch(1), --ntasks"}));
  for (const std::string fine : {"-N 4 -n 4", "-N 4 --ntasks-per-node=1", "-n 1", "-N 1-4 -n 1"})
    EXPECT_EQ(found("fewer-tasks", script("#!/bin/bash\n#SBATCH " + fine + "\nsrun python a.py\n")), Texts{})
        << fine;
}

}  // namespace
}  // namespace nlaunch::lint

#include "lint/script_steps.h"

#include <gtest/gtest.h>

#include "unit/lint/support.h"

namespace nlaunch::lint {
namespace {

using namespace support;

/// "program [script] options..." of each step that is no helper.
Texts steps(const std::string& text) {
  Texts out;
  for (const auto& one : script(text + "\n").steps) {
    auto line =
        one.program + (one.script.empty() ? "" : " {" + one.script + "}") + (one.open_ended ? " ..." : "");
    for (const auto& option : one.options) line += " " + option.text;
    out.push_back(std::move(line));
  }
  return out;
}

TEST(ScriptSteps, OptionsAndTheProgram) {
  EXPECT_EQ(steps("srun --mpi=none -n 4 --nodes 2 --exclusive -l /usr/bin/python -c a"),
            Texts{"python --mpi=none -n=4 --nodes=2 --exclusive -l"});
  EXPECT_EQ(steps("srun --no-kill --label --mpi none python"), Texts{"python --no-kill --label --mpi=none"});
  EXPECT_EQ(steps("srun -n4 -N2 python --mpi=none"), Texts{"python -n4 -N2"});
  EXPECT_EQ(steps("srun --nodes"), Texts{" --nodes"});
  EXPECT_EQ(steps("srun"), Texts{""});
}

TEST(ScriptSteps, WhatIsOnlyKnownWhenItRuns) {
  EXPECT_EQ(steps("srun $OPTIONS -n 2 python"), Texts{"python ... -n=2"});
  EXPECT_EQ(steps("srun --nodes=$N python"), Texts{"python --nodes=$N"});
  EXPECT_EQ(steps("O='-n 2 -l'\nsrun $O python"), Texts{"python -n=2 -l"});
  EXPECT_EQ(steps("O='-n 2'\nsrun \"$O\" python"), Texts{"python -n 2"});
  EXPECT_EQ(steps("N=2\nsrun --nodes=$N python"), Texts{"python --nodes=2"});
  EXPECT_EQ(steps("srun \"$O\" python"), Texts{"python ..."});
  EXPECT_EQ(steps("O='a b'\nsrun --comment=$O python"), Texts{"python --comment=a b"});
  EXPECT_EQ(steps("srun -n $N python"), Texts{"python -n=$N"});
}

TEST(ScriptSteps, TheScriptOfAShell) {
  EXPECT_EQ(steps("srun bash -c 'python a'"), Texts{"bash {python a}"});
  EXPECT_EQ(steps("srun sh -lc 'python a'"), Texts{"sh {python a}"});
  EXPECT_EQ(steps("srun bash -x 'python a'"), Texts{"bash"});
  EXPECT_EQ(steps("srun python -c 'python a'"), Texts{"python"});
  EXPECT_EQ(steps("srun bash -c"), Texts{"bash"});
}

TEST(ScriptSteps, AStepThatOnlyLooksIsNone) {
  for (const std::string helper : {"hostname",
                                   "echo a",
                                   "nvidia-smi",
                                   "rm a",
                                   "mkdir a",
                                   "true",
                                   "cp a b",
                                   "mv a b",
                                   "ls",
                                   "date",
                                   "env",
                                   "printenv",
                                   "cat a",
                                   "sleep 1",
                                   "rsync a b",
                                   "ip a",
                                   "scp a b",
                                   "pkill a",
                                   "tar a",
                                   "df",
                                   "killall a",
                                   "grep a",
                                   "awk a",
                                   "head a",
                                   "uname",
                                   "/bin/hostname",
                                   "bash -c 'mkdir a; rm b'"}) {
    EXPECT_EQ(steps("srun " + helper), Texts{}) << helper;
  }
  EXPECT_EQ(steps("srun bash -c 'mkdir a; python b'").size(), 1U);
}

TEST(ScriptSteps, WhichOptionsTakeTheNextWord) {
  for (const auto* option : {"--nodes", "--mpi", "-n", "-N", "-c", "-p", "-w", "-x", "-t", "-o",
                             "-e",      "-i",    "-A", "-J", "-m", "-d", "-D", "-k", "-C", "-G"}) {
    EXPECT_TRUE(srun_takes_value(option)) << option;
  }
  for (const auto* option :
       {"--nodes=2", "-n2", "-l", "-", "--exclusive", "--overlap", "--pty", "--no-kill"}) {
    EXPECT_FALSE(srun_takes_value(option)) << option;
  }
}

/// The options of #SBATCH lines.
Texts batch(const std::string& text) {
  Texts out;
  for (const auto& one : script(text).batch) out.push_back(one.span.where() + " " + one.text);
  return out;
}

TEST(ScriptSteps, ShortOptionsOfABatchAreWrittenOut) {
  EXPECT_EQ(batch("#SBATCH -N 2\n#SBATCH -n4 -c=8\n#SBATCH -t 1:00 -p a -A b\n#SBATCH -o c -e d -J "
                  "e\n#SBATCH -G 4 -x f -C g\n"),
            (Texts{"job.sh:1:1 --nodes=2", "job.sh:2:1 --ntasks=4", "job.sh:2:1 --cpus-per-task=8",
                   "job.sh:3:1 --time=1:00", "job.sh:3:1 --partition=a", "job.sh:3:1 --account=b",
                   "job.sh:4:1 --output=c", "job.sh:4:1 --error=d", "job.sh:4:1 --job-name=e",
                   "job.sh:5:1 --gpus=4", "job.sh:5:1 --exclude=f", "job.sh:5:1 --constraint=g"}));
  EXPECT_EQ(batch("#SBATCH -H -\n"), (Texts{"job.sh:1:1 -H", "job.sh:1:1 -"}));
}

TEST(ScriptSteps, OnlyLinesInFrontOfTheFirstCommandCount) {
  EXPECT_EQ(batch("#!/bin/bash\n#SBATCH --nodes=2 --exclusive\n# a\n#SBATCH --time 1 # "
                  "--mem=2\ntrue\n#SBATCH --gpus=1\n"),
            (Texts{"job.sh:2:1 --nodes=2", "job.sh:2:1 --exclusive", "job.sh:4:1 --time=1"}));
  EXPECT_EQ(batch("#SBATCH --exclusive\n#SBATCH user\n#SBATCH --mem=1 x\n#SBATCH x\n"),
            (Texts{"job.sh:1:1 --exclusive", "job.sh:3:1 --mem=1"}));
  EXPECT_EQ(batch("# SBATCH --nodes=2\n"), Texts{});
  EXPECT_EQ(batch("true #SBATCH --nodes=4\n"), Texts{}) << "behind a command";
}

}  // namespace
}  // namespace nlaunch::lint

#include <gtest/gtest.h>

#include "unit/lint/support.h"

namespace nlaunch::lint {
namespace {

using namespace support;

Texts lost(const std::string& text) {
  return found("exit-code-lost", script(text));
}

TEST(ExitCodeLost, BehindACommandThatEndsTheScript) {
  EXPECT_EQ(lost("set -e\npython a.py\ncode=$?\n"),
            Texts{"error job.sh:3:1 under set -e this line is reached only if python succeeds"});
  EXPECT_EQ(lost("PYTHON=/opt/python3\nset -e\n$PYTHON a.py\ncode=$?\n"),
            Texts{"error job.sh:4:1 under set -e this line is reached only if python3 succeeds"});
}

TEST(ExitCodeLost, HoweverErrexitIsTurnedOn) {
  for (const std::string on : {"set -e", "set -euo pipefail", "set -o errexit", "set -x -e",
                               "set -o pipefail -e", "set -xo errexit", "set +e\nset -e"}) {
    EXPECT_EQ(lost(on + "\npython a.py\ncode=$?\n").size(), 1U) << on;
  }
  for (const std::string off : {"true", "set -x", "set +e", "set -e\nset +e", "set -e\nset +o errexit",
                                "set errexit", "set -x errexit", "set --e", "set e", "set -",
                                "set -o pipefail", "echo -e", "set -e\nset +xe", "set o errexit"}) {
    EXPECT_EQ(lost(off + "\npython a.py\ncode=$?\n"), Texts{}) << off;
  }
}

TEST(ExitCodeLost, TheFirstLineMayTurnItOn) {
  for (const std::string first : {"#!/bin/bash -e", "#!/bin/bash -xe", "#!/bin/bash -l -e"}) {
    EXPECT_EQ(lost(first + "\npython a.py\ncode=$?\n").size(), 1U) << first;
  }
  for (const std::string first : {"#!/bin/bash", "#!/bin/bash -l", "#!/bin/bash --noediting",
                                  "#!/usr/bin/env bash", "# -e", "\n#!/bin/bash -e"}) {
    EXPECT_EQ(lost(first + "\npython a.py\ncode=$?\n"), Texts{}) << first;
  }
}

TEST(ExitCodeLost, WhereTheFailureIsLookedAtNothingIs) {
  for (const std::string text :
       {"python a.py || true\ncode=$?", "python a.py || code=$?", "! python a.py\ncode=$?",
        "if python a.py; then b; fi\ncode=$?", "python a.py\nfor i in 1; do code=$?; done", "A=1\ncode=$?",
        "A=$(python a.py)\ncode=$?", "trap 'rm x' EXIT\npython a.py\ncode=$?",
        "trap 'rm x' ERR\npython a.py\ncode=$?", "trap 'rm x' 0\npython a.py\ncode=$?",
        "python a.py\ncode=$(a $?)", "f() {\n python a.py\n code=$?\n}"}) {
    EXPECT_EQ(lost("set -e\n" + text + "\n"), Texts{}) << text;
  }
  EXPECT_EQ(lost("#!/bin/bash -e\ncode=$?\n"), Texts{});
  EXPECT_EQ(lost("set -e\ntrap 'rm x' TERM\npython a.py\ncode=$?\n").size(), 1U);
  EXPECT_EQ(lost("set -e\necho EXIT\npython a.py\ncode=$?\n").size(), 1U);
}

TEST(ExitCodeLost, OnlyWhereTheCodeIsKept) {
  for (const std::string line : {"code=$x", "code=1$?", "code=?", "export code=$?", "code="}) {
    EXPECT_EQ(lost("set -e\npython a.py\n" + line + "\n"), Texts{}) << line;
  }
}

TEST(ExitCodeLost, ACommandWithinASubstitutionIsNotTheOneBefore) {
  EXPECT_EQ(lost("set -e\npython a.py\ncode=$? A=$(cat b)\n"),
            Texts{"error job.sh:3:1 under set -e this line is reached only if python succeeds"});
  EXPECT_EQ(lost("echo $(set -e)\npython a.py\ncode=$?\n"), Texts{});
}

Texts hidden(const std::string& text) {
  return found("exit-code-hidden", script("#!/bin/bash\n#SBATCH --nodes=2\n" + text));
}

TEST(ExitCodeHidden, BehindTheLastProgram) {
  const Texts found{
      "warning job.sh:4:1 the script exits with the exit code of this line: a failure of srun is lost"};
  for (const std::string last : {"echo done", "date", "exit 0", "A=1", "printf 'x\\n'", "true"})
    EXPECT_EQ(hidden("srun python a.py\n" + last + "\n"), found) << last;
  EXPECT_EQ(
      hidden("for i in 1 2; do\n  /opt/python a.py\ndone\necho done\n"),
      Texts{"warning job.sh:6:1 the script exits with the exit code of this line: a failure of python is "
            "lost"});
  EXPECT_EQ(whole("exit-code-hidden", script("srun python a.py\necho done\n")),
            (Texts{"the script exits with the exit code of this line: a failure of srun is lost",
                   "Slurm considers the job successful and starts dependent jobs (afterok)",
                   "add `set -e` above, or use srun … || exit", "bash(1), EXIT STATUS, wait"}));
}

TEST(ExitCodeHidden, OfTheProgramThatTheLineNames) {
  EXPECT_EQ(
      hidden("git pull\nif [ $? -ne 0 ]; then exit; fi\nsrun bash -c 'python a.py; python b.py'\necho x\n"),
      Texts{"warning job.sh:6:1 the script exits with the exit code of this line: a failure of srun is "
            "lost"});
}

TEST(ExitCodeHidden, WaitWithoutAProcess) {
  for (const std::string on : {"", "set -e\n"})
    EXPECT_EQ(
        whole("exit-code-hidden", script("#SBATCH -N 2\n" + on +
                                         "for i in 1 2; do\n  srun -N1 python a.py &\n  if [ 1 ]; then\n    "
                                         "sleep 1\n  fi\ndone\nwait\n")),
        (Texts{"`wait` without a process id succeeds even if a program failed",
               "Slurm considers the job successful and starts dependent jobs (afterok)",
               "add pids+=($!) after each &, then: for pid in \"${pids[@]}\"; do wait \"$pid\" || code=$?; "
               "done; exit ${code:-0}",
               "bash(1), EXIT STATUS, wait"}));
}

TEST(ExitCodeHidden, NotWhereItIsKept) {
  for (const std::string text :
       {"set -e\nsrun python a.py\necho done", "srun python a.py", "srun python a.py || exit\necho done",
        "srun python a.py && echo done", "if srun python a.py; then b; fi\necho done",
        "srun python a.py\ncode=$?\necho done\nexit $code", "srun python a.py\nexit 1",
        "trap 'exit 1' ERR\nsrun python a.py\necho done", "echo begin", "srun python a.py &\nwait $!",
        "srun python a.py &\nwait -n", "srun python a.py\ngrep -q ok log && echo done",
        "run() {\n  srun python a.py\n}\nrun || exit\necho done", "set -e\nsrun python a.py\nwait",
        "srun python a.py &\nsleep 10", "srun python a.py\n[ -f x ]", "false\nsrun python a.py\npython b.py"})
    EXPECT_EQ(hidden(text + "\n"), Texts{}) << text;
  EXPECT_EQ(found("exit-code-hidden", script("python a.py\necho done\n")), Texts{});
}

TEST(Unset, InANumberOrAtTheHeadOfAPath) {
  EXPECT_EQ(
      whole("unset", script("GPUS_PER_NODE=8\nN=$(( $NUM_GPUS_PER_NODE * 2 ))\npython a.py $N $PORTS\n")),
      (Texts{"nothing sets NUM_GPUS_PER_NODE",
             "bash silently treats it as empty: it is 0 in $(( )), and a path that starts with it starts "
             "at the root",
             "GPUS_PER_NODE, if that is what you meant; otherwise pass --env NUM_GPUS_PER_NODE=… if the job "
             "gets it from outside",
             "bash(1), set -u"}));
  EXPECT_EQ(
      found("unset", script("DIR=$n/space\nDATA=/x\npython \"${DATAS}/a.py\" \\\n  --dir=$out/x $DATA\n")),
      (Texts{"warning job.sh:1:6 nothing sets n", "warning job.sh:3:11 nothing sets DATAS",
             "warning job.sh:4:10 nothing sets out"}));
}

TEST(Unset, NotWhereItMayBeEmpty) {
  for (const std::string text :
       {"python a.py $MORE", "source $EBROOTANACONDA3/etc/conda.sh", "python $WORK/a.py", "export P=$P2:/x",
        "DATA=/x\npython $DATA/a.py", "python ${DATA:-/x}/a.py", "python x/$NAME/a.py", "# $DATA/a.py",
        "python $HOME/a.py $SLURM_SUBMIT_DIR/b", "python '$DATA'", "echo a # $DATA/x"})
    EXPECT_EQ(found("unset", script(text + "\n")), Texts{}) << text;
}

TEST(Unreadable, WhatBashCannotReadIsTold) {
  EXPECT_EQ(found("unreadable", script("a\nif b\n")),
            Texts{"error job.sh:2:1 bash cannot parse this: syntax error: unexpected end of file"});
  EXPECT_EQ(found("unreadable", script("a\nif b; then c; fi\n")), Texts{});
}

TEST(Unreadable, AScriptOfTheJobThatIsNotHere) {
  EXPECT_EQ(found("unreadable", script("source env.sh\nsrun ./inner.sh\nbash more/last.sh\n./train.py\n"
                                       "source /opt/env.sh\n")),
            (Texts{"note job.sh:1:1 env.sh is not here: what it sets was not examined",
                   "note job.sh:2:1 inner.sh is not here: what it starts was not examined",
                   "note job.sh:3:1 more/last.sh is not here: what it starts was not examined"}));
  EXPECT_EQ(whole("unreadable", script("source env.sh\npython a.py\n")),
            (Texts{"env.sh is not here: what it sets was not examined",
                   "a path is looked up in the directory where lint is called, then next to the script",
                   "run lint in the directory where the job is submitted", ""}));
}

TEST(NoFolder, OutputIntoAFolderThatIsNotThere) {
  EXPECT_EQ(
      whole("no-folder", script("python a.py > log/x.txt\n")),
      (Texts{"bash cannot write to log/, which does not exist",
             "bash then prints an error, does not start the program, and continues with the next command",
             "run `mkdir -p log/` first", "bash(1), REDIRECTION"}));
  EXPECT_EQ(found("no-folder", script("python a.py &> a/x &\nsrun bash -c 'python b.py > b/$SLURM_PROCID'\n"
                                      "python c.py >> c/$(date +%s)\nwait\n")),
            (Texts{"warning job.sh:1:1 bash cannot write to a/, which does not exist",
                   "warning job.sh:2:1 bash cannot write to b/, which does not exist",
                   "warning job.sh:3:1 bash cannot write to c/, which does not exist"}));
}

TEST(NoFolder, OneThatIsMadeOrMayBeOnTheCluster) {
  for (const std::string text : {"mkdir -p log\npython a.py > log/x", "mkdir -p log; cd log\npython a.py > x",
                                 "python a.py > /scratch/nlaunch-nowhere/x", "python a.py > x",
                                 "cd work/of/mine\npython a.py > log/x", "python a.py --log log/x"}) {
    EXPECT_EQ(found("no-folder", script(text + "\n")), Texts{}) << text;
  }
}

TEST(NoFolder, TheProgramIsLookedAtAllTheSame) {
  EXPECT_EQ(found("debug-left-on", script("set -e\nexport NCCL_DEBUG=INFO\npython a.py > log/x\n")).size(),
            1U);
  EXPECT_EQ(found("unreadable", script("set -e\npython a.py > log/x\npython b.py\n")), Texts{});
}

TEST(Unreadable, WhereTheScriptEndsWithoutWhatItNeeds) {
  EXPECT_EQ(
      whole("unreadable", script("set -u\npython $1\n")),
      (Texts{
          "the script exits here with code 1, without what the cluster would provide: $1: unbound variable",
          "the rest was not examined", "pass its arguments after --, its variables as --env NAME=VALUE",
          ""}));
  EXPECT_EQ(
      found("unreadable", script("echo no model\nexit 2\npython a.py\n")),
      Texts{
          "warning job.sh:2:1 the script exits here with code 2, without what the cluster would provide: no "
          "model"});
  EXPECT_EQ(found("unreadable", script("set -u\npython $1\n", {.arguments = {"a.py"}})), Texts{});
}

TEST(ExitCodeOfTee, WithoutPipefail) {
  EXPECT_EQ(found("exit-code-of-tee", script("python a.py \\\n  --x 2>&1 | tee log\n")),
            Texts{"warning job.sh:2:12 after | tee the exit code of the program is lost"});
  for (const auto* fine :
       {"set -o pipefail\npython a.py | tee log\n", "set -euo pipefail\npython a.py | tee log\n",
        "python a.py | tee log &\nwait\n", "echo a | tee log\n", "python a.py > log\n",
        "python a.py | tee log\nexit ${PIPESTATUS[0]}\n"}) {
    EXPECT_EQ(found("exit-code-of-tee", script(fine)), Texts{}) << fine;
  }
}

TEST(FailedTest, OfAVariableThatNothingSets) {
  EXPECT_EQ(found("failed-test", script("if [ $NODES -le 4 ]; then A=1; fi\npython a.py\n")),
            Texts{"warning job.sh:1:7 this test is invalid: nothing sets NODES"});
  for (const auto* fine : {"if [ \"$NODES\" = 4 ]; then A=1; fi\n", "if [[ $NODES -le 4 ]]; then A=1; fi\n",
                           "NODES=2\nif [ $NODES -le 4 ]; then A=1; fi\n"})
    EXPECT_EQ(found("failed-test", script(fine)), Texts{}) << fine;
}

TEST(ExitCodeOfTee, OfABlockToo) {
  EXPECT_EQ(found("exit-code-of-tee", script("set -e\n(\n  echo a\n  python a.py\n) |& tee log\n")),
            Texts{"warning job.sh:5:3 after | tee the exit code of the program is lost"});
  EXPECT_EQ(
      found("exit-code-of-tee", script("for i in 1 2; do\n  python a.py $i\ndone 2>&1 | tee log\n")).size(),
      1U);
  EXPECT_EQ(found("exit-code-of-tee", script("{\n  python a.py\n} | tee log\n")).size(), 1U);
  for (const auto* fine :
       {"python a.py\n(\n  echo a\n) | tee log\n", "(\n  python a.py\n)\n(\n  echo a\n) | tee log\n",
        "set -o pipefail\n(\n  python a.py\n) |& tee log\n"})
    EXPECT_EQ(found("exit-code-of-tee", script(fine)), Texts{}) << fine;
}

TEST(NotWaitedFor, AJobEndsWithItsScript) {
  const std::string job = "#SBATCH -N 1\n";
  EXPECT_EQ(found("not-waited-for", script(job + "python a.py &\npython b.py &\necho done\n")),
            Texts{"error job.sh:3:1 the script exits while python still runs in the background"});
  for (const auto* fine :
       {"python a.py &\nwait\n", "python a.py &\npython b.py\n", "python a.py\n",
        "python a.py &\nPID=$!\nwait $PID\n",
        "srun bash -c 'python a.py' &\nsrun bash -c 'python b.py &'\nwait\n", "python a.py &\nsleep 5\n"})
    EXPECT_EQ(found("not-waited-for", script(job + fine)), Texts{}) << fine;
  EXPECT_EQ(found("not-waited-for", script("python a.py &\n")), Texts{});
}

TEST(LateTrap, BehindTheWorkItCatchesNothing) {
  EXPECT_EQ(found("late-trap", script("python a.py\ntrap 'rm x' EXIT\n")),
            Texts{"warning job.sh:2:1 this trap is set after the work is done"});
  for (const auto* fine :
       {"trap 'rm x' EXIT\npython a.py\n", "python a.py &\ntrap 'kill %1' TERM\nwait\n", "trap 'rm x' EXIT\n",
        "python a.py\ntrap - EXIT\n", "python a.py\ntrap 'rm x' EXIT\npython b.py\n"}) {
    EXPECT_EQ(found("late-trap", script(fine)), Texts{}) << fine;
  }
}

TEST(LineEnds, TheFirstIsTold) {
  EXPECT_EQ(found("line-ends", script("a\r\nb\r\n")),
            Texts{"error job.sh:1:1 the file has Windows line endings (CRLF)"});
  EXPECT_EQ(found("line-ends", script("a\nb\n\nc\r\n")),
            Texts{"error job.sh:4:1 the file has Windows line endings (CRLF)"});
  EXPECT_EQ(found("line-ends", script("a\rb\n")), Texts{});
  EXPECT_EQ(whole("line-ends", script("a\r\n")).at(2), "sed -i 's/\\r$//' job.sh");
  const auto findings = lint(script("a\r\n"));
  ASSERT_FALSE(findings.empty());
  EXPECT_EQ(findings[0].span.length, 1U);
  EXPECT_EQ(found("line-ends", scene({set("A", "\r\n")})), Texts{});
}

TEST(SecretRule, ValuesAndOptionsAreTold) {
  EXPECT_EQ(found("secret", script("export HF_TOKEN=s3cr3t-value\nserve --api-key s3cr3t-other\n")),
            (Texts{"warning job.sh:1:8 the value of HF_TOKEN is in this file",
                   "warning job.sh:2:17 the value of --api-key is in this file"}));
  EXPECT_EQ(whole("secret", script("export HF_TOKEN=s3cr3t-value\n")).at(2),
            "read it where it is needed: HF_TOKEN=$(< ~/.secrets/HF_TOKEN)  (nlaunch: secrets:)");
  EXPECT_EQ(found("secret", script("export HF_TOKEN=$(< ~/.token)\n")), Texts{});
  const ScriptJob given{.variables = {"WANDB_API_KEY=0123456789abcdef"}};
  EXPECT_EQ(found("secret", script("export KEY=1 WANDB_API_KEY=$WANDB_API_KEY\npython x.py\n", given)),
            Texts{});
  const Texts words{"note job.sh:1:15 the value of WANDB_API_KEY is in the arguments of a command"};
  const std::string docker = "docker run -e WANDB_API_KEY=$WANDB_API_KEY image python x.py\n";
  EXPECT_EQ(found("secret", script(docker, given)), words);
  EXPECT_EQ(found("secret", script(docker)), words);
  EXPECT_EQ(found("secret", script("docker run -e WANDB_API_KEY image python x.py\n", given)), Texts{});
  EXPECT_EQ(found("secret", script("python x.py --use_wandb $WANDB_API_KEY\n", given)),
            Texts{"note job.sh:1:25 the value of WANDB_API_KEY is in the arguments of a command"});
  EXPECT_EQ(found("secret", script("python x.py\n", given)), Texts{});
}

TEST(SecretRule, AnOptionIsOfNoRole) {
  LintInput input;
  input.environments = {environment("learner", {set("HF_TOKEN", "s3cr3t-value")})};
  input.secrets = {{"the value of --token", "s3cr3t-value", {a_file("z.sh"), 1, 1, 1}}};
  EXPECT_EQ(found("secret", input),
            (Texts{"warning learner.env:1:1 (learner) the value of HF_TOKEN is in this file",
                   "warning z.sh:1:1 the value of --token is in this file"}));
}

TEST(SecretRule, AFewHundredAreEnough) {
  LintInput input;
  const auto file = a_file("z.sh");
  for (std::uint32_t line = 1; line <= 300; ++line) {
    input.secrets.push_back({"the value of --token", "s3cr3t-value", {file, line, 1, 1}});
  }
  EXPECT_EQ(found("secret", input).size(), 201U);
}

TEST(Conda, ActivateWithoutItsFunction) {
  const auto conda = [](const std::string& first, const std::string& text) {
    return found("conda", script(first + "\n#SBATCH --nodes=1\n" + text));
  };
  EXPECT_EQ(conda("#!/bin/bash", "conda activate a\npython a.py\n"),
            Texts{"warning job.sh:3:1 conda activate in a shell that is not set up for it"});
  EXPECT_EQ(conda("#!/bin/bash -l", "conda activate a\n"), Texts{});
  for (const std::string told : {"source ~/.bashrc\n", "source /opt/conda/etc/profile.d/conda.sh\n",
                                 "eval \"$(conda shell.bash hook)\"\n", "module load anaconda\n"})
    EXPECT_EQ(conda("#!/bin/bash", told + "conda activate a\npython a.py\n"), Texts{}) << told;
}

TEST(InstallsAtOnce, InEachTask) {
  const std::string job = "#!/bin/bash\n#SBATCH --nodes=1 --ntasks=4\n";
  EXPECT_EQ(found("installs-at-once", script(job + "srun pip install a\npython a.py\n")),
            Texts{"warning job.sh:3:1 several tasks install packages at the same time"});
  EXPECT_EQ(found("installs-at-once", script(job + "pip install a\nsrun python a.py\n")), Texts{});
  EXPECT_EQ(found("installs-at-once", script(job + "srun -n1 pip install a\nsrun python a.py\n")), Texts{});
}

}  // namespace
}  // namespace nlaunch::lint

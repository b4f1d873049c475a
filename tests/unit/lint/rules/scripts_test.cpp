#include <gtest/gtest.h>

#include <fstream>

#include "unit/lint/support.h"

namespace nlaunch::lint {
namespace {

using namespace support;

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

TEST(Unset, AnAddressThatIsAsked) {
  EXPECT_EQ(found("unset", script("until curl -sf \"$OPENAI_BASE_URL/models\"; do sleep 5; done\n")),
            Texts{"warning job.sh:1:18 nothing sets OPENAI_BASE_URL"});
  EXPECT_EQ(found("unset", script("OPENAI_BASE_URL=http://a\ncurl $OPENAI_BASE_URL/models\n")), Texts{});
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

TEST(Unreadable, AScriptInAFolderThatIsNotHere) {
  EXPECT_EQ(found("unreadable",
                  script("cd /no-such-folder/x\nsource conf/env.sh\nsource \"$PWD/more.sh\"\n"
                         "srun ./run/inner.sh\nbash last.sh\npython a.py\nsource /opt/site/env.sh\n")),
            (Texts{"note job.sh:2:1 conf/env.sh is not here: what it sets was not examined",
                   "note job.sh:3:1 more.sh is not here: what it sets was not examined",
                   "note job.sh:4:1 run/inner.sh is not here: what it starts was not examined",
                   "note job.sh:5:1 last.sh is not here: what it starts was not examined"}));
  EXPECT_EQ(whole("unreadable", script("cd /no-such-folder/x/\n./run.sh &\nwait\n")),
            (Texts{"run.sh is not here: what it starts was not examined",
                   "the script changes to /no-such-folder/x, which is not on this machine",
                   "run lint on a machine that has this directory", ""}));
  // It creates the folder.
  EXPECT_EQ(
      found("unreadable", script("mkdir -p /no-such-folder/y\ncd /no-such-folder/y\nbash run.sh\n")).size(),
      1U);
}

TEST(Unreadable, NotAScriptThatTheScriptWrites) {
  for (const std::string folder : {"", "mkdir -p /no-such-folder/y\ncd /no-such-folder/y\n"})
    EXPECT_EQ(found("unreadable",
                    script(folder + "cat > run.sh <<'EOF'\npython a.py\nEOF\nchmod +x run.sh\n./run.sh\n")),
              Texts{})
        << folder;
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

TEST(NoFolder, IsToldOnceAlsoIfTheFileHasTheNumberOfTheJob) {
  EXPECT_EQ(found("no-folder", script("#!/bin/bash\n#SBATCH -N 1\nsrun python a.py > out/$SLURM_JOB_ID.txt\n"
                                      "srun python b.py > out/b.txt\n")),
            Texts{"warning job.sh:3:1 bash cannot write to out/, which does not exist"});
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
  EXPECT_EQ(whole("unreadable", script("echo \"no $1\"\nexit 2\npython a.py\n")),
            (Texts{"the script exits here with code 2, without what the cluster would provide: no",
                   "lint saw the script only up to line 2",
                   "pass its arguments after --, its variables as --env NAME=VALUE", ""}));
  EXPECT_EQ(
      found("unreadable", script("echo no model\nexit 2\npython a.py\n")),
      Texts{
          "warning job.sh:2:1 the script exits here with code 2, without what the cluster would provide: no "
          "model"});
  EXPECT_EQ(found("unreadable", script("set -u\npython $1\n", {.arguments = {"a.py"}})), Texts{});
  EXPECT_EQ(whole("unreadable", script("set -e\necho begin\ncd nothing-here/a\nfalse\npython a.py\n")).at(0),
            "set -e exits the script here: this line fails with code 1 on this machine");
}

TEST(FailedTest, OfAVariableThatNothingSets) {
  EXPECT_EQ(found("failed-test", script("if [ $NODES -le 4 ]; then A=1; fi\npython a.py\n")),
            Texts{"warning job.sh:1:7 this test is invalid: nothing sets NODES"});
  for (const auto* fine : {"if [ \"$NODES\" = 4 ]; then A=1; fi\n", "if [[ $NODES -le 4 ]]; then A=1; fi\n",
                           "NODES=2\nif [ $NODES -le 4 ]; then A=1; fi\n"})
    EXPECT_EQ(found("failed-test", script(fine)), Texts{}) << fine;
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

TEST(Conda, ActivateWithoutItsFunction) {
  const auto conda = [](const std::string& first, const std::string& text) {
    return found("conda", script(first + "\n#SBATCH --nodes=1\n" + text));
  };
  EXPECT_EQ(conda("#!/bin/bash", "conda activate a\npython a.py\n"),
            Texts{"warning job.sh:3:1 conda activate in a shell that is not set up for it"});
  EXPECT_EQ(conda("#!/bin/bash -l", "conda activate a\n"), Texts{});
  for (const std::string told :
       {"source ~/.bashrc\n", "source /opt/conda/etc/profile.d/conda.sh\n",
        "eval \"$(conda shell.bash hook)\"\n", "module load anaconda\n", "source ~/.my_settings\n"})
    EXPECT_EQ(conda("#!/bin/bash", told + "conda activate a\npython a.py\n"), Texts{}) << told;
}

TEST(InstallsAtOnce, InEachTask) {
  const std::string job = "#!/bin/bash\n#SBATCH --nodes=1 --ntasks=4\n";
  EXPECT_EQ(found("installs-at-once", script(job + "srun pip install a\npython a.py\n")),
            Texts{"warning job.sh:3:1 several tasks install packages at the same time"});
  EXPECT_EQ(found("installs-at-once", script(job + "pip install a\nsrun python a.py\n")), Texts{});
  EXPECT_EQ(found("installs-at-once", script(job + "srun -n1 pip install a\nsrun python a.py\n")), Texts{});
}

TEST(Unreadable, AFailureInASourcedFileIsToldThere) {
  const auto file = testing::TempDir() + "sets.sh";
  std::ofstream(file) << "export A=1\nexport B=2\nls /nothing-here\n";
  const auto text = "set -e\ntrue\nsource " + file + "\npython a.py\npython b.py\n";
  EXPECT_EQ(found("unreadable", script(text)),
            Texts{"note " + file +
                  ":3:1 lint assumed that ls succeeds: without that, the script does not get "
                  "to its end on this machine"});
  std::ofstream(file) << "export A=1\nexport B=2\nfalse\n";
  EXPECT_EQ(found("unreadable", script(text)),
            Texts{"warning " + file +
                  ":3:1 the script ends in this file, with code 1, without what the cluster would provide"});
  EXPECT_EQ(whole("unreadable", script(text)).at(1), "lint saw job.sh only up to line 3, which sources it");
  // An EXIT trap runs later.
  std::ofstream(file) << "trap 'true' EXIT\nexport B=2\nfalse\n";
  EXPECT_EQ(found("unreadable", script(text)).size(), 1U);
}

TEST(Unreadable, PlaceholdersAreTakenAsFilledIn) {
  EXPECT_EQ(found("unreadable", script("ROOT=<your_root>\npython a.py $ROOT\n")),
            Texts{"error job.sh:1:1 bash cannot parse this: syntax error near unexpected token `newline'"});
  EXPECT_EQ(whole("unreadable", script("ROOT=<your_root>\npython a.py $ROOT\n")).at(1),
            "a placeholder has to be filled in: the rest was examined as if they all were");
  EXPECT_EQ(found("without-m", script("ROOT=<your_root>\npython a.b.c $ROOT\n")).size(), 1U);
  EXPECT_EQ(found("unreadable", script("ROOT=<your_root>\nfi\n")).size(), 2U);
}

TEST(Unreadable, ABrokenTestAndATemplate) {
  EXPECT_EQ(found("unreadable", script("if [[ $A == llama 2 ]]; then\n  python a.py\nfi\n")).at(0),
            "error job.sh:1:1 bash cannot parse this: syntax error in conditional expression");
  EXPECT_EQ(found("unreadable", script("{% if a %}\npython {{ b }}\n{% endif %}\n")),
            Texts{"note job.sh this is a template of Jinja, and no script yet"});
}

TEST(NotSh, ConstructsOfBash) {
  EXPECT_EQ(whole("not-sh", script("#!/bin/sh\nsource env.sh\n")),
            (Texts{"source is bash's, but the first line says sh",
                   "where sh is dash (Debian, Ubuntu, most images) this line fails, or does something else",
                   "#!/bin/bash in the first line, or write .", "dash(1); ShellCheck SC3001 to SC3054"}));
  for (const std::string line :
       {"if [[ -n $A ]]; then ls; fi", "A=(a b)", "set -euo pipefail", "cat <<< a", "function f { ls; }",
        "export B=(a)", "ls &> log", "for i in {1..4}; do ls; done", "cd a && source b"})
    EXPECT_EQ(found("not-sh", script("#!/usr/bin/env sh\n" + line + "\n")).size(), 1U) << line;
  for (const std::string fine :
       {"#!/bin/bash\nsource env.sh\n", "#!/bin/sh\n. ./env.sh\n[ -n a ]\n",
        "#!/bin/sh\n# source a\necho '[[ x'\necho \"<<< start\"\n",
        "#!/bin/sh\n[ -z \"$BASH_VERSION\" ] && exec bash \"$0\"\nsource a\n", "source env.sh\n"})
    EXPECT_EQ(found("not-sh", script(fine)), Texts{}) << fine;
}

TEST(Placeholder, InACommand) {
  EXPECT_EQ(whole("placeholder", script("trl vllm-serve --model <model_name> --port 8000\n")),
            (Texts{"<model_name> has to be filled in",
                   "bash reads it as two redirections: from a file of that name, which is missing, into one "
                   "named by the "
                   "next word",
                   "the value itself, in quotes if it has blanks", "bash(1), REDIRECTION"}));
  for (const std::string text :
       {"python a.py '<model>'\n", "python a.py \"<your model>\"\n", "# python <model>\ntrue\n",
        "python a.py < in > out\n", "cat <<EOF\n<model> x\nEOF\n", "sort <(ls) <(ls)\n"})
    EXPECT_EQ(found("placeholder", script(text)), Texts{}) << text;
}

TEST(WholeRoot, OfAnEmptyVariable) {
  EXPECT_EQ(whole("whole-root", script("best=$(python find.py)\ncp -r \"$best/\"* model/\n")),
            (Texts{"cp gets all directories of the machine if what is in front of /* is empty, as here",
                   "a variable that nothing sets, or a command that prints nothing, leaves only /*",
                   "${NAME:?} stops the script if NAME is empty", "bash(1), Parameter Expansion"}));
  EXPECT_EQ(found("whole-root", script("cp -r /usr/* model/\nls /\n")), Texts{});
}

TEST(NoFolder, BelowTheCurrentDirectory) {
  EXPECT_EQ(
      found("no-folder", script("python a.py > ./no-logs/a-$$.log 2> ./no-logs/a.err &\nwait\n")).size(), 1U);
}

TEST(MadeAtOnce, ByTwoJobs) {
  const std::string job = "#!/bin/bash\n#SBATCH --gpus-per-node=1\n";
  EXPECT_EQ(whole("made-at-once", script(job + "if [ ! -f .venv-vllm/bin/vllm ]; then\n  uv venv .venv-vllm "
                                               "--python 3.10\nfi\npython a.py\n")),
            (Texts{"two jobs that start at once both create .venv-vllm",
                   "one replaces files that the other is loading, or fails for them",
                   "create it before the jobs, or: flock ENVIRONMENT.lock … around it",
                   "docs.python.org, venv; conda create --help"}));
  EXPECT_EQ(found("made-at-once", script(job + "conda create -y -n rl python=3.11\npython a.py\n")).size(),
            1U);
  for (const std::string fine : {"python -m venv /tmp/env-$SLURM_JOB_ID\npython a.py\n",
                                 "uv venv env-$SLURM_JOB_ID\npython a.py\n", "uv run a.py\n"})
    EXPECT_EQ(found("made-at-once", script(job + fine)), Texts{}) << fine;
  EXPECT_EQ(found("made-at-once", script("uv venv env\npython a.py\n")), Texts{});
}

TEST(Unset, ALowercaseNameIsOfTheScript) {
  EXPECT_EQ(
      found("unset",
            script("orz_path=/d/a\n# deep_path=/d/b\npython a.py --files \"[$deep_path]\" $orz_path\n")),
      Texts{"warning job.sh:3:24 nothing sets deep_path"});
  EXPECT_EQ(found("unset", script("files=\"[${deep_path}]\"\npython a.py --files $files\n")).size(), 1U);
  for (const std::string fine :
       {"python a.py --files \"$DEEP_PATH\"\n", "[[ $debug == 1 ]] && A=1\npython a.py\n",
        "deep_path=a\npython a.py $deep_path\n", "for item in a b; do python a.py $item; done\n",
        "read item < x\npython a.py $item\n"})
    EXPECT_EQ(found("unset", script(fine)), Texts{}) << fine;
}

TEST(CondaWords, TwoEnvironments) {
  EXPECT_EQ(whole("conda-words", script("conda activate conda activate /e\npython a.py\n")),
            (Texts{"conda activate takes one environment",
                   "it refuses more, and the script goes on with the Python that it has", "conda activate /e",
                   "docs.conda.io, Managing environments"}));
  for (const std::string fine :
       {"conda activate e\n", "conda activate --stack e\n", "micromamba activate -n e\n"})
    EXPECT_EQ(found("conda-words", script(fine)), Texts{}) << fine;
}

TEST(CondaNounset, FilesOfInteractiveShells) {
  EXPECT_EQ(
      whole("conda-nounset", script("set -euo pipefail\nconda activate e\npython a.py\n")),
      (Texts{"set -u is on in conda activate",
             "the activation scripts of compilers, MKL and others use variables that may not be set: the "
             "script ends there with \"unbound variable\"",
             "set +u before it, and set -u behind it", "bash(1), set -u"}));
  EXPECT_EQ(found("conda-nounset", script("set -u\nsource ~/.bashrc\npython a.py\n")).size(), 1U);
  for (const std::string fine :
       {"set -e\nconda activate e\npython a.py\n", "set -u\nset +u\nconda activate e\nset -u\npython a.py\n",
        "set -u\nsource .venv/bin/activate\npython a.py\n"})
    EXPECT_EQ(found("conda-nounset", script(fine)), Texts{}) << fine;
}

TEST(Unset, AnUppercaseNameThatIsMeantForAnother) {
  EXPECT_EQ(found("unset", script("MNAME=qwen\nSIZE=2\npython a.py --model $MANE --n $SIZE\n")),
            Texts{"warning job.sh:3:22 nothing sets MANE"});
  EXPECT_EQ(found("unset", script("OUTDIR=/x\nls $OUTDIR\npython a.py --out $OURDIR\n")).size(), 1U);
  EXPECT_EQ(found("unset", script("SIZE=2\npython a.py --model $MODEL_NAME --n $SIZE\n")), Texts{});
}

}  // namespace
}  // namespace nlaunch::lint

#include <gtest/gtest.h>

#include "unit/lint/support.h"

namespace nlaunch::lint {
namespace {

using namespace support;

TEST(MissingDollar, TheNameOfAPath) {
  EXPECT_EQ(whole("missing-dollar", script("OUTDIR=/data/out\nmkdir -p OUTDIR\npython a.py --out $OUTDIR\n")),
            (Texts{"this is the name OUTDIR, not the path in $OUTDIR", "mkdir gets the word OUTDIR",
                   "\"$OUTDIR\"", "bash(1), Parameter Expansion"}));
  EXPECT_EQ(found("missing-dollar", script("CKPT=/tmp/a/b\npython a.py\nrm -rf CKPT\n")),
            Texts{"error job.sh:3:1 this is the name CKPT, not the path in $CKPT"});
  for (const std::string fine :
       {"OUTDIR=/data/out\nmkdir -p $OUTDIR\n", "OUTDIR=8\nmkdir OUTDIR\n", "mkdir -p README\n",
        "OUTDIR=/data/out\nmkdir -p \"${OUTDIR}\"\nrm -rf $OUTDIR/OUTDIR\n",
        "DATA=/x/DATA\nls $DATA\npython a.py\n"})
    EXPECT_EQ(found("missing-dollar", script(fine)), Texts{}) << fine;
}

TEST(SameBranches, OfATest) {
  EXPECT_EQ(whole("same-branches",
                  script("export M=$([ $I -eq 0 ] && echo \"online\" || echo \"online\")\npython a.py\n")),
            (Texts{"both branches are `echo \"online\"`",
                   "the test decides nothing: one of the two was probably meant to differ",
                   "write what the other case needs; or leave out the test", ""}));
  EXPECT_EQ(found("same-branches", script("if [ $1 = a ]; then\n  X=1\nelse\n  # as above\n  X=1\nfi\n")),
            Texts{"warning job.sh:3:1 this else does the same as its if"});
  for (const std::string fine :
       {"M=$([ $I -eq 0 ] && echo on || echo off)\n", "if [ $1 = a ]; then\n  X=1\nelse\n  X=2\nfi\n",
        "if [ $1 = a ]; then\n  X=1\nelif [ $1 = b ]; then\n  X=2\nelse\n  X=2\nfi\n"})
    EXPECT_EQ(found("same-branches", script(fine)), Texts{}) << fine;
}

TEST(BrokenContinuation, WhatFollowsTheBackslash) {
  EXPECT_EQ(whole("broken-continuation", script("srun -n 2 \\  # two\n  python a.py\n")),
            (Texts{"this backslash does not continue the command: a comment follows it",
                   "the command ends here, and line 2 is another one", "put the comment above the command",
                   "bash(1), Quoting"}));
  EXPECT_EQ(found("broken-continuation", script("python a.py \\ \n  --lr 1\n")),
            Texts{"error job.sh:1:1 this backslash does not continue the command: a blank follows it"});
  for (const std::string fine : {"python a.py \\\n  --lr 1\n", "echo a\\ b\npython a.py\n", "# a \\ \nls\n",
                                 "cat <<'EOF' > x\na \\ \nb\nEOF\n"})
    EXPECT_EQ(found("broken-continuation", script(fine)), Texts{}) << fine;
}

TEST(MissingBackslash, InAHereDocument) {
  const std::string begin = "cat > run.txt <<EOF\nvllm serve m \\\n  --port 8000 \\\n";
  EXPECT_EQ(whole("missing-backslash", script(begin + "  --tp 2\n  --swap-space 4 \\\n  --seed 1\nEOF\n")),
            (Texts{"the command ends with this line: the next one starts with --swap-space",
                   "the program does not get the options below, which a shell then takes for a command",
                   "end the line with a backslash", "bash(1), Quoting"}));
  EXPECT_EQ(found("missing-backslash", script(begin + "  # --tp 2 \\\n  --seed 1\nEOF\n")),
            Texts{"error job.sh:4:3 the command ends with this line: the next one starts with --seed"});
  for (const auto& fine : {begin + "  --tp 2 \\\n  --seed 1\nEOF\n",
                           std::string("A=\"--a 1 \\\n  --b 2\n  --c 3\"\npython a.py $A\n"),
                           std::string("A=(\n  --a 1 \\\n  --b 2\n  --c 3\n)\npython a.py \"${A[@]}\"\n"),
                           std::string("# a \\\n# --b\n  # --c\npython a.py\n")})
    EXPECT_EQ(found("missing-backslash", script(fine)), Texts{}) << fine;
}

TEST(BraceDefault, EndsAtTheFirstBrace) {
  EXPECT_EQ(
      whole("brace-default", script("A=\"${ARGS:-{\\\"x\\\": 1}}\"\npython a.py \"$A\"\n")),
      (Texts{"the default of ARGS ends at the first }",
             "if ARGS is set, its value gets the rest of the default behind it: one more }",
             "a default in a variable of its own: \"${ARGS:-$DEFAULT}\"", "bash(1), Parameter Expansion"}));
  EXPECT_EQ(found("brace-default", script("A=${ARGS:-{}}\n")).size(), 1U);
  for (const std::string fine :
       {"A=${B:-${C}}\n", "A='${B:-{}}'\n", "A=${B:-{\\}}\n", "A=\"${B:-{gpus}}\"\n", "A=${B:-x}\n"})
    EXPECT_EQ(found("brace-default", script(fine)), Texts{}) << fine;
}

TEST(GrowsInLoop, APathThatEachTurnExtends) {
  EXPECT_EQ(whole("grows-in-loop",
                  script("OUT=out\nfor b in x y; do\n  OUT=$OUT/$b\n  python a.py --out $OUT\ndone\n")),
            (Texts{"each turn of the loop extends OUT by another directory",
                   "the second turn writes below the directory of the first one",
                   "another variable for the path of a turn", ""}));
  EXPECT_EQ(
      found("grows-in-loop", script("for b in x y; do\n  export OUT=\"${OUT}/$b\"\n  python a.py\ndone\n"))
          .size(),
      1U);
  for (const std::string fine :
       {"for b in x y; do\n  OUT=out\n  OUT=$OUT/$b\n  python a.py --out $OUT\ndone\n",
        "OUT=$OUT/a\npython a.py\n", "for b in x y; do\n  O=$OUT/$b\ndone\n",
        "while [ -z \"$R\" ]; do\n  D=$D/..\n  break\ndone\n",
        "for b in x y; do echo $b; done\nOUT=$OUT/a\n"})
    EXPECT_EQ(found("grows-in-loop", script(fine)), Texts{}) << fine;
}

TEST(MisspeltName, OfAnotherVariable) {
  EXPECT_EQ(
      whole("misspelt-name",
            script("PIPELINE_SIZE=1\nexport PIPLELINE_SIZE=$2\npython a.py $PIPELINE_SIZE\n")),
      (Texts{"nothing reads PIPLELINE_SIZE, but the script has PIPELINE_SIZE",
             "PIPELINE_SIZE keeps the value that it has", "PIPELINE_SIZE, if that is what you meant", ""}));
  EXPECT_EQ(found("misspelt-name", script("EVALCHMEY_ENV=a\nls $EVALCHEMY_ENV $EVALCHEMY_ENV\n")).size(), 1U);
  for (const std::string fine :
       {"SERVER_PORTS=1\nls $SERVER_PORT $SERVER_PORT\n", "NODE_LIST_1=a\nls $NODE_LIST_2 $NODE_LIST_2\n",
        "MODEL_PATH=a\nls $MODEL_PATH\n", "MODEL_PATH_A=1\nls $MODEL_PATH $MODEL_PATH\n"})
    EXPECT_EQ(found("misspelt-name", script(fine)), Texts{}) << fine;
}

TEST(ShiftedAway, AllArguments) {
  const std::string loop =
      "while [[ $# -gt 0 ]]; do\n  case $1 in\n    --gpu) G=$2; shift 2 ;;\n    *) shift ;;\n  esac\ndone\n";
  EXPECT_EQ(whole("shifted-away", script(loop + "python a.py \"$@\"\n")),
            (Texts{"\"$@\" is empty here: the loop that ends in line 6 has shifted all arguments away",
                   "the program does not get what the user gives",
                   "keep them in the loop: REST+=(\"$1\"), and \"${REST[@]}\" here", "bash(1), shift"}));
  for (const auto& fine :
       {loop + "python a.py \"${REST[@]}\"\n", loop + "set -- \"${REST[@]}\"\npython a.py \"$@\"\n",
        std::string("while [ $# -gt 0 ]; do\n  case $1 in\n    --) shift; break ;;\n  esac\ndone\npython "
                    "a.py \"$@\"\n"),
        "python a.py \"$@\"\n" + loop})
    EXPECT_EQ(found("shifted-away", script(fine)), Texts{}) << fine;
}

TEST(Getopts, ALetterThatIsNotListed) {
  const std::string begin = "while getopts \"m:n:\" opt; do\n  case $opt in\n    m) M=$OPTARG ;;\n";
  EXPECT_EQ(whole("getopts", script(begin + "    j) J=$OPTARG ;;\n  esac\ndone\npython a.py $M $J\n")),
            (Texts{"getopts in line 1 does not know -j",
                   "it reports an illegal option, and this case is never reached",
                   "j in the list of getopts, with a : if it has a value", "bash(1), getopts"}));
  EXPECT_EQ(found("getopts",
                  script(begin + "    n) N=$OPTARG ;;\n    *) exit 1 ;;\n  esac\ndone\npython a.py $M $N\n")),
            Texts{});
}

}  // namespace
}  // namespace nlaunch::lint

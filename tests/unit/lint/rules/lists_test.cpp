#include <gtest/gtest.h>

#include "unit/lint/support.h"

namespace nlaunch::lint {
namespace {

using namespace support;

TEST(FirstOfArray, WhereAProgramGetsOneElement) {
  const std::string array = "ARGS=(\n  --lr 1e-5\n  --epochs 3\n)\n";
  EXPECT_EQ(whole("first-of-array", script(array + "python train.py $ARGS\n")),
            (Texts{"train.py gets only the first element of ARGS", "$ARGS of an array is ${ARGS[0]}",
                   "\"${ARGS[@]}\"", "bash(1), Arrays"}));
  EXPECT_EQ(found("first-of-array", script("M=(a b)\nvllm serve \"${M}\" &\nsleep 9\n")).size(), 1U);
  for (const auto& fine :
       {array + "python train.py \"${ARGS[@]}\"\n", array + "python train.py ${ARGS[0]}\n",
        array + "ARGS=\"--lr 2\"\npython train.py $ARGS\n", std::string("A=(one)\npython train.py $A\n"),
        array + "echo ${#ARGS[@]}\npython train.py\n",
        std::string("for A in x y; do\n  python train.py $A\ndone\nA=(1 2)\npython eval.py \"${A[@]}\"\n")})
    EXPECT_EQ(found("first-of-array", script(fine)), Texts{}) << fine;
}

TEST(CommaInList, WhereAProgramGetsTheComma) {
  EXPECT_EQ(
      whole("comma-in-list", script("for m in llama, qwen; do\n  python train.py --model $m\ndone\n")),
      (Texts{"train.py gets llama,, with the comma", "spaces alone separate the words of a list in bash",
             "leave out the commas of the list", "bash(1), Arrays; for"}));
  EXPECT_EQ(found("comma-in-list",
                  script("M=(\"a\", \"b\")\nfor m in \"${M[@]}\"; do\n  python train.py --model=$m\ndone\n")),
            Texts{"warning job.sh:3:3 train.py gets --model=a,, with the comma"});
  for (const std::string fine :
       {"for m in a b; do\n  python train.py --model $m\ndone\n", "python train.py --gpus 0,1,2\n",
        "for m in a,1 b,2; do\n  python train.py $m\ndone\n"})
    EXPECT_EQ(found("comma-in-list", script(fine)), Texts{}) << fine;
}

TEST(BraceRange, WithAVariable) {
  EXPECT_EQ(whole("brace-range", script("N=8\nfor i in {0..$N}; do\n  python a.py $i\ndone\n")),
            (Texts{"{0..$N} is one word",
                   "bash expands braces before variables: the list has this text in it, and no numbers",
                   "$(seq FIRST LAST), or for ((i = FIRST; i <= LAST; i++))", "bash(1), Brace Expansion"}));
  EXPECT_EQ(found("brace-range", script("N=8\nfor i in {1..${N}}; do python a.py $i; done\n")).size(), 1U);
  EXPECT_EQ(found("brace-range", script("N=8\nA=({1..$N})\npython a.py \"${A[@]}\"\n")).size(), 1U);
  for (const std::string fine :
       {"for i in {0..7}; do python a.py $i; done\n", "for i in $(seq 0 $N); do python a.py $i; done\n",
        "for f in {$A,$B}/x; do python a.py $f; done\n",
        "for i in $(eval echo {0..$N}); do python a.py; done\n"})
    EXPECT_EQ(found("brace-range", script(fine)), Texts{}) << fine;
}

TEST(SortedAsText, TheLastCheckpoint) {
  EXPECT_EQ(whole("sorted-as-text",
                  script("CKPT=$(ls -d out/checkpoint-* | sort | tail -n 1)\npython eval.py \"$CKPT\"\n")),
            (Texts{"this sorts by letters: checkpoint-1000 comes before checkpoint-200",
                   "it takes another checkpoint than the last or the first one", "… | sort -V | tail -n 1",
                   "sort(1), --version-sort; ls(1)"}));
  EXPECT_EQ(found("sorted-as-text", script("C=$(ls out/global_step_* | tail -1)\npython a.py $C\n")).size(),
            1U);
  for (const std::string fine :
       {"C=$(ls -d out/checkpoint-* | sort -V | tail -n 1)\n", "C=$(ls -td out/checkpoint-* | head -n 1)\n",
        "C=$(ls -dv out/checkpoint-* | tail -n 1)\n",
        "C=$(ls out/checkpoint-* | sort -t- -k2 -n | tail -1)\n", "C=$(ls out/iter_* | tail -1)\n",
        "ls out/checkpoint-*\n", "C=$(ls -d --sort=version out/checkpoint-* | tail -n 1)\n",
        "ls out/epoch_* | head -1\n", "N=$(ls -d out/step_* | tail -n +1 | wc -l)\n"})
    EXPECT_EQ(found("sorted-as-text", script(fine)), Texts{}) << fine;
}

TEST(NoDeviceLeft, BehindTheEndOfAnArray) {
  const auto loop = [](const std::string& index) {
    return script("GPUS=(0 1)\ni=0\nfor t in a b c; do\n  CUDA_VISIBLE_DEVICES=${GPUS[" + index +
                  "]} python eval.py $t &\n  i=$((i + 1))\ndone\nwait\n");
  };
  EXPECT_EQ(whole("no-device-left", loop("$i")),
            (Texts{"CUDA_VISIBLE_DEVICES is empty for 1 of the 3 runs of eval.py",
                   "these see no GPU: the list has fewer elements than the loop has turns",
                   "${GPUS[i % ${#GPUS[@]}]}, and wait before a GPU is used again",
                   "bash(1), Arrays; CUDA C++ programming guide, CUDA_VISIBLE_DEVICES"}));
  EXPECT_EQ(found("no-device-left", loop("i % 2")), Texts{});
  EXPECT_EQ(found("no-device-left", script("CUDA_VISIBLE_DEVICES= python a.py\n")), Texts{});
}

TEST(OptionTwice, WithTwoValues) {
  EXPECT_EQ(whole("option-twice", script("python train.py --lr 1e-5 \\\n  --epochs 3 \\\n  --lr=2e-5\n")),
            (Texts{"train.py gets --lr twice: 1e-5 and 2e-5", "the first one has no effect", "leave one out",
                   "docs.python.org, argparse, action='store'; hydra.cc, Basic Override syntax"}));
  EXPECT_EQ(found("option-twice",
                  script("python -m verl.trainer.main_ppo trainer.nnodes=1 data.x=2 trainer.nnodes=2\n"))
                .size(),
            1U);
  for (const std::string fine :
       {"python train.py --lr 1 --lr 1\n", "python train.py --data a --data b\n",
        "BASE=\"--lr 1\"\npython train.py $BASE --lr 2\n", "docker run -e A=1 -e A=2 image python a.py\n",
        "accelerate launch --num_processes 8 prepare.py --num_processes 16\n"})
    EXPECT_EQ(found("option-twice", script(fine)), Texts{}) << fine;
}

TEST(SameResults, OfTheRunsOfALoop) {
  EXPECT_EQ(whole("same-results",
                  script("for m in a b; do\n  python eval.py --model $m --out results.json\ndone\n")),
            (Texts{"each run of eval.py writes results.json",
                   "each one overwrites the results of the one before, unless the program appends",
                   "--out with what differs from run to run in its name", "open(2), O_TRUNC"}));
  // A loop over files that only the cluster has runs for two of them.
  EXPECT_EQ(found("same-results", script("for c in /nowhere/out/checkpoint-*; do\n  python eval.py --model "
                                         "$c --output_file r.csv\ndone\n"))
                .size(),
            1U);
  for (const std::string fine :
       {"for m in a b; do\n  python eval.py --model $m --out $m.json\ndone\n",
        "for m in a b; do\n  python eval.py --model $m --out r.json\n  mv r.json $m.json\ndone\n",
        "python eval.py --out results.json\n", "for m in a b; do\n  python eval.py --data in.json\ndone\n"})
    EXPECT_EQ(found("same-results", script(fine)), Texts{}) << fine;
}

TEST(FirstOfArray, OfALoop) {
  EXPECT_EQ(whole("first-of-array", script("LANGS=(a b c)\nfor L in $LANGS\ndo\n  python a.py $L\ndone\n")),
            (Texts{"this loop has one turn, for the first element of LANGS",
                   "$LANGS of an array is ${LANGS[0]}", "\"${LANGS[@]}\"", "bash(1), Arrays"}));
  EXPECT_EQ(found("first-of-array", script("L=(a b c)\nfor x in \"${L[@]}\"; do python a.py $x; done\n")),
            Texts{});
}

}  // namespace
}  // namespace nlaunch::lint

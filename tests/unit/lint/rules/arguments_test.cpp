#include <gtest/gtest.h>

#include "unit/lint/support.h"

namespace nlaunch::lint {
namespace {

using namespace support;

TEST(WithoutM, AModuleAsAFile) {
  EXPECT_EQ(whole("without-m", script("python -u openrlhf.cli.batch --lr 1\n")),
            (Texts{"python gets openrlhf.cli.batch as the name of a file",
                   "it looks like a module, which python finds only with -m", "python -m openrlhf.cli.batch",
                   "Python documentation, Command line and environment"}));
  for (const std::string fine : {"python -m a.b.c\n", "python a.py\n", "python a.b.py\n", "python ./a.b/c\n",
                                 "python -c 'import a.b'\n", "python tool.pyz\n", "python train\n"})
    EXPECT_EQ(found("without-m", script(fine)), Texts{}) << fine;
}

TEST(WrongCase, OfALauncher) {
  EXPECT_EQ(
      whole("wrong-case", script("TORCHRUN --nnodes 1 a.py\n")),
      (Texts{"TORCHRUN is no command", "the names of commands are case-sensitive: bash does not find it",
             "torchrun", "bash(1), Command Execution"}));
  EXPECT_EQ(found("wrong-case", script("torchrun a.py\nMegatron x\n")), Texts{});
}

TEST(BrokenJson, OfAnOption) {
  EXPECT_EQ(
      whole("broken-json",
            script("ray job submit --runtime-env-json='{\"env_vars\": {\n\"A\": \"1\"\n\"B\": \"2\"}}' -- "
                   "python a.py\n")),
      (Texts{"the JSON of --runtime-env-json is broken at line 3, column 3",
             "ray job refuses it, or what it asks does",
             "look for a comma or a quote that is missing or too much before that place", "RFC 8259"}));
  EXPECT_EQ(found("broken-json", script("vllm serve m --hf-overrides '{\"a\": 1,}'\n")).size(), 1U);
  for (const std::string fine : {"vllm serve m --hf-overrides '{\"a\": 1}'\n",
                                 "python a.py --config '{\"a\": True}'\n", "python a.py '{\"a\": b}'\n",
                                 "python a.py --args '{a: 1}'\n", "python a.py --text-x '{\"a\": 1,}'\n"})
    EXPECT_EQ(found("broken-json", script(fine)), Texts{}) << fine;
}

TEST(PartedValue, QuotesWithinAVariable) {
  EXPECT_EQ(whole("parted-value", script("C=\"vllm serve m --x '{\\\"a\\\": 1}'\"\n$C\n")),
            (Texts{"vllm gets '{\"a\": … in 2 words",
                   "quotes within a variable do not group: bash splits its value at each blank, and passes "
                   "them on",
                   "an array: ARGS=(--option '{\"a\": 1}'), and \"${ARGS[@]}\"",
                   "bash(1), Word Splitting; Quote Removal"}));
  EXPECT_EQ(found("parted-value", script("J='{\"a\": 1}'\npython a.py --x $J\n")).size(), 1U);
  for (const std::string fine : {"J='{\"a\": 1}'\npython a.py --x \"$J\"\n", "ssh h \"cd '/a b' && ls\"\n",
                                 "python a.py don\\'t stop\\'\n", "python a.py --a \"'x y'\"\n"})
    EXPECT_EQ(found("parted-value", script(fine)), Texts{}) << fine;
}

TEST(TorchrunOption, OfTheTraining) {
  EXPECT_EQ(whole("torchrun-option", script("torchrun --nproc_per_node 8 --use-mlflow train.py\n")),
            (Texts{"torchrun has no option --use-mlflow",
                   "it refuses to start. Options of the training go behind its script",
                   "torchrun OPTIONS SCRIPT, and then the options of the script",
                   "torch/distributed/run.py, get_args_parser@2.10"}));
  for (const std::string fine : {"torchrun --nproc_per_node=8 train.py --use-mlflow\n",
                                 "torchrun --standalone --nproc-per-node gpu -m a.b --x 1\n",
                                 "torchrun --nnodes 1 -t 3 -r 1 --log_dir /tmp/l --max_restarts 0 a.py\n",
                                 "torchrun --rdzv_id x --rdzv_conf timeout=9 --rdzv_backend c10d a.py\n"})
    EXPECT_EQ(found("torchrun-option", script(fine)), Texts{}) << fine;
}

TEST(UnreadArguments, BehindATextOfBash) {
  EXPECT_EQ(whole("unread-arguments", script("gantry run -- /bin/bash -c \"run.sh 1\" conf.yaml\n")),
            (Texts{"conf.yaml is behind the text of bash -c, which does not read it",
                   "bash makes it $0 of that shell: the program in the text does not get it",
                   "put it within the quotes", "bash(1), -c"}));
  for (const std::string fine :
       {"gantry run -- bash -c 'run.sh $0' conf.yaml\n",
        "gantry run -- bash -c 'run.sh \"$@\"' _ conf.yaml\n", "gantry run -- bash -c 'run.sh' bash\n",
        "gantry run -- bash -c 'source x.sh' a b\n", "gantry run -- bash x.sh a b\n"})
    EXPECT_EQ(found("unread-arguments", script(fine)), Texts{}) << fine;
}

TEST(CountAsDevices, OfSlurmOrTheScript) {
  EXPECT_EQ(
      whole("count-as-devices", script("export CUDA_VISIBLE_DEVICES=$SLURM_GPUS_ON_NODE\npython a.py\n")),
      (Texts{"CUDA_VISIBLE_DEVICES gets the number of GPUs, $SLURM_GPUS_ON_NODE",
             "it takes the indices of GPUs: 4 is the fifth one alone",
             "CUDA_VISIBLE_DEVICES=$(seq -s, 0 $((SLURM_GPUS_ON_NODE - 1)))",
             "CUDA C++ Programming Guide, CUDA Environment Variables"}));
  EXPECT_EQ(
      found("count-as-devices", script("NUM_GPUS=4\nCUDA_VISIBLE_DEVICES=${NUM_GPUS} python a.py\n")).size(),
      1U);
  for (const std::string fine :
       {"GPUS=0,1\nCUDA_VISIBLE_DEVICES=$GPUS python a.py\n",
        "GPU=4\nCUDA_VISIBLE_DEVICES=$GPU python a.py\n", "CUDA_VISIBLE_DEVICES=$SLURM_LOCALID python a.py\n",
        "for NUM_GPU in 0 1; do CUDA_VISIBLE_DEVICES=$i python a.py; done\n"})
    EXPECT_EQ(found("count-as-devices", script(fine)), Texts{}) << fine;
}

TEST(ParallelSize, ThatFewModelsPermit) {
  EXPECT_EQ(whole("parallel-size", script("vllm serve m --tensor-parallel-size 7\n")),
            (Texts{"few models can be split over 7 GPUs",
                   "the number of attention heads must be a multiple of the tensor-parallel size: the engine "
                   "refuses to start otherwise",
                   "4 or 8, with the other GPUs for another engine or the data-parallel size",
                   "vllm/config/model.py, verify_with_parallel_config"}));
  for (const std::string fine : {"vllm serve m --tensor-parallel-size 8\n", "vllm serve m -tp 5\n",
                                 "vllm serve m --tensor-parallel-size 6\n", "python a.py --tp 7\n"})
    EXPECT_EQ(found("parallel-size", script(fine)), Texts{}) << fine;
}

TEST(GluedOptions, WithoutABlank) {
  EXPECT_EQ(
      whole("glued-options", script("torchrun --master_addr=127--master_port=29500 a.py\n")),
      (Texts{"--master_port is within the value of --master_addr",
             "there is no blank between the two options: the first gets a wrong value, and the second is "
             "not given",
             "a blank", ""}));
  for (const std::string fine :
       {"python a.py --a=1 --b=2\n", "python a.py --name=x--y-z\n", "python a.py --a=b,--c=1\n",
        "python a.py --args=\"--b=1\"\n", "python a.py --args=' --b=1 --c=2'\n"})
    EXPECT_EQ(found("glued-options", script(fine)).size(), fine.contains("x--y") ? 1U : 0U) << fine;
}

TEST(QuotesOfValue, WithinAVariable) {
  EXPECT_EQ(whole("quotes-of-value", script("ARGS=\"--name 'a' --lr 1\"\npython a.py $ARGS\n")),
            (Texts{"a.py gets 'a', with the quotes",
                   "quotes within a variable are characters: bash takes none of them off",
                   "an array without them, and \"${ARGS[@]}\"", "bash(1), Quote Removal"}));
  for (const std::string fine : {"python a.py --name 'a'\n", "python a.py \"'a'\"\n",
                                 "A=x\npython a.py --n=\"$A\"\n", "ssh h \"'a'\"\n"})
    EXPECT_EQ(found("quotes-of-value", script(fine)), Texts{}) << fine;
}

TEST(DeviceGap, OneTooMany) {
  EXPECT_EQ(whole("device-gap", script("export CUDA_VISIBLE_DEVICES=0,1,3,4\npython a.py\n")),
            (Texts{"CUDA_VISIBLE_DEVICES leaves out 2, and names 4",
                   "a node with 4 GPUs has none with this index: CUDA ignores it and what follows", "0 to 3",
                   "CUDA C++ Programming Guide, CUDA Environment Variables"}));
  for (const std::string fine :
       {"CUDA_VISIBLE_DEVICES=0,1,2,3 python a.py\n", "CUDA_VISIBLE_DEVICES=1,2,3,4 python a.py\n",
        "CUDA_VISIBLE_DEVICES=0,2 python a.py\n", "CUDA_VISIBLE_DEVICES=0,2,4,6 python a.py\n"})
    EXPECT_EQ(found("device-gap", script(fine)), Texts{}) << fine;
}

}  // namespace
}  // namespace nlaunch::lint

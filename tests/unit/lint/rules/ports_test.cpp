#include <gtest/gtest.h>

#include "unit/lint/support.h"

namespace nlaunch::lint {
namespace {

using namespace support;

std::string one_node(const std::string& text, int gpus = 4) {
  return fmt::format("#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --gpus-per-node={}\n", gpus) + text;
}

TEST(FixedPort, OnAPartOfANode) {
  const std::string text = "export MASTER_PORT=29500\npython a.py\n";
  EXPECT_EQ(found("fixed-port", script(one_node(text, 1))),
            Texts{"note job.sh:4:8 port 29500 is fixed, but the job uses only part of a node"});
  EXPECT_EQ(found("fixed-port", script(one_node("#SBATCH --exclusive\n" + text, 1))), Texts{});
  EXPECT_EQ(found("fixed-port", script(one_node(text, 8))), Texts{});
  EXPECT_EQ(found("fixed-port",
                  script(one_node("export MASTER_PORT=$((20000 + SLURM_JOB_ID % 1000))\npython a.py\n", 1))),
            Texts{});
}

TEST(FixedPort, StandaloneIsForOneNode) {
  const auto instead = [](const std::string& text) { return whole("fixed-port", script(text)).at(2); };
  const std::string both = "MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000)), or torchrun --standalone";
  const std::string one = "MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000))";
  EXPECT_EQ(instead(one_node("torchrun --nproc_per_node=2 a.py\n", 2)), both);
  EXPECT_EQ(instead(one_node("export MASTER_PORT=29500\npython a.py\n", 1)), both);
  EXPECT_EQ(instead(one_node("accelerate launch --num_processes=2 --main_process_port 29500 a.py\n", 2)),
            "--main_process_port $((20000 + SLURM_JOB_ID % 10000))");
  EXPECT_EQ(instead(one_node("deepspeed a.py\n", 2)), "--master_port $((20000 + SLURM_JOB_ID % 10000))");
  EXPECT_EQ(instead("#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --gpus-per-node=2\n"
                    "srun torchrun --nnodes=2 --master_addr=a --master_port=29500 a.py\n"),
            one);
  EXPECT_EQ(instead(one_node("ray start --head --port=6379\npython a.py\n", 1)),
            "--port $((20000 + SLURM_JOB_ID % 10000))");
}

TEST(FixedPort, OfTasksOfAnArray) {
  const std::string text = "#SBATCH --array=0-7\ntorchrun --nproc_per_node=4 --master_port=12345 a.py\n";
  EXPECT_EQ(found("fixed-port", script(one_node(text))),
            Texts{"note job.sh:5:1 port 12345 is fixed, but tasks of the array can run on one node"});
  EXPECT_EQ(found("fixed-port", script(one_node(text, 8))), Texts{});
  EXPECT_EQ(found("fixed-port", script(one_node("#SBATCH --exclusive\n" + text))), Texts{});
}

TEST(FixedPort, OfALauncherThatIsToldNone) {
  const auto port = [](const std::string& text) { return found("fixed-port", script(one_node(text, 2))); };
  EXPECT_EQ(
      port("torchrun --nproc_per_node=2 a.py\n"),
      Texts{"note job.sh:4:1 torchrun uses port 29500, its default, but the job uses only part of a node"});
  for (const std::string fine :
       {"torchrun --standalone --nproc_per_node=2 a.py\n",
        "torchrun --rdzv_backend=c10d --rdzv_endpoint=localhost:0 --nproc_per_node=2 a.py\n",
        "accelerate launch --num_processes 1 a.py\n", "python a.py\n"})
    EXPECT_EQ(port(fine), Texts{}) << fine;
}

TEST(FixedPort, OfLaunchersThatCountTheGpusThemselves) {
  const auto port = [](const std::string& text) { return found("fixed-port", script(text)); };
  EXPECT_EQ(
      port("accelerate launch --config_file zero3.yaml a.py\n"),
      Texts{"note job.sh:1:1 accelerate uses port 29500, its default: a second run on this machine fails"});
  EXPECT_EQ(port("accelerate launch --multi_gpu a.py\n").size(), 1U);
  EXPECT_EQ(
      port("deepspeed a.py --deepspeed z.json\n"),
      Texts{"note job.sh:1:1 deepspeed uses port 29500, its default: a second run on this machine fails"});
  EXPECT_EQ(port("accelerate launch a.py\n"), Texts{});
}

TEST(FixedPort, OfServersAndRay) {
  const auto port = [](const std::string& text) { return found("fixed-port", script(one_node(text, 1))); };
  EXPECT_EQ(port("ray start --head --port=6379\npython a.py\n").size(), 1U);
  EXPECT_EQ(port("python server.py --port 18901 &\npython a.py\n").size(), 1U);
  EXPECT_EQ(port("python server.py --port $((20000 + SLURM_JOB_ID % 1000)) &\npython a.py\n"), Texts{});
}

TEST(FixedPort, SeveralAreNamedTogether) {
  EXPECT_EQ(found("fixed-port", script(one_node("vllm serve m --port 8000 &\n"
                                                "torchrun --nproc_per_node=2 --master_port 29501 a.py\n"))),
            Texts{"note job.sh:4:1 ports 8000 and 29501 are fixed, but nothing here requests whole nodes "
                  "(--exclusive)"});
}

TEST(FixedPort, OfServersThatNameItInTheirOwnWay) {
  const auto port = [](const std::string& text) { return found("fixed-port", script(one_node(text, 1))); };
  EXPECT_EQ(
      port("ollama serve &\npython a.py\n"),
      Texts{"note job.sh:4:1 ollama uses port 11434, its default, but the job uses only part of a node"});
  EXPECT_EQ(port("lmdeploy serve api_server m --server-port 23400 &\npython a.py\n"),
            Texts{"note job.sh:4:1 port 23400 is fixed, but the job uses only part of a node"});
  for (const std::string host :
       {"127.0.0.1:$((11434 + SLURM_JOB_ID % 1000))", "0.0.0.0:$((20000 + SLURM_JOB_ID % 10000))"})
    EXPECT_EQ(port("export OLLAMA_HOST=" + host + "\nollama serve &\npython a.py\n"), Texts{}) << host;
  EXPECT_EQ(whole("fixed-port", script(one_node("ollama serve &\npython a.py\n", 1))).at(2),
            "OLLAMA_HOST=127.0.0.1:$((20000 + SLURM_JOB_ID % 10000))");
}

TEST(FixedPort, OutsideOfAJobForASecondRun) {
  EXPECT_EQ(
      whole("fixed-port", script("trl vllm-serve --model m &\naccelerate launch --num_processes=2 a.py\n")),
      (Texts{"ports 8000 and 29500 are fixed: a second run on this machine fails",
             "its server cannot listen there, and its clients reach the first run's server",
             "--port ${PORT:-8000}", "bind(2), EADDRINUSE"}));
  EXPECT_EQ(whole("fixed-port", script("torchrun --nproc_per_node=2 a.py\n")).at(0),
            "torchrun uses port 29500, its default: a second run on this machine fails");
  for (const std::string fine :
       {"tensorboard --logdir runs --port 6006 &\npython a.py\n",
        "python bench.py --port 8000 &\npython bench.py --port 8000 &\nwait\n",
        "torchrun --standalone --nproc_per_node=2 a.py\n", "python a.py\n", "vllm serve m --port 8000\n",
        "vllm serve m --port ${PORT:-8000} &\npython a.py\n",
        "P=$((20000 + RANDOM % 10000))\nvllm serve m --port $P &\npython a.py\n",
        "vllm serve m --port $(date +2%M%S) &\npython a.py\n", "srun torchrun --nproc_per_node=2 a.py\n"})
    EXPECT_EQ(found("fixed-port", script(fine)), Texts{}) << fine;
}

TEST(FixedPort, OnPartsOfSeveralNodes) {
  EXPECT_EQ(found("fixed-port", script("#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --gpus-per-node=2\nexport "
                                       "MASTER_PORT=29500\nsrun python a.py\n")),
            Texts{"note job.sh:4:8 port 29500 is fixed, but the job uses only part of a node"});
}

TEST(FixedPort, ANumberBelow1024IsNone) {
  EXPECT_EQ(found("fixed-port", script("#SBATCH --gres=gpu:2\ntorchrun --master_port=1 a.py\n")), Texts{});
  EXPECT_EQ(found("fixed-port", script("#SBATCH --gres=gpu:2\ntorchrun --master_port=1024 a.py\n")).size(),
            1U);
}

TEST(FixedPort, NotIfTheScriptSearchesAFreeOneOrFreesIt) {
  for (const std::string fine : {"PORT=6000\nwhile lsof -i:$PORT; do PORT=$((PORT + 1)); done\nvllm serve m "
                                 "--port $PORT &\npython a.py\n",
                                 "pkill -f vllm\nvllm serve m --port 8000 &\npython a.py\n",
                                 "ray stop\nray start --head\npython a.py\n"})
    EXPECT_EQ(found("fixed-port", script(fine)), Texts{}) << fine;
}

TEST(SamePort, NotBehindAKill) {
  EXPECT_EQ(
      found("same-port", script("vllm serve a --port 8001 &\nkill -9 $(nvidia-smi --query-compute-apps=pid "
                                "--format=csv)\nvllm serve b --port 8001 &\nwait\n")),
      Texts{});
}

TEST(PortStillUsed, ByAServerThatWasJustKilled) {
  const auto loop = [](const std::string& end) {
    return found(
        "port-still-used",
        script("for m in a b; do\n  vllm serve $m --port 8000 &\n  P=$!\n  sleep 60\n  python eval.py $m\n" +
               end + "done\n"));
  };
  EXPECT_EQ(loop("  kill $P\n"),
            Texts{"note job.sh:6:3 the next server starts on port 8000 at once, while the "
                  "killed one still exits"});
  EXPECT_EQ(loop("  pkill -f 'vllm serve'\n").size(), 1U);
  for (const std::string fine : {"  kill $P\n  wait $P\n", "  kill $P\n  sleep 10\n", "  wait $P\n",
                                 "  kill $P\n  while kill -0 $P; do :; done\n"})
    EXPECT_EQ(loop(fine), Texts{}) << fine;
  EXPECT_EQ(found("port-still-used",
                  script("vllm serve a --port 8000 &\nkill $!\nvllm serve a --port 8001 &\nwait\n")),
            Texts{});
}

TEST(FixedPort, ThatCanBeGivenIfTheScriptAsksThere) {
  const std::string serve = "PORT=${PORT:-18080}\nvllm serve m --port $PORT &\n";
  EXPECT_EQ(
      found("fixed-port",
            script(serve + "until curl -sf localhost:$PORT/health; do sleep 2; done\npython a.py\n")),
      Texts{
          "note job.sh:2:1 port 18080 is used unless another one is given: if a server is there already, the "
          "wait ends at once"});
  EXPECT_EQ(found("fixed-port", script(serve + "sleep 60\npython a.py\n")), Texts{});
}

TEST(EphemeralPort, OfRay) {
  EXPECT_EQ(
      whole("ephemeral-port", script("ray start --head --port=6379 --node-manager-port=53002 --block\n")),
      (Texts{"--node-manager-port 53002 is one that outgoing connections get",
             "if one has it already when Ray starts, Ray fails now and then: Linux takes the ports from "
             "32768 to 60999 for them",
             "a port below 32768", "ip(7), ip_local_port_range"}));
  EXPECT_EQ(found("ephemeral-port", script("ray start --head --port=6379 --min-worker-port=10002 --block\n")),
            Texts{});
}

}  // namespace
}  // namespace nlaunch::lint

#include <gtest/gtest.h>

#include "unit/lint/support.h"

namespace nlaunch::lint {
namespace {

using namespace support;

/// A job of two nodes of four GPUs; its lines begin at the fifth.
std::string two_nodes(const std::string& text) {
  return "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --gpus-per-node=4\n#SBATCH --ntasks-per-node=1\n" + text;
}
std::string one_node(const std::string& text, int gpus = 4) {
  return fmt::format("#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --gpus-per-node={}\n", gpus) + text;
}

TEST(LauncherSize, NodesAndProcesses) {
  const auto size = [](const std::string& text) { return found("launcher-size", script(text)); };
  EXPECT_EQ(size(two_nodes("srun torchrun --nnodes=4 a.py\n")),
            Texts{"error job.sh:5:1 torchrun expects 4 nodes, but its step runs on 2"});
  EXPECT_EQ(size(one_node("torchrun --nproc_per_node=8 a.py\n")),
            Texts{"error job.sh:4:1 torchrun starts 8 processes, but there are 4 GPUs"});
  EXPECT_EQ(size(one_node("torchrun --nproc_per_node=2 a.py\n")),
            Texts{"warning job.sh:4:1 torchrun starts 2 processes, but the job has 4 GPUs"});
  EXPECT_EQ(size(two_nodes("srun accelerate launch --num_machines 2 --num_processes 4 a.py\n")),
            Texts{"warning job.sh:5:1 accelerate starts 4 processes, but the job has 8 GPUs on all nodes"});
  for (const std::string& right :
       {one_node("torchrun --nproc_per_node=4 a.py\n"), one_node("torchrun --nproc_per_node=gpu a.py\n"),
        one_node("CUDA_VISIBLE_DEVICES=0,1 torchrun --nproc_per_node=2 a.py\n"),
        one_node("vllm serve m &\ntorchrun --nproc_per_node=2 a.py\n"),
        one_node("torchrun --nproc_per_node=3 a.py --use_vllm\n"),
        one_node("torchrun --nproc_per_node=8 a.py --backend gloo\n"),
        two_nodes("srun accelerate launch --num_machines 2 --num_processes 8 a.py\n"),
        two_nodes("srun torchrun --nnodes=2 --nproc_per_node=4 a.py\n")})
    EXPECT_EQ(size(right), Texts{}) << right;
}

TEST(LauncherSize, OfLightning) {
  EXPECT_EQ(found("launcher-size", script(one_node("fabric run --devices=8 a.py\n"))),
            Texts{"error job.sh:4:1 fabric starts 8 processes, but there are 4 GPUs"});
}

TEST(LauncherInEachTask, TasksThatStartAllGpusEach) {
  const auto each = [](const std::string& text) { return found("launcher-in-each-task", script(text)); };
  EXPECT_EQ(each(one_node("srun -n4 torchrun --nproc_per_node=4 a.py\n")),
            Texts{"error job.sh:4:1 4 tasks on a node each start torchrun"});
  EXPECT_EQ(each(one_node("srun -n4 python a.py\n")), Texts{});
  EXPECT_EQ(each(one_node("srun -n4 torchrun --nproc_per_node=1 a.py\n")), Texts{});
  EXPECT_EQ(each(two_nodes("srun torchrun --nproc_per_node=4 a.py\n")), Texts{});
}

TEST(IdleNodes, WhatTheBatchScriptStartsIsOnTheFirst) {
  const auto idle = [](const std::string& text) { return found("idle-nodes", script(two_nodes(text))); };
  EXPECT_EQ(
      idle("torchrun --nnodes=2 a.py\n"),
      Texts{"error job.sh:5:1 torchrun expects 2 nodes, but the batch script runs only on the first node"});
  EXPECT_EQ(idle("python a.py\n"),
            Texts{"warning job.sh:5:1 the job has 2 nodes, but only one of them does any work"});
  for (const std::string right :
       {"srun python a.py\n", "deepspeed a.py\n", "echo x > hostfile\npython a.py\n",
        "mpirun -n 2 python a.py\n",
        "srun -n1 -N1 -w rec-node-0 python a.py &\nsrun -n1 -N1 -w rec-node-1 python a.py\n", "exit 1\n"})
    EXPECT_EQ(idle(right), Texts{}) << right;
}

TEST(OneGpuEach, TasksThatSeeOneGpu) {
  const auto one = [](const std::string& text) { return found("one-gpu-each", script(one_node(text))); };
  EXPECT_EQ(one("srun -n4 --gpus-per-task=1 python a.py\n"),
            Texts{"warning job.sh:4:10 each task on a node sees only one of its GPUs"});
  EXPECT_EQ(one("srun -n4 --gpu-bind=single:1 python a.py\n").size(), 1U);
  EXPECT_EQ(one("srun -n4 --gpus-per-task=1 --gpu-bind=none python a.py\n"), Texts{});
  EXPECT_EQ(one("srun -n1 --gpus-per-task=1 python a.py\n"), Texts{});
}

TEST(Servers, PortsAndGpus) {
  const auto of = [](const char* rule, const std::string& text) {
    return found(rule, script(one_node(text)));
  };
  EXPECT_EQ(of("same-port", "vllm serve a --port 8000 &\nvllm serve b --port=8000 &\nwait\n"),
            Texts{"error job.sh:5:1 two servers on a node use port 8000"});
  EXPECT_EQ(of("same-port", "vllm serve a --port 8000 &\nvllm serve b --port 8001 &\nwait\n"), Texts{});
  EXPECT_EQ(of("same-port",
               "vllm serve a --port 8000 &\nS=$!\nkill $S; wait $S\nvllm serve b --port 8000 &\nwait\n"),
            Texts{});
  EXPECT_EQ(of("same-port", "vllm serve a --port 8000 &\npkill vllm\nvllm serve b --port 8000 &\nwait\n"),
            Texts{});
  EXPECT_EQ(of("too-parallel", "vllm serve a --tensor-parallel-size 8\n"),
            Texts{"error job.sh:4:1 the server is configured for 8 GPUs, but sees 4"});
  EXPECT_EQ(of("too-parallel", "CUDA_VISIBLE_DEVICES=0 vllm serve a --tensor-parallel-size 2\n").size(), 1U);
  EXPECT_EQ(of("too-parallel", "vllm serve a --tensor-parallel-size 4\n"), Texts{});
  EXPECT_EQ(of("too-parallel", "ray start --head\nvllm serve a --tensor-parallel-size 8\n"), Texts{});
  EXPECT_EQ(of("too-parallel", "python -m sglang.launch_server --model-path a --tp 16 --nnodes 2\n"),
            Texts{"error job.sh:4:1 the server is configured for 16 GPUs, but its 2 nodes have 8"});
  EXPECT_EQ(of("too-parallel", "python -m sglang.launch_server --model-path a --tp 8 --nnodes 2\n"), Texts{});
}

TEST(RayEnds, ANodeThatLeavesWithItsStep) {
  const auto ends = [](const std::string& text) { return found("ray-ends", script(two_nodes(text))); };
  // Ray lives on in a container that does.
  EXPECT_EQ(
      ends("srun docker run -d --name w img sleep infinity\nsrun docker exec w ray start --address=a:1\n"),
      Texts{});
  EXPECT_EQ(ends("srun -N1 -n1 ray start --head &\nsleep 5\npython a.py\n"),
            Texts{"error job.sh:5:1 ray start goes to the background, and its task exits"});
  EXPECT_EQ(ends("srun -N1 -n1 ray start --head --block &\nsleep 5\npython a.py\n"), Texts{});
  EXPECT_EQ(ends("srun -N1 -n1 bash -c 'ray start --head; python a.py'\n"), Texts{});
  EXPECT_EQ(ends("srun -N1 -n1 bash -c 'ray start --head; sleep infinity' &\nsleep 5\npython a.py\n"),
            Texts{});
}

TEST(FixedWait, ATimeInPlaceOfACheck) {
  const auto waits = [](const std::string& text) { return found("fixed-wait", script(one_node(text))); };
  EXPECT_EQ(waits("vllm serve a &\nsleep 60\npython a.py\n"),
            Texts{"note job.sh:5:1 the script assumes that vllm is ready after a fixed time"});
  EXPECT_EQ(waits("vllm serve a &\nuntil curl -sf localhost:8000/health; do sleep 5; done\npython a.py\n"),
            Texts{});
  EXPECT_EQ(waits("sleep 60\npython a.py\n"), Texts{});
}

TEST(WorldSize, OtherThanTheTasks) {
  const auto size = [](const std::string& text) {
    return found("world-size", script(two_nodes("export MASTER_ADDR=$(hostname)\n" + text)));
  };
  const std::string step = "srun --ntasks-per-node=4 bash -c 'RANK=$SLURM_PROCID python a.py'\n";
  EXPECT_EQ(size("export WORLD_SIZE=4\n" + step),
            Texts{"error job.sh:6:8 WORLD_SIZE is 4, but the step has 8 tasks"});
  for (const std::string& fine : {"export WORLD_SIZE=8\n" + step,
                                  std::string("export WORLD_SIZE=2\nsrun --ntasks-per-node=4 python a.py\n"),
                                  std::string("export WORLD_SIZE=2\nsrun torchrun --nnodes=2 a.py\n")})
    EXPECT_EQ(size(fine), Texts{}) << fine;
}

TEST(NotInBackground, ALoopThatWaitsForItsFirstNode) {
  const auto loop = [](const std::string& rest) {
    return two_nodes(
        "i=0\nfor n in $(scontrol show hostnames); do\n  srun -N1 -n1 -w $n torchrun --nnodes=2 "
        "--node_rank=$i --master_addr=$(hostname) a.py" +
        rest + "\n  i=$((i + 1))\ndone\nwait\n");
  };
  EXPECT_EQ(
      found("not-in-background", script(loop(""))),
      Texts{"error job.sh:7:3 torchrun waits here for the other nodes, which are started only after it has "
            "exited"});
  EXPECT_EQ(found("not-in-background", script(loop(" &"))), Texts{});
  EXPECT_EQ(found("not-in-background",
                  script(two_nodes("for n in 1 2; do\n  srun torchrun --nnodes=2 a.py\ndone\n"))),
            Texts{});
}

TEST(LauncherSize, OfALoopOverNodes) {
  const auto loop = [](const std::string& nodes) {
    return two_nodes("for n in $(scontrol show hostnames); do\n  srun -N1 -n1 -w $n torchrun --nnodes=" +
                     nodes + " --master_addr=$(hostname) a.py &\ndone\nwait\n");
  };
  EXPECT_EQ(found("launcher-size", script(loop("4"))),
            Texts{"error job.sh:6:3 torchrun expects 4 nodes, but is started on 2"});
  EXPECT_EQ(found("launcher-size", script(loop("2"))), Texts{});
}

TEST(IdleNodes, NotOfStepsWhoseNodesSlurmChooses) {
  EXPECT_EQ(found("idle-nodes",
                  script(two_nodes("for i in 1 2; do\n  srun -N1 -n1 python a.py $i &\ndone\nwait\n"))),
            Texts{});
}

TEST(LauncherInEachTask, AShorterListOfNodesIsFilledUp) {
  EXPECT_EQ(
      found("launcher-in-each-task",
            script("#SBATCH --nodes=3\n#SBATCH --gpus-per-node=4\n"
                   "srun --nodes=2 --ntasks=2 --nodelist=rec-node-1 torchrun --nproc_per_node=4 a.py\n")),
      Texts{});
}

TEST(IdleNodes, SeveralDo) {
  EXPECT_EQ(found("idle-nodes", script("#SBATCH --nodes=3\nsrun -N1 -n1 -w rec-node-0 python a.py\n"
                                       "srun -N1 -n1 -w rec-node-1 python a.py\n")),
            Texts{"warning job.sh:2:1 the job has 3 nodes, but only 2 of them do any work"});
}

TEST(PythonAsScript, OfALauncher) {
  const auto of_line = [](const std::string& line) {
    return found("python-as-script", script(on_node(line)));
  };
  for (const std::string launcher :
       {"torchrun --nproc_per_node 2", "torchrun --standalone", "accelerate launch --num_processes=2",
        "python -m torch.distributed.run --nproc_per_node 2", "deepspeed --num_gpus 2"})
    EXPECT_EQ(of_line(launcher + " python a.py\n").size(), 1U) << launcher;
  EXPECT_EQ(of_line("torchrun --nproc_per_node 2 python a.py\n"),
            Texts{"error job.sh:3:1 torchrun takes python for the training script"});
  for (const std::string right :
       {"torchrun --nproc_per_node 2 a.py --exec python\n",
        "torchrun --no-python --nproc_per_node 2 python a.py\n", "torchrun --nproc_per_node 2 -m pkg.a\n",
        "python -m torch.distributed.run a.py\n", "accelerate launch --dynamo_backend python a.py\n"})
    EXPECT_EQ(of_line(right), Texts{}) << right;
}

TEST(IdleNodes, StepsAtOnceGetDifferentNodes) {
  EXPECT_EQ(
      found("idle-nodes",
            script("#!/bin/bash\n#SBATCH --nodes=2\nf() { srun -N1 -n1 python a.py; }\nf &\nf\nwait\n")),
      Texts{});
  EXPECT_EQ(found("idle-nodes", script("#!/bin/bash\n#SBATCH --nodes=2\nsrun -N1 -n1 python a.py\n")).size(),
            1U);
}

TEST(Launchers, AreFoundBehindUv) {
  constexpr auto kJob = "#!/bin/bash\n#SBATCH -N 2 --ntasks-per-node=1\nsrun ";
  for (const auto* runner : {"uv run --no-sync ", "poetry run ", "conda run -n grpo ", "pixi run "})
    EXPECT_EQ(
        found("own-world", script(fmt::format("{}{}torchrun --master_addr=a t.py\n", kJob, runner))).size(),
        1U)
        << runner;
}

TEST(LauncherSize, OfVerlsTrainer) {
  const auto with = [](const std::string& sizes) {
    return found(
        "launcher-size",
        script("#!/bin/bash\n#SBATCH -N 2\n#SBATCH --gpus-per-node=8\npython -m verl.trainer.main_ppo " +
               sizes + "\n"));
  };
  EXPECT_EQ(with("trainer.nnodes=1 trainer.n_gpus_per_node=8"),
            Texts{"warning job.sh:4:1 verl uses 1 node times 8 GPUs, but the job has 2 times 8"});
  EXPECT_EQ(with("trainer.nnodes=4 trainer.n_gpus_per_node=8"),
            Texts{"error job.sh:4:1 verl uses 4 nodes times 8 GPUs, but the job has 2 times 8"});
  EXPECT_EQ(with("trainer.nnodes=2 trainer.n_gpus_per_node=8"), Texts{});
  EXPECT_EQ(with("trainer.nnodes=1"), Texts{});
  EXPECT_EQ(with("trainer.nnodes=1 trainer.n_gpus_per_node=8 rollout.nnodes=1 rollout.n_gpus_per_node=8"),
            Texts{});
}

}  // namespace
}  // namespace nlaunch::lint

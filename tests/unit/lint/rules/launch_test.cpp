#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

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

Texts rendezvous(const std::string& text) {
  return found("rendezvous", script(two_nodes(text)));
}

TEST(Rendezvous, AnAddressThatIsEachNodesOwn) {
  EXPECT_EQ(
      rendezvous("srun torchrun --nnodes=2 --rdzv_endpoint=localhost:29500 a.py\n"),
      Texts{"error job.sh:5:1 the rendezvous address is localhost, which is a different host on each node"});
  EXPECT_EQ(
      rendezvous("export MASTER_ADDR=127.0.0.1\nsrun python a.py\n"),
      Texts{
          "warning job.sh:5:8 the rendezvous address is 127.0.0.1, which is a different host on each node"});
  EXPECT_EQ(rendezvous("srun accelerate launch --num_machines 2 --main_process_ip 0.0.0.0 a.py\n").size(),
            1U);
  EXPECT_EQ(rendezvous("torchrun --rdzv_endpoint=localhost:0 --nnodes=1 a.py\n"), Texts{});
  EXPECT_EQ(rendezvous("srun -N1 -n1 torchrun --master_addr=localhost a.py\n"), Texts{});
}

TEST(Rendezvous, TheLoginNodeAndAListOfHosts) {
  EXPECT_EQ(rendezvous("export MASTER_ADDR=$SLURM_SUBMIT_HOST\nsrun python a.py\n"),
            Texts{"warning job.sh:5:8 the rendezvous address is the host from which the job was submitted"});
  EXPECT_EQ(rendezvous("export MASTER_ADDR=$SLURM_JOB_NODELIST\nsrun python a.py\n"),
            Texts{"warning job.sh:5:8 the rendezvous address is a list of hosts"});
}

TEST(Rendezvous, AnAddressThatNobodyHasFilledIn) {
  EXPECT_EQ(
      rendezvous("export MASTER_ADDR=xxx.xxx.xxx.xxx\nsrun python a.py\n"),
      Texts{"warning job.sh:5:8 xxx.xxx.xxx.xxx is a placeholder for an address that was never filled in"});
}

TEST(Rendezvous, WhatEachNodeFindsOutForItself) {
  EXPECT_EQ(rendezvous("srun bash -c 'MASTER_ADDR=$(hostname) python a.py'\n").size(), 1U);
  EXPECT_EQ(rendezvous("export MASTER_ADDR=$(hostname)\nsrun bash -c 'export MASTER_PORT=$((20000 + "
                       "SLURM_NODEID)); python "
                       "a.py'\n")
                .size(),
            1U);
  EXPECT_EQ(rendezvous("export MASTER_ADDR=$(hostname) MASTER_PORT=29500\nsrun python a.py\n"), Texts{});
}

Texts ranks(const std::string& text) {
  return found("node-rank", script(two_nodes(text)));
}

TEST(NodeRank, TheSameOnAllNodes) {
  EXPECT_EQ(ranks("srun torchrun --nnodes=2 --master_addr=$(hostname) a.py\n"),
            Texts{"error job.sh:5:1 no node is told its rank: torchrun treats each one as the first"});
  EXPECT_EQ(ranks("srun torchrun --nnodes=2 --node_rank=0 --master_addr=$(hostname) a.py\n"),
            Texts{"error job.sh:5:1 all nodes have rank 0"});
  EXPECT_EQ(ranks("srun accelerate launch --num_machines 2 --machine_rank 1 a.py\n").size(), 1U);
  for (const std::string right :
       {"srun torchrun --nnodes=2 --rdzv_backend=c10d --rdzv_endpoint=$(hostname):1 a.py\n",
        "srun bash -c 'torchrun --nnodes=2 --node_rank=$SLURM_NODEID a.py'\n",
        "srun torchrun --nnodes=1 a.py\n",
        "srun accelerate launch --num_machines 2 --rdzv_backend c10d a.py\n",
        "srun accelerate launch --num_machines 2 --config_file a.yaml a.py\n"})
    EXPECT_EQ(ranks(right), Texts{}) << right;
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

TEST(RendezvousOption, InTheWrongPlace) {
  EXPECT_EQ(
      found(
          "rendezvous-option",
          script(two_nodes("srun accelerate launch --num_machines 2 --rdzv_conf rdzv_backend=c10d a.py\n"))),
      Texts{"warning job.sh:5:1 --rdzv_conf does not choose the rendezvous backend"});
  for (const std::string fine :
       {"srun accelerate launch --rdzv_backend c10d --rdzv_conf rdzv_backend=c10d a.py\n",
        "srun torchrun --rdzv_backend=c10d --rdzv_conf=timeout=900 a.py\n"})
    EXPECT_EQ(found("rendezvous-option", script(two_nodes(fine))), Texts{}) << fine;
}

TEST(RankIgnored, WithC10d) {
  EXPECT_EQ(
      whole("rank-ignored", script(two_nodes("srun bash -c 'torchrun --nnodes=2 --node_rank=$SLURM_NODEID "
                                             "--rdzv_backend=c10d --rdzv_endpoint=a:29500 a.py'\n"))),
      (Texts{"--node_rank has no effect with --rdzv_backend=c10d",
             "the rendezvous numbers the nodes itself, in any order: rank 0 need not be on the first node",
             "leave it out; or, for a fixed order: --master_addr, --master_port and no --rdzv_backend",
             "torch/distributed/run.py, config_from_args"}));
  // ft_launcher has no other rendezvous.
  EXPECT_EQ(whole("rank-ignored", script(two_nodes("srun bash -c 'ft_launcher --nnodes=2 --rdzv_backend=c10d "
                                                   "--node_rank=$SLURM_NODEID a.py'\n")))
                .at(2),
            "leave it out");
  for (const std::string fine :
       {"srun bash -c 'torchrun --nnodes=2 --node_rank=$SLURM_NODEID --master_addr=a a.py'\n",
        "srun torchrun --nnodes=2 --rdzv_backend=c10d --rdzv_endpoint=a:29500 a.py\n",
        "srun torchrun --nnodes=2 --node_rank=0 --rdzv_backend=c10d a.py\n"})
    EXPECT_EQ(found("rank-ignored", script(two_nodes(fine))), Texts{}) << fine;
}

TEST(RankNotSet, ForTheTasksOfAStep) {
  const auto folder = std::filesystem::path(testing::TempDir()) / "rank_not_set";
  std::filesystem::create_directories(folder);
  const auto file = (folder / "train.py").native();
  const auto reads = [&](const std::string& source, const std::string& step) {
    std::ofstream(file) << source;
    return whole("rank-not-set", script(two_nodes(step + "\n")));
  };
  const std::string step = "srun --ntasks-per-node=4 python -u " + file + " --x";
  EXPECT_EQ(
      reads("import os\nrank = int(os.environ.get('RANK', 0))\n", step),
      (Texts{"train.py reads RANK, which nothing sets for the 8 tasks of this step",
             "srun sets SLURM_PROCID and SLURM_LOCALID: a program that does not know them takes each task "
             "for the only one, on GPU 0",
             "srun bash -c 'RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID WORLD_SIZE=$SLURM_NTASKS python "
             "…', or torchrun in one task per node",
             "torch.distributed, Environment variable initialization; srun(1), OUTPUT ENVIRONMENT "
             "VARIABLES"}));
  const std::string plain = "rank = os.environ[\"RANK\"]\n";
  EXPECT_EQ(reads(plain, step).size(), 4U);
  for (const std::string& fine :
       {"srun --ntasks-per-node=4 bash -c 'RANK=$SLURM_PROCID python " + file + "'", "python " + file,
        "srun -N1 -n1 python " + file, "srun --ntasks-per-node=1 torchrun --nnodes=2 " + file})
    EXPECT_EQ(reads(plain, fine), Texts{}) << fine;
  for (const std::string source :
       {"os.environ['RANK'] = os.environ['SLURM_PROCID']\n", "import lightning\nos.getenv('RANK')\n",
        "os.environ['RANK'] = '0'\nr = os.environ['RANK']\n", "print('RANK')\n"})
    EXPECT_EQ(reads(source, step), Texts{}) << source;
  std::filesystem::remove_all(folder);
  EXPECT_EQ(found("rank-not-set", script(two_nodes(step + "\n"))), Texts{});
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

TEST(OwnWorld, OfTorchrunWithoutNnodes) {
  const auto with = [](std::string_view options, std::string_view before = "") {
    return found("own-world",
                 script(fmt::format("#!/bin/bash\n#SBATCH -N 2 --ntasks-per-node=1\n{}\nsrun bash -c "
                                    "'torchrun --nproc_per_node=8 {} t.py'\n",
                                    before, options)));
  };
  constexpr auto kFound =
      "error job.sh:4:1 torchrun starts on several nodes, but has no --nnodes: it counts one";
  EXPECT_EQ(with("--master_addr=a --node_rank=$SLURM_NODEID"), Texts{kFound});
  EXPECT_EQ(with("--rdzv_backend=c10d --rdzv_endpoint=a:1"), Texts{kFound});
  for (const auto* options : {"--nnodes=2 --master_addr=a", "", "--master_addr=localhost", "--standalone"})
    EXPECT_EQ(with(options), Texts{}) << options;
  EXPECT_EQ(with("--master_addr=a", "export PET_NNODES=2"), Texts{});
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

TEST(RankMissing, OfAStaticRendezvous) {
  const std::string begin =
      "torchrun --nnodes 2 --nproc_per_node 8 --master_addr 10.0.0.1 --master_port 29500 ";
  EXPECT_EQ(
      whole("rank-missing", script(begin + "a.py\n")),
      (Texts{"torchrun is told of 2 nodes, but not which one this is",
             "--node_rank is 0 by default: every node takes itself for the first, and waits for the others",
             "--node_rank=$NODE_RANK, or --rdzv_backend=c10d", "torch/distributed/run.py, --node-rank"}));
  for (const auto& fine :
       {begin + "--node_rank 1 a.py\n", std::string("torchrun --nnodes 1 --master_addr a a.py\n"),
        std::string("torchrun --nnodes 2 --rdzv_backend c10d --rdzv_endpoint a:1 a.py\n"),
        "export PET_NODE_RANK=1\n" + begin + "a.py\n"})
    EXPECT_EQ(found("rank-missing", script(fine)), Texts{}) << fine;
}

TEST(FixedAddress, OfAJobOfSeveralNodes) {
  const std::string job = "#!/bin/bash\n#SBATCH -N 2 --ntasks-per-node=1\n";
  EXPECT_EQ(
      whole("fixed-address", script(job + "export MASTER_ADDR=10.1.2.3\nsrun python a.py\n")),
      (Texts{"10.1.2.3 is fixed, but Slurm chooses the nodes of the job",
             "on other nodes, no rank listens there: all wait until the time limit",
             "$(scontrol show hostnames \"$SLURM_JOB_NODELIST\" | head -n 1)", "sbatch(1), --nodelist"}));
  for (const auto& fine :
       {job + "export MASTER_ADDR=$(hostname)\nsrun python a.py\n",
        std::string("#!/bin/bash\n#SBATCH -N 1\nexport MASTER_ADDR=10.1.2.3\n"),
        std::string("#!/bin/bash\n#SBATCH -N 2 -w n[1-2]\nexport MASTER_ADDR=n1\nsrun python a.py\n"),
        std::string("export MASTER_ADDR=10.1.2.3\n")})
    EXPECT_EQ(found("fixed-address", script(fine)), Texts{}) << fine;
}

}  // namespace
}  // namespace nlaunch::lint

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

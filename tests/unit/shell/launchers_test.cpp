#include "shell/launchers.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include "base/text.h"
#include "shell/answers.h"
#include "shell/srun.h"

namespace nlaunch::shell {
namespace {

Allocation two_nodes() {
  Allocation allocation;
  allocation.nodes = 2;
  allocation.tasks_per_node = 4;
  allocation.gpus_per_node = 4;
  return allocation;
}

/// "python x.py | 0/0@0 1/1@0": what it starts, then rank/local rank@node of its tasks.
std::string started(const std::string& line, std::uint32_t nodes = 2, std::uint32_t tasks = 4) {
  auto allocation = two_nodes();
  allocation.nodes = nodes;
  allocation.tasks_per_node = tasks;
  const auto found = started_by(text::split(line, ' '), allocation);
  if (!found) return "nothing";
  auto out = text::join(found->argv, " ");
  if (!found->tasks.empty()) out += " |";
  for (const auto& task : found->tasks)
    out += fmt::format(" {}/{}@{}", task.rank, task.local_rank, task.node);
  return out;
}

TEST(Launchers, SrunHasTheTasksOfTheJobOrItsOwn) {
  EXPECT_EQ(started("srun python x.py", 2, 2), "python x.py | 0/0@0 1/1@0 2/0@1 3/1@1");
  EXPECT_EQ(started("srun -n 2 a"), "a | 0/0@0 1/0@1");
  EXPECT_EQ(started("srun -n3 a"), "a | 0/0@0 1/1@0 2/0@1");
  EXPECT_EQ(started("srun --ntasks=1 a"), "a | 0/0@0");
  EXPECT_EQ(started("srun --ntasks-per-node=1 a"), "a | 0/0@0 1/0@1");
  EXPECT_EQ(started("srun -N1 --ntasks-per-node 2 a"), "a | 0/0@0 1/1@0");
  EXPECT_EQ(started("srun --nodes=1 --ntasks=1 -w rec-node-1 a -n 7"), "a -n 7 | 0/0@1");
  EXPECT_EQ(started("srun -N 1-2 -n 2 a"), "a | 0/0@0 1/0@1");
}

TEST(Launchers, SrunRunsOnTheNodesThatItNames) {
  EXPECT_EQ(started("srun -n2 --nodelist=rec-node-2,rec-node-1 a", 4), "a | 0/0@2 1/0@1");
  EXPECT_EQ(started("srun --ntasks-per-node=1 -w rec-node-[0-2] a", 3), "a | 0/0@0 1/0@1 2/0@2");
  EXPECT_EQ(started("srun --ntasks-per-node=1 --relative=1 a", 3), "a | 0/0@1 1/0@2");
  EXPECT_EQ(started("srun --ntasks-per-node=1 -x rec-node-0 a", 3), "a | 0/0@1 1/0@2");
  EXPECT_EQ(started("srun --ntasks-per-node=1 --relative=9 a", 3), "nothing");
  EXPECT_EQ(started("srun -N1 -n1 -w '' a", 3), "nothing");
  EXPECT_EQ(started("srun --ntasks-per-node=1 -w rec-node-2,rec-node-0 a", 3), "a | 0/0@2 1/0@0");
}

TEST(Launchers, OptionsOfSrunWithAValueAreNotTheProgram) {
  EXPECT_EQ(started("srun -n1 --export ALL --container-image img --mpi pmix --cpu-bind=none -o log -- a b"),
            "a b | 0/0@0");
  EXPECT_EQ(started("srun --overlap --exclusive -n1 a"), "a | 0/0@0");
  EXPECT_EQ(started("srun -n1"), "nothing");
}

TEST(Launchers, SrunHasOlderNamesShortNamesAndBeginningsOfNames) {
  EXPECT_EQ(started("srun --tasks-per-node=1 a"), "a | 0/0@0 1/0@1");
  EXPECT_EQ(started("srun --ntasks-per-n 1 a"), "a | 0/0@0 1/0@1");
  EXPECT_EQ(started("srun -lun 1 a"), "a | 0/0@0");
  EXPECT_EQ(started("srun -n1 --bcast --nice -K a b"), "a b | 0/0@0");
  EXPECT_EQ(started("srun -n1 --cpu_bind none a"), "a | 0/0@0");
}

/// "name=value name" of an srun's own options; one that srun does not know has a ?.
std::string options_of(const std::string& line) {
  std::vector<std::string> all;
  for (const auto& one : options_of_srun(text::split(line, ' ')))
    all.push_back(fmt::format("{}{}{}{}", one.name, one.known ? "" : "?", one.value ? "=" : "",
                              one.value.value_or("")));
  return text::join(all, " ");
}

TEST(Launchers, OptionsOfSrunHaveTheirLongName) {
  EXPECT_EQ(options_of("srun -N2 -lo log --cpu_bind=none --mpi pmix a -n 7"),
            "nodes=2 label output=log cpu-bind=none mpi=pmix");
  EXPECT_EQ(options_of("srun --container-image= --kill-on-bad-exit=0 -- a"),
            "container-image= kill-on-bad-exit=0");
  EXPECT_EQ(options_of("srun --of-a-plugin=1 -y --export"), "of-a-plugin?=1 y? export");
  EXPECT_EQ(words_of_srun(text::split("srun -n 2 -- a", ' ')), 4U);
  EXPECT_TRUE(takes_value_of_srun("-n") && takes_value_of_srun("--mpi"));
  EXPECT_FALSE(takes_value_of_srun("-l") || takes_value_of_srun("--bcast") || takes_value_of_srun("a"));
}

TEST(Launchers, MpirunFillsOneNodeAfterTheOther) {
  EXPECT_EQ(started("mpirun -np 4 -npernode 2 -x NCCL_DEBUG=INFO --mca btl tcp python x.py"),
            "python x.py | 0/0@0 1/1@0 2/0@1 3/1@1");
  EXPECT_EQ(started("mpirun -np 3 -x NCCL_DEBUG=INFO --mca btl tcp python x.py"),
            "python x.py | 0/0@0 1/1@0 2/2@0");
  EXPECT_EQ(started("mpiexec -n 2 -genv A 1 a"), "a | 0/0@0 1/1@0");
  EXPECT_EQ(started("mpiexec -n 2 -ppn 1 a"), "a | 0/0@0 1/0@1");
  EXPECT_EQ(started("mpirun -n 2 --map-by node a"), "a | 0/0@0 1/0@1");
  EXPECT_EQ(started("orterun --bind-to none a", 1, 2), "a | 0/0@0 1/1@0");
}

TEST(Launchers, MpirunPlacesByHosts) {
  EXPECT_EQ(started("mpirun -np 2 -H rec-node-1:2 a"), "a | 0/0@1 1/1@1");
  EXPECT_EQ(started("mpirun -H rec-node-0,rec-node-1 a"), "a | 0/0@0 1/0@1");
  EXPECT_EQ(started("mpirun -np 4 -host rec-node-0:1,rec-node-1:3 a"), "a | 0/0@0 1/0@1 2/1@1 3/2@1");
  EXPECT_EQ(started("mpirun -H rec-node-0,rec-node-0,rec-node-1 a"), "a | 0/0@0 1/1@0 2/0@1");
  EXPECT_EQ(started("mpiexec -n 4 -hosts rec-node-0,rec-node-1 -ppn 2 a"), "a | 0/0@0 1/1@0 2/0@1 3/1@1");
  EXPECT_EQ(started("mpirun -np 2 --pernode a"), "a | 0/0@0 1/0@1");
  EXPECT_EQ(started("mpirun -np 2 -N 1 a"), "a | 0/0@0 1/0@1");
  EXPECT_EQ(started("mpirun --map-by ppr:2:node:pe=4 a"), "a | 0/0@0 1/1@0 2/0@1 3/1@1");
  EXPECT_EQ(started("mpiexec -genv OMP_NUM_THREADS=4 -n 2 a"), "a | 0/0@0 1/1@0");
  for (const auto* unknown :
       {"mpirun -np 4 -H rec-node-0,rec-node-1 a", "mpirun -npersocket 1 a", "mpirun --map-by ppr:1:socket a",
        "mpirun -np 2 --rankfile rf a", "mpirun -np 4 --map-by node a", "mpirun -np 4 --bynode a",
        "mpirun -np 4 --rank-by node a", "mpirun -H n1 a", "mpirun --new-option x a"})
    EXPECT_EQ(started(unknown), "nothing") << unknown;
}

TEST(Launchers, ContainersStartWhatStandsBehindTheirImage) {
  EXPECT_EQ(started("apptainer exec --nv -B /a:/b img.sif python x.py"), "python x.py");
  EXPECT_EQ(started("singularity --quiet exec img.sif bash -c ls"), "bash -c ls");
  EXPECT_EQ(started("apptainer run img.sif a"), "a");
  EXPECT_EQ(started("apptainer run img.sif"), "nothing");
  EXPECT_EQ(started("shifter --image=a:1 --env A=1 python x.py"), "python x.py");
  EXPECT_EQ(started("docker run --rm --gpus all -v /a:/a image:1 python x.py"), "python x.py");
  EXPECT_EQ(started("podman-hpc run --rm -e A=1 image a b"), "a b");
  EXPECT_EQ(started("docker run --rm --group-add 44 --device /dev/kfd --tmpfs /t -itv /a:/a -p80:80 image:1 "
                    "python x.py"),
            "python x.py");
  EXPECT_EQ(started("podman-hpc run --rm --gpu --nccl --shm-size=1g image:1 python x.py"), "python x.py");
  EXPECT_EQ(started("docker pull image"), "nothing");
  EXPECT_EQ(started("enroot start --rw name a"), "a");
}

TEST(Launchers, SshStartsALoginsShellOnItsNode) {
  const auto found = started_by({"ssh", "-o", "BatchMode=yes", "me@rec-node-1", "cd /x;", "ls"}, two_nodes());
  ASSERT_TRUE(found);
  EXPECT_EQ(found->argv, (Words{"bash", "-c", "cd /x; ls"}));
  EXPECT_EQ(found->tasks, (std::vector<Task>{{0, 0, 1}}));
  EXPECT_FALSE(found->keeps_environment);
  EXPECT_EQ(started("ssh elsewhere.org ls"), "nothing");
  EXPECT_EQ(started("ssh rec-node-1"), "nothing");
}

TEST(Launchers, WrappersBecomeTheirProgram) {
  EXPECT_EQ(started("nohup python x.py"), "python x.py");
  EXPECT_EQ(started("timeout -k 5 60 a -k"), "a -k");
  EXPECT_EQ(started("taskset -c 0-7 a"), "a");
  EXPECT_EQ(started("numactl -N 0 --membind=0 a"), "a");
  EXPECT_EQ(started("/usr/bin/nice -n 5 a"), "a");
  EXPECT_EQ(started("python x.py"), "nothing");
}

std::string said(const std::string& line, std::uint32_t node = 0) {
  auto allocation = two_nodes();
  allocation.job_id = "7";
  const auto answer = answer_of(text::split(line, ' '), allocation, node);
  return answer ? answer->text : "nothing";
}

TEST(Answers, TellOfTheAllocation) {
  EXPECT_EQ(said("scontrol show hostnames rec-node-[0-1]"), "rec-node-0\nrec-node-1\n");
  EXPECT_EQ(said("scontrol show hostnames"), "rec-node-0\nrec-node-1\n");
  EXPECT_EQ(said("scontrol show hostnames rec-node-1"), "rec-node-1\n");
  EXPECT_EQ(said("hostname", 1), "rec-node-1\n");
  EXPECT_EQ(said("hostname -I", 1), "10.77.0.2\n");
  EXPECT_EQ(said("hostname --ip-address"), "10.77.0.1\n");
  EXPECT_EQ(said("getent hosts rec-node-1"), "10.77.0.2       rec-node-1\n");
  EXPECT_EQ(said("dig +short rec-node-1"), "10.77.0.2\n");
}

TEST(Answers, TellOfGpus) {
  EXPECT_EQ(said("nvidia-smi --query-gpu=index --format=csv,noheader"), "0\n1\n2\n3\n");
  EXPECT_EQ(said("nvidia-smi --query-gpu=name,memory.total --format=csv,noheader,nounits").substr(0, 28),
            "NVIDIA H100 80GB HBM3, 81559");
  EXPECT_EQ(text::split(said("nvidia-smi -L"), '\n').size(), 5U);
  EXPECT_EQ(said("nvidia-smi"), "");
}

TEST(Answers, WhoWaitsIsServedAtOnce) {
  for (const auto* line : {"sleep 60", "nc -z rec-node-0 8000", "ping -c1 rec-node-1"})
    EXPECT_EQ(said(line), "");
  EXPECT_EQ(said("curl -s -o /dev/null -w %{http_code} localhost:8000/health"), "200");
}

TEST(Answers, AShortPythonProgramFindsAMarker) {
  const auto python = [](const char* code) {
    return answer_of({"python3", "-c", code}, two_nodes(), 1).value_or(Answer{"nothing"}).text;
  };
  EXPECT_EQ(python("import socket; s=socket.socket(); s.bind(('',0)); print(s.getsockname()[1])"), "42777\n");
  EXPECT_EQ(python("import socket; print(socket.gethostbyname(socket.gethostname()))"), "10.77.0.2\n");
  EXPECT_EQ(python("import socket; print(socket.gethostname())"), "rec-node-1\n");
  EXPECT_EQ(python("import torch; torch.zeros(1)"), "nothing");
  EXPECT_EQ(said("python train.py"), "nothing");
}

TEST(Launchers, OptionsOfAContainerWithAValue) {
  EXPECT_EQ(started("apptainer exec --no-mount home,tmp --bind /a:/b img.sif python x.py"), "python x.py");
  EXPECT_EQ(started("apptainer exec --no-mount=home -B/a/b:/b --nv img.sif a"), "a");
  EXPECT_EQ(started("enroot start --root --mount /a:/a name a"), "a");
}

TEST(Launchers, SrunTakesFurtherNodesIfItNamesTooFew) {
  EXPECT_EQ(started("srun -N2 -n2 -w rec-node-1 a", 3), "a | 0/0@1 1/0@0");
  EXPECT_EQ(started("srun -N3 --ntasks-per-node=1 -w rec-node-2 a", 3), "a | 0/0@2 1/0@0 2/0@1");
}

}  // namespace
}  // namespace nlaunch::shell

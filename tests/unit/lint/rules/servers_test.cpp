#include <gtest/gtest.h>

#include "unit/lint/support.h"

namespace nlaunch::lint {
namespace {

using namespace support;

TEST(OpenServer, OnAllInterfacesWithoutAKey) {
  EXPECT_EQ(found_on_node("open-server", "vllm serve a --host 0.0.0.0 --port 8000 &\nwait\n"),
            Texts{"note job.sh:3:1 everyone who can reach the node can use this server: it listens on all "
                  "interfaces, "
                  "without a key"});
  for (const std::string fine :
       {"vllm serve a &\nwait\n", "vllm serve a --host 127.0.0.1\n",
        "vllm serve a --host 0.0.0.0 --api-key \"$KEY\"\n", "VLLM_API_KEY=x vllm serve a --host 0.0.0.0\n",
        "python app.py --host 0.0.0.0\n", "trl vllm-serve --host 0.0.0.0\n"})
    EXPECT_EQ(found_on_node("open-server", fine), Texts{}) << fine;
}

TEST(OutputLost, OfAProgramInTheBackground) {
  for (const std::string to : {"> /dev/null 2>&1", "&> /dev/null", ">/dev/null 2>/dev/null", ">& /dev/null"})
    EXPECT_EQ(found_on_node("output-lost", "python s.py " + to + " &\npython a.py\n"),
              Texts{"note job.sh:3:1 the output of python goes to /dev/null"})
        << to;
  for (const std::string fine : {"python s.py > /dev/null 2>&1\n", "python s.py 2> /dev/null &\nwait\n",
                                 "python s.py > log 2>&1 &\nwait\n", "python s.py > /dev/null &\nwait\n",
                                 "sleep 5 > /dev/null 2>&1 &\npython a.py\n"})
    EXPECT_EQ(found_on_node("output-lost", fine), Texts{}) << fine;
}

TEST(HeldNodes, UntilTheTimeLimit) {
  EXPECT_EQ(
      found_on_node("held-nodes", "python a.py\nsleep infinity\n"),
      Texts{"note job.sh:4:1 the job keeps its nodes until its time limit, even after python has exited"});
  EXPECT_EQ(whole("held-nodes", script(on_node("vllm serve a &\ntail -f /dev/null\n"))).at(2),
            "wait -n, which returns when a program in the background exits");
  EXPECT_EQ(found_on_node("held-nodes", "python a.py\ntail -F log\n").size(), 1U);
  EXPECT_EQ(whole("held-nodes", script(on_node("ray start --head\nsleep 100000000\n"))).at(2),
            "ray start --block, which returns when Ray stops");
  for (const std::string fine : {"python a.py\nsleep 60\n", "vllm serve a &\nwait\n",
                                 "sleep infinity &\npython a.py\n", "python a.py &\ntail --pid=$! -f log\n"})
    EXPECT_EQ(found_on_node("held-nodes", fine), Texts{}) << fine;
  EXPECT_EQ(found("held-nodes", script("python a.py\nsleep infinity\n")), Texts{});
}

TEST(RayCpus, OfTheWholeMachine) {
  EXPECT_EQ(found_on_node("ray-cpus", "ray start --head --port=6379\npython a.py\n"),
            Texts{"note job.sh:3:1 Ray takes all CPUs of the node for its own, not those of the job"});
  for (const std::string fine : {"ray start --head --num-cpus=8\npython a.py\n", "ray status\n",
                                 "#SBATCH --exclusive\nray start --head\n"})
    EXPECT_EQ(found_on_node("ray-cpus", fine), Texts{}) << fine;
  EXPECT_EQ(found("ray-cpus", script("#SBATCH -N 1\nray start --head\n")), Texts{});
}

TEST(WaitForServer, ThatNeverEnds) {
  EXPECT_EQ(whole("wait-for-server", script("#SBATCH -N 1\nvllm serve m &\npython a.py &\nwait\n")),
            (Texts{"`wait` also waits for vllm, which never ends",
                   "after the work is done, the job keeps its nodes until its time limit",
                   "wait $PID for the work (PID=$! after its &), then kill the server", "bash(1), wait"}));
  EXPECT_EQ(
      found_on_node(
          "wait-for-server",
          "srun bash -c \"\n  python src/vllm_server.py --port 8000 &\n  torchrun a.py &\n  wait\n\"\n"),
      Texts{"warning job.sh:3:1 `wait` also waits for vllm_server.py, which never ends"});
  EXPECT_EQ(found_on_node("wait-for-server", "srun ray start --head --block &\npython a.py\nwait\n").size(),
            1U);
  for (const std::string fine :
       {"vllm serve m &\nwait\n", "vllm serve m &\nPID=$!\npython a.py\nkill $PID\nwait\n",
        "python a.py &\npython b.py &\nwait\n", "vllm serve m &\npython a.py &\nwait $!\n",
        "vllm serve m &\npython a.py\n"})
    EXPECT_EQ(found_on_node("wait-for-server", fine), Texts{}) << fine;
}

TEST(LeftOnHosts, NothingStopsWhatAnSshLeftRunning) {
  const std::string start = "ssh -f node2 'cd /shared/x && nohup python w.py > w.log 2>&1 &'\n";
  EXPECT_EQ(whole("left-on-hosts", script(start + "python a.py\n")),
            (Texts{"nothing stops this program on the other host if python fails or is interrupted",
                   "it goes on without its ssh: it waits for its rendezvous, and holds its GPUs and its port "
                   "against the next start",
                   "trap 'ssh HOST pkill -f NAME' EXIT", "nohup(1); ssh(1), -f"}));
  EXPECT_EQ(
      found("left-on-hosts",
            script("for h in a b; do\n  ssh $h \"nohup bash w.sh > log 2>&1 &\"\ndone\nexec bash m.sh\n")),
      Texts{"note job.sh:2:3 nothing stops this program on the other host if m.sh fails or is "
            "interrupted"});
  for (const std::string& fine :
       {start, start + "python a.py\nssh node2 pkill -f w.py\n", "trap stop EXIT\n" + start + "python a.py\n",
        std::string("ssh node2 'python w.py' &\npython a.py\n"),
        "#!/bin/bash\n#SBATCH -N 2\n" + start + "python a.py\n",
        std::string("ssh node2 'nohup rsync -a x y &'\npython a.py\n")})
    EXPECT_EQ(found("left-on-hosts", script(fine)), Texts{}) << fine;
}

TEST(Ssh, ACommandOnAnotherHostIsExamined) {
  EXPECT_EQ(
      found("unknown-variable", script("ssh me@gpu7 'source /opt/c/etc/profile.d/conda.sh && conda activate "
                                       "x && cd /shared/x && export NCCL_DEBG=1 && python a.py'\n")),
      Texts{"error job.sh:1:97 NCCL_DEBG is not read by any release of NCCL"});
  EXPECT_EQ(found("rendezvous",
                  script("python a.py\nssh gpu7 'torchrun --nnodes 2 --master_addr localhost a.py'\n")),
            Texts{"error job.sh:2:1 the rendezvous address is localhost, which is a different host on each "
                  "node"});
}

TEST(HeldNodes, WhatStillRunsIsNamed) {
  EXPECT_EQ(whole("held-nodes", script("#SBATCH --nodes=2\nsrun -N1 -n1 ray start --head --block &\n"
                                       "python ready.py\nsleep infinity\n")),
            (Texts{"the job keeps its nodes until its time limit, even after ray has exited",
                   "nothing ends this wait: a finished or failed run goes on using up the allocation",
                   "wait -n, which returns when a program in the background exits",
                   "sleep(1); sbatch(1), DESCRIPTION"}));
  EXPECT_EQ(whole("held-nodes",
                  script("#SBATCH --nodes=1\nvllm serve a &\nsleep 9\npython client.py\nsleep infinity\n")),
            (Texts{"the job keeps its nodes until its time limit, even after python has exited",
                   "nothing ends this wait: a finished or failed run goes on using up the allocation",
                   "leave it out, and stop vllm with kill", "sleep(1); sbatch(1), DESCRIPTION"}));
  // What was killed does not run.
  EXPECT_EQ(
      whole("held-nodes", script("#SBATCH --nodes=1\nvllm serve a &\npython a.py\nkill %1\nsleep infinity\n"))
          .at(2),
      "leave it out");
}

TEST(OpenDashboard, RayAsAModuleOfPython) {
  EXPECT_EQ(found("open-dashboard",
                  script("python -m ray.scripts.scripts start --head --dashboard-host=0.0.0.0\n")),
            Texts{"warning job.sh:1:1 Ray's dashboard is open to everyone who can reach the node"});
}

TEST(LocalServer, ThatOthersAskByItsHost) {
  const auto of_ask = [](const std::string& options, const std::string& ask) {
    return found("local-server", script(on_node("python -m sglang.launch_server --model-path m" + options +
                                                " &\n" + ask + "\npython a.py\n")));
  };
  EXPECT_EQ(of_ask("", "until nc -z $(hostname) 30000; do sleep 5; done"),
            Texts{"error job.sh:3:1 this server listens on 127.0.0.1 only, but line 4 uses the name or "
                  "address of its node"});
  EXPECT_EQ(of_ask(" --port 4000", "curl -sf http://$(hostname -i):4000/health").size(), 1U);
  EXPECT_EQ(of_ask(" --host 0.0.0.0", "curl -sf http://$(hostname):30000/health"), Texts{});
  EXPECT_EQ(of_ask("", "curl -sf http://localhost:30000/health"), Texts{});
  EXPECT_EQ(of_ask("", "curl -sf http://$(hostname):8000/health"), Texts{});
}

TEST(ServerInFront, BeforeOtherPrograms) {
  EXPECT_EQ(whole("server-in-front", script("vllm serve m\npython train.py\n")),
            (Texts{"vllm runs in the foreground: train.py in line 2 starts when it has exited, which a "
                   "server does not",
                   "the script stays here until the server fails, or until its time limit",
                   "put & at the end of this line, and wait until the server answers", "bash(1), Lists"}));
  for (const std::string text :
       {"vllm serve m &\npython train.py\n", "python train.py\nvllm serve m\n", "vllm serve m\n"})
    EXPECT_EQ(found("server-in-front", script(text)), Texts{}) << text;
}

TEST(WaitForServer, AWordInACommentStopsNothing) {
  EXPECT_EQ(
      found("wait-for-server",
            script("#SBATCH -N 1\nray start --head --block &\nP=$! # to kill it later\npython a.py\nwait\n")),
      Texts{"warning job.sh:5:1 `wait` also waits for ray, which never ends"});
}

TEST(RayAddress, HasAPort) {
  EXPECT_EQ(whole("ray-address", script("ray start --address 10.0.0.1 --block\n")),
            (Texts{"`ray start --address` has no port: it fails",
                   "it takes HOST:PORT, the port that the head was started with", "--address=HOST:6379",
                   "Ray, python/ray/_private/services.py, extract_ip_port"}));
  for (const std::string fine :
       {"ray start --address=10.0.0.1:6379 --block\n", "ray start --address=auto\n", "ray start --head\n"})
    EXPECT_EQ(found("ray-address", script(fine)), Texts{}) << fine;
}

}  // namespace
}  // namespace nlaunch::lint

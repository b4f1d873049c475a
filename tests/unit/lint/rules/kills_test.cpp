#include <gtest/gtest.h>

#include "unit/lint/support.h"

namespace nlaunch::lint {
namespace {

using namespace support;

TEST(KillsOthers, EveryPythonOfTheUser) {
  EXPECT_EQ(found_on_node("kills-others", "pkill -9 python\npython a.py\n"),
            Texts{"note job.sh:3:1 pkill python kills every Python process of the user on this machine"});
  EXPECT_EQ(found_on_node("kills-others", "#SBATCH --exclusive\npkill python\n"), Texts{});
}

TEST(KillsOthers, CommonNamesAndOtherUsers) {
  EXPECT_EQ(
      found_on_node("kills-others",
                    "clean() {\n  pkill -9 -f \"train.py\" 2>/dev/null || true\n}\ntrap clean TERM\n"),
      Texts{"note job.sh:4:3 pkill -f train.py kills every process of the user on this machine that has "
            "train.py in its command line"});
  EXPECT_EQ(
      found_on_node("kills-others", "sudo pkill -9 -f my_own.py\n"),
      Texts{"note job.sh:3:1 sudo pkill -f my_own.py kills the processes of all users on this machine"});
  for (const std::string fine : {"pkill -u me -f $NAME\n", "pkill -f \"port $PORT\"\n", "# pkill -f ray\n",
                                 "docker exec c pkill -f train.py\n", "echo pkill -f ray\n"})
    EXPECT_EQ(found_on_node("kills-others", fine), Texts{}) << fine;
}

TEST(KillsItself, ByAPatternInTheTextOfItsShell) {
  const auto said = [](const std::string& text) { return found_on_node("kills-itself", text); };
  EXPECT_EQ(
      said("srun bash -c 'pkill -f vllm || true; ray stop'\n"),
      Texts{
          "warning job.sh:3:1 pkill -f vllm kills the shell that runs it: its command line has vllm in it"});
  EXPECT_EQ(said("ssh node1 'pkill -9 -f train.py; rm -f /tmp/lock'\n").size(), 1U);
  EXPECT_EQ(said("bash -c 'ray stop\n  pkill -f \"ray::\" || true\n'\n").size(), 1U);
  for (const std::string fine :
       {"srun bash -c 'pkill -f [v]llm || true'\n", "srun bash -c 'pkill -f vllm'\n",
        "pkill -f vllm || true\n", "srun bash -c 'pkill vllm || true'\n", "srun pkill -f vllm\n",
        "srun bash -c 'echo pkill -f a; true'\n",
        "ssh node2 \"pkill -f '[v]llm' > /dev/null 2>&1 || true; nohup ./serve.sh\"\n",
        "srun bash -c 'pkill -f \"[v]llm serve\" || true; python a.py'\n",
        "srun bash -c 'pkill -f \"[v]llm\" -u root; true'\n", "srun bash -c 'pkill -P $$ -f sleep; true'\n"})
    EXPECT_EQ(said(fine), Texts{}) << fine;
}

TEST(KillsOthers, AProgramOfAServer) {
  EXPECT_EQ(found_on_node("kills-others", "pkill -f \"vllm serve\"\npython a.py\n").size(), 1U);
  EXPECT_EQ(found_on_node("kills-others", "pkill -f \"my_vllm_$SLURM_JOB_ID\"\npython a.py\n"), Texts{});
  EXPECT_EQ(found_on_node("kills-others", "pkill -f vllm_server.py || true\npython a.py\n").size(), 1U);
  EXPECT_EQ(found_on_node("kills-others", "pkill -f uvicorn\npython a.py\n").size(), 1U);
}

TEST(KillsOthers, ByTheNameOfAProgramThatOthersRunToo) {
  EXPECT_EQ(found("kills-others", script("nvidia-smi -l 5 > gpu.log &\npython a.py\nkillall nvidia-smi\n")),
            Texts{"note job.sh:3:1 killall nvidia-smi kills every nvidia-smi of the user on this machine"});
  EXPECT_EQ(
      found("kills-others", script("python a.py\nkillall my-own-helper\n")),
      Texts{"note job.sh:2:1 killall my-own-helper kills every my-own-helper of the user on this machine"});
}

TEST(KillsOthers, ByAListOfProcesses) {
  const auto told = [](const std::string& line) { return found("kills-others", script(line + "\n")); };
  EXPECT_EQ(told("nvidia-smi --query-compute-apps=pid --format=csv,noheader | xargs -r kill -9"),
            Texts{"note job.sh:1:1 this kills what runs on all GPUs of this machine"});
  EXPECT_EQ(told("kill -9 $(lsof -t -i:8000)"),
            Texts{"note job.sh:1:1 this kills what uses that port on this machine"});
  EXPECT_EQ(
      told("ps aux | grep vllm | awk '{print $2}' | xargs kill"),
      Texts{"note job.sh:1:1 this kills every process of the user on this machine that has that text in its "
            "command line"});
  EXPECT_EQ(told("ps aux | grep -i vllm | awk '{print $2}' | xargs kill").size(), 1U);
  EXPECT_EQ(told("kill $(lsof -t -i :8000)").size(), 1U);
  EXPECT_EQ(told("ray stop --force"),
            Texts{"note job.sh:1:1 this stops every Ray process of the user on this machine"});
  EXPECT_EQ(told("pkill ray\npkill -9 -f vllm"),
            Texts{"note job.sh:1:1 pkill ray kills every ray of the user on this machine; so does pkill -f "
                  "vllm in line 2"});
  for (const std::string fine :
       {"kill $(pgrep -P $$)", "kill $PID", "kill $(jobs -p)", "trap 'ray stop' EXIT",
        "ray start --head\npython a.py\nray stop", "kill $(pgrep -f run_$SLURM_JOB_ID)",
        "nvidia-smi -i 3 --query-compute-apps=pid | xargs kill"})
    EXPECT_EQ(told(fine), Texts{}) << fine;
  EXPECT_EQ(found("kills-others", script("#!/bin/bash\n#SBATCH --gpus-per-node=8\npkill python\n")), Texts{});
}

TEST(KillMisses, APatternThatTheProgramDoesNotHave) {
  const std::string serve = "vllm serve m --port 8000 &\nsleep 60\npython client.py\n";
  const auto told = [](const std::string& text) { return found("kill-misses", script(text)); };
  EXPECT_EQ(whole("kill-misses", script(serve + "pkill -f vllm.entrypoints\n")),
            (Texts{"pkill -f vllm.entrypoints does not reach vllm of line 1: it is not in its command line",
                   "it runs on when the script has ended, and keeps its GPUs and its port",
                   "keep its process id when it starts: PID=$!, and kill $PID here",
                   "pkill(1), --full; killall(1)"}));
  EXPECT_EQ(told("python reward_server.py &\npython client.py\npkill reward_server.py\n"),
            Texts{"note job.sh:3:1 pkill reward_server.py searches the names of programs, and that of "
                  "reward_server.py is python"});
  for (const std::string fine :
       {"pkill -f 'vllm serve'\n", "pkill vllm\n", "pkill -f 'python.*vllm'\n", "killall vllm\n",
        "pkill -f VLLM::EngineCore\n", "pkill -f other_server\n", "pkill -f \"vllm.entry$SLURM_JOB_ID\"\n"})
    EXPECT_EQ(told(serve + fine), Texts{}) << fine;
  // Before the start, it clears what an earlier run has left; what a script starts is not known.
  EXPECT_EQ(told("pkill -f vllm.entrypoints\n" + serve), Texts{});
  EXPECT_EQ(told("bash vllm_serve.sh &\npython client.py\npkill -f vllm.entrypoints\n"), Texts{});
}

TEST(KillsOthers, ByAPatternThatIsTheSameEachTime) {
  EXPECT_EQ(
      found("kills-others", script("PORT=30000\npython a.py\npkill -f \"launch_server --port $PORT\"\n")),
      Texts{"note job.sh:3:1 pkill -f launch_server --port 30000 kills every process of the user on this "
            "machine that has launch_server --port 30000 in its command line"});
  EXPECT_EQ(found("kills-others", script("TAG=run-$$\npython a.py\npkill -f \"$TAG\"\n")), Texts{});
}

TEST(KillsOthers, ByAnExactName) {
  EXPECT_EQ(found("kills-others", script("pkill -x llama-server\npython a.py\n")),
            Texts{"note job.sh:1:1 pkill llama-server kills every llama-server of the user on this machine"});
  EXPECT_EQ(found("kills-others", script("pkill -x -f 'python a.py --run 7'\npython a.py\n")), Texts{});
}

TEST(PkillPatterns, OneAlone) {
  EXPECT_EQ(whole("pkill-patterns", script("pkill -9 ray python\npython a.py\n")),
            (Texts{"pkill takes one pattern: with 2 it kills nothing",
                   "it prints an error and exits with 2; what should have ended runs on",
                   "pkill once for each, or pkill -f 'A|python'", "procps, src/pgrep.c@4.0.2"}));
  for (const std::string fine : {"pkill -9 ray\n", "pkill -u ada python\n", "pkill -f 'vllm serve'\n",
                                 "killall -9 ray python\n", "pkill -9 -P 12 python\n"})
    EXPECT_EQ(found("pkill-patterns", script(fine)), Texts{}) << fine;
}

TEST(KillIgnored, AnInterrupt) {
  EXPECT_EQ(
      whole("kill-ignored", script("python a.py & P=$!\nsleep 5\nkill -INT $P\nwait\n")),
      (Texts{"what a script starts in the background ignores this signal",
             "bash starts it with SIGINT ignored: a program that does not set a handler itself runs on, and "
             "a wait for it does not end",
             "kill -TERM", "bash(1), SIGNALS"}));
  EXPECT_EQ(found("kill-ignored", script("python a.py & P=$!\nkill -2 \"$P\"\n")).size(), 1U);
  for (const std::string fine :
       {"python a.py & P=$!\nkill $P\n", "python a.py & P=$!\nkill -9 $P\n",
        "set -m\npython a.py & P=$!\nkill -INT $P\n", "P=$(pgrep vllm)\nkill -INT $P\npython a.py\n"})
    EXPECT_EQ(found("kill-ignored", script(fine)), Texts{}) << fine;
}

}  // namespace
}  // namespace nlaunch::lint

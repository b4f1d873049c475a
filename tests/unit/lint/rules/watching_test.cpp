#include <gtest/gtest.h>

#include "unit/lint/support.h"

namespace nlaunch::lint {
namespace {

using namespace support;

constexpr auto kTwoNodes =
    "#!/bin/bash\n#SBATCH -N 2\n#SBATCH --ntasks-per-node=1\n#SBATCH -c 8\n#SBATCH --gpus-per-node=8\nset "
    "-e\n";

TEST(DeathUnnoticed, OfAServerWhileItsClientWaits) {
  EXPECT_EQ(
      whole("death-unnoticed", script(on_node("trl vllm-serve --model m &\npython train.py\n"))),
      (Texts{"nothing notices if trl exits",
             "train.py in line 4 then waits for answers until it gives up, or until the job's time limit",
             "start both in the background; `wait -n` returns when the first of them exits: then kill the "
             "others",
             "bash(1), wait -n"}));
  EXPECT_EQ(found_on_node("death-unnoticed", "python -m sglang.launch_server --model m &\npython train.py\n"),
            Texts{"note job.sh:3:1 nothing notices if sglang.launch_server exits"});
}

TEST(DeathUnnoticed, NotIfTheScriptLooks) {
  for (const std::string text :
       {"vllm serve m &\ntrap 'kill 0' CHLD\npython a.py\n", "vllm serve m &\npython a.py &\nwait -n\n",
        "vllm serve m\npython a.py\n", "vllm serve m &\nwait\n", "vllm serve m &\npython a.py &\nwait\n",
        "python rewards.py &\npython train.py\n"})
    EXPECT_EQ(found_on_node("death-unnoticed", text), Texts{}) << text;
}

TEST(DeathUnnoticed, OfALauncherOnOneOfItsNodes) {
  const auto loop = [](std::string_view wait) {
    return script(kTwoNodes +
                  fmt::format("for i in 0 1; do\n  srun -N1 -n1 -w $(scontrol show hostnames | sed -n "
                              "$((i + 1))p) torchrun --nnodes=2 --node_rank=$i --master_addr=a t.py "
                              "&\ndone\n{}\n",
                              wait));
  };
  EXPECT_EQ(found("death-unnoticed", loop("wait")),
            Texts{"note job.sh:8:3 nothing notices if torchrun exits on one node"});
  EXPECT_EQ(found("death-unnoticed", loop("wait -n")), Texts{});
}

TEST(KillOnBadExit, OfALauncherOnSeveralNodes) {
  const auto with = [](std::string_view options, std::string_view program = "torchrun --nnodes=2 t.py") {
    return found("kill-on-bad-exit", script(kTwoNodes + fmt::format("srun {} {}\n", options, program)));
  };
  EXPECT_EQ(with(""), Texts{"note job.sh:7:1 if torchrun fails on one node, srun does not end the others"});
  EXPECT_EQ(with("bash -c 'exec \"$@\"' _").size(), 1U);
  for (const auto* option : {"-K", "--kill-on-bad-exit=1", "--wait=60", "-W 60", "-N1 -n1"})
    EXPECT_EQ(with(option), Texts{}) << option;
  EXPECT_EQ(with("", "python t.py"), Texts{});
}

TEST(SetupUnchecked, WhereTheScriptGoesOn) {
  EXPECT_EQ(
      whole("setup-unchecked", script(on_node("cd /no/such/place\npython train.py\n"))),
      (Texts{"if this cd fails, the script goes on",
             "its programs run in another directory, or do not find their files there",
             "set -e below the #SBATCH lines, or … || exit 1 here", "bash(1), set -e; ShellCheck SC2164"}));
  for (const std::string line : {"source /no/venv/bin/activate", "conda activate grpo", "pip install trl"})
    EXPECT_EQ(found_on_node("setup-unchecked", line + "\npython train.py\n").size(), 1U) << line;
}

TEST(SetupUnchecked, AlsoInAScriptThatIsNoJob) {
  EXPECT_EQ(whole("setup-unchecked", script("git clone https://x/y/kit\ncd kit\npython train.py\n")).at(2),
            "set -e above, or … || exit 1 here");
}

TEST(SetupUnchecked, NotIfItIsCheckedOrCannotFail) {
  for (const std::string text :
       {"set -e\ncd /no/such/place\npython a.py\n", "cd /no/such/place || exit 1\npython a.py\n",
        "cd /no/such/place && python a.py\n", "cd \"$SLURM_SUBMIT_DIR\"\npython a.py\n",
        "cd ..\npython a.py\n", "cd \"$(dirname \"$0\")\"\npython a.py\n", "python a.py\ncd /no/such/place\n",
        "(cd /no/such/place; ls)\npython a.py\n"})
    EXPECT_EQ(found_on_node("setup-unchecked", text), Texts{}) << text;
}

TEST(ServerLeft, BehindAScriptThatIsNoJob) {
  EXPECT_EQ(
      whole("server-left", script("vllm serve m &\npython train.py\n")),
      (Texts{"vllm goes on when the script has ended",
             "it holds its GPUs and its port against the next start: outside of a job nothing else ends it",
             "PID=$!; trap 'kill $PID' EXIT", "bash(1), trap"}));
  EXPECT_EQ(found("server-left", script("set -e\nvllm serve m & P=$!\npython train.py\nkill $P\n")),
            Texts{"note job.sh:2:1 if train.py in line 3 fails, the script ends without stopping vllm, which "
                  "goes on"});
  // What it stops before it starts anything is another one.
  EXPECT_EQ(
      found("server-left", script("set -e\npkill vllm || true\nvllm serve m & P=$!\npython a.py\nkill $P\n")),
      Texts{"note job.sh:3:1 if a.py in line 4 fails, the script ends without stopping vllm, which "
            "goes on"});
}

TEST(ServerLeft, BehindWhatIsStartedForIt) {
  EXPECT_EQ(found("server-left",
                  script("nohup vllm serve m > a.log &\nnohup python train.py > b.log &\necho $!\n")),
            Texts{"note job.sh:1:1 vllm goes on when train.py in line 2 has ended"});
}

TEST(ServerLeft, IfTheScriptIsKilled) {
  EXPECT_EQ(found("server-left", script("vllm serve m & P=$!\npython a.py\nkill $P\n")),
            Texts{"note job.sh:1:1 if the script is killed while a.py runs, vllm goes on"});
}

TEST(ServerLeft, ARayClusterThatNothingStops) {
  EXPECT_EQ(
      whole("server-left", script("ray start --head --num-gpus 8\npython train.py\n")),
      (Texts{"Ray goes on when train.py in line 2 has ended",
             "it holds its port and what its workers hold against the next start, whose programs join this "
             "cluster",
             "ray stop at the end, by trap 'ray stop' EXIT", "bash(1), trap"}));
  EXPECT_EQ(
      found("server-left", script("ray stop\nray start --head\nray job submit -- python a.py\n")).size(), 1U);
  for (const std::string fine :
       {"ray start --head\npython train.py\nray stop\n",
        "trap 'ray stop' EXIT\nray start --head\npython a.py\n", "ray start --head\n",
        "ray start --head --block\n", "ray start --head\nray status\n"})
    EXPECT_EQ(found("server-left", script(fine)), Texts{}) << fine;
  EXPECT_EQ(found_on_node("server-left", "ray start --head\npython train.py\n"), Texts{});
}

TEST(ServerLeft, WhatAnInterruptedScriptWaitsFor) {
  EXPECT_EQ(
      whole("server-left", script("python a.py &\npython b.py &\nwait\n")),
      (Texts{"if the script is interrupted while it waits, a.py goes on",
             "what a script starts in the background ignores Ctrl-C, and SIGTERM ends only the script: its "
             "programs hold their GPUs against the next start",
             "trap 'trap - TERM; kill 0' INT TERM, above the first of them", "bash(1), trap"}));
  for (const std::string fine :
       {"trap 'kill 0' INT TERM\npython a.py &\nwait\n", "python a.py &\n", "sleep 5 &\npython a.py\nwait\n"})
    EXPECT_EQ(found("server-left", script(fine)), Texts{}) << fine;
  EXPECT_EQ(found_on_node("server-left", "python a.py &\nwait\n"), Texts{});
}

TEST(ServerLeft, NotIfSomethingEndsIt) {
  for (const std::string text :
       {"vllm serve m & P=$!\ntrap 'kill $P' INT TERM\npython a.py\nkill $P\n",
        "trap 'kill $P' TERM\nset -e\nvllm serve m & P=$!\npython a.py || true\nkill $P\n",
        "nohup vllm serve m &\npython a.py\n", "nohup vllm serve m &\n",
        "vllm serve m &\ntrap 'kill $!' EXIT\npython a.py\n", "vllm serve m &\n",
        "vllm serve m\npython a.py\n"})
    EXPECT_EQ(found("server-left", script(text)), Texts{}) << text;
  EXPECT_EQ(found_on_node("server-left", "vllm serve m &\npython train.py\n"), Texts{});
}

TEST(DeathUnnoticed, ALookBeforeTheClientStartsIsNone) {
  const std::string waits =
      "vllm serve m & P=$!\nuntil curl -s localhost:8000; do\n  kill -0 $P || exit 1\n  sleep 1\ndone\n";
  EXPECT_EQ(found_on_node("death-unnoticed", waits + "python train.py\n").size(), 1U);
  EXPECT_EQ(found_on_node("death-unnoticed", waits + "python train.py & Q=$!\nwait -n $P $Q\n"), Texts{});
  const std::string watches = "while kill -0 $P; do\n  sleep 5\ndone && scancel $SLURM_JOB_ID &\n";
  EXPECT_EQ(found_on_node("death-unnoticed", "vllm serve m & P=$!\n" + watches + "python train.py\n"),
            Texts{});
}

TEST(SetupUnchecked, AlsoBeforeAPipeline) {
  EXPECT_EQ(found_on_node("setup-unchecked", "conda activate a\npython train.py | tee log\n").size(), 1U);
}

TEST(KillOnBadExit, OfRanksThatSrunStarts) {
  const std::string job = "#!/bin/bash\n#SBATCH -N 2\n#SBATCH --ntasks-per-node=4\nexport MASTER_ADDR=a\n";
  EXPECT_EQ(found("kill-on-bad-exit", script(job + "srun python t.py\n")),
            Texts{"note job.sh:5:1 if t.py fails in one task, srun does not end the others"});
  EXPECT_EQ(found("kill-on-bad-exit", script(job + "srun -K1 python t.py\nsrun -n1 python a.py\n")), Texts{});
}

TEST(SetupUnchecked, NamesTheOthersOfItsKind) {
  EXPECT_EQ(found_on_node("setup-unchecked",
                          "conda activate a\npython a.py\nconda activate b\npython b.py\nconda deactivate\n"),
            Texts{"note job.sh:3:1 if this conda activate fails, the script goes on; so it does in line 5"});
  EXPECT_EQ(found_on_node("setup-unchecked", "srun bash -c 'pip install x; python a.py'\n"),
            Texts{"note job.sh:3:1 if this pip install fails, the script goes on"});
  EXPECT_EQ(found_on_node("setup-unchecked", "srun bash -c 'set -e; pip install x; python a.py'\n"), Texts{});
  EXPECT_EQ(found_on_node("setup-unchecked", "python a.py\nconda activate b\n"), Texts{});
  for (const std::string fine : {"bash -euo pipefail -c 'cd /data/a; python train.py'\n",
                                 "cd /data/a; r=$?\n((r)) && exit 1\npython a.py\n",
                                 "env_setup() { cd /data/a; }\nenv_setup && python train.py\n"})
    EXPECT_EQ(found_on_node("setup-unchecked", fine), Texts{}) << fine;
}

TEST(DeathUnnoticed, AFileThatIsMovedIsNoClient) {
  EXPECT_EQ(found_on_node(
                "death-unnoticed",
                "vllm serve m & S=$!\nuntil curl -sf localhost:8000/health; do kill -0 $S || exit 1; done\n"
                "mv a.tmp a.url\nwait $S\n"),
            Texts{});
}

TEST(ServerLeft, WithATrapForCtrlCAlone) {
  const std::string rest = "vllm serve m --port 8000 &\nS=$!\nsleep 60\npython client.py\nkill $S\n";
  EXPECT_EQ(found("server-left", script("trap 'kill $S; exit' INT\n" + rest)),
            Texts{"note job.sh:2:1 if the script is killed while client.py runs, vllm goes on"});
  EXPECT_EQ(found("server-left", script("trap 'exit 0' INT\n" + rest)).size(), 1U);
  EXPECT_EQ(found("server-left", script("trap 'kill $S; exit' INT TERM\n" + rest)), Texts{});
}

TEST(ServerLeft, RayBehindAScriptThatWaitsForNothing) {
  EXPECT_EQ(found("server-left", script("ray start --head\npython train.py &\necho started\n")),
            Texts{"note job.sh:1:1 Ray goes on when the script has ended"});
}

TEST(ServerLeft, OfTwoOfWhichTheScriptStopsOne) {
  const auto with = [](const std::string& end) {
    return found(
        "server-left",
        script("stop() { fuser -k $1/tcp; }\nvllm serve a --port 8000 &\ninfinity_emb v2 --port 8080 &\n"
               "sleep 60\npython client.py\n" +
               end));
  };
  EXPECT_EQ(with("stop 8000\n"),
            Texts{"note job.sh:3:1 infinity_emb goes on when the script has ended: what the "
                  "script stops is something else"});
  EXPECT_EQ(with("pkill -f 'vllm serve'\n").size(), 1U);
  EXPECT_EQ(with("pkill -f 'vllm serve'\npkill infinity_emb\n"),
            Texts{"note job.sh:2:1 if the script is killed while client.py runs, vllm goes on"});
}

TEST(DeathUnnoticed, OfAServerBesideAClientInTheBackground) {
  EXPECT_EQ(found("death-unnoticed", script("vllm serve m --port 8000 & S=$!\n"
                                            "until curl -sf localhost:8000/health; do sleep 2; done\n"
                                            "python train.py & T=$!\nwait $T\nkill $S\n")),
            Texts{"note job.sh:1:1 nothing notices if vllm exits"});
}

TEST(ServerLeft, OfAServerByItsNameOrByItsClient) {
  EXPECT_EQ(
      found("server-left", script("python pred/serve_vllm.py --model m &\nsleep 60\npython client.py\n")),
      Texts{"note job.sh:1:1 serve_vllm.py goes on when the script has ended"});
  EXPECT_EQ(found("server-left", script("python rm.py --port 5000 &\nsleep 60\n"
                                        "python train.py --rm http://localhost:5000/get_reward\n")),
            Texts{"note job.sh:1:1 rm.py goes on when the script has ended"});
}

}  // namespace
}  // namespace nlaunch::lint

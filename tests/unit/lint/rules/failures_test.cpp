#include <gtest/gtest.h>

#include "unit/lint/support.h"

namespace nlaunch::lint {
namespace {

using namespace support;

TEST(FailureUnseen, WhereTheScriptExitsWithZero) {
  EXPECT_EQ(whole("failure-unseen",
                  script(on_node("train() { python train.py \"$@\" || status=$?; }\ntrain --lr 1\n"))),
            (Texts{"if train.py fails, the script still exits with 0",
                   "Slurm considers the job successful and starts dependent jobs (afterok)",
                   "keep the code: … || code=$?, and at the end: exit ${code:-0}", "bash(1), EXIT STATUS"}));
  EXPECT_EQ(found("failure-unseen", script("python a.py 1 && x=1\ntrue\npython a.py 2 && x=1\ntrue\n")),
            Texts{"note job.sh:1:1 if a.py or a.py in line 3 fails, the script still exits with 0"});
}

TEST(FailureUnseen, OfSeveralInTurn) {
  EXPECT_EQ(
      found("failure-unseen", script("for lr in 1 2 3; do\n  python train.py --lr $lr\ndone\n")),
      Texts{"note job.sh:2:3 if the first of the 3 runs of train.py fails, the script still exits with 0"});
  EXPECT_EQ(
      found("failure-unseen", script("set -e\nfor lr in 1 2 3; do\n  python train.py --lr $lr\ndone\n")),
      Texts{});
}

TEST(FailureUnseen, NotIfTheCodeIsTold) {
  for (const std::string text :
       {"python train.py\n", "set -e\npython train.py\necho done\n", "python train.py || exit 3\necho done\n",
        "python train.py\ncode=$?\necho $code\nexit $code\n", "python train.py & P=$!\nwait $P\n",
        "trap 'exit 1' ERR\npython train.py\necho done\n", "python a.py || true\n", "cp a b\necho done\n",
        "f() { python train.py; }\nif f; then echo yes; else exit 1; fi\n",
        "set -eo pipefail\npython train.py | tee log\necho done\n"})
    EXPECT_EQ(found("failure-unseen", script(text)), Texts{}) << text;
}

TEST(FailureUnseen, NotIfAnotherRuleTellsWhere) {
  EXPECT_EQ(found_on_node("failure-unseen", "python train.py\necho done\n"), Texts{});
  EXPECT_EQ(found_on_node("exit-code-hidden", "python train.py\necho done\n").size(), 1U);
}

TEST(FailureUnseen, OfTasksOfAStep) {
  EXPECT_EQ(found("failure-unseen",
                  script(on_node("run() { srun python train.py && echo done; return 0; }\nrun\n"))),
            Texts{"note job.sh:3:1 if train.py fails, the script still exits with 0"});
}

constexpr auto kServer = "vllm serve m --port 8000 & P=$!\n";

TEST(ServerFails, TellsWhatTheScriptDoes) {
  const auto with = [](const std::string& wait) { return found("server-fails", script(kServer + wait)); };
  EXPECT_EQ(
      with("n=0\nwait_for() { n=$((n+1)); [ $n -lt 60 ] || exit 1; sleep 10; }\n"
           "curl -sf localhost:8000/health || { while wait_for; do curl -sf localhost:8000/health && break; "
           "done; }\n"
           "kill $P\n"),
      Texts{
          "note job.sh:1:1 if vllm ends while it loads, the script waits for 10 minutes before it gives up"});
  EXPECT_EQ(
      with("ready() { nc -z localhost 8000; }\nready || sleep 60\nready && python a.py\nkill $P || :\n"),
      Texts{"note job.sh:1:1 if vllm ends while it loads, the script exits with 0"});
  EXPECT_EQ(with("ready() { nc -z localhost 8000; }\nready || sleep 60\nready\npython a.py & wait $!\n"),
            Texts{});  // the client fails without its server
}

TEST(ServerFails, NotIfItIsNoticed) {
  for (const std::string wait :
       {"until curl -sf localhost:8000/health; do kill -0 $P || exit 1; sleep 5; done\npython a.py\nkill "
        "$P\n",
        "for i in 1 2 3; do nc -z localhost 8000 && break; sleep 5; done\nnc -z localhost 8000 || exit 1\n"
        "python a.py\nkill $P\n"})
    EXPECT_EQ(found("server-fails", script(kServer + wait)), Texts{}) << wait;
}

TEST(FailurePassed, IfAnotherProgramStarts) {
  EXPECT_EQ(
      whole("failure-passed", script(on_node("python convert.py\ntorchrun train.py\n"))),
      (Texts{
          "if convert.py fails, torchrun in line 4 starts all the same, and the exit code does not show it",
          "it runs without what the first one should have made or started",
          "add `set -e` above, or … || exit 1 here", "bash(1), set -e"}));
  for (const std::string text :
       {"set -e\npython convert.py\ntorchrun train.py\n", "python convert.py && torchrun train.py\n",
        "python convert.py || exit 1\ntorchrun train.py\n", "python train.py 1\npython train.py 2\n",
        "mkdir -p out\npython train.py\n", "python convert.py || true\ntorchrun train.py\n",
        "python log.py &\ntorchrun train.py\n", "trap 'python clean.py' EXIT\npython train.py\n",
        "python train.py\ncode=$?\npython upload.py\nexit $code\n"})
    EXPECT_EQ(found_on_node("failure-passed", text), Texts{}) << text;
}

TEST(FailurePassed, NamesTheOthersToo) {
  EXPECT_EQ(found("failure-passed", script("python a.py\npython b.py\npython c.py\npython d.py\ntrue\n")),
            Texts{"note job.sh:1:1 if a.py fails, b.py in line 2 starts all the same, and the exit code does "
                  "not show "
                  "it; the same is true of b.py in line 2 and c.py in line 3"});
}

TEST(ServerFails, OfANodeOfRay) {
  EXPECT_EQ(
      found("server-fails", script(on_node("srun -N1 -n1 ray start --head --port=6379 --block &\nsleep 20\n"
                                           "ray status\npython train.py\n"))),
      Texts{"note job.sh:3:1 if ray start fails at its start, train.py in line 6 starts all the same"});
}

TEST(ServerFails, ADeadlineByTheClockIsReached) {
  const std::string wait = "D=$((SECONDS + 900))\nuntil curl -sf localhost:8000/health; do\n";
  const std::string loop = "  (( SECONDS > D )) && exit 1\n  sleep 5\ndone\n";
  EXPECT_EQ(
      found("server-fails", script(kServer + wait + loop + "python a.py\nkill $P\n")),
      Texts{"note job.sh:1:1 if vllm ends while it loads, the script waits for 15 minutes before it gives "
            "up"});
}

TEST(ServerFails, ADelayIsNoWait) {
  EXPECT_EQ(found("server-fails", script(kServer + std::string("sleep 300\npython a.py\nkill $P\n"))),
            Texts{});
}

TEST(FailureUnseen, OfStepsInTheBackgroundThatNothingAwaits) {
  EXPECT_EQ(found("failure-unseen", script(on_node("srun -N1 -n1 python work.py &\nsleep 3000\n"))),
            Texts{"note job.sh:3:1 if work.py fails, the script still exits with 0"});
  EXPECT_EQ(
      found("failure-unseen", script(on_node("srun --overlap -n1 monitor --all &\nsrun python train.py\n"))),
      Texts{});
}

TEST(EndlessRequeue, WithoutALimit) {
  const auto told = [](const std::string& text) { return found("endless-requeue", script(on_node(text))); };
  EXPECT_EQ(told("srun python a.py\n[ -f done ] || sbatch $0\n"),
            Texts{"note job.sh:4:1 if a.py in line 3 fails, the job starts again, without a limit"});
  EXPECT_EQ(told("srun python a.py\nif [ \"$(cat s.txt)\" = STOPPED ]; then\n  scontrol requeue "
                 "$SLURM_JOB_ID\nfi\n"),
            Texts{"note job.sh:5:3 nothing limits how often the job requeues itself"});
  for (const std::string fine :
       {"srun python a.py && sbatch $0\n", "srun python a.py || exit 1\nsbatch $0\n",
        "srun python a.py\n[ $SLURM_RESTART_COUNT -lt 3 ] && scontrol requeue $SLURM_JOB_ID\n",
        "N=$((N + 1))\nexport N\nsrun python a.py\nif [ $N -lt $MAX_RUNS ]; then sbatch $0; fi\n",
        "srun python a.py || rc=$?\nif [ $rc -eq 85 ]; then scontrol requeue $SLURM_JOB_ID; fi\nexit $rc\n",
        "srun python a.py\n[ $SECONDS -gt 80000 ] && { scontrol requeue $SLURM_JOB_ID; }\n",
        "set -e\nsrun python a.py\nif [ ! -f DONE ]; then\n  scontrol requeue $SLURM_JOB_ID\nfi\n",
        "f() { scontrol requeue $SLURM_JOB_ID; }\ntrap f USR1\nsrun python a.py & wait\n"})
    EXPECT_EQ(told(fine), Texts{}) << fine;
}

TEST(ServerFails, AWorkerOfRayWhoseHeadAnswers) {
  const std::string job =
      "#!/bin/bash\n#SBATCH --nodes=4 --exclusive\nnodes=($(scontrol show hostnames $SLURM_JOB_NODELIST))\n"
      "srun -N1 -n1 -w ${nodes[0]} ray start --head --port 6379 --block &\nsleep 60\n"
      "srun --overlap -N1 -n1 -w ${nodes[0]} ray status || exit 1\n"
      "srun -N3 -n3 -x ${nodes[0]} ray start --address ${nodes[0]}:6379 --block &\nsleep 30\n";
  EXPECT_EQ(found("server-fails", script(job + "python main.py\n")),
            Texts{"note job.sh:7:1 if ray start fails at its start, main.py in line 9 starts all the same"});
}

TEST(ServerFails, AServerOfTheUsersOwnIsOneIfTheScriptAsksIt) {
  const std::string loop = "for i in $(seq 60); do\n  curl -sf localhost:5001/ok && break\n  sleep 5\ndone\n";
  EXPECT_EQ(found("death-unnoticed", script("python reward.py --port 5001 &\n" + loop + "python train.py\n")),
            Texts{"note job.sh:1:1 nothing notices if reward.py exits"});
  EXPECT_EQ(found("death-unnoticed", script("python reward.py --port 5001 &\npython train.py\n")), Texts{});
  // Of two that name the port, the first is the server.
  EXPECT_EQ(found("death-unnoticed", script("python reward.py --port 5001 &\n" + loop +
                                            "python client.py --port 5001 &\nwait -n\n")),
            Texts{});
}

TEST(EndlessRequeue, BehindATestOfTheMachine) {
  const std::string job = "#!/bin/bash\n#SBATCH -N 1\n";
  const std::string requeue = "  scontrol requeue $SLURM_JOB_ID\n  exit 0\nfi\npython a.py\n";
  EXPECT_EQ(found("endless-requeue", script(job +
                                            "cc=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader)\n"
                                            "if [ \"$cc\" -lt 7 ]; then\n" +
                                            requeue))
                .size(),
            1U);
  EXPECT_EQ(found("endless-requeue", script(job + "n=$(cat tries)\nif [ \"$n\" -lt 7 ]; then\n" + requeue)),
            Texts{});
}

TEST(FailureUnseen, InFrontOfAPkillByProcessId) {
  EXPECT_EQ(found("failure-unseen",
                  script("sleep 100 & P=$!\npython train.py\npkill -P $P\nkill -9 $P\necho over\n")),
            Texts{"note job.sh:2:1 if train.py fails, the script still exits with 0"});
}

TEST(FailureUnseen, WhateverALookIntoItsOutputFinds) {
  const std::string begin = "python train.py > train.log\n";
  const Texts unseen{"note job.sh:1:1 if train.py fails, the script still exits with 0"};
  EXPECT_EQ(found("failure-unseen", script(begin + "grep -q loss: train.log && echo good\necho done\n")),
            unseen);
  EXPECT_EQ(found("failure-unseen",
                  script(begin + "if grep -q loss: train.log; then\n  grep -q nan train.log && echo nan\nfi\n"
                                 "echo done\n")),
            unseen);
  EXPECT_EQ(found("failure-unseen", script(begin + "grep -q loss: train.log || exit 1\n")), Texts{});
  EXPECT_EQ(found("failure-unseen", script(begin + "grep -q loss: train.log && exit 0\nexit 1\n")), Texts{});
  EXPECT_EQ(found("failure-unseen",
                  script(begin + "if grep -q loss: train.log; then\n  grep -q nan train.log && exit 1\nfi\n"
                                 "echo done\n")),
            Texts{});
}

TEST(ValueMissing, WhereAFailedProgramPrintsNone) {
  EXPECT_EQ(
      whole("value-missing", script("CKPT=$(python latest.py --dir out)\npython eval.py --model $CKPT\n")),
      (Texts{"if latest.py fails, CKPT is empty, and eval.py in line 2 starts all the same",
             "it gets no value, or takes its next argument for one", "below: [ -n \"$CKPT\" ] || exit 1",
             "bash(1), Command Substitution; Simple Command Expansion"}));
  EXPECT_EQ(
      found("value-missing", script("id=$(wandb sweep s.yaml 2>&1 | grep -o 'agent .*' | awk '{print $2}')\n"
                                    "for gpu in 0 1; do\n  wandb agent $id &\ndone\nwait\n")),
      Texts{"note job.sh:1:1 if wandb fails, id is empty, and wandb in line 3 starts all the same"});
  EXPECT_EQ(found("value-missing", script("set -e\nf() {\n  local n=$(python count.py)\n"
                                          "  python work.py \"${n}\"\n}\nf\n"))
                .size(),
            1U);
  for (const std::string fine : {"N=$(python count.py) || exit 1\npython work.py $N\n",
                                 "set -e\nN=$(python count.py)\npython work.py $N\n",
                                 "N=$(python count.py || echo 4)\npython work.py $N\n",
                                 "N=$(python count.py)\npython work.py ${N:-4}\n",
                                 "N=$(python count.py)\nN=${N:-4}\npython work.py $N\n",
                                 "N=$(python count.py)\necho $N\npython work.py\n",
                                 "TAG=$(git rev-parse HEAD)\npython work.py $TAG\n"})
    EXPECT_EQ(found("value-missing", script(fine)), Texts{}) << fine;
}

TEST(FailurePassed, OfAProgramInTheBackground) {
  const std::string shards = "for i in 0 1; do\n  python gen.py --shard $i &\ndone\n";
  EXPECT_EQ(
      found("failure-passed", script(shards + "wait\npython merge.py\n")),
      Texts{"note job.sh:2:3 if gen.py fails, merge.py in line 5 starts all the same, and the exit code "
            "does not show it"});
  EXPECT_EQ(found("failure-passed", script(shards + "python merge.py\nwait\n")), Texts{});
  EXPECT_EQ(
      found("failure-passed", script("python monitor.py & M=$!\npython a.py || exit 1\nkill $M\nwait $M\n"
                                     "python b.py\n")),
      Texts{});
}

TEST(EndlessRetry, OfAProgramThatFailsEachTime) {
  EXPECT_EQ(
      whole("endless-retry", script("until python train.py --resume; do\n  sleep 10\ndone\n")),
      (Texts{"if train.py fails each time, the script starts it again and again, without a limit",
             "a wrong option or a full disk fails at once, and the GPUs stay in use until somebody sees it",
             "count the tries: for try in 1 2 3; do … && break; done", "bash(1), until, while"}));
  EXPECT_EQ(
      found("endless-retry", script("while true; do\n  python train.py\n  [ $? -eq 0 ] && break\ndone\n"))
          .size(),
      1U);
  for (const std::string fine :
       {"for i in 1 2 3; do\n  python train.py && break\ndone\n",
        "n=0\nuntil python train.py; do\n  n=$((n + 1))\n  [ $n -lt 5 ] || exit 1\ndone\n",
        "python train.py\n"})
    EXPECT_EQ(found("endless-retry", script(fine)), Texts{}) << fine;
}

TEST(TriesUnseen, WhereAllOfThemFail) {
  EXPECT_EQ(whole("tries-unseen",
                  script("for try in 1 2 3; do\n  eval \"python train.py\" && break\n  sleep 10\ndone\n")),
            (Texts{"if all tries of train.py fail, the script still exits with 0",
                   "whatever starts the script takes the failure for a success",
                   "ok=1 where it succeeds, and behind the loop: [ \"$ok\" ] || exit 1",
                   "bash(1), for, EXIT STATUS"}));
  EXPECT_EQ(
      found("tries-unseen", script("ok=\nfor try in 1 2 3; do\n  python train.py && ok=1 && break\ndone\n"
                                   "[ \"$ok\" ] || exit 1\n")),
      Texts{});
}

}  // namespace
}  // namespace nlaunch::lint

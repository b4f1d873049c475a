#include <gtest/gtest.h>

#include "unit/lint/support.h"

namespace nlaunch::lint {
namespace {

using namespace support;

TEST(FixedWait, TheHeadOfRayAndItsNodes) {
  const std::string head = "#SBATCH --nodes=3\nsrun -N1 -n1 ray start --head --block &\nsleep 20\n";
  const std::string nodes =
      "for i in 1 2; do\n  srun -N1 -n1 -w rec-node-$i ray start --address=x --block &\n  sleep 5\ndone\n";
  EXPECT_EQ(whole("fixed-wait", script(head + nodes + "python a.py\n")),
            (Texts{"the script assumes that the head of Ray is ready after a fixed time",
                   "if it starts more slowly, the other nodes do not find it",
                   "until ray status --address HOST:PORT; do sleep 2; done",
                   "vLLM, /health; docs.ray.io, ray status"}));
  const std::string at_once = "#SBATCH --nodes=3\nsrun -N1 -n1 ray start --head --block &\n";
  EXPECT_EQ(found("fixed-wait", script(at_once + nodes + "python a.py\n")),
            Texts{"note job.sh:5:3 the script assumes that ray is ready after a fixed time"});
  // The pause only spaces the starts where a later line counts the nodes.
  const std::string counts = "python - <<'PY'\nimport ray\nwhile len(ray.nodes()) < 3: pass\nPY\n";
  EXPECT_EQ(found("fixed-wait", script(at_once + nodes + counts + "python a.py\n")), Texts{});
}

TEST(FixedWait, BehindTheDelaySomethingWaits) {
  const std::string server = "vllm serve a &\nsleep 60\n";
  for (const auto* waits :
       {"curl -sf localhost:8000/health\n", "./wait_for_server.sh 8000\n",
        "python -u tools/wait_for_server.py\n", "python -m tools.check_ready\n",
        "until python ping.py; do sleep 5; done\n", "while ! python ping.py; do\n  sleep 5\ndone\n",
        "for i in 1 2 3; do\n  if python ping.py; then break; fi\n  sleep 5\ndone\n",
        "touch ready\nuntil [ -f ready ]; do sleep 1; done\n"})
    EXPECT_EQ(found("fixed-wait", script(server + waits + "python a.py\n")), Texts{}) << waits;
  for (const auto* other : {"wait_times=3\n", "# until curl\n", "for i in 1 2; do\n  date\ndone\n"})
    EXPECT_EQ(found("fixed-wait", script(server + other + "python a.py\n")),
              Texts{"note job.sh:2:1 the script assumes that vllm is ready after a fixed time"})
        << other;
  for (const auto* work : {"python healthbench.py\n", "python eval_health_bench.py\n"})
    EXPECT_EQ(found("fixed-wait", script(server + work)).size(), 1U) << work;
}

TEST(FixedWait, WhatWaitsAfterTheWorkIsTooLate) {
  EXPECT_EQ(found("fixed-wait", script("ray start --head\nsleep 60\npython a.py\nray status\n")),
            Texts{"note job.sh:2:1 the script assumes that ray is ready after a fixed time"});
}

TEST(FixedWait, TheLastDelayIsNamed) {
  EXPECT_EQ(found("fixed-wait", script("vllm serve a &\nsleep 5\ndate\nsleep 10\npython a.py\n")),
            Texts{"note job.sh:4:1 the script assumes that vllm is ready after a fixed time"});
  EXPECT_EQ(found("fixed-wait", script("vllm serve a &\nsleep 5\ncurl -sf localhost:8000/health\nsleep 10\n"
                                       "python a.py\n")),
            Texts{});
}

TEST(FixedWait, ATaskDoesNotWaitForAnother) {
  const auto said = [](const std::string& head, const std::string& worker) {
    return found("fixed-wait",
                 script("#SBATCH --nodes=2\nsrun bash -c '\nif [ $SLURM_PROCID = 0 ]; then\n"
                        "  ray start --head --block &\n  sleep 5\n" +
                        head + "  python a.py\nelse\n" + worker + "  ray start --address x --block\nfi'\n"));
  };
  const std::string waits = "  ./wait_for_all_nodes.sh 2\n";
  EXPECT_EQ(said("", ""), Texts{"note job.sh:2:1 the script assumes that ray is ready after a fixed time"});
  EXPECT_EQ(said(waits, ""), Texts{});
  EXPECT_EQ(said(waits, "  sleep 10\n"),
            Texts{"note job.sh:2:1 the script assumes that the head of Ray is ready after a fixed time"});
  EXPECT_EQ(said(waits, "  sleep 10\n  nc -z head 6379\n"), Texts{});
}

TEST(LongerThanJob, ASleep) {
  const auto of_limit = [](const std::string& limit, const std::string& time) {
    return found("longer-than-job",
                 script("#!/bin/bash\n#SBATCH --time=" + limit + "\npython a.py\nsleep " + time + "\n"));
  };
  EXPECT_EQ(of_limit("02:00:00", "4h"),
            Texts{"warning job.sh:4:1 sleep 4h does not end before the job's time limit"});
  for (const auto& [limit, time] :
       {std::pair{"30", "1800"}, {"30:00", "30m"}, {"1-0", "1d"}, {"0-1:30", "5400"}})
    EXPECT_EQ(of_limit(limit, time).size(), 1U) << limit << " " << time;
  for (const auto& [limit, time] :
       {std::pair{"30", "1799"}, {"1:00:00", "30m"}, {"2-00:00:00", "1d"}, {"UNLIMITED", "9d"}})
    EXPECT_EQ(of_limit(limit, time), Texts{}) << limit << " " << time;
}

TEST(NoWait, OllamasClientsKnowItsPort) {
  EXPECT_EQ(
      found("no-wait", script("ollama serve &\npython eval.py\n")),
      Texts{
          "warning job.sh:2:1 eval.py starts at once after the server of line 1, and nothing waits for it"});
  EXPECT_EQ(found("no-wait", script("ollama serve &\nsleep 10\npython eval.py\n")), Texts{});
}

TEST(NoWait, OfWhatIsToldThePort) {
  const auto of_client = [](const std::string& text) {
    return found("no-wait", script("#!/bin/bash\nvllm serve m --port 8123 &\n" + text));
  };
  EXPECT_EQ(
      of_client("python ask.py --port 8123\n"),
      Texts{"warning job.sh:3:1 ask.py starts at once after the server of line 2, and nothing waits for it"});
  for (const std::string wrong : {"python ask.py --url=http://localhost:8123/v1\n",
                                  "export OPENAI_BASE_URL=http://localhost:8123/v1\npython ask.py\n",
                                  "echo started\npython warm.py\npython ask.py --port=8123\n"})
    EXPECT_EQ(of_client(wrong).size(), 1U) << wrong;
  for (const std::string right :
       {"until curl -sf localhost:8123/health; do sleep 5; done\npython ask.py --port 8123\n",
        "sleep 300\npython ask.py --port 8123\n", "python train.py --vllm_server_port 8123\n",
        "python wait_ready.py --port 8123\npython ask.py --port 8123\n", "python ask.py --port 8000\n",
        "until python ping.py --port 8123; do sleep 5; done\npython ask.py --port 8123\n"})
    EXPECT_EQ(of_client(right), Texts{}) << right;
}

TEST(FixedWait, BehindAKillIsForAnEnd) {
  EXPECT_EQ(found("fixed-wait", script("vllm serve m & P=$!\nsleep 60\npython a.py\n")).size(), 1U);
  EXPECT_EQ(found("fixed-wait", script("vllm serve m & P=$!\npkill vllm\nsleep 60\npython a.py\n")), Texts{});
}

TEST(FixedWait, ForTheEndOfTheServerBefore) {
  const std::string first = "vllm serve a --port 8000 & P=$!\npython a.py\n";
  const std::string second =
      "vllm serve b --port 8000 &\nuntil curl -sf localhost:8000/health; do sleep 5; done\n";
  EXPECT_EQ(found("fixed-wait", script(first + "kill $P\nsleep 30\n" + second + "python b.py\n")),
            Texts{"note job.sh:4:1 the script assumes that vllm has ended after a fixed time"});
  EXPECT_EQ(found("fixed-wait", script(first + "kill $P\nwait $P\nsleep 30\n" + second + "python b.py\n")),
            Texts{});
}

TEST(FixedWait, OfAHeadThatAnotherStartOfTheScriptStarts) {
  const std::string begin = "if [ \"${NODE_RANK:-1}\" = 0 ]; then\n  ray start --head\nelse\n  sleep 10\n";
  EXPECT_EQ(found("fixed-wait",
                  script(begin + "  ray start --address=$MASTER_ADDR:6379 &\n  sleep infinity\nfi\n")),
            Texts{"note job.sh:4:3 the script assumes that the head of Ray is ready after a fixed time"});
  EXPECT_EQ(found("fixed-wait", script(begin + "  until ray start --address=h:6379; do sleep 5; done\nfi\n")),
            Texts{});
}

TEST(FixedWait, OfAServerThatIsStartedOnlyIfNobodyAnswers) {
  EXPECT_EQ(
      found("fixed-wait", script("if ! curl -sf localhost:8000/health; then\n  vllm serve m --port 8000 &\n"
                                 "  sleep 60\nfi\npython a.py\n")),
      Texts{"note job.sh:3:3 the script assumes that vllm is ready after a fixed time"});
}

TEST(SleepTime, AnotherOneThanTheCommentSays) {
  EXPECT_EQ(
      whole("sleep-time", script("sleep 3000  # wait for 5 minutes\npython a.py\n")),
      (Texts{"this sleeps for 50 minutes, not 5 minutes",
             "sleep counts in seconds, unless the number has a letter behind it", "sleep 300", "sleep(1)"}));
  for (const std::string fine :
       {"sleep 20 # 2 mins max, poll\n", "sleep 300 # at least 2 minutes\n", "sleep 300 # 5 minutes\n",
        "sleep 5m # 5 min\n", "sleep 30 # for the server\n", "sleep 3600 # 1 hour\n"})
    EXPECT_EQ(found("sleep-time", script(fine)), Texts{}) << fine;
}

}  // namespace
}  // namespace nlaunch::lint

#include <gtest/gtest.h>

#include "unit/lint/support.h"

namespace nlaunch::lint {
namespace {

using namespace support;

TEST(EndlessWait, ForAFileThatMayNeverCome) {
  const std::string there = "echo ready > head.txt\n";  // so that the loop ends here
  for (const std::string loop :
       {"while [ ! -f head.txt ]; do sleep 1; done\n", "until [[ -s head.txt ]]; do\n  sleep 1\ndone\n",
        "while ! grep -q ready head.txt; do\n  sleep 5\ndone\n"})
    EXPECT_EQ(found_on_node("endless-wait", there + loop + "python a.py\n"),
              Texts{"note job.sh:4:1 this waits forever if what writes the file has died"})
        << loop;
  for (const std::string loop : {"while [ ! -f head.txt ] && [ $SECONDS -lt 60 ]; do sleep 1; done\n",
                                 "while [ -f lock ]; do\n  work\ndone\n",
                                 "until [ -f head.txt ]; do\n  kill -0 $PID || exit 1\n  sleep 1\ndone\n"})
    EXPECT_EQ(found_on_node("endless-wait", there + loop + "python a.py\n"), Texts{}) << loop;
}

TEST(EndlessWait, AlsoInTheTextOfAStep) {
  EXPECT_EQ(
      found_on_node("endless-wait",
                    "srun bash -c '\n  until ray start --address=h:1 --block; do\n    sleep 5\n  done'\n")
          .size(),
      1U);
}

TEST(WaitRunsOut, AndTheScriptGoesOn) {
  const std::string server = "vllm serve a &\n";
  EXPECT_EQ(
      whole("wait-runs-out",
            script(on_node(server +
                           "for i in $(seq 60); do\n  curl -s localhost:8000 && break\n  sleep 5\ndone\n"
                           "python a.py\n"))),
      (Texts{"the script goes on if nothing has answered when this loop runs out",
             "it counts its turns, but nothing below tells whether the last one succeeded: what follows runs "
             "without the server, and fails later or hangs",
             "after done: [ $ready = 1 ] || exit 1, with ready=1 before the break",
             "bash(1), Compound Commands"}));
  for (const std::string loop :
       {"for i in {1..60}; do\n  if curl -s localhost:8000; then\n    break\n  fi\n  sleep 5\ndone\n",
        "for ((i = 0; i < 60; i++)); do\n  nc -z localhost 8000 && break\n  sleep 5\ndone\n",
        "n=0\nwhile [ $n -lt 60 ]; do\n  curl -s localhost:8000 && break\n  sleep 1\n  n=$((n + 1))\ndone\n"})
    EXPECT_EQ(found_on_node("wait-runs-out", server + loop + "python a.py\n").size(), 1U) << loop;
}

TEST(WaitRunsOut, NotIfItIsChecked) {
  const std::string loop = "for i in $(seq 60); do\n  curl -s localhost:8000 && break\n  sleep 5\ndone";
  for (const std::string& text :
       {loop + "\nif [ $i -eq 60 ]; then\n  exit 1\nfi\npython a.py\n",
        loop + "\ncurl -sf localhost:8000 || exit\npython a.py\n", loop + "\n",
        std::string("for i in $(seq 60); do\n  curl -s localhost:8000 && { ok=1; break; }\n  sleep 5\ndone\n"
                    "[ $ok = 1 ] || exit 1\npython a.py\n"),
        std::string("for i in $(seq 60); do\n  curl -s localhost:8000 && break\n  [ $i = 60 ] && exit 1\n  "
                    "sleep 5\ndone\n"
                    "python a.py\n"),
        std::string("for i in $(seq 3); do\n  curl -O http://x/$i && break\ndone\npython a.py\n"),
        std::string("for f in a b; do\n  curl -s localhost/$f && break\n  sleep 1\ndone\npython a.py\n")})
    EXPECT_EQ(found_on_node("wait-runs-out", "vllm serve a &\n" + text), Texts{}) << text;
}

TEST(WaitRunsOut, AServerThatRunsButNeverAnswersIsTried) {
  const std::string loop =
      "for i in $(seq 60); do\n  curl -s localhost:8000 && { ok=1; break; }\n  kill -0 $PID || exit 1\n  "
      "sleep "
      "5\ndone\n";
  const std::string server = "vllm serve a &\nPID=$!\n";
  EXPECT_EQ(
      whole("wait-runs-out", script(server + loop + "python a.py\n")),
      (Texts{
          "a.py starts all the same if vllm in line 1 has not answered after 5 minutes",
          "a large model, or a first download, takes longer: what follows runs without the server, and fails "
          "later or hangs",
          "after done: [ $ready = 1 ] || exit 1, with ready=1 before the break",
          "bash(1), Compound Commands"}));
  for (const std::string end : {"kill -0 $PID || exit 1\n", "[ $ok = 1 ] || echo no server\n"})
    EXPECT_EQ(found("wait-runs-out", script(server + loop + end + "python a.py\n")).size(), 1U) << end;
  for (const std::string& text : {server + loop + "[ $ok = 1 ] || exit 1\npython a.py\n",
                                  server + "sleep 60\ncurl -s localhost:8000\npython a.py\n"})
    EXPECT_EQ(found("wait-runs-out", script(text)), Texts{}) << text;
}

TEST(WaitRunsOut, WhatFailsWithoutEffectIsNoCheck) {
  const std::string loop = "for i in {1..30}; do\n  if ray status; then\n    break\n  fi\n  sleep 2\ndone\n";
  for (const std::string end : {"ray status || true\n", "ray status || :\n"})
    EXPECT_EQ(found_on_node("wait-runs-out", loop + end + "python a.py\n").size(), 1U) << end;
  EXPECT_EQ(found_on_node("wait-runs-out", loop + "ray status || exit 1\npython a.py\n"), Texts{});
}

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
      Texts{"warning job.sh:2:1 python starts at once after the server of line 1, and nothing waits for it"});
  EXPECT_EQ(found("no-wait", script("ollama serve &\nsleep 10\npython eval.py\n")), Texts{});
}

TEST(NoWait, OfWhatIsToldThePort) {
  const auto of_client = [](const std::string& text) {
    return found("no-wait", script("#!/bin/bash\nvllm serve m --port 8123 &\n" + text));
  };
  EXPECT_EQ(
      of_client("python ask.py --port 8123\n"),
      Texts{"warning job.sh:3:1 python starts at once after the server of line 2, and nothing waits for it"});
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

TEST(AnyAnswer, EndsTheWait) {
  EXPECT_EQ(
      whole("any-answer", script("until curl -s http://localhost:8000/health; do sleep 5; done\n")),
      (Texts{"any answer ends this wait, also an error",
             "curl succeeds if the server answers at all: SGLang answers 503 while it loads, and what else "
             "listens on the port answers 404",
             "curl -sf: it fails if the answer is an error",
             "curl(1), --fail; SGLang python/sglang/srt/entrypoints/http_server.py, health"}));
  const auto loop = [](const std::string& asks) {
    return found("any-answer", script("for i in 1 2; do\n  " + asks + "\n  sleep 5\ndone\n"));
  };
  EXPECT_EQ(loop("if curl --silent localhost:$PORT/health > /dev/null; then break; fi").size(), 1U);
  EXPECT_EQ(loop("if curl -s -w '%{http_code}' localhost:8000 > /dev/null 2>&1; then break; fi").size(), 1U);
  for (const std::string fine :
       {"if curl -sf localhost:8000/health; then break; fi",
        "if curl -s --fail localhost:8000; then break; fi",
        "if curl -s localhost:8000 | grep -q ok; then break; fi", "if nc -z localhost 8000; then break; fi",
        "if [ $(curl -s -o /dev/null -w '%{http_code}' localhost:8000) = 200 ]; then break; fi"})
    EXPECT_EQ(loop(fine), Texts{}) << fine;
}

TEST(AnyAnswer, InTheTextOfAShell) {
  EXPECT_EQ(found("any-answer", script("timeout 300 bash -c \"until curl -s localhost:$PORT/health > "
                                       "/dev/null; do sleep 2; done\"\n")),
            Texts{"note job.sh:1:1 any answer ends this wait, also an error"});
  EXPECT_EQ(found("any-answer",
                  script("timeout 300 bash -c 'until curl -sf localhost:8000/health; do sleep 2; done'\n")),
            Texts{});
  EXPECT_EQ(found("endless-wait",
                  script("timeout 300 bash -c 'until curl -sf localhost:8000/health; do sleep 2; done'\n")),
            Texts{});
}

TEST(AnyAnswer, AnyStatusButNone) {
  const auto loop = [](const std::string& test) {
    return found("any-answer",
                 script("while true; do\n  code=$(curl -s -o /dev/null -w '%{http_code}' localhost:8000)\n  "
                        "if " +
                        test + "; then break; fi\n  sleep 5\ndone\n"));
  };
  EXPECT_EQ(loop("[ \"$code\" != \"000\" ]"),
            Texts{"note job.sh:3:3 any answer ends this wait, also an error"});
  EXPECT_EQ(loop("[[ $code -ne 0 ]]").size(), 1U);
  for (const std::string fine : {"[ $code = 200 ]", "[[ $code =~ ^2 ]]", "[[ $code != 000 && $code == 2* ]]",
                                 "[ $code -eq 200 ] || [ $code -eq 404 ]"})
    EXPECT_EQ(loop(fine), Texts{}) << fine;
}

TEST(BlindWait, DoesNotNoticeThatTheServerHasEnded) {
  const auto loop = [](const std::string& head, const std::string& body) {
    return found("blind-wait",
                 script("vllm serve m --port 8001 &\n" + head + "; do\n" + body + "done\npython a.py\n"));
  };
  const std::string asks = "  curl -s localhost:8001/health && break\n  sleep 5\n";
  EXPECT_EQ(
      loop("for i in {1..200}", asks),
      Texts{
          "note job.sh:2:1 if the server of line 1 ends while it loads, this waits up to 1000 seconds more"});
  EXPECT_EQ(loop("for i in $(seq 1 60)", asks).size(), 1U);
  EXPECT_EQ(loop("for i in $(seq 60)", asks).size(), 1U);
  EXPECT_EQ(loop("for ((i = 0; i < 60; i++))", asks).size(), 1U);
  EXPECT_EQ(loop("for i in {1..200}", asks + "  kill -0 $! || exit 1\n"), Texts{});
  EXPECT_EQ(loop("for i in {1..12}", asks), Texts{});
  EXPECT_EQ(loop("for ((i = 0; i < 100; i += 10))", asks), Texts{});
  EXPECT_EQ(loop("for i in {100..200}", asks), Texts{});
  EXPECT_EQ(loop("for i in {1..200}", asks + "  grep -q Traceback log && exit 1\n"), Texts{});
  EXPECT_EQ(
      found("blind-wait", script("for i in {1..200}; do\n" + asks + "done\nvllm serve m &\npython a.py\n")),
      Texts{});
  EXPECT_EQ(loop("for i in $(seq $N)", asks), Texts{});
  EXPECT_EQ(loop("for i in {1..200}", "  python b.py && break\n  sleep 5\n"), Texts{});
  EXPECT_EQ(found("blind-wait", script("for i in {1..200}; do\n" + asks + "done\npython a.py\n")), Texts{});
}

TEST(EndlessWait, ForTheEndOfAServerIsNone) {
  for (const std::string loop : {"until ! curl -s localhost:8000/health; do sleep 5; done\n",
                                 "while curl -s localhost:8000/health; do sleep 5; done\n"})
    EXPECT_EQ(found("endless-wait", script("vllm serve m --port 8000 & P=$!\npython a.py\nkill $P\n" + loop)),
              Texts{})
        << loop;
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

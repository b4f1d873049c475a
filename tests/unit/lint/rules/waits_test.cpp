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

TEST(EndlessFollow, WhatWaitWaitsForToo) {
  EXPECT_EQ(whole("endless-follow", script("python a.py > log &\ntail -f log &\nwait\n")),
            (Texts{"the wait in line 3 waits for tail, too, which never ends",
                   "the script goes on for ever after its programs have ended",
                   "keep the process ids of the programs, and wait for these: wait $PID", "bash(1), wait"}));
  EXPECT_EQ(found("endless-follow", script("nvidia-smi dmon > g.log &\npython a.py &\nwait\n")).size(), 1U);
  // The script never ends: no exit code.
  EXPECT_EQ(found("failure-unseen", script("python a.py &\npython b.py &\ntail -f log &\nwait\n")), Texts{});
  for (const std::string fine :
       {"python a.py > log & P=$!\ntail -f log &\nwait $P\n",
        "tail -f log & T=$!\npython a.py\nkill $T\nwait\n",
        "python a.py > log & P=$!\ntail -f --pid=$P log &\nwait\n", "tail -f log\nwait\n"})
    EXPECT_EQ(found("endless-follow", script(fine)), Texts{}) << fine;
}

}  // namespace
}  // namespace nlaunch::lint

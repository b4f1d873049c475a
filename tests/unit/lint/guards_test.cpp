#include "lint/guards.h"

#include <gtest/gtest.h>

#include "unit/lint/support.h"

namespace nlaunch::lint {
namespace {

using namespace support;

Texts unread(const std::string& text) {
  return found("unreadable", script(text));
}

Texts assumed(const std::string& where, const std::string& what) {
  return {"note job.sh:" + where + " lint assumed that " + what +
          ": without that, the script does not get to its end on this machine"};
}

TEST(Guards, AFileOrFolderOfTheCluster) {
  EXPECT_EQ(
      whole("unreadable", script("if [ ! -f /data/a.sif ]; then\n  echo no\n  exit 1\nfi\npython a.py\n")),
      (Texts{"lint assumed that /data/a.sif exists: without that, the script does not get to its end on this "
             "machine",
             "the lines below were examined as they run on the cluster", "", ""}));
  EXPECT_EQ(unread("[[ -d /data/model/ ]] || { echo no; exit 1; }\npython a.py\n"),
            assumed("1:1", "/data/model exists"));
  EXPECT_EQ(unread("set -e\n[[ -s /data/token ]]\nexport KEY=$(< /data/token)\npython a.py\n"),
            assumed("2:1", "/data/token exists"));
  EXPECT_EQ(unread("die() {\n  echo \"$1\"\n  exit 1\n}\n[ -x /opt/a ] || die no\n/opt/a\n"),
            assumed("5:1", "/opt/a exists"));
}

TEST(Guards, WhatFollowsIsExamined) {
  EXPECT_EQ(
      found("unknown-variable", script("[ -f /data/a ] || exit 1\nexport NCCL_TIMEOUT=1\npython a.py\n")),
      Texts{"error job.sh:2:8 NCCL_TIMEOUT has no effect"});
}

TEST(Guards, SeveralAreOneNote) {
  EXPECT_EQ(unread("for one in a b c; do\n  [ -d /data/$one ] || exit 1\ndone\npython a.py\n"),
            assumed("2:3", "/data/a exists, and passed 2 other tests"));
}

TEST(Guards, AProgramOfTheCluster) {
  const std::string text =
      "if ! command -v site_sbatch &>/dev/null; then\n  exit 1\nfi\nif ! site_sbatch --check; then\n  exit "
      "1\n"
      "fi\nexport NCCL_DEBUG=INFO\npython a.py\n";
  EXPECT_EQ(unread(text), assumed("1:1", "site_sbatch is installed"));
  // It only asks: its environment is not that of the job.
  EXPECT_EQ(script(text).environments.size(), 1U);
}

TEST(Guards, AContainerThatRunsThere) {
  EXPECT_EQ(
      unread("if ! docker ps --format '{{.Names}}' | grep -q \"^web-1$\"; then\n  exit 1\nfi\npython a.py\n"),
      assumed("1:1", "docker ps prints web-1"));
}

TEST(Guards, AServerThatAnswersOtherwise) {
  EXPECT_EQ(
      unread("n=0\nuntil curl -s -o /dev/null -w '%{http_code}' http://localhost:1 | grep -E "
             "\"^4[0-9]{2}$\"; do\n  n=$((n + 1))\n  [ $n -ge 5 ] && exit 1\n  sleep 1\ndone\npython a.py\n"),
      assumed("2:1", "curl prints 401"));
}

TEST(Guards, VariablesOfAFileOfTheCluster) {
  EXPECT_EQ(unread("set -u\nsource env.sh\npython a.py $DATA_DIR $MODEL_DIR\n"),
            (Texts{"note job.sh:2:1 env.sh is not here: what it sets was not examined",
                   "note job.sh:3:1 lint assumed that env.sh sets DATA_DIR, and passed 1 other test: without "
                   "that, the script does not get to its end on this machine"}));
}

TEST(Guards, VariablesThatTheUserGives) {
  EXPECT_EQ(unread("if [ -z \"$MODEL\" ]; then\n  echo usage\n  exit 1\nfi\npython a.py $MODEL\n"),
            assumed("1:1", "MODEL is set"));
  EXPECT_EQ(unread(": \"${MODEL:?which model}\"\n[[ -n \"${DATA:-}\" ]] || exit 2\npython a.py\n"),
            assumed("1:1", "MODEL is set, and passed 1 other test"));
  EXPECT_EQ(unread("if [ -d / ]; then\n  PORT=$(( 8000 + $OFFSET ))\n  python a.py --port $PORT\nfi\n"),
            assumed("2:3", "OFFSET is set"));
  EXPECT_EQ(script("[ -z \"$HF_TOKEN\" ] && exit 1\npython a.py\n").script->unread.at(0).instead,
            "pass its arguments after --, its variables as --env NAME=VALUE");
}

TEST(Guards, VariablesWithoutWhichTheScriptEnds) {
  const auto input = script("set -u\npython a.py \\\n  --n $n_nodes --out $OUT_DIR\n");
  EXPECT_EQ(input.script->unread.size(), 0U);
  EXPECT_EQ(found("unset", input),
            (Texts{"warning job.sh:3:8 nothing sets n_nodes", "note job.sh:3:23 nothing sets OUT_DIR"}));
}

TEST(Guards, VariablesThatAFileOfTheClusterSets) {
  const auto input = script("set -u\nsource /repo/nlaunch-nowhere/funcs.sh\npython a.py $OUT_DIR\n");
  EXPECT_EQ(found("unset", input), Texts{});
  EXPECT_EQ(
      input.script->unread.back().message,
      "lint assumed that funcs.sh sets OUT_DIR: without that, the script does not get to its end on this "
      "machine");
}

TEST(Guards, ArgumentsThatTheUserGives) {
  EXPECT_EQ(unread("if [ $# -ne 2 ]; then\n  exit 1\nfi\npython a.py $1 $2\n"),
            assumed("1:1", "it gets 2 arguments"));
  EXPECT_EQ(unread("[ -n \"$1\" ] || { echo usage; exit 1; }\npython a.py\n"),
            assumed("1:1", "it gets 1 argument"));
  EXPECT_EQ(unread("set -u\npython a.py $2\n"), assumed("2:1", "it gets 2 arguments"));
}

TEST(Guards, ToolsThatFailForWhatIsNotHere) {
  EXPECT_EQ(unread("set -e\ncat nothing/here.json > config.json\npython a.py\n"),
            assumed("2:1", "cat succeeds"));
  EXPECT_EQ(unread("set -e\nA=$(grep a nothing.yaml)\npython a.py\n"),
            assumed("2:1", "the program that sets A succeeds"));
  EXPECT_EQ(unread("set -e\nfalse\npython a.py\n").at(0),
            "warning job.sh:2:1 set -e exits the script here: this line fails with code 1 on this machine");
}

TEST(Guards, NotWhereTheScriptItselfFails) {
  EXPECT_EQ(unread("[ -f /data/done ] && echo done\npython a.py\n"), Texts{});
  EXPECT_EQ(unread("[ -f /data/a ] || echo none\nexit 1\npython a.py\n").size(), 1U);
}

TEST(Guards, AFileThatTheScriptMakesExecutable) {
  EXPECT_EQ(unread("set -e\nchmod +x /data/run.sh\npython a.py\n"),
            assumed("2:1", "/data/run.sh exists, and did not examine it"));
}

TEST(Guards, AFolderThatHasToHaveSomethingInIt) {
  EXPECT_EQ(unread("[ -d /data/model ] || exit 1\nif [ -z \"$(ls -A /data/model)\" ]; then\n  exit 1\nfi\n"
                   "python a.py\n"),
            assumed("1:1", "/data/model exists, and passed 1 other test"));
}

TEST(Guards, WhatReadTakesFromAProgram) {
  const std::string text =
      "set -e\nread -r DATA OUT < <(\n  python - <<'PY'\nprint(1)\nPY\n)\n[ -n \"$DATA\" ] || exit 1\n"
      "export NCCL_TIMEOUT=1\npython a.py\n";
  EXPECT_EQ(unread(text), assumed("2:1", "python prints what read takes"));
  EXPECT_EQ(found("unknown-variable", script(text)), Texts{"error job.sh:8:8 NCCL_TIMEOUT has no effect"});
}

TEST(Guards, AValueThatAProgramHasToPrint) {
  EXPECT_EQ(unread("CKPT=$(python latest.py)\nif [ -z \"$CKPT\" ]; then\n  echo none\n  exit 1\nfi\n"
                   "python a.py $CKPT\n"),
            assumed("2:1", "latest.py prints something"));
}

TEST(Gaps, AProgramThatALoopStartsAgainAndAgain) {
  EXPECT_EQ(
      unread("while true; do\n  python worker.py\n  sleep 5\ndone\n"),
      Texts{"warning job.sh:2:3 worker.py is started again each time it ends, without a limit: bash was "
            "stopped here"});
}

TEST(Gaps, ATextThatBashCannotParse) {
  EXPECT_EQ(
      unread("srun bash -c 'echo \"a; python train.py'\npython b.py\n"),
      Texts{"error job.sh:1:1 bash cannot parse the text that this gives to a shell: line 1: unexpected "
            "EOF while looking for matching `\"'"});
}

TEST(Gaps, WhatAnEvaluatedOutputMaySet) {
  EXPECT_EQ(
      found("unset", script("eval \"$(python plan.py --emit env)\"\npython a.py --n $((N_SERVERS * 2))\n")),
      Texts{});
  EXPECT_EQ(found("unset", script("S=$(python eval.py)\npython a.py --n $((N_SERVERS * 2)) $S\n")).size(),
            1U);
}

}  // namespace
}  // namespace nlaunch::lint

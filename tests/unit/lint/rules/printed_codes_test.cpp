#include <gtest/gtest.h>

#include "unit/lint/support.h"

namespace nlaunch::lint {
namespace {

using namespace support;

TEST(FailureOnlyPrinted, ByAnEcho) {
  const auto said = [](const std::string& text) {
    return found("failure-only-printed", script("#!/bin/bash\n#SBATCH -N 1\n" + text + "\n"));
  };
  EXPECT_EQ(said("python a.py && echo ok || echo FAILED"),
            Texts{"note job.sh:3:1 a failure of python is printed, and nothing else"});
  EXPECT_EQ(said("python a.py || echo \"step $STEP failed\"").size(), 1U);
  EXPECT_EQ(said("python a.py || { echo failed; }").size(), 1U);
  for (const std::string fine :
       {"python a.py || { echo failed; exit 1; }", "python a.py || exit 1", "python a.py || code=$?",
        "python a.py || echo failed > status", "pip install a || echo failed", "python a.py; echo done"})
    EXPECT_EQ(said(fine), Texts{}) << fine;
}

TEST(ExitCodePrinted, AndThenForgotten) {
  const auto said = [](const std::string& text) { return found("exit-code-printed", script(text)); };
  const std::string log = "log() {\n  local now=$(date)\n  echo \"[$now] $1\" | tee -a x.log\n}\n";
  const std::string test =
      "if [ $CODE -eq 0 ]; then\n  log \"fine ($((END - 1)) s)\"\nelse\n  log \"failed: $CODE\"\nfi\n";
  EXPECT_EQ(whole("exit-code-printed",
                  script(log + "python a.py 2>&1 | tee x.log\nCODE=${PIPESTATUS[0]}\nEND=$(date +%s)\n" +
                         test + "echo \"\"\nlog done\n")),
            (Texts{"CODE is printed, and then forgotten: the script exits with 0 after a failure",
                   "whatever starts the script takes the failure for a success", "exit \"$CODE\" at the end",
                   "bash(1), EXIT STATUS"}));
  EXPECT_EQ(
      whole("exit-code-printed",
            script("#!/bin/bash\n#SBATCH -N 1\npython a.py\nCODE=$?\nif [[ $CODE -ne 0 ]]; then\n  echo "
                   "failed\nfi\n"))
          .at(1),
      "Slurm considers the job successful and starts dependent jobs (afterok)");
  EXPECT_EQ(said("python a.py\nCODE=$?\nif test $CODE = 0; then\n  echo fine >&2\nfi\nexit 0\n").size(), 1U);
  const std::string begin = "python a.py\nCODE=$?\n";
  for (const std::string& fine :
       {begin + "if [ $CODE -ne 0 ]; then\n  echo failed\nfi\nexit $CODE\n",
        begin + "if [ $CODE -ne 0 ]; then\n  echo failed\n  exit 1\nfi\necho done\n",
        begin + "if [ $CODE -ne 0 ]; then\n  mail -s failed me\nfi\necho done\n",
        begin + "if [ $CODE -ne 0 ]; then\n  echo failed > state\nfi\necho done\n",
        begin + "if [ $CODE -ne 0 ]; then\n  echo failed\nfi\npython b.py\n", begin + "[ $CODE -eq 0 ]\n",
        begin + "echo $CODE\n", begin + "if [ $CODE -ne 0 ]; then false; fi\n",
        "trap 'exit $CODE' EXIT\n" + begin + "if [ $CODE -ne 0 ]; then\n  echo failed\nfi\n",
        "set -e\n" + begin + "if [ $CODE -ne 0 ]; then\n  echo failed\nfi\n",
        std::string("run() {\n  python a.py\n  CODE=$?\n  return $CODE\n}\nrun\n"),
        std::string("ls\nCODE=$?\nif [ $CODE -ne 0 ]; then\n  echo failed\nfi\n")})
    EXPECT_EQ(said(fine), Texts{}) << fine;
}

TEST(StatusOfTest, TheCodeIsThatOfTheTest) {
  EXPECT_EQ(whole("status-of-test", script("python a.py\nif [[ $? -ne 0 ]]; then\n  echo \"code $?\"\nfi\n")),
            (Texts{"$? is 0 here: it is the exit code of the test, not of the program",
                   "each command sets $?, also [ ]: the code that is printed or returned is wrong",
                   "code=$? before the test, then $code", "bash(1), Special Parameters"}));
  for (const std::string body : {"echo failed", "code=3", "echo '$?'", "echo \"\\$?\"", "ls; echo failed"})
    EXPECT_EQ(found("status-of-test", script("python a.py\nif [ $? -ne 0 ]; then\n  " + body + "\nfi\n")),
              Texts{})
        << body;
  EXPECT_EQ(found("status-of-test", script("python a.py\nif [ $? -ne 0 ]; then\n  ls\n  echo $?\nfi\n")),
            Texts{});
}

TEST(FailureOnlyPrinted, AHandlerThatExitsWithZero) {
  const auto handler = [](const std::string& branch, const std::string& end) {
    return script("#SBATCH --nodes=1\nagain() {\n  if ! scontrol requeue $SLURM_JOB_ID; then\n" + branch +
                  "  fi\n  " + end + "\n}\ntrap again USR1\npython a.py &\nwait\n");
  };
  EXPECT_EQ(whole("failure-only-printed",
                  handler("    echo \"$(date) FAILED\" >&2\n    scontrol show job 1 || true\n", "exit 0")),
            (Texts{"a failure of scontrol requeue is printed, and the handler exits with 0",
                   "Slurm considers the job successful, though it does not run again",
                   "exit 1 in this branch", "bash(1), Lists"}));
  EXPECT_EQ(found("failure-only-printed", handler("    echo FAILED\n    exit 1\n", "exit 0")), Texts{});
  EXPECT_EQ(found("failure-only-printed", handler("    echo FAILED\n", "exit $code")), Texts{});
}

TEST(FailureForgotten, ItsBranchOnlyPrints) {
  EXPECT_EQ(whole("failure-forgotten",
                  script(on_node("if srun -c 8 python a.py; then\n  echo ok\nelse\n  echo failed\nfi\n"))),
            (Texts{"a failure of srun is tested, and then forgotten: the script exits with 0",
                   "Slurm considers the job successful and starts dependent jobs (afterok)",
                   "exit 1 in the branch of the failure", "bash(1), Compound Commands"}));
  for (const std::string text :
       {"python a.py\nif [ $? -ne 0 ]; then\n  echo failed\nfi\n",
        "python a.py\nif [[ $? == 0 ]]; then\n  cp a b\nelse\n  echo failed\nfi\necho end\n",
        "if ! python a.py; then\n  echo failed\nfi\n", "if python a.py; then\n  cp a b\nfi\n"})
    EXPECT_EQ(found_on_node("failure-forgotten", text).size(), 1U) << text;
}

TEST(FailureForgotten, NotIfItHasAConsequence) {
  for (const std::string text :
       {"if python a.py; then\n  echo ok\nelse\n  exit 1\nfi\n", "if ! python a.py; then\n  cat log\nfi\n",
        "python a.py\nif [ $? -ne 0 ]; then\n  echo failed\n  exit 1\nfi\n",
        "if python a.py; then\n  echo ok\nelse\n  echo failed\nfi\npython b.py\n",
        "trap 'exit 1' ERR\nif ! python a.py; then\n  echo failed\nfi\n"})
    EXPECT_EQ(found_on_node("failure-forgotten", text), Texts{}) << text;
}

}  // namespace
}  // namespace nlaunch::lint

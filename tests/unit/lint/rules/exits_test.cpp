#include <gtest/gtest.h>

#include "unit/lint/support.h"

namespace nlaunch::lint {
namespace {

using namespace support;

Texts lost(const std::string& text) {
  return found("exit-code-lost", script(text));
}

TEST(ExitCodeLost, BehindACommandThatEndsTheScript) {
  EXPECT_EQ(lost("set -e\npython a.py\ncode=$?\n"),
            Texts{"error job.sh:3:1 under set -e this line is reached only if python succeeds"});
  EXPECT_EQ(lost("PYTHON=/opt/python3\nset -e\n$PYTHON a.py\ncode=$?\n"),
            Texts{"error job.sh:4:1 under set -e this line is reached only if python3 succeeds"});
}

TEST(ExitCodeLost, HoweverErrexitIsTurnedOn) {
  for (const std::string on : {"set -e", "set -euo pipefail", "set -o errexit", "set -x -e",
                               "set -o pipefail -e", "set -xo errexit", "set +e\nset -e"}) {
    EXPECT_EQ(lost(on + "\npython a.py\ncode=$?\n").size(), 1U) << on;
  }
  for (const std::string off : {"true", "set -x", "set +e", "set -e\nset +e", "set -e\nset +o errexit",
                                "set errexit", "set -x errexit", "set --e", "set e", "set -",
                                "set -o pipefail", "echo -e", "set -e\nset +xe", "set o errexit"}) {
    EXPECT_EQ(lost(off + "\npython a.py\ncode=$?\n"), Texts{}) << off;
  }
}

TEST(ExitCodeLost, TheFirstLineMayTurnItOn) {
  for (const std::string first : {"#!/bin/bash -e", "#!/bin/bash -xe", "#!/bin/bash -l -e"}) {
    EXPECT_EQ(lost(first + "\npython a.py\ncode=$?\n").size(), 1U) << first;
  }
  for (const std::string first : {"#!/bin/bash", "#!/bin/bash -l", "#!/bin/bash --noediting",
                                  "#!/usr/bin/env bash", "# -e", "\n#!/bin/bash -e"}) {
    EXPECT_EQ(lost(first + "\npython a.py\ncode=$?\n"), Texts{}) << first;
  }
}

TEST(ExitCodeLost, WhereTheFailureIsLookedAtNothingIs) {
  for (const std::string text :
       {"python a.py || true\ncode=$?", "python a.py || code=$?", "! python a.py\ncode=$?",
        "if python a.py; then b; fi\ncode=$?", "python a.py\nfor i in 1; do code=$?; done", "A=1\ncode=$?",
        "A=$(python a.py)\ncode=$?", "trap 'rm x' EXIT\npython a.py\ncode=$?",
        "trap 'rm x' ERR\npython a.py\ncode=$?", "trap 'rm x' 0\npython a.py\ncode=$?",
        "python a.py\ncode=$(a $?)", "f() {\n python a.py\n code=$?\n}"}) {
    EXPECT_EQ(lost("set -e\n" + text + "\n"), Texts{}) << text;
  }
  EXPECT_EQ(lost("#!/bin/bash -e\ncode=$?\n"), Texts{});
  EXPECT_EQ(lost("set -e\ntrap 'rm x' TERM\npython a.py\ncode=$?\n").size(), 1U);
  EXPECT_EQ(lost("set -e\necho EXIT\npython a.py\ncode=$?\n").size(), 1U);
}

TEST(ExitCodeLost, OnlyWhereTheCodeIsKept) {
  for (const std::string line : {"code=$x", "code=1$?", "code=?", "export code=$?", "code="}) {
    EXPECT_EQ(lost("set -e\npython a.py\n" + line + "\n"), Texts{}) << line;
  }
}

TEST(ExitCodeLost, ACommandWithinASubstitutionIsNotTheOneBefore) {
  EXPECT_EQ(lost("set -e\npython a.py\ncode=$? A=$(cat b)\n"),
            Texts{"error job.sh:3:1 under set -e this line is reached only if python succeeds"});
  EXPECT_EQ(lost("echo $(set -e)\npython a.py\ncode=$?\n"), Texts{});
}

Texts hidden(const std::string& text) {
  return found("exit-code-hidden", script("#!/bin/bash\n#SBATCH --nodes=2\n" + text));
}

TEST(ExitCodeHidden, BehindTheLastProgram) {
  const Texts found{
      "warning job.sh:4:1 the script exits with the exit code of this line: a failure of srun is lost"};
  for (const std::string last : {"echo done", "date", "exit 0", "A=1", "printf 'x\\n'", "true"})
    EXPECT_EQ(hidden("srun python a.py\n" + last + "\n"), found) << last;
  EXPECT_EQ(
      hidden("for i in 1 2; do\n  /opt/python a.py\ndone\necho done\n"),
      Texts{"warning job.sh:6:1 the script exits with the exit code of this line: a failure of python is "
            "lost"});
  EXPECT_EQ(whole("exit-code-hidden", script("srun python a.py\necho done\n")),
            (Texts{"the script exits with the exit code of this line: a failure of srun is lost",
                   "Slurm considers the job successful and starts dependent jobs (afterok)",
                   "add `set -e` above, or use srun … || exit", "bash(1), EXIT STATUS, wait"}));
}

TEST(ExitCodeHidden, OfTheProgramThatTheLineNames) {
  EXPECT_EQ(
      hidden("git pull\nif [ $? -ne 0 ]; then exit; fi\nsrun bash -c 'python a.py; python b.py'\necho x\n"),
      Texts{"warning job.sh:6:1 the script exits with the exit code of this line: a failure of srun is "
            "lost"});
}

TEST(ExitCodeHidden, WaitWithoutAProcess) {
  for (const std::string on : {"", "set -e\n"})
    EXPECT_EQ(
        whole("exit-code-hidden", script("#SBATCH -N 2\n" + on +
                                         "for i in 1 2; do\n  srun -N1 python a.py &\n  if [ 1 ]; then\n    "
                                         "sleep 1\n  fi\ndone\nwait\n")),
        (Texts{"`wait` without a process id succeeds even if a program failed",
               "Slurm considers the job successful and starts dependent jobs (afterok)",
               "add pids+=($!) after each &, then: for pid in \"${pids[@]}\"; do wait \"$pid\" || code=$?; "
               "done; exit ${code:-0}",
               "bash(1), EXIT STATUS, wait"}));
}

TEST(ExitCodeHidden, NotWhereItIsKept) {
  for (const std::string text :
       {"set -e\nsrun python a.py\necho done", "srun python a.py", "srun python a.py || exit\necho done",
        "srun python a.py && echo done", "if srun python a.py; then b; fi\necho done",
        "srun python a.py\ncode=$?\necho done\nexit $code", "srun python a.py\nexit 1",
        "trap 'exit 1' ERR\nsrun python a.py\necho done", "echo begin", "srun python a.py &\nwait $!",
        "srun python a.py &\nwait -n", "srun python a.py\ngrep -q ok log && echo done",
        "run() {\n  srun python a.py\n}\nrun || exit\necho done", "set -e\nsrun python a.py\nwait",
        "srun python a.py &\nsleep 10", "srun python a.py\n[ -f x ]", "false\nsrun python a.py\npython b.py"})
    EXPECT_EQ(hidden(text + "\n"), Texts{}) << text;
  EXPECT_EQ(found("exit-code-hidden", script("python a.py\necho done\n")), Texts{});
}

TEST(ExitCodeOfTee, WithoutPipefail) {
  EXPECT_EQ(found("exit-code-of-tee", script("python a.py \\\n  --x 2>&1 | tee log\n")),
            Texts{"warning job.sh:2:12 after | tee the exit code of the program is lost"});
  for (const auto* fine :
       {"set -o pipefail\npython a.py | tee log\n", "set -euo pipefail\npython a.py | tee log\n",
        "python a.py | tee log &\nwait\n", "echo a | tee log\n", "python a.py > log\n",
        "python a.py | tee log\nexit ${PIPESTATUS[0]}\n"}) {
    EXPECT_EQ(found("exit-code-of-tee", script(fine)), Texts{}) << fine;
  }
}

TEST(ExitCodeOfTee, OfABlockToo) {
  EXPECT_EQ(found("exit-code-of-tee", script("set -e\n(\n  echo a\n  python a.py\n) |& tee log\n")),
            Texts{"warning job.sh:5:3 after | tee the exit code of the program is lost"});
  EXPECT_EQ(
      found("exit-code-of-tee", script("for i in 1 2; do\n  python a.py $i\ndone 2>&1 | tee log\n")).size(),
      1U);
  EXPECT_EQ(found("exit-code-of-tee", script("{\n  python a.py\n} | tee log\n")).size(), 1U);
  for (const auto* fine :
       {"python a.py\n(\n  echo a\n) | tee log\n", "(\n  python a.py\n)\n(\n  echo a\n) | tee log\n",
        "set -o pipefail\n(\n  python a.py\n) |& tee log\n"})
    EXPECT_EQ(found("exit-code-of-tee", script(fine)), Texts{}) << fine;
}

TEST(NotWaitedFor, AJobEndsWithItsScript) {
  const std::string job = "#SBATCH -N 1\n";
  EXPECT_EQ(found("not-waited-for", script(job + "python a.py &\npython b.py &\necho done\n")),
            Texts{"error job.sh:3:1 the script exits while python still runs in the background"});
  for (const auto* fine :
       {"python a.py &\nwait\n", "python a.py &\npython b.py\n", "python a.py\n",
        "python a.py &\nPID=$!\nwait $PID\n",
        "srun bash -c 'python a.py' &\nsrun bash -c 'python b.py &'\nwait\n", "python a.py &\nsleep 5\n"})
    EXPECT_EQ(found("not-waited-for", script(job + fine)), Texts{}) << fine;
  EXPECT_EQ(found("not-waited-for", script("python a.py &\n")), Texts{});
}

TEST(ExitCodeHidden, ByACommandThatAsksTheClusterOrCleansUp) {
  for (const std::string last : {"pwd", "hostname", "ray stop", "rm -rf /tmp/x", "squeue --me", "nvidia-smi"})
    EXPECT_EQ(hidden("srun python a.py\n" + last + "\n").size(), 1U) << last;
  for (const std::string last : {"ray status", "rm x", "python b.py", "./report.sh"})
    EXPECT_EQ(hidden("srun python a.py\n" + last + "\n"), Texts{}) << last;
}

TEST(ExitCodeHidden, ACodeThatIsOnlyPrintedIsNotKept) {
  for (const std::string text : {"srun python a.py\necho \"exit code: $?\"\n",
                                 "srun python a.py\ncode=$?\nsleep 1\necho \"exit code: $code\"\n",
                                 "python a.py | tail\ncode=${PIPESTATUS[0]}\nprintf '%s\\n' \"$code\"\n"})
    EXPECT_EQ(hidden(text).size(), 1U) << text;
  for (const std::string text :
       {"srun python a.py\ncode=$?\nif [ $code -ne 0 ]; then mail me; fi\necho $code\n",
        "srun python a.py\ncode=$?\necho $code; exit $code\n",
        "srun python a.py\necho $? > code.txt || exit\n",
        "srun python a.py\ncode=$?\ntest \"$code\" = 0\necho done\n",
        "srun python a.py\nexport code=$?\necho\n"})
    EXPECT_EQ(hidden(text), Texts{}) << text;
}

TEST(ExitCodeHidden, AfterTheTraceHasEnded) {
  EXPECT_EQ(hidden("srun python a.py\nset +x\n\nexit 0\n"),
            Texts{"warning job.sh:6:1 the script exits with the exit code of this line: a failure of srun is "
                  "lost"});
  EXPECT_EQ(hidden("srun python a.py\nset +x\nexit $code\n"), Texts{});
}

TEST(ExitCodeOfTee, PipefailAmongOtherLetters) {
  for (const auto* on : {"set -eou pipefail\n", "set -o errexit -o pipefail\n"})
    EXPECT_EQ(found("exit-code-of-tee", script(on + std::string("python a.py | tee log\n"))), Texts{}) << on;
}

TEST(CleanupFails, WhereNothingIsLeftToKill) {
  const auto fails = [](const std::string& text) { return found("cleanup-fails", script(text)); };
  EXPECT_EQ(whole("cleanup-fails", script("set -e\npython a.py\npkill -9 sglang\n")),
            (Texts{"pkill fails if it finds no process, and set -e then exits the script with 1",
                   "a job that finished its work then counts as failed, and the lines below do not run",
                   "add || true at the end of the line", "pkill(1), EXIT STATUS; bash(1), set -e"}));
  EXPECT_EQ(whole("cleanup-fails", script("set -ex\npkill -9 ray\npython a.py\n")).at(1),
            "where nothing is left over from an earlier run, the script stops before it starts anything");
  EXPECT_EQ(fails("#!/bin/bash -e\nkillall python\n").size(), 1U);
  EXPECT_EQ(fails("set -e\npython s.py &\nPID=$!\npython a.py\nkill $PID\n"),
            Texts{"note job.sh:5:1 kill fails if the process has already exited, and set -e then exits the "
                  "script with 1"});
  // The first one finds the server, the second one does not.
  EXPECT_EQ(fails("set -e\nvllm serve m &\npython a.py\npkill vllm\nsleep 3\npkill vllm\n"),
            Texts{"warning job.sh:6:1 pkill fails if it finds no process, and set -e then exits the script "
                  "with 1"});
}

TEST(CleanupFails, NotWhereItMayFail) {
  for (const std::string text :
       {"python a.py\npkill ray\n", "set -e\npython a.py\npkill ray || true\n",
        "set -e\npython a.py\nif pkill ray; then sleep 1; fi\n", "set -e\nset +e\npkill ray\npython a.py\n",
        "set -e\npython a.py\npkill ray &\n",
        "set -e\nclean() {\n  pkill ray\n}\ntrap clean EXIT\npython a.py\n",
        "set -e\nvllm serve m &\npython a.py\npkill vllm\n", "set -e\npython a.py\n! pkill ray\n",
        "set -e\npython s.py &\nkill $!\npython a.py\n", "set -e\ntrap 'pkill ray' EXIT\npython a.py\n"})
    EXPECT_EQ(found("cleanup-fails", script(text)), Texts{}) << text;
}

TEST(ExitCodeOfLast, OfALoop) {
  const std::string job = "#!/bin/bash\n#SBATCH -N 1\n";
  const std::string loop = "for i in 1 2 3; do\n  python a.py $i\ndone\n";
  EXPECT_EQ(found("exit-code-of-last", script(job + loop)),
            Texts{"note job.sh:4:3 this line runs python 3 times, and only the last one decides whether the "
                  "job failed"});
  for (const std::string& fine :
       {loop, job + "set -e\n" + loop, job + "for i in 1 2; do\n  python a.py $i || code=1\ndone\n",
        job + "for i in 1 2; do\n  python a.py $i &\ndone\nwait\n",
        job + "for i in 1; do\n  python a.py\ndone\n", job + "trap 'exit 1' ERR\n" + loop,
        job + loop + "python b.py\n"})
    EXPECT_EQ(found("exit-code-of-last", script(fine)), Texts{}) << fine;
}

TEST(PidOfTee, KilledOrWaitedFor) {
  const std::string start = "python a.py 2>&1 | tee log &\nPID=$!\n";
  EXPECT_EQ(whole("pid-of-tee", script(start + "sleep 5\nkill $PID\n")),
            (Texts{"$! is the process id of tee, the last program of the pipe",
                   "kill $PID stops tee, and the program that does the work runs on",
                   "program > >(tee log) 2>&1 &", "bash(1), Special Parameters; Pipelines"}));
  EXPECT_EQ(whole("pid-of-tee", script(start + "wait \"$PID\"\n")).at(1),
            "wait $PID returns the exit code of tee: a failure of the program is lost");
  for (const std::string& fine : {start + "echo $PID\n", "set -o pipefail\n" + start + "wait $PID\n",
                                  std::string("python a.py > log 2>&1 &\nPID=$!\nwait $PID\n"),
                                  std::string("python a.py > >(tee log) 2>&1 &\nPID=$!\nkill $PID\n"),
                                  std::string("python a.py | tee log\npython b.py &\nPID=$!\nkill $PID\n"),
                                  std::string("python a.py | tee log &\npython b.py &\nPID=$!\nkill $PID\n")})
    EXPECT_EQ(found("pid-of-tee", script(fine)), Texts{}) << fine;
  EXPECT_EQ(
      found("pid-of-tee", script("start() {\n  python a.py \\\n    --port 1 | tee -a log &\n  PID=$!\n}\n"
                                 "stop() {\n  kill \"${PID}\"\n}\nstart\nstop\n"))
          .size(),
      1U);
}

TEST(ExitCodeHidden, OfAProgramThatAFunctionStartsInTheBackground) {
  EXPECT_EQ(hidden("start() {\n  srun python a.py &\n}\nstart\nwait\n").size(), 1U);
  EXPECT_EQ(hidden("start() {\n  srun python a.py\n}\nstart\necho done\n"), Texts{});
}

TEST(ExitCodeHidden, ByACommandThatMovesOrShowsFiles) {
  for (const std::string last : {"mv a b", "cp a b", "ls -l", "du -sh .", "tail log", "cat log"})
    EXPECT_EQ(hidden("python a.py\n" + last + "\n").size(), 1U) << last;
}

TEST(ExitCodeHidden, InTheTextOfAStep) {
  const auto said = [](const std::string& text) {
    return found("exit-code-hidden", script("set -e\nsrun bash -c '" + text + "'\n"));
  };
  EXPECT_EQ(said("python a.py; echo done"),
            Texts{"warning job.sh:2:1 this bash -c ends with echo, which succeeds: a failure of python is "
                  "lost"});
  EXPECT_EQ(
      said("python a.py & wait"),
      Texts{"warning job.sh:2:1 `wait` in this bash -c has no process id: a failure of python is lost"});
  for (const std::string fine :
       {"python a.py", "echo start; python a.py", "set -e; python a.py; echo done",
        "python a.py || exit 1; echo", "python a.py; code=$?; echo; exit $code", "python a.py & wait $!"})
    EXPECT_EQ(said(fine), Texts{}) << fine;
}

TEST(CancelsItself, AtItsEnd) {
  const std::string job = "#!/bin/bash\n#SBATCH -N 1\n";
  EXPECT_EQ(whole("cancels-itself", script(job + "python a.py\nscancel \"$SLURM_JOB_ID\"\n")),
            (Texts{"the job ends by cancelling itself: Slurm considers it CANCELLED, whatever it did",
                   "success and failure look the same in sacct, and dependent jobs (afterok) never start",
                   "kill what still runs (kill $PID), and let the script end",
                   "scancel(1); squeue(1), JOB STATE CODES"}));
  for (const std::string fine : {"python a.py\nscancel $OTHER\n", "scancel $SLURM_JOB_ID\npython a.py\n",
                                 "check || { scancel $SLURM_JOB_ID; exit 1; }\npython a.py\n"})
    EXPECT_EQ(found("cancels-itself", script(job + fine)), Texts{}) << fine;
  EXPECT_EQ(found("cancels-itself", script("python a.py\nscancel $SLURM_JOB_ID\n")), Texts{});
}

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

TEST(ExitCodeHidden, ATestInTheTextOfAProgramIsNotTheScripts) {
  EXPECT_EQ(
      found("exit-code-hidden",
            script("#SBATCH --nodes=1\npython -c \"\nimport torch\nif torch.cuda.is_available():\n"
                   "    print(1 and 2)\n\"\necho done\n")),
      Texts{"warning job.sh:7:1 the script exits with the exit code of this line: a failure of python is "
            "lost"});
  EXPECT_EQ(found("exit-code-hidden",
                  script("#SBATCH --nodes=1\npython -c \"\nprint(1)\n\" || exit 1\necho done\n")),
            Texts{});
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

}  // namespace
}  // namespace nlaunch::lint

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
  for (const auto* other : {"trap 'rm x' TERM", "trap - EXIT", "trap EXIT", "trap EXIT TERM", "trap '' ERR"})
    EXPECT_EQ(lost("set -e\n" + std::string(other) + "\npython a.py\ncode=$?\n").size(), 1U) << other;
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

TEST(ExitCodeOfTee, AndOfOtherFilters) {
  EXPECT_EQ(found("exit-code-of-tee", script("python a.py 2>&1 | grep -v INFO\n")),
            Texts{"warning job.sh:1:18 after | grep the exit code of the program is lost"});
  EXPECT_EQ(found("exit-code-of-tee", script("python a.py | tee log | tail -5\n")),
            Texts{"warning job.sh:1:23 after | tail the exit code of the program is lost"});
  for (const auto* fine :
       {"if python a.py \\\n     | grep ok; then\n  python b.py\nfi\n",
        "if python a.py | grep OK; then python b.py; fi\n", "python a.py | grep -q OK && python b.py\n",
        "n=$(python a.py | tail -1)\npython b.py $n\n", "set -o pipefail\npython a.py | grep -v INFO\n"})
    EXPECT_EQ(found("exit-code-of-tee", script(fine)), Texts{}) << fine;
}

TEST(ExitCodeOfTee, EachShellHasItsOwnPipefail) {
  for (const auto* other :
       {"bash -c 'set -o pipefail; python b.py | tee b'\n", "(set -o pipefail; python b.py | tee b)\n",
        "srun bash -c \"set -o pipefail; python b.py\"\n"})
    EXPECT_EQ(found("exit-code-of-tee", script(other + std::string("python a.py | tee log\n"))),
              Texts{"warning job.sh:2:13 after | tee the exit code of the program is lost"})
        << other;
  // `bash -c` starts a shell that has none of the script's options.
  EXPECT_EQ(
      whole("exit-code-of-tee", script("set -o pipefail\nsrun bash -c 'python a.py | tee log'\n")),
      (Texts{"after | tee the exit code of the program is lost",
             "without pipefail, a pipe returns the exit code of its last command: a failed run counts as "
             "a success for Slurm, for set -e and for dependent jobs",
             "bash -c 'set -o pipefail; …': a new shell does not inherit the option", "bash(1), Pipelines"}));
  // A subshell within the script begins with the script's.
  for (const auto* fine :
       {"srun bash -c \"set -o pipefail; python a.py | tee log\"\n",
        "bash -c 'set -o pipefail; python a.py | tee log'\n", "set -o pipefail\n(python a.py | tee log)\n",
        "(\n  set -o pipefail\n  python a.py | tee log\n)\n"})
    EXPECT_EQ(found("exit-code-of-tee", script(fine)), Texts{}) << fine;
  EXPECT_EQ(found("exit-code-of-tee", script("srun bash -c \"python a.py | tee log\"\n")),
            Texts{"warning job.sh:1:27 after | tee the exit code of the program is lost"});
}

TEST(ExitCodeOfTee, ACommentReadsNoCode) {
  for (const auto* comment : {"# PIPESTATUS[0] would tell\n", "A=1  # or PIPESTATUS\n"})
    EXPECT_EQ(found("exit-code-of-tee", script(comment + std::string("python a.py | tee log\n"))).size(), 1U)
        << comment;
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
        "srun bash -c 'python a.py' &\nsrun bash -c 'python b.py &'\nwait\n", "python a.py &\nsleep 3000\n"})
    EXPECT_EQ(found("not-waited-for", script(job + fine)), Texts{}) << fine;
}

TEST(NotWaitedFor, OutsideOfAJobItIsTheExitCode) {
  EXPECT_EQ(found("not-waited-for", script("python a.py &\necho started\n")),
            Texts{"note job.sh:1:1 the script exits with 0 while python still runs in the background"});
  for (const auto* fine : {"nohup python a.py > log 2>&1 &\n", "python a.py &\ndisown\n",
                           "srun python a.py &\n", "python a.py & P=$!\nwait $P\n"})
    EXPECT_EQ(found("not-waited-for", script(fine)), Texts{}) << fine;
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

TEST(PidOfTee, ACommentTurnsNothingOn) {
  const std::string start = "python a.py 2>&1 | tee log &\nPID=$!\nwait $PID\n";
  EXPECT_EQ(found("pid-of-tee", script("# set -o pipefail\n" + start)).size(), 1U);
  EXPECT_EQ(found("pid-of-tee", script("A=1  # no pipefail here\n" + start)).size(), 1U);
  EXPECT_EQ(found("pid-of-tee", script("set -o pipefail\n" + start)), Texts{});
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

TEST(CodeOfWait, IsAlwaysZero) {
  const auto of_end = [](const std::string& end) {
    return found("code-of-wait", script(on_node("python a.py &\npython b.py &\n" + end)));
  };
  EXPECT_EQ(of_end("wait\ncode=$?\necho $code\n"),
            Texts{"warning job.sh:6:1 this exit code is always 0: wait without process ids returns 0"});
  EXPECT_EQ(of_end("wait\n# of both\nexit $?\n").size(), 1U);
  for (const std::string right :
       {"wait $!\ncode=$?\n", "wait\necho done\n", "for p in $(jobs -p); do wait $p || code=$?; done\n"})
    EXPECT_EQ(of_end(right), Texts{}) << right;
}

TEST(CounterEndsScript, ThatBeginsAtZero) {
  const auto of_counter = [](const std::string& text) {
    return found("counter-ends-script", script("#!/bin/bash\n" + text));
  };
  EXPECT_EQ(of_counter("set -e\nN=0\nif false; then\n  ((N++))\nfi\npython a.py\n"),
            Texts{"error job.sh:5:3 under set -e the script exits here if N is 0"});
  for (const std::string right :
       {"N=0\nif false; then ((N++)); fi\n((N++))\n", "set -e\nN=0\n((++N))\n",
        "set -e\nN=0\n((N++)) || true\n", "set -e\nN=1\n((N++))\n", "set -e\nN=0\nN=$((N + 1))\n",
        "N=0\n((N++))\nset -e\n", "set -e\nN=0\nset +e\n((N++))\nset -e\n",
        "set -e\nN=0\nN=$((N + 1))\n((N++))\n", "set -e\nN=0\nf() {\n  ((N++))\n}\nif f; then :; fi\n"})
    EXPECT_EQ(of_counter(right + "python a.py\n"), Texts{}) << right;
}

TEST(ExitCodeLost, InAFunctionThatSetEEnds) {
  const auto function = [](const std::string& program, const std::string& call) {
    return found("exit-code-lost",
                 script("set -e\nrun() {\n  " + program + "\n  local code=$?\n  echo $code\n}\n" + call));
  };
  const Texts told{"error job.sh:4:3 under set -e this line is reached only if python succeeds"};
  EXPECT_EQ(function("python a.py $1", "for i in 1 2; do run $i & done\nwait\n"), told);
  EXPECT_EQ(function("python a.py $1", "run 1\n"), told);
  // Without set -e.
  EXPECT_EQ(found("exit-code-lost", script("run() {\n  python a.py $1\n  local code=$?\n  return "
                                           "$code\n}\nrun 1 || exit 1\nrun 2 || exit 1\n")),
            Texts{});
  // Here set -e is ignored.
  EXPECT_EQ(function("python a.py $1", "run 1 || exit 1\n"), Texts{});
  EXPECT_EQ(function("python a.py $1", "if run 1; then echo fine; fi\n"), Texts{});
  EXPECT_EQ(function("python a.py $1 || true", "run 1\n"), Texts{});
}

TEST(CountTwice, IfGrepFindsNothing) {
  EXPECT_EQ(whole("count-twice", script("n=$(grep -c FAILED log 2>/dev/null || echo 0)\n")),
            (Texts{"if grep -c finds nothing, this prints 0 twice",
                   "grep -c prints 0 and exits with 1 then: what gets the two lines takes them for no number "
                   "(\"syntax "
                   "error\", \"integer expression expected\")",
                   "n=$(grep -c … || true), and ${n:-0} if the file may be missing",
                   "grep(1), --count, EXIT STATUS"}));
  EXPECT_EQ(found("count-twice", script("n=$(grep -ic x log || echo \"0\")\n")).size(), 1U);
  for (const std::string fine : {"n=$(grep -c x log || true)\n", "n=$(grep x log || echo 0)\n",
                                 "grep -c x log\n", "n=$(wc -l < log || echo 0)\n"})
    EXPECT_EQ(found("count-twice", script(fine)), Texts{}) << fine;
}

TEST(ErrorWithZero, BeforeAnExitWithoutANumber) {
  EXPECT_EQ(whole("error-with-zero",
                  script("if ! [ -d /data ]; then\n  echo \"data not found\"\n  exit\nfi\npython a.py\n")),
            (Texts{"the script reports an error and exits with 0",
                   "whatever starts the script takes the failure for a success", "exit 1",
                   "bash(1), SHELL BUILTIN COMMANDS, exit"}));
  for (const std::string wrong : {"[ -d /x ] || { echo Error: no x; exit 0; }\n",
                                  "if [ -z x ]; then\n  echo failed\n  echo bye\n  exit 0\nfi\n"})
    EXPECT_EQ(found("error-with-zero", script(wrong)).size(), 1U) << wrong;
  for (const std::string fine : {"[ -d /x ] || { echo not found; exit 1; }\n",
                                 "if [ -f done ]; then\n  echo already done, no error\n  exit 0\nfi\n",
                                 "echo failed\npython a.py\nexit 0\n",
                                 "[ -f d ] || { echo \"error: d not found\"; exit 1; }\nexit 0\n",
                                 "echo \"stdout in run.out, stderr in run.err\"\nexit 0\n",
                                 "echo if a task or one of its parts fails, see the log\nexit 0\n"})
    EXPECT_EQ(found("error-with-zero", script(fine)), Texts{}) << fine;
}

TEST(FailsAfterSuccess, ATestAsTheLastCommand) {
  EXPECT_EQ(
      whole("fails-after-success", script("LOUD=0\npython train.py\n[ $LOUD = 1 ] && echo done\n")),
      (Texts{"the script exits with 1 although all its programs have succeeded",
             "its exit code is that of its last command, a test that is false: the job counts as failed",
             "if …; then …; fi, or exit 0 below", "bash(1), Lists, EXIT STATUS"}));
  EXPECT_EQ(
      found("fails-after-success", script("trap 'trap - TERM; kill -- -$$' EXIT\npython a.py &\nwait\n")),
      Texts{
          "note job.sh:1:1 the script always exits with 143, also after a success: this trap ends it, too"});
  for (const std::string fine : {"python train.py\n[ 1 = 1 ] && echo done\n", "python train.py\nexit 3\n",
                                 "python train.py\nif [ $X ]; then echo x; fi\n"})
    EXPECT_EQ(found("fails-after-success", script(fine)), Texts{}) << fine;
}

TEST(NotWaitedFor, StepsWithoutDirectives) {
  EXPECT_EQ(found("not-waited-for",
                  script("echo $SLURM_JOB_ID\nsrun -N1 vllm serve m &\nsrun -N1 python a.py &\n")),
            Texts{"note job.sh:3:1 the script exits with 0 while srun still runs in the background"});
}

TEST(EarlyReader, UnderPipefail) {
  EXPECT_EQ(
      whole("early-reader",
            script("set -o pipefail\nif find . -name '*.pt' | grep -q .; then python a.py; fi\n")),
      (Texts{"under pipefail this test may fail although grep finds something",
             "grep ends at once, and find then of SIGPIPE if it has more to write: the pipe returns 141, now "
             "and then",
             "[ -n \"$(COMMAND | head -n 1 || true)\" ], or find -print -quit",
             "bash(1), Pipelines; pipe(7)"}));
  for (const std::string fine :
       {"if find . | grep -q .; then python a.py; fi\n", "set -o pipefail\nfind . | grep -q .\npython a.py\n",
        "set -o pipefail\nif echo x | grep -q x; then python a.py; fi\n"})
    EXPECT_EQ(found("early-reader", script(fine)), Texts{}) << fine;
}

TEST(ExitCodeOfTee, NotIfTheScriptJudgesByTheLog) {
  const std::string run = "python train.py 2>&1 | tee train.log\n";
  EXPECT_EQ(found("exit-code-of-tee",
                  script(run + "LOSS=$(grep '^loss:' train.log)\nif [ -z \"$LOSS\" ]; then\n  exit 1\nfi\n")),
            Texts{});
  EXPECT_EQ(found("exit-code-of-tee", script(run + "grep '^loss:' train.log\npython eval.py\n")).size(), 1U);
}

TEST(PidOfTee, InAFileForSomebodyElse) {
  EXPECT_EQ(found("pid-of-tee",
                  script("python serve.py 2>&1 | tee serve.log &\nPID=$!\necho $PID > serve.pid\nwait\n")),
            Texts{"warning job.sh:2:1 $! is the process id of tee, the last program of the pipe"});
}

}  // namespace
}  // namespace nlaunch::lint

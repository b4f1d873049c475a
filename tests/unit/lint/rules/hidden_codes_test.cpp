#include <gtest/gtest.h>

#include "unit/lint/support.h"

namespace nlaunch::lint {
namespace {

using namespace support;

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

TEST(ExitCodeHidden, OfAProgramThatAFunctionStarts) {
  EXPECT_EQ(hidden("start() {\n  srun python a.py &\n}\nstart\nwait\n").size(), 1U);
  EXPECT_EQ(hidden("start() {\n  srun python a.py\n}\nstart\necho done\n").size(), 1U);
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

TEST(ExitCodeHidden, ByTheServerThatIsKilledAtTheEnd) {
  for (const std::string end : {"kill $P\nwait $P\n", "kill $P\n", "kill $P; wait $P 2>/dev/null\n"})
    EXPECT_EQ(found_on_node("exit-code-hidden", "vllm serve m & P=$!\npython a.py\n" + end).size(), 1U)
        << end;
  const std::string two = "python s.py & P=$!\npython a.py & Q=$!\n";
  EXPECT_EQ(found_on_node("exit-code-hidden", two + "wait $Q\nkill $P\n").size(), 1U);
  EXPECT_EQ(found_on_node("exit-code-hidden", two + "wait $Q || exit\nkill $P\n"), Texts{});
}

TEST(ExitCodeHidden, AFunctionWhoseResultNothingTests) {
  const std::string run = "run() {\n  python a.py $1\n}\n";
  EXPECT_EQ(found_on_node("exit-code-hidden", run + "run 1\nrun 2\necho end\n").size(), 1U);
  for (const std::string use : {"run 1 || exit 1\necho end\n", "if run 1; then\n  echo ok\nfi\necho end\n"})
    EXPECT_EQ(found_on_node("exit-code-hidden", run + use), Texts{}) << use;
}

TEST(ExitCodeHidden, ByTheEndOfATrace) {
  EXPECT_EQ(found_on_node("exit-code-hidden", "set -x\nsrun python a.py\nset +x\n").size(), 1U);
}

TEST(ExitCodeHidden, OfAProgramThatIsWaitedFor) {
  const auto said = [](const std::string& text) {
    return found("exit-code-hidden", script("#SBATCH -N 1\n" + text));
  };
  EXPECT_EQ(said("python a.py &\nP=$!\nwait $P\necho done\n"),
            Texts{"warning job.sh:5:1 the script exits with the exit code of this line: a failure of python "
                  "is lost"});
  EXPECT_EQ(said("python a.py &\nwait\necho done\n").size(), 1U);
  for (const std::string fine :
       {"python a.py &\nP=$!\nwait $P\n", "set -e\npython a.py &\nP=$!\nwait $P\necho done\n",
        "python a.py &\nP=$!\nwait $P || exit 1\necho done\n",
        "python a.py &\nP=$!\nif ! wait $P; then exit 1; fi\necho done\n",
        "python a.py &\nP=$!\nwait $P\ncode=$?\necho done\nexit $code\n", "python a.py &\necho done\n"})
    EXPECT_EQ(said(fine), Texts{}) << fine;
}

TEST(ExitCodeOfLast, OfLaunchersOneAfterTheOther) {
  const auto said = [](const std::string& text) {
    return found("exit-code-of-last", script("#SBATCH -N 1\n" + text));
  };
  EXPECT_EQ(said("torchrun a.py\nsrun python b.py\n"),
            Texts{"note job.sh:3:1 only this line decides whether the job failed: a failure of torchrun in "
                  "line 2 is lost"});
  for (const std::string fine :
       {"set -e\ntorchrun a.py\nsrun python b.py\n", "torchrun a.py || exit 1\nsrun python b.py\n",
        "torchrun a.py && srun python b.py\n", "torchrun a.py\ncode=$?\nsrun python b.py\nexit $code\n",
        "torchrun a.py &\nsrun python b.py\n", "srun python b.py\n"})
    EXPECT_EQ(said(fine), Texts{}) << fine;
}

TEST(ExitCodeHidden, AgentsOfASweepWork) {
  EXPECT_EQ(
      found("exit-code-hidden", script(on_node("wandb agent a/b/c &\nwandb agent a/b/c &\nwait\n"))).size(),
      1U);
  EXPECT_EQ(found("exit-code-hidden", script(on_node("wandb login &\nwait\n"))), Texts{});
}

TEST(SearchEndsScript, UnderErrexit) {
  const std::string rest = "if [ -z \"$V\" ]; then\n  V=none\nfi\npython a.py $V\n";
  EXPECT_EQ(whole("search-ends-script", script("set -e\nV=$(grep vllm conf.yaml)\n" + rest)),
            (Texts{"if grep finds nothing here, set -e ends the script",
                   "the lines below provide for an empty V, but are not reached then", "V=$(… || true)",
                   "grep(1), EXIT STATUS; bash(1), set -e"}));
  EXPECT_EQ(found("search-ends-script", script("set -eo pipefail\nV=$(grep v c | head -1)\n" + rest)).size(),
            1U);
  for (const auto& fine :
       {"V=$(grep vllm conf.yaml)\n" + rest, "set -e\nV=$(grep v c || true)\n" + rest,
        "set -e\nV=$(grep v c | head -1)\n" + rest, std::string("set -e\nV=$(grep v c)\npython a.py $V\n")})
    EXPECT_EQ(found("search-ends-script", script(fine)), Texts{}) << fine;
}

TEST(StatusOfIf, BehindFi) {
  EXPECT_EQ(whole("status-of-if", script("if python a.py; then\n  echo ok\nfi\ncode=$?\nexit $code\n")),
            (Texts{"$? is the exit code of the if, not of the command that it tests",
                   "an if whose condition fails, without an else, exits with 0: the failure is lost",
                   "COMMAND; code=$?, and then the if", "bash(1), if"}));
  for (const std::string fine : {"if python a.py; then\n  echo ok\nelse\n  false\nfi\ncode=$?\n",
                                 "if [ -f x ]; then\n  python a.py\nfi\ncode=$?\n",
                                 "python a.py\ncode=$?\nif [ $code -ne 0 ]; then\n  exit 1\nfi\n"})
    EXPECT_EQ(found("status-of-if", script(fine)), Texts{}) << fine;
}

TEST(LimitEndsScript, UnderErrexit) {
  EXPECT_EQ(whole("limit-ends-script", script("set -e\nulimit -n 1048576\npython a.py\n")),
            (Texts{"if the hard limit is below 1048576, set -e ends the script here",
                   "a user cannot raise it, and sites and containers have different ones",
                   "ulimit -n 1048576 || true", "bash(1), ulimit"}));
  for (const std::string fine :
       {"ulimit -n 65536\npython a.py\n", "set -e\nulimit -n 65536 || true\npython a.py\n",
        "set -e\nulimit -c 0\npython a.py\n", "set -e\nulimit -n\npython a.py\n"})
    EXPECT_EQ(found("limit-ends-script", script(fine)), Texts{}) << fine;
}

}  // namespace
}  // namespace nlaunch::lint

#include <gtest/gtest.h>

#include "unit/lint/support.h"

namespace nlaunch::lint {
namespace {

using namespace support;

TEST(LateTrap, BehindTheWorkItCatchesNothing) {
  EXPECT_EQ(found("late-trap", script("python a.py\ntrap 'rm x' EXIT\n")),
            Texts{"warning job.sh:2:1 this trap is set after the work is done"});
  for (const auto* fine : {"trap 'rm x' EXIT\npython a.py\n", "python a.py &\ntrap 'kill %1' TERM\nwait\n",
                           "trap 'rm x' EXIT\n", "python a.py\ntrap - EXIT\n", "python a.py\ntrap -p EXIT\n",
                           "python a.py\ntrap 'rm x' EXIT\npython b.py\n"}) {
    EXPECT_EQ(found("late-trap", script(fine)), Texts{}) << fine;
  }
}

TEST(TrapCancels, AnExitTrapThatCancelsItsOwnJobOrStep) {
  EXPECT_EQ(whole("trap-cancels", script("#SBATCH --nodes=2\nsrun bash -c \"trap 'echo end; scancel "
                                         "\\$SLURM_JOB_ID.\\$SLURM_STEP_ID' EXIT; python a.py\"\n")),
            (Texts{"the EXIT trap cancels its own step, also after a success",
                   "srun then fails, whatever the program did",
                   "end the other tasks (ray stop), and let the step end", "bash(1), trap; scancel(1)"}));
  EXPECT_EQ(
      found("trap-cancels", script("#SBATCH --nodes=2\ntrap 'scancel $SLURM_JOB_ID' EXIT\npython a.py\n")),
      Texts{"warning job.sh:2:1 the EXIT trap cancels the job itself: Slurm considers it CANCELLED, "
            "whatever it did"});
  for (const std::string trap : {"'[ $? = 0 ] || scancel $SLURM_JOB_ID' EXIT", "'scancel $OTHER' EXIT",
                                 "'scancel $SLURM_JOB_ID' TERM"})
    EXPECT_EQ(found("trap-cancels", script("#SBATCH --nodes=2\ntrap " + trap + "\npython a.py\n")), Texts{})
        << trap;
}

TEST(NotAChild, SrunStartsIt) {
  const std::string handler = "stop() { kill -USR1 $(pgrep -P $$ python); }\ntrap stop USR1\n";
  EXPECT_EQ(whole("not-a-child", script(handler + "srun python a.py &\nwait\n")),
            (Texts{"python is no child of this shell: srun starts it",
                   "-P searches only the shell's children: nothing is found, and nothing gets the signal",
                   "srun … & pid=$!, then kill -USR1 $pid: srun forwards it to its tasks",
                   "pgrep(1), --parent; srun(1), SIGNALS AND ESCAPE SEQUENCES"}));
  EXPECT_EQ(found("not-a-child", script(handler + "python a.py &\nwait\n")), Texts{});
  EXPECT_EQ(found("not-a-child", script(handler + "srun python a.py &\npython b.py &\nwait\n")), Texts{});
}

TEST(Usr1, OthersTakeIt) {
  const auto said = [](const std::string& signal) {
    const auto all = whole("usr1", script("#SBATCH --time=1\n#SBATCH --signal=" + signal + "\n"));
    return all.empty() ? "" : all.at(2);
  };
  EXPECT_EQ(said("USR1@60"), "USR2, or TERM: --signal=USR2@…");
  EXPECT_EQ(said("SIGUSR1@60"), "USR2, or TERM: --signal=USR2@…");
  EXPECT_EQ(said("10@60"), "USR2, or TERM: --signal=USR2@…");
  EXPECT_EQ(said("B:USR1@60"), "");  // the shell's alone
  for (const auto* other : {"USR2@60", "B:TERM@10", "12@60", "B:12@60", "110@60"})
    EXPECT_EQ(said(other), "") << other;
}

TEST(Untrapped, ASignalToAShellThatDoesNotKnowIt) {
  const auto said = [](const std::string& signal, const std::string& text) {
    return found("untrapped", script("#SBATCH --signal=" + signal + "\n" + text + "python a.py\n"));
  };
  EXPECT_EQ(said("B:USR1@60", ""),
            Texts{"warning job.sh:1:1 Slurm sends USR1 to the batch shell, which has no trap for it"});
  EXPECT_EQ(said("B:10@60", "trap 'touch x' TERM\n").size(), 1U);
  for (const std::string name : {"USR1", "SIGUSR1", "10", "EXIT"})
    EXPECT_EQ(said("B:USR1@60", "trap 'touch x' " + name + "\n"), Texts{}) << name;
  EXPECT_EQ(said("B:USR1@60", "trap '' USR1\n"), Texts{});
  EXPECT_EQ(said("USR2@60", ""), Texts{});
  EXPECT_EQ(said("B:USR1@60", "exec "), Texts{});
}

TEST(Untrapped, ATrapForAnotherSignalOrOneThatIsResetIsNone) {
  for (const std::string other :
       {"trap 'echo job:USR1' TERM", "trap 'kill -s USR1 $pid' TERM", "trap 'echo EXIT' TERM", "trap - USR1",
        "trap USR1", "trap -p USR1", "trap - EXIT", "trap '' EXIT"})
    EXPECT_EQ(found("untrapped", script("#SBATCH --signal=B:USR1@60\n" + other + "\npython a.py\n")),
              Texts{"warning job.sh:1:1 Slurm sends USR1 to the batch shell, which has no trap for it"})
        << other;
  // A task's trap catches nothing that goes to the batch shell.
  EXPECT_EQ(found("untrapped",
                  script("#SBATCH --signal=B:USR1@60\nsrun bash -c \"trap 'touch x' USR1; python a.py\"\n"))
                .size(),
            1U);
}

TEST(Untrapped, ATrapMayBeWhereLintDidNotGetTo) {
  const std::string job = "#SBATCH --signal=B:USR1@600\n";
  EXPECT_EQ(found("untrapped", script(job + "source scripts/requeue.sh\npython a.py\n")), Texts{});
  // A virtual environment sets no trap.
  EXPECT_EQ(found("untrapped", script(job + "source venv/bin/activate\npython a.py\n")).size(), 1U);
  EXPECT_EQ(found("untrapped", script(job + "if [ -z \"$1\" ]; then echo usage; exit 0; fi\n"
                                            "trap 'touch x' SIGUSR1\npython a.py\n")),
            Texts{});
  const std::string ends = "if [ -z \"$1\" ]; then echo usage; exit 0; fi\n";
  for (const auto* fine :
       {"trap -- 'a; b' USR1; date\n", "trap stop TERM \\\n  USR1  # saves\n", "trap 'a\nb' EXIT\n"})
    EXPECT_EQ(found("untrapped", script(job + ends + fine + "python a.py\n")), Texts{}) << fine;
  for (const auto* none :
       {"trap 'kill -USR1 $pid' TERM\n", "trap - USR1\n", "trap stop TERM; kill -USR1 $$\n"})
    EXPECT_EQ(found("untrapped", script(job + ends + none + "python a.py\n")).size(), 1U) << none;
}

TEST(TrapWaits, TheProgramRunsInTheForeground) {
  const auto said = [](const std::string& signal, const std::string& text) {
    return whole("trap-waits", script("#SBATCH --signal=" + signal + "\n" + text));
  };
  const std::string trap = "trap 'touch stop' USR1\n";
  EXPECT_EQ(
      said("B:USR1@600", trap + "srun python a.py\n"),
      (Texts{"the trap for USR1 runs only after srun has ended",
             "bash runs a trap when the command in the foreground has ended: what the trap is to save, or "
             "to tell the program, comes too late",
             "srun … & pid=$!; wait $pid", "bash(1), SIGNALS; sbatch(1), --signal"}));
  EXPECT_EQ(said("B:USR1@600", trap + "srun python a.py &\nwait\n"), Texts{});
  // A server in the background changes nothing, nor a copy behind the program.
  EXPECT_EQ(said("B:USR1@600",
                 trap + "python -m trl.scripts.vllm_serve --model a &\nsrun python a.py\ncp -r out /work\n")
                .at(0),
            "the trap for USR1 runs only after srun has ended");
  EXPECT_EQ(said("B:USR1@600", trap + "srun python a.py &\nsleep 60\npython b.py\n"), Texts{});
  EXPECT_EQ(said("B:USR1@600", trap + "exec python a.py\n"), Texts{});
  EXPECT_EQ(said("USR1@600", trap + "srun python a.py\n"), Texts{});  // srun's tasks get it
  EXPECT_EQ(said("B:USR1@600", "trap 'touch stop' TERM\nsrun python a.py\n"), Texts{});
  EXPECT_EQ(said("B:USR1@600", "trap - USR1\nsrun python a.py\n"), Texts{});
  EXPECT_EQ(said("B:USR1@600", "trap 'echo x:USR1' TERM\nsrun python a.py\n"), Texts{});
  EXPECT_EQ(said("B:USR1@600", "srun python a.py\n" + trap), Texts{});  // late-trap
}

TEST(SignalTime, TheNumberIsInSeconds) {
  const auto said = [](const std::string& line) {
    return found("signal-time", script("#SBATCH --signal=" + line + "\npython a.py\n"));
  };
  EXPECT_EQ(whole("signal-time", script("#SBATCH --signal=B:USR1@60  # 10 minutes before the limit\ntrue\n")),
            (Texts{"the signal comes 60 seconds before the time limit, not 10 minutes",
                   "--signal counts in seconds", "--signal=B:USR1@600", "sbatch(1), --signal"}));
  for (const auto* right : {"B:USR1@600  # 10 minutes before", "USR2@60", "USR2@60  # before the limit",
                            "USR2@120  # saves every 10 minutes", "USR2@90  # 1.5 minutes before"})
    EXPECT_EQ(said(right), Texts{}) << right;
}

TEST(NoSignal, NothingSendsWhatTheTrapWaitsFor) {
  const auto said = [](const std::string& directives, const std::string& text) {
    return found("no-signal",
                 script("#SBATCH --time=1:00:00\n" + directives + text + "srun python a.py &\nwait\n"));
  };
  const std::string trap = "trap 'scontrol requeue $SLURM_JOB_ID' USR1\n";
  EXPECT_EQ(said("", trap), Texts{"note job.sh:2:1 nothing sends USR1 to this script"});
  EXPECT_EQ(said("", "trap stop SIGUSR2\n").size(), 1U);
  EXPECT_EQ(said("#SBATCH --signal=B:USR1@60\n", trap), Texts{});
  EXPECT_EQ(said("# sbatch --signal=B:USR1@60 job.sh\n", trap), Texts{});
  EXPECT_EQ(said("", trap + "(sleep 60; kill -USR1 $$) &\n"), Texts{});
  EXPECT_EQ(said("", "trap stop TERM\n"), Texts{});
  EXPECT_EQ(said("", trap + "timeout -s USR1 600 python b.py &\n"), Texts{});
}

TEST(TrapGoesOn, BehindWhatDoesNotExit) {
  EXPECT_EQ(
      whole("trap-goes-on",
            script("stop() {\n  kill $P\n}\ntrap stop EXIT INT TERM\npython a.py\npython b.py\n")),
      (Texts{
          "after SIGTERM the script goes on: what this trap calls does not exit",
          "bash waits for the program in the foreground, runs the trap, and then the next command: python in "
          "line 6 starts all the same",
          "exit 143 at the end of what the trap calls", "bash(1), SIGNALS"}));
  EXPECT_EQ(
      found("trap-goes-on", script("trap 'echo stopped' TERM\nfor i in 1 2; do\n  python a.py $i\ndone\n")),
      Texts{"note job.sh:1:1 after SIGTERM the script goes on: what this trap calls does not exit"});
  for (const std::string fine :
       {"trap 'kill $P; exit 1' INT TERM\npython a.py\npython b.py\n",
        "trap 'kill 0' TERM\npython a.py\npython b.py\n",
        "stop() { kill $P; exit 1; }\ntrap stop TERM\npython a.py\npython b.py\n",
        "trap 'kill $P' EXIT\npython a.py\npython b.py\n", "trap 'echo x' TERM\npython a.py\n",
        "trap '' INT\npython a.py\npython b.py\n", "trap 'echo x' INT\npython a.py\npython b.py\n",
        "die() { exit 143; }\nclean() {\n  kill $P\n  die\n}\ntrap clean TERM\npython a.py\npython b.py\n",
        "clean()\n{\n  exit 1\n}\ntrap 'echo caught; clean' TERM\npython a.py\npython b.py\n",
        "trap 'stop=1' TERM\npython a.py\npython b.py\n",
        "trap 'kill -s TERM $$' TERM\npython a.py\npython b.py\n",
        "trap 'scontrol requeue $SLURM_JOB_ID' TERM\npython a.py\npython b.py\n"})
    EXPECT_EQ(found("trap-goes-on", script(fine)), Texts{}) << fine;
}

TEST(TrapWaits, OutsideOfAJobForTheForeground) {
  EXPECT_EQ(found("trap-waits", script("trap 'kill $S; exit 1' INT TERM\npython a.py\n")),
            Texts{"note job.sh:2:1 after SIGTERM, the trap runs only when python has ended"});
  for (const std::string fine : {"trap 'kill $P; exit 1' TERM\npython a.py & P=$!\nwait $P\n",
                                 "trap 'rm x' EXIT\npython a.py\n", "trap 'exit 1' INT\npython a.py\n"})
    EXPECT_EQ(found("trap-waits", script(fine)), Texts{}) << fine;
}

TEST(TrapResubmits, AlsoWhatSomebodyCancels) {
  const std::string job = "#!/bin/bash\n#SBATCH -N 1\n";
  EXPECT_EQ(found("trap-resubmits",
                  script(job + "again() {\n  sbatch $0\n}\ntrap again USR1 TERM\npython a.py & wait $!\n")),
            Texts{"note job.sh:6:1 scancel sends TERM, too: a job that somebody cancels starts again"});
  for (const std::string fine :
       {"trap 'sbatch $0' USR1\npython a.py\n", "trap 'kill $P' TERM\npython a.py\n"})
    EXPECT_EQ(found("trap-resubmits", script(job + fine)), Texts{}) << fine;
}

TEST(SignalEndsWait, UnlessSomethingWaitsAgain) {
  const std::string job = "#!/bin/bash\n#SBATCH --signal=B:USR1@300\n";
  EXPECT_EQ(
      whole("signal-ends-wait", script(job + "trap 'kill -USR1 $P' USR1\npython a.py & P=$!\nwait $P\n")),
      (Texts{"USR1 ends this `wait`, not a.py",
             "when a trap runs, `wait` returns with a code above 128: the script goes on to its end, and "
             "Slurm then kills a.py before it has saved anything",
             "while kill -0 $PID 2>/dev/null; do wait $PID; done", "bash(1), SIGNALS"}));
  EXPECT_EQ(
      found("signal-ends-wait",
            script(job + "again() {\n  sbatch $0\n}\ntrap again USR1\npython a.py &\nwait\necho done\n")),
      Texts{"warning job.sh:8:1 USR1 ends this `wait`, not a.py"});
  for (const std::string fine :
       {"trap 'kill -USR1 $P; timeout 120 tail --pid=$P -f /dev/null' USR1\npython a.py & P=$!\nwait $P\n",
        "trap of_a_library USR1\npython a.py & P=$!\nwait $P\n",
        "all() { until wait $P; do :; done; }\ntrap 'kill -USR1 $P' USR1\npython a.py & P=$!\nall\n",
        "trap 'kill -USR1 $P' USR1\npython a.py & P=$!\nwait $P\nsrun python eval.py\n",
        "trap 'kill -USR1 $P; wait $P' USR1\npython a.py & P=$!\nwait $P\n",
        "trap 'sbatch $0; exit 0' USR1\npython a.py &\nwait\n",
        "trap 'scontrol requeue $SLURM_JOB_ID' USR1\npython a.py &\nwait\n",
        "trap 'kill -USR1 $P' USR1\npython a.py & P=$!\nwait $P\nwait $P\n",
        "trap 'kill -USR1 $P' USR1\npython a.py & P=$!\nwhile kill -0 $P; do wait $P; done\n",
        "trap 'kill -USR1 $P' USR1\npython a.py & P=$!\nuntil wait $P; do\n  kill -0 $P || break\ndone\n",
        "trap 'echo' TERM\npython a.py &\nwait\n"})
    EXPECT_EQ(found("signal-ends-wait", script(job + fine)), Texts{}) << fine;
  EXPECT_EQ(
      found("signal-ends-wait", script("#!/bin/bash\n#SBATCH --signal=USR1@300\ntrap 'kill -USR1 $P' USR1\n"
                                       "python a.py & P=$!\nwait $P\n")),
      Texts{});
}

}  // namespace
}  // namespace nlaunch::lint

#include "shell/recorder.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <fstream>

#include "base/text.h"

namespace nlaunch::shell {
namespace {

namespace fs = std::filesystem;

/// Scripts that bash really runs.
class Recorded : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "nlaunch-recorded-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = fs::canonical(name);
    request_.allocation = {.job_id = "77",
                           .job_name = "grpo",
                           .nodes = 2,
                           .tasks_per_node = 1,
                           .cpus_per_task = 4,
                           .gpus_per_node = 8};
  }
  void TearDown() override { fs::remove_all(folder_); }

  const Recording& record(const std::string& script) {
    std::ofstream(folder_ / "job.sh") << script;
    request_.script = folder_ / "job.sh";
    auto recording = shell::record(request_);
    EXPECT_TRUE(recording) << (recording ? "" : recording.error().first_message());
    recording_ = recording ? *recording : Recording();
    return recording_;
  }

  /// Each command that would have been started, or launches: "line: words".
  std::vector<std::string> commands(const std::string& script, bool all = false) {
    std::vector<std::string> out;
    for (const auto& command : record(script).commands) {
      if (command.fate == Fate::answered && !all) continue;
      out.push_back(
          fmt::format("{}: {}{}", command.line,
                      command.task ? fmt::format("[{}@{}] ", command.task->rank, command.task->node) : "",
                      text::join(command.argv, " ")));
    }
    return out;
  }

  /// What the last command has for a variable.
  [[nodiscard]] std::string variable(const std::string& name) const {
    for (const auto& entry : recording_.commands.back().environment)
      if (entry.starts_with(name + "=")) return entry.substr(name.size() + 1);
    return "(unset)";
  }

  using Lines = std::vector<std::string>;
  fs::path folder_;
  RecordRequest request_;
  Recording recording_;
};

TEST_F(Recorded, EveryProgramStartIsOneWithItsLine) {
  EXPECT_EQ(
      commands("#!/bin/bash\npython train.py --lr \"1 2\"\n/opt/venv/bin/python b.py\nno-such-program x\n"),
      (Lines{"2: python train.py --lr 1 2", "3: /opt/venv/bin/python b.py", "4: no-such-program x"}));
  EXPECT_EQ(recording_.exit_code, 0);
  EXPECT_EQ(recording_.stopped, "");
  EXPECT_EQ(recording_.commands[0].folder, folder_);
}

TEST_F(Recorded, TheTraceMayGoOnAfterTheScriptEndsIt) {
  const auto traced = [&](bool keeps) {
    request_.keeps_trace = keeps;
    Lines texts;
    for (const auto& one : record("f() { B=2; }\nset +x\nA=1\nf\n(C=3)\n").traced)
      texts.push_back(fmt::format("{}: {}", one.line, one.text));
    return texts;
  };
  EXPECT_EQ(traced(false), Lines{"2: set +x"});
  EXPECT_EQ(traced(true), (Lines{"2: set +x", "3: A=1", "4: f", "1: B=2", "5: C=3"}));
}

TEST_F(Recorded, AShellIsAForkOfAnotherOrANewOne) {
  record("A=1\n(B=2; (C=3))\nbash -c 'D=4; (E=5)'\n");
  std::map<std::string, pid_t> shells;
  for (const auto& one : recording_.traced) shells[one.text] = one.shell;
  const auto above = [&](const std::string& text) {
    const auto found = recording_.shells_above.find(shells.at(text));
    return found == recording_.shells_above.end() ? 0 : found->second;
  };
  EXPECT_EQ(above("A=1"), 0);
  EXPECT_EQ(above("B=2"), shells.at("A=1"));
  EXPECT_EQ(above("D=4"), 0);
  EXPECT_EQ(above("E=5"), shells.at("D=4"));
}

TEST_F(Recorded, GivenFilesAndDirectoriesExist) {
  request_.existing = {"a.txt", "data/", "/opt/lab/b.txt"};
  request_.files = {{.path = folder_ / "c.txt", .text = "one two"},
                    {.path = folder_.native() + "/made/", .text = {}}};
  EXPECT_EQ(commands("[ -f a.txt ] && [ -d data ] && [ -f /opt/lab/b.txt ] && [ -d made ] && python x.py "
                     "$(cat c.txt)\n"),
            Lines{"1: python x.py one two"});
}

TEST_F(Recorded, WhatOnlyComputesRuns) {
  EXPECT_EQ(commands("for i in $(seq 3); do echo $i; done | sed 's/2/two/' | tr '\\n' ' ' > out\npython x.py "
                     "$(cat out)\n"),
            Lines{"2: python x.py 1 two 3"});
  EXPECT_FALSE(fs::exists(folder_ / "out"));
}

TEST_F(Recorded, AProgramOfTheSystemThatDoesMoreDoesNotRun) {
  EXPECT_EQ(
      commands("/usr/bin/env A=1 /usr/bin/perl -e 'system(\"touch x\")'\nexec -a cat /usr/bin/perl -v\n"),
      (Lines{"1: /usr/bin/perl -e system(\"touch x\")", "2: cat -v"}));
  EXPECT_FALSE(fs::exists(folder_ / "x"));
}

TEST_F(Recorded, EnvironmentsAreWholeAndKnowTheirLine) {
  record("export A=1\nB=2\nC=3 python x.py\n");
  EXPECT_EQ(variable("A"), "1");
  EXPECT_EQ(variable("B"), "(unset)");
  EXPECT_EQ(variable("C"), "3");
  EXPECT_EQ(variable("SLURM_JOB_ID"), "77");
  EXPECT_EQ(variable("SLURM_JOB_NODELIST"), "rec-node-[0-1]");
  EXPECT_EQ(variable("PATH"), "/usr/local/bin:/usr/bin:/bin");
  for (const auto* own : {"BASH_ENV", "PS4", "BASH_XTRACEFD", "NLAUNCH_RECORDED_STEP"})
    EXPECT_EQ(variable(own), "(unset)");
  const auto* origin = recording_.origin("A", "1");
  ASSERT_NE(origin, nullptr);
  EXPECT_EQ(origin->line, 1U);
  EXPECT_EQ(recording_.origin("A", "2"), nullptr);
}

TEST_F(Recorded, WhatTheLoaderObeysIsRecordedAndDoesNothing) {
  record(
      "export LD_PRELOAD=/x/libnccl.so LD_LIBRARY_PATH=/x LD_AUDIT=/y\nls / > /dev/null\nbash -c 'python "
      "x.py'\n");
  EXPECT_EQ(variable("LD_PRELOAD"), "/x/libnccl.so");
  EXPECT_EQ(variable("LD_LIBRARY_PATH"), "/x");
  EXPECT_EQ(variable("LD_AUDIT"), "/y");
  EXPECT_EQ(recording_.output, "");
  EXPECT_EQ(recording_.written, Lines{});
}

TEST_F(Recorded, AStepStartsItsTasks) {
  EXPECT_EQ(
      commands("srun --ntasks-per-node=2 bash -c 'python x.py --rank $SLURM_PROCID --node $SLURM_NODEID'\n"),
      (Lines{"1: srun --ntasks-per-node=2 bash -c python x.py --rank $SLURM_PROCID --node $SLURM_NODEID",
             "1: [0@0] python x.py --rank 0 --node 0", "1: [1@0] python x.py --rank 1 --node 0",
             "1: [2@1] python x.py --rank 2 --node 1", "1: [3@1] python x.py --rank 3 --node 1"}));
  EXPECT_EQ(recording_.commands[1].launcher, 0U);
}

TEST_F(Recorded, TasksHaveTheVariablesOfTheirStep) {
  record("srun true\nsrun --ntasks-per-node=2 python a.py\n");
  EXPECT_EQ(variable("SLURM_STEP_ID"), "1");
  EXPECT_EQ(variable("SLURM_STEP_NUM_NODES"), "2");
  EXPECT_EQ(variable("SLURM_STEP_NUM_TASKS"), "4");
  EXPECT_EQ(variable("SLURM_STEP_TASKS_PER_NODE"), "2(x2)");
  EXPECT_EQ(variable("SLURM_STEP_NODELIST"), "rec-node-[0-1]");
  EXPECT_EQ(variable("SLURM_STEP_GPUS"), "0,1,2,3,4,5,6,7");
  record("srun -N1 -n1 -w rec-node-1 python a.py\n");
  EXPECT_EQ(variable("SLURM_STEP_NODELIST"), "rec-node-1");
  EXPECT_EQ(variable("SLURM_NNODES"), "1");
  record("python a.py\n");
  EXPECT_EQ(variable("SLURM_STEP_ID"), "(unset)");
}

TEST_F(Recorded, OfManyTasksTheFirstTheSecondAndTheLastOfEachNode) {
  EXPECT_EQ(commands("srun --ntasks-per-node=8 python x.py\n").size(), 1U + 2 * 3);
}

TEST_F(Recorded, TasksMayDoDifferentThings) {
  EXPECT_EQ(
      commands("srun bash -c 'if [ $SLURM_PROCID -eq 0 ]; then ray start --head; else ray start --address x; "
               "fi'\n"),
      (Lines{
          "1: srun bash -c if [ $SLURM_PROCID -eq 0 ]; then ray start --head; else ray start --address x; fi",
          "1: [0@0] ray start --head", "1: [1@1] ray start --address x"}));
}

TEST_F(Recorded, AScriptThatTheScriptWroteRuns) {
  EXPECT_EQ(
      commands("cat > in.sh <<'EOF'\n#!/bin/bash -e\npython x.py $1\nEOF\nchmod +x in.sh\n./in.sh a\nsrun "
               "-n1 bash in.sh b\nsh in.sh c\n"),
      (Lines{"2: python x.py a", "7: srun -n1 bash in.sh b", "2: [0@0] python x.py b", "2: python x.py c"}));
  EXPECT_EQ(recording_.commands[0].script, folder_ / "in.sh");
}

TEST_F(Recorded, AProgramThatIsNowhereIsRecordedHoweverItIsStarted) {
  EXPECT_EQ(commands("env -i PATH=\"$PATH\" bash -c 'mytool 1'\nenv -i PATH=/usr/bin:/bin sh -c 'mytool 2'\n"
                     "env A=1 mytool 3\nenv -S 'mytool 4'\necho 5 | xargs -n1 mytool\n"
                     "find / -maxdepth 0 -exec mytool 6 {} \\;\n(exec mytool 7) & wait\nexec mytool 8\n"),
            (Lines{"1: mytool 1", "2: mytool 2", "3: mytool 3", "4: mytool 4", "5: mytool 5", "6: mytool 6 /",
                   "7: mytool 7", "8: mytool 8"}));
  EXPECT_EQ(recording_.exit_code, 0);
  EXPECT_EQ(recording_.commands[0].environment.size(), 2U);  // and PWD
  EXPECT_EQ(std::ranges::count(recording_.commands[0].environment, "PATH=/usr/local/bin:/usr/bin:/bin"), 1);
}

TEST_F(Recorded, AStepOfSeveralProgramsIsNotTakenApart) {
  EXPECT_EQ(commands("mpirun -np 1 python a.py : -np 3 python b.py\nsrun --multi-prog c.conf\n"),
            (Lines{"1: mpirun -np 1 python a.py : -np 3 python b.py", "2: srun --multi-prog c.conf"}));
  EXPECT_EQ(recording_.commands[0].fate, Fate::recorded);
}

TEST_F(Recorded, LinesAreThoseOfTheScript) {
  EXPECT_EQ(commands("python a.py\n\necho 'python b.py' | bash\nset -x\npython c.py\nset +x\npython d.py\n"),
            (Lines{"1: python a.py", "3: python b.py", "5: python c.py", "0: python d.py"}));
}

TEST_F(Recorded, TimesOfItsOwnFilesAreSet) {
  EXPECT_EQ(commands("touch -d 2001-01-01 t\n[ t -ot /etc/hostname ] && python older\n"),
            Lines{"2: python older"});
}

TEST_F(Recorded, ALargeValueTakesNoTime) {
  EXPECT_EQ(commands("x=$(seq 400000)\npython end ${#x}\n"), Lines{"2: python end 2688894"});
}

TEST_F(Recorded, WhatIsOnTheClusterAloneIsNamed) {
  EXPECT_EQ(
      commands("set -eu\nsource /cluster/env.sh\ncd /cluster/scratch\npython x.py\nbash /cluster/run.sh a\n"),
      (Lines{"4: python x.py", "5: bash /cluster/run.sh a"}));
  EXPECT_EQ(recording_.not_here, (Lines{"/cluster/env.sh", "/cluster/scratch", "/cluster/run.sh"}));
  EXPECT_EQ(recording_.commands[0].folder, "/cluster/scratch");
}

TEST_F(Recorded, FoldersOfTheClusterCanBeWrittenTo) {
  EXPECT_EQ(commands("set -e\nmkdir /cluster/scratch/out\npython x.py > /cluster/logs/x\npython y.py | tee "
                     "/cluster/logs/y\npython z.py\n"),
            (Lines{"3: python x.py", "4: python y.py", "5: python z.py"}));
  EXPECT_EQ(commands("set -e\npython x.py > logs/x\npython y.py\n"), Lines{});
  EXPECT_EQ(commands("set -e\npython x.py > /tmp/no/such/x\npython y.py\n"), Lines{});
}

TEST_F(Recorded, EnvironmentsOfPythonAreActivated) {
  record("source /cluster/venv/bin/activate\npython x.py\n");
  EXPECT_EQ(variable("VIRTUAL_ENV"), "/cluster/venv");
  EXPECT_EQ(variable("PATH"), "/cluster/venv/bin:/usr/local/bin:/usr/bin:/bin");
  record("eval \"$(conda shell.bash hook)\"\nconda activate grpo\nsrun bash -c 'python x.py'\n");
  EXPECT_EQ(variable("CONDA_PREFIX"), "/rec/home/miniconda3/envs/grpo");
  EXPECT_EQ(variable("LD_LIBRARY_PATH"), "(unset)");
  record("set -u\nmodule load cuda\nexport LD_LIBRARY_PATH=/x:$LD_LIBRARY_PATH\npython x.py\n");
  EXPECT_EQ(variable("LD_LIBRARY_PATH"), "/x:/rec/modules/lib");
  record("source activate /envs/a\npython x.py\n");
  EXPECT_EQ(variable("CONDA_PREFIX"), "/envs/a");
}

TEST_F(Recorded, AServerInTheBackgroundComesFirstAndIsThere) {
  EXPECT_EQ(commands("vllm serve m > log 2>&1 &\nP=$!\nuntil curl -s localhost:8000/health; do sleep 5; "
                     "done\nkill -0 $P || exit 1\npython x.py\nwait\n",
                     true),
            (Lines{"1: vllm serve m", "3: curl -s localhost:8000/health", "5: python x.py"}));
  EXPECT_TRUE(recording_.commands[0].background);
  EXPECT_FALSE(recording_.commands[2].background);
  EXPECT_EQ(recording_.commands[0].files,
            (std::map<int, std::string>{{1, folder_ / "log"}, {2, folder_ / "log"}}));
  EXPECT_EQ(recording_.exit_code, 0);
}

TEST_F(Recorded, WhoseOutputTheScriptReadsIsKnown) {
  record(
      "A=$(python a.py)\npython b.py | tee log\npython c.py | grep x | while read l; do :; done\npython d.py "
      "> f\npython e.py 2>&1 | tee -a log | cat\n");
  Lines read;
  for (const auto& command : recording_.commands)
    if (command.output_is_read) read.push_back(command.argv[1]);
  EXPECT_EQ(read, (Lines{"a.py", "c.py"}));
}

TEST_F(Recorded, WrappersAreStepsOnTheWay) {
  EXPECT_EQ(commands("nohup timeout 60 env A=1 numactl -N 0 python x.py\n"),
            (Lines{"1: nohup timeout 60 env A=1 numactl -N 0 python x.py",
                   "1: timeout 60 env A=1 numactl -N 0 python x.py", "1: numactl -N 0 python x.py",
                   "1: python x.py"}));
  EXPECT_EQ(recording_.commands[3].launcher, 2U);
}

TEST_F(Recorded, SshIsALoginOnItsNode) {
  EXPECT_EQ(commands("export A=1\nfor h in $(scontrol show hostnames $SLURM_JOB_NODELIST); do ssh $h \"cd /x "
                     "&& python x.py $A\"; done\n"),
            (Lines{"2: ssh rec-node-0 cd /x && python x.py 1", "2: [0@0] python x.py 1",
                   "2: ssh rec-node-1 cd /x && python x.py 1", "2: [0@1] python x.py 1"}));
  EXPECT_EQ(variable("A"), "(unset)");
}

TEST_F(Recorded, ArgumentsAndVariablesAreThoseOfTheRequest) {
  request_.arguments = {"a b", "c"};
  request_.variables = {"MODEL=m"};
  EXPECT_EQ(commands("set -u\npython x.py \"$1\" $2 $MODEL\n"), Lines{"2: python x.py a b c m"});
}

TEST_F(Recorded, ALoginShellReadsNoProfileOfThisMachine) {
  EXPECT_EQ(
      commands(
          "bash -lc 'python a.py'\nbash --login -c 'python b.py'\nbash -euo pipefail -c 'python c.py'\n"),
      (Lines{"1: python a.py", "2: python b.py", "3: python c.py"}));
}

TEST_F(Recorded, EachCommandOfAShellIsTraced) {
  record("A=1\nbash -c 'B=2\ntrue'\n");
  Lines traced;
  for (const auto& one : recording_.traced)
    traced.push_back(fmt::format("{}/{} {}", one.line, one.line_of_text, one.text));
  EXPECT_EQ(traced, (Lines{"1/0 A=1", "2/0 bash -c 'B=2\ntrue'", "2/1 B=2", "2/2 true"}));
}

TEST_F(Recorded, AScriptThatFailsSaysSo) {
  EXPECT_EQ(commands("set -u\npython a.py\npython x.py $DATA\n"), Lines{"2: python a.py"});
  EXPECT_EQ(recording_.exit_code, 1);
  EXPECT_EQ(recording_.output,
            fmt::format("{}: line 3: DATA: unbound variable\n", (folder_ / "job.sh").string()));
}

TEST_F(Recorded, EndsAtItsLimits) {
  const Limits usual;
  const auto stopped = [&](const Limits& limits, const std::string& script) {
    request_.limits = limits;
    return record(script).stopped;
  };
  Limits limits = usual;
  limits.time = std::chrono::milliseconds(300);
  EXPECT_EQ(stopped(limits, "while :; do :; done\n"), "time");
  EXPECT_EQ(stopped(limits, "while [ -e / ]; do [ -f /x ]; done\n"), "time");
  limits = usual;
  limits.starts = 50;
  EXPECT_EQ(stopped(limits, "while :; do python x.py; done\n"), "starts");
  limits = usual;
  limits.processes = 40;
  EXPECT_EQ(stopped(limits, ":(){ :|:& };:\nwait\n"), "processes");
  limits = usual;
  limits.space = 4 << 20;
  EXPECT_EQ(stopped(limits, "head -c 60M /dev/zero > f\nread -t 10 < <(sleep 1; tail -f /dev/null)\n"),
            "space");
  limits = usual;
  limits.memory = 24 << 20;
  EXPECT_EQ(stopped(limits, "x=$(head -c 40M /dev/zero | tr '\\0' a)\nread -t 10 < <(tail -f /dev/null)\n"),
            "memory");
}

TEST_F(Recorded, WhatIsInTheBackgroundBeginsBeforeWhatComesAfterIt) {
  for (const auto* start : {"f() { x=$(echo 1); python serve.py; }\nf &\n", "{ : | :; python serve.py; } &\n",
                            "bash -c 'true; python serve.py; true' 2>&1 | tee log &\n",
                            "(bash -c \"bash -c 'python serve.py; true'\") &\n"}) {
    std::vector<std::string> programs;
    for (const auto& command : record(std::string(start) + "python train.py\n").commands)
      if (command.argv[0] == "python") programs.push_back(command.argv[1]);
    EXPECT_EQ(programs, (Lines{"serve.py", "train.py"})) << start;
  }
}

TEST_F(Recorded, LeavesNothingBehind) {
  const auto temporary = folder_ / "tmp";
  fs::create_directory(temporary);
  const auto before = fs::temp_directory_path();
  ::setenv("TMPDIR", temporary.c_str(), 1);
  request_.limits.time = std::chrono::milliseconds(300);
  record("sleep 1000 & (while :; do read -t 1; done) & disown; exit 0\n");
  ::setenv("TMPDIR", before.c_str(), 1);
  EXPECT_TRUE(fs::is_empty(temporary));
}

/// "1: /no/such", of what was missing.
std::vector<std::string> texts_of(const std::vector<Absent>& all) {
  std::vector<std::string> out;
  for (const auto& one : all) out.push_back(fmt::format("{}: {}", one.line, one.name));
  return out;
}

TEST_F(Recorded, WhatIsNotHereIsNamed) {
  record(
      "A=$(cat /no/such)\nread B < /no/other\nsource env.sh\n[ -d /data/x ] && C=1\nls /no/such\npython x.py "
      "$A $NOPE\n");
  EXPECT_EQ(texts_of(recording_.unread),
            (Lines{"1: /no/such", fmt::format("3: {}", (folder_ / "env.sh").native()), "2: /no/other"}));
  EXPECT_EQ(texts_of(recording_.asked_for), Lines{"4: /data/x"});
  EXPECT_EQ(texts_of(recording_.unset), Lines{"6: NOPE"});
}

TEST_F(Recorded, WhatIsNotHereMayBeGiven) {
  request_.existing = {"/data/x/", "a.txt"};
  request_.prints = {{"count.py", "8"}, {"/no/such", "b"}};
  EXPECT_EQ(commands("[ -d /data/x ] && [ -f a.txt ] && python x.py $(python count.py) $(cat /no/such)\n"),
            Lines{"1: python x.py 8 b"});
  EXPECT_EQ(recording_.unread.size() + recording_.asked_for.size() + recording_.written.size(), 0U);
}

TEST_F(Recorded, WhatIsTrueOfThisMomentAloneIsNamed) {
  record("A=$(date +%s)\nnvidia-smi\nB=$(nvidia-smi -L | wc -l)\ndate\npython x.py $A $B $(hostname)\n");
  EXPECT_EQ(texts_of(recording_.made_up), (Lines{"1: date +%s", "3: nvidia-smi -L"}));
}

TEST_F(Recorded, FilesThatTheScriptWritesAreNamed) {
  record("mkdir out\necho a > out/b\npython x.py > log\n");
  EXPECT_EQ(recording_.written, Lines{(folder_ / "out/b").native()});
}

TEST_F(Recorded, CopiesArePartOfTheJob) {
  EXPECT_EQ(commands("cp /no/such /tmp/a && ln -s x y && mv a b\n"),
            (Lines{"1: cp /no/such /tmp/a", "1: ln -s x y", "1: mv a b"}));
  EXPECT_EQ(recording_.exit_code, 0);
}

TEST_F(Recorded, WhatATaskDoesWithFilesIsPartOfTheJob) {
  EXPECT_EQ(commands("srun -n1 bash -c 'mkdir -p a/b; cd a/b && rm -rf /scratch/x'\npython a.py\n"),
            (Lines{"1: srun -n1 bash -c mkdir -p a/b; cd a/b && rm -rf /scratch/x", "1: [0@0] mkdir -p a/b",
                   "1: [0@0] rm -rf /scratch/x", "2: python a.py"}));
  EXPECT_TRUE(recording_.done_here.empty());
  EXPECT_EQ(commands("for i in 1 2; do mkdir -p $i; done\npython a.py\n"), Lines{"2: python a.py"});
  ASSERT_EQ(recording_.done_here.size(), 1U);
  EXPECT_EQ(recording_.done_here[0].name, "mkdir -p 1");
}

TEST_F(Recorded, WhatXargsDoesNotStartIsNamed) {
  EXPECT_EQ(
      commands("echo a | xargs -n1 -I {} python {}\n: | xargs -r -n 2 weka fetch\n: | xargs -r basename\n"),
      Lines{"1: python a"});
  ASSERT_EQ(recording_.idle.size(), 1U);
  EXPECT_EQ(recording_.idle[0].name, "weka fetch");
  EXPECT_EQ(recording_.idle[0].line, 2U);
  record("find -L /no/such -type f | xargs -r weka\n");
  ASSERT_EQ(recording_.unread.size(), 1U);
  EXPECT_EQ(recording_.unread[0].name, "/no/such");
}

TEST_F(Recorded, AScriptMayCopyItself) {
  EXPECT_EQ(commands("mkdir out\ncp \"$0\" out/job.sh\ncp \"$0\" out/other.sh\n"),
            (Lines{"2: cp " + (folder_ / "job.sh").string() + " out/job.sh",
                   "3: cp " + (folder_ / "job.sh").string() + " out/other.sh"}));
  EXPECT_EQ(recording_.output, "");
}

TEST_F(Recorded, AFileInNoFolderIsNoInput) {
  EXPECT_EQ(commands("python a.py > logs/a\npython b.py < in.txt\n"), Lines{});
  ASSERT_EQ(recording_.no_folder.size(), 1U);
  EXPECT_EQ(recording_.no_folder[0].name, "logs/a");
  EXPECT_EQ(recording_.no_folder[0].line, 1U);
  ASSERT_EQ(recording_.unread.size(), 1U);
  EXPECT_EQ(recording_.unread[0].name, "in.txt");
  request_.existing = {"logs/"};
  EXPECT_EQ(commands("python a.py > logs/a\n"), Lines{"1: python a.py"});
}

TEST_F(Recorded, AFileBesideTheScriptIsNamedWithItsFolder) {
  fs::create_directory(folder_ / "work");
  std::ofstream(folder_ / "config.yaml") << "a: 1\n";
  request_.folder = folder_ / "work";
  record("A=$(grep a config.yaml)\nB=$(cat other.yaml)\n");
  ASSERT_EQ(recording_.unread.size(), 2U);
  EXPECT_EQ(recording_.unread[0].found_in, folder_.string());
  EXPECT_EQ(recording_.unread[1].found_in, "");
}

TEST_F(Recorded, PlaceholdersOfTheTextAreNamed) {
  record("#SBATCH -p {queue}  # <x>\n# <y>\necho '<team>' < /dev/null; X=${a}\n");
  ASSERT_EQ(recording_.placeholders.size(), 2U);
  EXPECT_EQ(recording_.placeholders[0].name, "{queue}");
  EXPECT_EQ(recording_.placeholders[1].name, "<team>");
  EXPECT_EQ(recording_.placeholders[1].line, 3U);
}

TEST_F(Recorded, TasksThatFailAreNamed) {
  record("srun -n1 bash -c 'python x.py; exit 3'\nbash -c 'exit 4'\n");
  EXPECT_EQ(texts_of(recording_.failed), Lines{"1: 3"});
}

TEST_F(Recorded, AHereDocumentIsKept) {
  record("python - a <<EOF\nprint(1)\nEOF\ncat x | python y.py\npython z.py\n");
  ASSERT_EQ(recording_.commands.size(), 3U);
  ASSERT_TRUE(recording_.commands[0].input);
  EXPECT_EQ(recording_.commands[0].input->text, "print(1)\n");
  EXPECT_TRUE(recording_.commands[1].has_input);
  EXPECT_FALSE(recording_.commands[2].has_input);
}

TEST_F(Recorded, TheInputThatAShellGivesIsKnown) {
  std::ofstream(folder_ / "data") << "d";
  record(
      "yes | python a.py\nyes no more | python b.py\npython c.py < data\necho x | python d.py\n"
      "python e.py | python f.py\n");
  ASSERT_EQ(recording_.commands.size(), 6U);
  const auto& of = recording_.commands;
  EXPECT_EQ(of[0].input, (ProgramInput{.text = "y", .repeats = true}));
  EXPECT_EQ(of[1].input, (ProgramInput{.text = "no more", .repeats = true}));
  EXPECT_EQ(of[2].input, (ProgramInput{.text = folder_ / "data", .is_file = true}));
  EXPECT_EQ(of[3].input, (ProgramInput{.text = "x\n"}));
  EXPECT_TRUE(of[5].has_input);
  EXPECT_EQ(of[5].input, std::nullopt);
}

TEST_F(Recorded, InputThatIsNotKnownWholeIsNone) {
  std::ofstream(folder_ / "data") << "1\n2\n";
  record(
      "(echo first; yes) | python a.py\nexec 3< data; read -u 3 line; python b.py <&3\n"
      "for i in 1; do python c.py; done < data\n");
  ASSERT_EQ(recording_.commands.size(), 3U);
  for (const auto index : {0U, 1U}) {
    EXPECT_TRUE(recording_.commands[index].has_input);
    EXPECT_EQ(recording_.commands[index].input, std::nullopt);
  }
  EXPECT_FALSE(recording_.commands[2].has_input);
  EXPECT_EQ(recording_.commands[2].input_from, folder_ / "data");
}

TEST_F(Recorded, APortIsAskedForAgainAfterAnotherProgram) {
  const std::string ask = "(echo > /dev/tcp/localhost/29500) 2> /dev/null && echo taken\n";
  record(ask + "python a.py\n" + ask + "MASTER_PORT=29500 python b.py &\n" + ask);
  EXPECT_EQ(recording_.output, "taken\n");
}

TEST_F(Recorded, APortIsFreeUntilAServerIsToldIt) {
  record(
      "port=8000\nwhile (echo > /dev/tcp/localhost/$port) 2> /dev/null; do port=$((port + 1)); done\n"
      "python server.py --port $port &\n"
      "until (exec 3<> /dev/tcp/$(hostname)/$port) 2> /dev/null; do sleep 1; done\npython x.py\n");
  const Lines wanted{"2: /dev/tcp/localhost/8000", "3: python server.py --port 8000",
                     "4: /dev/tcp/rec-node-0/8000", "5: python x.py"};
  Lines got;
  for (const auto& command : recording_.commands)
    if (command.argv[0] != "hostname")
      got.push_back(std::to_string(command.line) + ": " + text::join(command.argv, " "));
  EXPECT_EQ(got, wanted);
}

TEST_F(Recorded, WhatIsAskedAgainForAPortIsAnswered) {
  record("until (echo > /dev/tcp/rec-node-0/9) 2> /dev/null; do sleep 1; done\npython x.py\n");
  EXPECT_TRUE(recording_.whole());
  EXPECT_EQ(std::ranges::count(recording_.commands, std::vector<std::string>{"/dev/tcp/rec-node-0/9"},
                               &RecordedCommand::argv),
            2);
}

TEST_F(Recorded, WhatIsPrintedIsNotOfTheLauncher) {
  request_.prints = {{"count.py", "7"}};
  record("srun -n1 bash -c 'python train.py --n $(python count.py)'\n");
  ASSERT_FALSE(recording_.commands.empty());
  EXPECT_EQ(recording_.commands.back().argv, (std::vector<std::string>{"python", "train.py", "--n", "7"}));
  ASSERT_EQ(recording_.printed.size(), 1U);
  EXPECT_EQ(recording_.printed[0].name, "7");
}

TEST_F(Recorded, AFileThatIsWaitedForComes) {
  EXPECT_EQ(commands("while [ ! -f ready ]; do sleep 1; done\npython x.py\n"), Lines{"2: python x.py"});
  EXPECT_TRUE(recording_.whole());
}

TEST_F(Recorded, ATrapThatKillsTheScriptAtItsEndIsNoFailure) {
  const std::string trap = "trap 'trap - TERM && kill -- -$$' EXIT\npython a.py &\n";
  EXPECT_TRUE(record(trap + "wait\n").whole());
  EXPECT_EQ(recording_.last_line, 3U);
  EXPECT_FALSE(record(trap + "exit 1\npython b.py\n").whole());
  EXPECT_EQ(recording_.last_line, 3U);
}

TEST_F(Recorded, ALastLoopThatOnlyWatchesIsTheEnd) {
  commands("python x.py &\nwhile true; do curl -s localhost:1/health; sleep 9; done\n");
  EXPECT_TRUE(recording_.waits);
  EXPECT_TRUE(recording_.whole());
  commands("python x.py &\nwhile true; do sleep 9; done\npython y.py\n");
  EXPECT_FALSE(recording_.whole());
}

TEST_F(Recorded, TheLogOfARecordedProgramHasWhatIsLookedFor) {
  EXPECT_EQ(commands("vllm serve m > log 2>&1 &\nuntil grep -q ready log; do sleep 1; done\npython x.py\n"),
            (Lines{"1: vllm serve m", "3: python x.py"}));
}

TEST_F(Recorded, ATaskOfAnArrayHasItsNumber) {
  request_.allocation.array = {3, 4, 9};
  record("python x.py $SLURM_ARRAY_TASK_ID $SLURM_ARRAY_TASK_COUNT $SLURM_ARRAY_TASK_MAX\n");
  EXPECT_EQ(recording_.commands.at(0).argv, (Lines{"python", "x.py", "3", "3", "9"}));
  EXPECT_EQ(recording_.given, Lines{"SLURM_ARRAY_TASK_ID"});
}

TEST_F(Recorded, AScriptRunsInTheFolderOfItsJob) {
  request_.chdir = "/no/such/folder";
  record("python x.py\n");
  EXPECT_EQ(recording_.commands.at(0).folder, "/no/such/folder");
}

TEST_F(Recorded, VariablesOfTheLauncherReachItsTasks) {
  record("export A=1 B=2\nsrun -n1 --export=ALL,C=3 python x.py\n");
  EXPECT_EQ(variable("A") + variable("C"), "13");
  record("export A=1 B=2\nsrun -n1 --export=A,C=3 python x.py\n");
  EXPECT_EQ(variable("A") + variable("B") + variable("C"), "1(unset)3");
  record("mpirun -np 1 -x C=3 python x.py\n");
  EXPECT_EQ(variable("C"), "3");
}

TEST_F(Recorded, AProgramFailsIfThatIsAskedFor) {
  const std::string text = "python a.py || echo no\npython b.py\nexit $?\n";
  request_.failing = FailingProgram{folder_ / "job.sh", 1, "python a.py", false};
  EXPECT_EQ(commands(text), (Lines{"1: python a.py", "2: python b.py"}));
  EXPECT_EQ(recording_.exit_code, 0);
  request_.failing = FailingProgram{folder_ / "job.sh", 2, "python b.py", false};
  EXPECT_EQ(record(text).exit_code, 1);
  request_.failing = FailingProgram{folder_ / "job.sh", 1, "python a.py", false};
  EXPECT_EQ(record("srun -n2 python a.py\n").exit_code, 1);
  EXPECT_EQ(record("srun -n2 bash -c 'python a.py; echo done'\n").exit_code, 0);
  EXPECT_EQ(record("python a.py & wait $!\n").exit_code, 1);
}

TEST_F(Recorded, AServerThatFailsNeverAnswers) {
  request_.failing = FailingProgram{folder_ / "job.sh", 1, "vllm serve", true};
  const std::string starts = "vllm serve m --port 8000 > log & P=$!\n";
  for (const std::string asks : {"curl -sf localhost:8000/health", "nc -z localhost 8000", "kill -0 $P",
                                 "ps -p $P", "(: > /dev/tcp/localhost/8000)", "grep -q ready log"}) {
    record(starts + "sleep 1\n" + asks + " || exit 7\n");
    EXPECT_EQ(recording_.exit_code, 7) << asks;
  }
  EXPECT_EQ(record(starts + "curl -sf https://example.org || exit 7\n").exit_code, 0);
  EXPECT_EQ(record(starts + "grep -qi error log && exit 7\n").exit_code, 7);
  EXPECT_EQ(
      record(starts + "a=$(date +%s); sleep 60; [ $(( $(date +%s) - a )) -eq 60 ] || exit 7\n").exit_code, 0);
  EXPECT_TRUE(record(starts + "until curl -sf localhost:8000; do sleep 5; done\n").waits);
}

TEST_F(Recorded, TheClockOfAServerThatFailsGoesOnWithSleep) {
  request_.failing = FailingProgram{folder_ / "job.sh", 1, "vllm serve", true};
  const std::string starts = "vllm serve m --port 8000 > log & P=$!\n";
  for (const std::string clock : {"$SECONDS", "$EPOCHSECONDS", "$(date +%s)", "$(printf '%(%s)T')"}) {
    record(starts + "a=" + clock + "\nsleep 100\nb=" + clock +
           "\n(( b - a >= 100 && b - a < 110 )) || exit 7\n");
    EXPECT_EQ(recording_.exit_code, 0) << clock;
  }
}

TEST_F(Recorded, AServerThatHangsRunsAndDoesNotAnswer) {
  request_.failing = FailingProgram{folder_ / "job.sh", 1, "vllm serve", true, true};
  const std::string starts = "vllm serve m --port 8000 > log & P=$!\n";
  for (const std::string asks :
       {"curl -sf localhost:8000/health", "grep -q ready log", "grep -q Error log"}) {
    record(starts + "sleep 1\n" + asks + " || exit 7\n");
    EXPECT_EQ(recording_.exit_code, 7) << asks;
  }
  record(starts + "for i in 1 2 3 4 5 6 7 8; do kill -0 $P || exit 7; sleep 1; done\n");
  EXPECT_EQ(recording_.exit_code, 0);
}

TEST_F(Recorded, AServerThatWasKilledDoesNotAnswer) {
  const std::string starts = "vllm serve m --port 8000 & P=$!\n";
  EXPECT_EQ(
      record(starts + "curl -sf localhost:8000/health && kill $P\nuntil ! curl -sf localhost:8000/health; "
                      "do sleep 5; done\npython a.py\n")
          .stopped,
      "");
  EXPECT_EQ(record(starts + "kill $P\nvllm serve n --port 8000 &\ncurl -sf localhost:8000/health || exit 7\n")
                .exit_code,
            0);
  EXPECT_EQ(record(starts + "kill $P\ncurl -sf localhost:9000/health || exit 7\n").exit_code, 0);
}

TEST_F(Recorded, OnlyWhatEndsAServerEndsItsAnswers) {
  const std::string starts = "vllm serve m --port 8000 & P=$!\n";
  const std::string asks = "curl -sf localhost:8000/health || exit 7\n";
  for (const std::string signal : {"-USR1 $P", "-STOP $P", "-0 $P"})
    EXPECT_EQ(record(starts + "kill " + signal + "\n" + asks).exit_code, 0) << signal;
  const std::string two = "vllm serve m --port 8000 & A=$!\nvllm serve m --port 8000 & B=$!\n";
  EXPECT_EQ(record(two + "kill $B\n" + asks).exit_code, 0);
  EXPECT_EQ(record(two + "kill $A $B\n" + asks).exit_code, 7);
}

TEST_F(Recorded, AProgramWhoseWordsAreStillComputedIsStartedBeforeItIsKilled) {
  constexpr int kTurns = 5;
  for (int i = 0; i < kTurns; ++i) {
    record(
        "set -e\nvllm serve m --port 8000 > v-$(date +%s | cut -c1-3).log 2>&1 & P=$!\n"
        "trap 'kill $P' EXIT\ncurl -sf localhost:8000/health\npython b.py\n");
    EXPECT_EQ(
        std::ranges::count_if(recording_.commands, [](const auto& one) { return one.argv[0] == "vllm"; }), 1);
  }
}

TEST_F(Recorded, WhatAProgramPrintsForAnOptionIsNotThatOfAStandIn) {
  EXPECT_EQ(record("[ -z \"$(vllm --version)\" ] || exit 7\n[ -z \"$(python train.py --help)\" ] || exit 8\n")
                .exit_code,
            0);
}

TEST_F(Recorded, AFileThatTheScriptWaitsForAppearsAndIsNoted) {
  const std::pair<std::string, std::string> loops[] = {
      {"while [ ! -f a/ready ]; do sleep 2; done\n", "-f"},
      {"until [ -s a/ready ]; do sleep 2; done\n", "-s"},
      {"while ! test -e a/ready; do echo; sleep 2; done\n", "-e"},
      {"for i in {1..90}; do [[ -d a/ready ]] && break; sleep 2; done\n", "-d"}};
  for (const auto& [loop, test] : loops) {
    record("python a.py &\n" + loop + "python b.py\n");
    ASSERT_EQ(recording_.waited_for.size(), 1U) << loop;
    const auto& file = recording_.waited_for[0];
    EXPECT_EQ(file.name, "a/ready") << loop;
    EXPECT_EQ(file.test, test) << loop;
    EXPECT_EQ(file.line, 2U) << loop;
    EXPECT_FALSE(file.in_task) << loop;
    EXPECT_EQ(recording_.commands.at(file.command).argv, (Words{"python", "b.py"})) << loop;
    EXPECT_TRUE(recording_.asked_for.empty()) << loop;
  }
}

TEST_F(Recorded, AFileThatIsOnlyLookedForDoesNotAppear) {
  record("for i in {1..60}; do [ -f stop ] && exit 7; python a.py; done\n");
  EXPECT_EQ(recording_.exit_code, 0);
  for (const std::string loop : {"while true; do [ -f stop ] && break; sleep 60; done &\n",
                                 "(while [ ! -f stop ]; do sleep 5; done) &\n"}) {
    record(loop + "wait $!\npython a.py\n");
    EXPECT_TRUE(recording_.waited_for.empty()) << loop;
  }
}

TEST_F(Recorded, GrepBehindAProgramDoesNotFail) {
  EXPECT_EQ(record("set -eo pipefail\npython train.py 2>&1 | grep -v Warning\npython b.py\n").exit_code, 0);
}

TEST_F(Recorded, AProgramInALoopWithItsOwnInputIsInTheBackground) {
  for (const std::string input : {" <<< \"$(printf 'a\\nb')\"", " < /etc/hostname"}) {
    record("while read -r s; do no-such-program $s & done" + input + "\nwait\nno-such-program z\n");
    EXPECT_TRUE(recording_.commands.at(0).background) << input;
    EXPECT_FALSE(recording_.commands.back().background) << input;
  }
}

TEST_F(Recorded, AJobOfALaterTime) {
  constexpr std::uint64_t kLater = 100'000;
  request_.later = kLater;
  const auto now = std::to_string(static_cast<std::uint64_t>(std::time(nullptr)) + kLater);
  for (const std::string clock : {"$EPOCHSECONDS", "$(date +%s)", "$(printf '%(%s)T')"}) {
    record("python a.py\na=" + clock + "\n(( a - " + now + " >= 0 && a - " + now + " < 60 )) || exit 7\n");
    EXPECT_EQ(recording_.exit_code, 0) << clock;
  }
}

TEST_F(Recorded, AllJobsOfAShellAreListed) {
  const std::string three = "for i in 1 2 3; do python a.py $i & done\n";
  EXPECT_EQ(commands(three + "n=$(jobs -p | wc -l)\nwait $(jobs -p)\npython b.py $n\n").back(),
            "4: python b.py 3");
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_TRUE(had_ended(recording_.commands[i].waited, recording_.commands.back().waited)) << i;
  // A shell that polls them, and one that waits for the next.
  EXPECT_TRUE(record(three + "while [ -n \"$(jobs -rp)\" ]; do sleep 1; done\npython b.py\n").whole());
  EXPECT_TRUE(record("for i in 1 2 3 4; do\n  while (($(jobs -rp | wc -l) >= 2)); do wait -n; done\n"
                     "  python a.py $i &\ndone\nwait\n")
                  .whole());
}

TEST_F(Recorded, QueriesMayGetNoAnswer) {
  const std::string script = "c=$(curl -s -w '%{http_code}' localhost:80)\npython a.py $c $?\n";
  EXPECT_EQ(commands(script), Lines{"2: python a.py 200 0"});
  request_.unanswered = {1};
  EXPECT_EQ(commands(script), Lines{"2: python a.py 000 7"});
}

TEST_F(Recorded, EachEnvironmentOfCondaComesInPlaceOfTheOneBefore) {
  record("conda activate /a/env\nconda activate /b/env\npython a.py\n");
  EXPECT_EQ(variable("CONDA_PREFIX"), "/b/env");
  EXPECT_EQ(variable("PATH").find("/a/env"), std::string::npos);
  record("conda activate /a/env\nconda activate /b/env\nconda deactivate\npython a.py\n");
  EXPECT_EQ(variable("CONDA_PREFIX"), "/a/env");
  record("conda activate /a/env\nconda deactivate\npython a.py\n");
  EXPECT_EQ(variable("CONDA_PREFIX"), "(unset)");
  EXPECT_EQ(variable("PATH").find("/a/env"), std::string::npos);
  EXPECT_EQ(commands("micromamba create -n x\n"), Lines{"1: micromamba create -n x"});
  // The folder of an environment tells where others are only if it is one of conda's own.
  record("conda activate /a/envs/one\nconda activate two\npython a.py\n");
  EXPECT_EQ(variable("CONDA_PREFIX"), std::string(Allocation::kHome) + "/miniconda3/envs/two");
  record("conda activate /a/miniforge3/envs/one\nconda activate two\npython a.py\n");
  EXPECT_EQ(variable("CONDA_PREFIX"), "/a/miniforge3/envs/two");
}

TEST_F(Recorded, ATaskThatWaitsForTheFileOfAnotherOne) {
  request_.allocation.tasks_per_node = 2;
  const std::string first = "if [ $SLURM_PROCID = 0 ]; then python a.py; touch done; fi\n";
  ASSERT_EQ(record("srun bash -c '\n" + first + "while [ ! -f done ]; do sleep 1; done\npython b.py'\n")
                .waited_for.size(),
            1U);
  EXPECT_EQ(recording_.waited_for[0].line, 3U);
  EXPECT_EQ(recording_.waited_for[0].name, "done");
  EXPECT_TRUE(recording_.waited_for[0].in_task);
  EXPECT_TRUE(record("srun bash -c '\n" + first + "[ -f done ] && python b.py'\n").waited_for.empty());
  EXPECT_TRUE(record("srun bash -c '\ntouch own\nwhile [ ! -f own ]; do sleep 1; done\npython b.py'\n")
                  .waited_for.empty());
}

TEST_F(Recorded, SlurmNumbersTheGpusOfAJob) {
  EXPECT_EQ(commands("for g in ${SLURM_JOB_GPUS//,/ }; do python a.py $g; done\n").size(), 8U);
}

TEST_F(Recorded, MpirunChangesTheFolder) {
  record("mpirun -np 1 -wdir /scratch/x python a.py\n");
  EXPECT_EQ(recording_.commands.back().folder, "/scratch/x");
}

}  // namespace
}  // namespace nlaunch::shell

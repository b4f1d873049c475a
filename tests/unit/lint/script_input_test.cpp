#include "lint/script_input.h"

#include <gtest/gtest.h>

#include "unit/lint/support.h"

namespace nlaunch::lint {
namespace {

using namespace support;

/// "1:8 NAME=VALUE", "NAME?" for a value that is not known, "-NAME" for an unset; then what else it is. A `|`
/// parts environments.
Texts shown(const LintInput& input) {
  Texts out;
  for (const auto& environment : input.environments) {
    if (!out.empty()) out.emplace_back("|");
    for (const auto& one : environment.settings) {
      auto text = fmt::format("{}:{} ", one.span.line, one.span.column);
      text += one.unset ? "-" + one.name : one.name + (one.value ? "=" + *one.value : "?");
      if (!one.exported) text += " local";
      if (one.one_command) text += " once";
      out.push_back(std::move(text));
    }
  }
  return out;
}

Texts settings(const std::string& text, const ScriptJob& job = {}) {
  return shown(script(text, job));
}

Texts options(const std::vector<StepOption>& all) {
  Texts out;
  for (const auto& one : all) out.push_back(fmt::format("{}: {}", one.span.line, one.text));
  return out;
}

TEST(Directives, AreReadAsSbatchReadsThem) {
  const auto input = script_input(
      a_file("job.sh",
             "#!/bin/bash\n#SBATCH -N 2 --gres=gpu:4\n#SBATCH\t--job-name=\"a b\"  # a comment\n  #SBATCH "
             "--time=1\n# SBATCH -n 4\n#SBATCH -q debug --exclusive\n\ntrue\n#SBATCH --mem=0\n"));
  EXPECT_EQ(options(input.batch), (Texts{"2: --nodes=2", "2: --gres=gpu:4", "3: --job-name=a b",
                                         "6: --qos=debug", "6: --exclusive"}));
  EXPECT_EQ(input.nodes, 2U);
  EXPECT_EQ(input.gpus, 4U);
  EXPECT_EQ(input.script->first_command, 8U);
  EXPECT_EQ(input.script->comments.size(), 7U);
  EXPECT_TRUE(input.slurm);
}

TEST(Directives, AWordThatBelongsToNoOptionIsKept) {
  const auto input =
      script_input(a_file("job.sh", "#SBATCH --nodelist=a b -N 2\n#SBATCH --exclusive user\n"));
  EXPECT_EQ(options(input.batch), (Texts{"1: --nodelist=a", "1: --nodes=2", "2: --exclusive"}));
  EXPECT_EQ(options(input.stray), (Texts{"1: b", "2: user"}));
}

TEST(Directives, SayHowLargeTheJobIs) {
  const auto job = [](const std::string& directives) {
    const auto size = allocation_of(script_input(a_file("job.sh", "#SBATCH " + directives + "\n")));
    return fmt::format("{} {} {}", size.nodes, size.tasks_per_node, size.gpus_per_node);
  };
  EXPECT_EQ(job("-N 4 --gpus-per-node=h100:8"), "4 1 8");
  EXPECT_EQ(job("-N 2 --ntasks-per-node=4 --gpus-per-task=1"), "2 4 4");
  EXPECT_EQ(job("-n 8 --tasks-per-node=4 --gres=gpu:h100:4(S:0)"), "2 4 4");
  EXPECT_EQ(job("-N 2 --gpus=16"), "2 1 8");
  EXPECT_EQ(job("--gres=gpu"), "1 1 1");
}

TEST(Recorded, AnEnvironmentForEachThatWorks) {
  EXPECT_EQ(settings("export A=1\npip install x\nexport B=2\npython a.py\nexport B=3\npython b.py\n"),
            (Texts{"1:8 A=1", "3:8 B=2", "|", "1:8 A=1", "5:8 B=3"}));
  EXPECT_EQ(settings("export A=1\npython a.py\npython b.py\n"), Texts{"1:8 A=1"});
  EXPECT_EQ(settings("A=1 python a.py\n"), Texts{"1:1 A=1 once"});
  EXPECT_EQ(settings("env -u HOME A=1 B='x y' python a.py\n"), (Texts{"1:13 A=1 once", "1:17 B=x y once"}));
}

TEST(Recorded, WhatStartsNothingIsThereToBeSourced) {
  EXPECT_EQ(settings("export A=1\nB=2\nC=3\nexport C\nunset A\n"),
            (Texts{"1:8 A=1", "3:1 C=3", "5:7 -A", "2:1 B=2 local"}));
  EXPECT_EQ(settings("set -a\nA=1\nset +a\n"), Texts{"2:1 A=1"});
  EXPECT_EQ(settings("export \"A=1 2\" 'B=3'\ndeclare -x C=4\n"),
            (Texts{"1:9 A=1 2", "1:17 B=3", "2:12 C=4"}));
}

TEST(Recorded, BashItselfMakesTheValues) {
  EXPECT_EQ(settings("P=(a b)\nexport A=\"${P[1]}\"\nexport A+=c\nexport B=${A^^} C=$((2*3))\npython a.py\n"),
            (Texts{"3:8 A=bc", "4:8 B=BC", "4:17 C=6"}));
  EXPECT_EQ(settings("f() {\n  export \"$1\"\n}\nf A=1\npython a.py\n"), Texts{"2:3 A=1"});
  EXPECT_EQ(settings("while read -r line; do\n  export \"$line\"\ndone <<'END'\nA=1\nEND\npython a.py\n"),
            Texts{"2:3 A=1"});
  EXPECT_EQ(settings("eval 'export A=1'\npython a.py\n"), Texts{"1:14 A=1"});
}

TEST(Recorded, WhatIsOfTheMadeUpJobIsKnownOnlyWhenItRuns) {
  EXPECT_EQ(
      settings(
          "export A=$(hostname) B=$SLURM_JOB_ID C=$HOME/x D=$(cat no-such-file) E=$NOT_THERE F=\npython a\n"),
      (Texts{"1:8 A?", "1:22 B?", "1:38 C?", "1:48 D?", "1:70 E?", "1:83 F="}));
}

TEST(Recorded, AStepsShellsTellToo) {
  EXPECT_EQ(settings("srun bash -c 'export A=1; python a.py'\n"), Texts{"1:22 A=1"});
  EXPECT_EQ(settings("srun bash -c '\nexport A=1\npython a.py'\n"), Texts{"2:8 A=1"});
  EXPECT_EQ(settings("cat > in.sh <<'END'\nexport A=1\npython a.py\nEND\nbash in.sh\n"), Texts{"2:8 A=1"});
}

TEST(Recorded, VariablesAmongWords) {
  EXPECT_EQ(settings("mpirun -np 2 -x A=1 -x PATH python a.py\n"), Texts{"1:17 A=1 once"});
  EXPECT_EQ(settings("docker run -e A=1 --env B=2 image python a.py\n"),
            (Texts{"1:15 A=1 once", "1:25 B=2 once"}));
  EXPECT_EQ(settings("apptainer exec --env A=1,B=2 image python a.py\n"),
            (Texts{"1:22 A=1 once", "1:26 B=2 once"}));
  EXPECT_EQ(settings("srun --export=ALL,A=1 python a.py\n"), Texts{"1:19 A=1 once"});
  EXPECT_EQ(settings("#SBATCH --export=ALL,A=1\npython a.py\n"), Texts{"1:1 A=1"});
  EXPECT_EQ(settings("export APPTAINERENV_A=1\napptainer exec image python a.py\n"), Texts{"1:8 A=1 once"});
  EXPECT_EQ(
      settings(
          "ray job submit --runtime-env-json='{\"env_vars\":\n{\"A\": \"1\", \"B\": 2}}' -- python a.py\n"),
      (Texts{"2:3 A=1 once", "2:13 B? once"}));
}

TEST(Recorded, ArgumentsAndVariablesAreGiven) {
  const std::string text = "set -u\nexport A=$1 B=$SITE\npython a.py\n";
  EXPECT_EQ(settings(text, {.arguments = {"x"}, .variables = {"SITE=y"}, .nodes = {}, .gpus = {}}),
            (Texts{"2:8 A=x", "2:13 B=y"}));
  const auto input = script("export A=1\npython a.py\nexport B=${1:?which model}\npython b.py\n");
  EXPECT_EQ(shown(input), (Texts{"1:8 A=1", "|", "1:8 A=1", "3:8 B?"}));
  ASSERT_EQ(input.script->unread.size(), 1U);
  EXPECT_EQ(input.script->unread[0].span.line, 3U);
  EXPECT_EQ(input.script->unread[0].instead,
            "pass its arguments after --, its variables as --env NAME=VALUE");
}

TEST(Recorded, WhatBashCannotReadIsToldWithItsLine) {
  const auto input = script("export A=1\npython a.py\nif true; then\n  echo \"open\nfi\n");
  ASSERT_EQ(input.script->unread.size(), 1U);
  EXPECT_EQ(input.script->unread[0].severity, Severity::error);
  EXPECT_EQ(input.script->unread[0].message.substr(0, 49),
            "bash cannot parse this: unexpected EOF while look");
  EXPECT_EQ(shown(input), Texts{"1:8 A=1"});
}

TEST(Recorded, StepsWithTheirOptions) {
  const auto input = script(
      "#SBATCH -N 2\nARGS=\"-c 8 --mpi none\"\nsrun $ARGS --label python a.py\nsrun hostname\n"
      "srun $EXTRA bash -c 'echo x; python b.py'\nsrun bash -c 'nvidia-smi'\n");
  ASSERT_EQ(input.steps.size(), 2U);
  EXPECT_EQ(options(input.steps[0].options), (Texts{"3: --cpus-per-task=8", "3: --mpi=none", "3: --label"}));
  EXPECT_EQ(input.steps[0].argv, (Texts{"python", "a.py"}));
  EXPECT_TRUE(input.steps[0].several);
  EXPECT_FALSE(input.steps[0].open_ended);
  EXPECT_TRUE(input.steps[1].open_ended);
}

TEST(Recorded, ModulesAndNlaunch) {
  const auto input =
      script("module load cuda/12 nccl\nml aws-ofi-nccl\nmodule list\nexec nlaunch run x.yaml\n");
  Texts modules;
  for (const auto& one : input.modules) modules.push_back(fmt::format("{}: {}", one.span.line, one.name));
  EXPECT_EQ(modules, (Texts{"1: cuda/12", "1: nccl", "2: aws-ofi-nccl"}));
  EXPECT_TRUE(input.by_nlaunch);
}

TEST(Recorded, WhatAScriptReadsByName) {
  const auto reads = [](const std::string& text) { return script(text).readings.at(0).text; };
  EXPECT_EQ(reads("export A=$B\n# $C\necho ${D:-1} \"$E\"\n"), "B\nD\nE\n");
  EXPECT_EQ(reads("export A=${A:-1} B=\"$B\"\n"), "");
  EXPECT_EQ(reads("python -c 'import os; os.environ[\"A\"]'\n"), "A\n");
  EXPECT_EQ(reads("x '{\"A\": 1}' \"B=1\"\n"), "");
}

}  // namespace
}  // namespace nlaunch::lint

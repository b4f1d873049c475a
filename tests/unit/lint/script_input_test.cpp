#include "lint/script_input.h"

#include <gtest/gtest.h>

#include "unit/lint/support.h"

namespace nlaunch::lint {
namespace {

using namespace support;

/// "1:8 NAME=VALUE", "NAME?" for a value that is not known, "-NAME" for an unset; then what else it is.
Texts shown(const LintInput& input) {
  Texts out;
  for (const auto& environment : input.environments) {
    for (const auto& one : environment.settings) {
      auto text = fmt::format("{}:{} ", one.span.line, one.span.column);
      text += one.unset ? "-" + one.name : one.name + (one.value ? "=" + *one.value : "?");
      if (!one.exported) text += " local";
      if (!one.sure) text += " maybe";
      if (one.one_command) text += " once";
      out.push_back(std::move(text));
    }
  }
  return out;
}

Texts settings(const std::string& text) {
  return shown(script(text));
}

TEST(ScriptInput, WhatIsExportedAndWhatIsNot) {
  EXPECT_EQ(settings("export A=1\nB=2\nC=3\nexport C\nD=4 python a.py\n"),
            (Texts{"1:8 A=1", "2:1 B=2 local", "3:1 C=3", "5:1 D=4 once"}));
  EXPECT_EQ(
      settings("declare A=1\ndeclare -x B=2\ntypeset -rx C=3\nreadonly D=4\nlocal E=5\nexport -n F=6\n"),
      (Texts{"1:9 A=1 local", "2:12 B=2", "3:13 C=3", "4:10 D=4 local", "5:7 E=5 local", "6:11 F=6 local"}));
  EXPECT_EQ(settings("declare -x A\nA=1\n"), Texts{"2:1 A=1"});
  EXPECT_EQ(settings("declare A\nA=1\n"), Texts{"2:1 A=1 local"});
  EXPECT_EQ(settings("export A\nexport=1\nB=2\n"), (Texts{"2:1 export=1 local", "3:1 B=2 local"}));
}

TEST(ScriptInput, AllIsExportedWhileTheShellIsToldSo) {
  for (const std::string on :
       {"set -a", "set -a; set allexport", "set -ea", "set -o allexport", "set -x -a"}) {
    EXPECT_EQ(settings(on + "\nA=1\n"), Texts{"2:1 A=1"}) << on;
  }
  for (const std::string off : {"set +a", "set -e", "set a", "set xa", "set --all", "set allexport",
                                "set -a; set +a", "set -a; set +o allexport", "set -"}) {
    EXPECT_EQ(settings(off + "\nA=1\n"), Texts{"2:1 A=1 local"}) << off;
  }
  EXPECT_EQ(settings("set -a\ndeclare A=1\ndeclare \"B=2\"\n"), (Texts{"2:9 A=1", "3:9 B=2"}));
}

TEST(ScriptInput, AssignmentsInQuotesAreAssignments) {
  EXPECT_EQ(settings("export \"A=1 2\" 'B=3' C\n"), (Texts{"1:8 A=1 2", "1:16 B=3"}));
  EXPECT_EQ(settings("export \"A=$(x)\" \"B-C=1\" \"=2\" \"D\"\n"), Texts{"1:8 A?"});
  EXPECT_EQ(settings("export \"A=1\"\nexport B=$A\n"), (Texts{"1:8 A=1", "2:8 B=1"}));
  EXPECT_EQ(settings("if a; then export \"A=1\"; fi\nexport B=$A\n"), (Texts{"1:19 A=1 maybe", "2:8 B?"}));
  EXPECT_EQ(settings("declare \"A=1\"\n"), Texts{"1:9 A=1 local"});
}

TEST(ScriptInput, ValuesAreFollowed) {
  EXPECT_EQ(settings("A=/a\nexport B=$A/b C=${A}\nexport D=$E\n"),
            (Texts{"1:1 A=/a local", "2:8 B=/a/b", "2:15 C=/a", "3:8 D?"}));
  EXPECT_EQ(settings("A=1\nif x; then A=2; fi\nexport B=$A\n"),
            (Texts{"1:1 A=1 local", "2:12 A=2 local maybe", "3:8 B?"}));
  EXPECT_EQ(settings("A=1\nunset A\nexport B=$A\n"), (Texts{"1:1 A=1 local", "2:7 -A", "3:8 B?"}));
  EXPECT_EQ(settings("A=1\nA=2 python a.py\nexport B=$A\n"),
            (Texts{"1:1 A=1 local", "2:1 A=2 once", "3:8 B=1"}));
  EXPECT_EQ(settings("A=1\nA+=2\nexport B=$A C=(1 2)\n"),
            (Texts{"1:1 A=1 local", "2:1 A? local", "3:8 B?", "3:13 C?"}));
}

TEST(ScriptInput, UnsetTakesNamesAlone) {
  EXPECT_EQ(settings("unset A B-C -v D\nif x; then unset E; fi\n"),
            (Texts{"1:7 -A", "1:16 -D", "2:18 -E maybe"}));
  EXPECT_EQ(settings("unset\n"), Texts{});
}

TEST(ScriptInput, ConditionsMakeASettingUncertain) {
  EXPECT_EQ(settings("if a; then export A=1; else B=2; fi\n[ -n \"$x\" ] && export C=3\nexport D=4\n"),
            (Texts{"1:19 A=1 maybe", "1:29 B=2 local maybe", "2:23 C=3 maybe", "3:8 D=4"}));
}

TEST(ScriptInput, WhatEnvSetsIsForOneCommand) {
  EXPECT_EQ(settings("env A=1 B=2 python C=3\n"), (Texts{"1:5 A=1 once", "1:9 B=2 once"}));
  EXPECT_EQ(settings("env -i -u X A=1 -C /tmp B=2 python C=3\n"), (Texts{"1:13 A=1 once", "1:25 B=2 once"}));
  EXPECT_EQ(settings("/usr/bin/env A=1 python\nsrun -n 2 env B=2 python\n"),
            (Texts{"1:14 A=1 once", "2:15 B=2 once"}));
  EXPECT_EQ(settings("srun /usr/bin/env A=1 python\n"), Texts{"1:19 A=1 once"});
  EXPECT_EQ(settings("python A=1\nenv python A=1\nxenv A=1\n"), Texts{});
  EXPECT_EQ(settings("if x; then env A=1 python; fi\n"), Texts{"1:16 A=1 maybe once"});
  EXPECT_EQ(settings("env 'A=$x' B-C=1 python\n"), Texts{"1:5 A? once"});
}

TEST(ScriptInput, OptionsThatSetVariables) {
  EXPECT_EQ(settings("mpirun -n 2 -x A=1 -x B python -y C=1\n"), Texts{"1:16 A=1 once"});
  EXPECT_EQ(settings("docker run -e A=1 --env B=2 image\n"), (Texts{"1:15 A=1 once", "1:25 B=2 once"}));
  EXPECT_EQ(settings("apptainer exec --env=A=1,B=2 image\n"), (Texts{"1:16 A=1 once", "1:16 B=2 once"}));
  EXPECT_EQ(settings("O='-x A=1'\nmpirun $O python\n"), (Texts{"1:1 O=-x A=1 local", "2:8 A=1 once"}));
  EXPECT_EQ(settings("O='1 -x B=2'\nmpirun -x A=$O python\n"),
            (Texts{"1:1 O=1 -x B=2 local", "2:11 A=1 once", "2:11 B=2 once"}));
  EXPECT_EQ(settings("O='1 -x B=2'\nmpirun -x \"A=$O\" python\n"),
            (Texts{"1:1 O=1 -x B=2 local", "2:11 A=1 -x B=2 once"}));
}

TEST(ScriptInput, NamesInAContainer) {
  EXPECT_EQ(settings("export APPTAINERENV_A=1 SINGULARITYENV_B=2 APPTAINERENV_=3 APPTAINERENV_4=5\n"),
            (Texts{"1:8 A=1 once", "1:25 B=2 once", "1:44 APPTAINERENV_=3", "1:60 APPTAINERENV_4=5"}));
}

TEST(ScriptInput, ExportOfSlurm) {
  EXPECT_EQ(settings("#SBATCH --export=ALL,A=1,B=$x\nsrun --export=NONE,C=2 python\n"),
            (Texts{"1:1 A=1", "1:1 B?", "2:6 C=2 once"}));
  EXPECT_EQ(settings("#SBATCH --export-file=A=1\nif x; then srun --export C=2 a; fi\n"),
            Texts{"2:17 C=2 maybe once"});
}

TEST(ScriptInput, NodesAreTheDirectives) {
  EXPECT_EQ(script("#SBATCH --nodes=4\n").nodes, 4U);
  EXPECT_EQ(script("#SBATCH -N 4\n").nodes, 4U);
  EXPECT_EQ(script("#SBATCH --nodes=2-4\n").nodes, std::nullopt);
  EXPECT_EQ(script("#SBATCH --nodes=\n").nodes, std::nullopt);
  EXPECT_EQ(script("#SBATCH --ntasks=4\n").nodes, std::nullopt);
  EXPECT_EQ(script("srun --nodes=4 a\n").nodes, std::nullopt);
}

TEST(ScriptInput, SlurmIsWhatAsksForIt) {
  EXPECT_TRUE(script("#SBATCH --time=1\n").slurm);
  EXPECT_TRUE(script("srun hostname\n").slurm);
  EXPECT_FALSE(script("echo srun\n").slurm);
  EXPECT_EQ(script("srun hostname\nsrun python a.py\n").steps.size(), 1U);
}

/// "GPU NIC".
std::string machine(const std::string& text) {
  const auto input = script(text + "\n");
  return input.gpu + " " + input.nics;
}

TEST(ScriptInput, TheMachineIsGuessed) {
  EXPECT_EQ(machine("export FI_CXI_ATS=0"), " cxi");
  EXPECT_EQ(machine("export FI_PROVIDER=cxi"), " cxi");
  EXPECT_EQ(machine("export FI_PROVIDER=tcp A=cxi"), " ");
  EXPECT_EQ(machine("unset FI_CXI_ATS"), " ");
  EXPECT_EQ(machine("module load cuda brics/nccl"), "GH200 ");
  EXPECT_EQ(machine("module load cuda my-brics/nccl"), " ");
  EXPECT_EQ(machine("#SBATCH --partition=GH200"), "GH200 ");
  EXPECT_EQ(machine("#SBATCH -C ghx4"), "GH200 ");
  EXPECT_EQ(machine("#SBATCH --job-name=gh200"), " ");
  EXPECT_EQ(machine("#SBATCH --partition=h100"), " ");
}

Texts modules(const std::string& text) {
  Texts out;
  for (const auto& one : script(text + "\n").modules) out.push_back(one.span.where() + " " + one.name);
  return out;
}

TEST(ScriptInput, ModulesThatAreLoaded) {
  EXPECT_EQ(modules("module load a b/1"), (Texts{"job.sh:1:13 a", "job.sh:1:15 b/1"}));
  EXPECT_EQ(modules("module add -f a"), Texts{"job.sh:1:15 a"});
  EXPECT_EQ(modules("module swap a b"), (Texts{"job.sh:1:13 a", "job.sh:1:15 b"}));
  EXPECT_EQ(modules("module switch a b").size(), 2U);
  EXPECT_EQ(modules("ml a"), Texts{"job.sh:1:4 a"});
  EXPECT_EQ(modules("ml load a"), Texts{"job.sh:1:9 a"});
  EXPECT_EQ(modules("V=2\nmodule load a/$V $B"), Texts{"job.sh:2:13 a/2"});
  for (const auto* other : {"module list", "module unload a", "module", "ml", "module use /a", "load a"}) {
    EXPECT_EQ(modules(other), Texts{}) << other;
  }
}

TEST(ScriptInput, NlaunchMayBeStarted) {
  EXPECT_TRUE(script("nlaunch run a.yaml\n").by_nlaunch);
  EXPECT_TRUE(script("/opt/bin/nlaunch run a.yaml\n").by_nlaunch);
  EXPECT_TRUE(script("exec nlaunch run a.yaml\n").by_nlaunch);
  EXPECT_TRUE(script("exec /opt/bin/nlaunch run a.yaml\n").by_nlaunch);
  EXPECT_TRUE(script("exec nlaunch\n").by_nlaunch);
  EXPECT_TRUE(script("bash -c 'nlaunch run a.yaml'\n").by_nlaunch);
  EXPECT_TRUE(script("bash -c 'nlaunch run a.yaml'\nbash -c true\n").by_nlaunch);
  EXPECT_FALSE(script("exec\necho nlaunch\nexec echo nlaunch\nbash -c 'echo nlaunch'\n").by_nlaunch);
}

std::string readings(const std::string& text) {
  std::string out;
  for (const auto& one : script(text).readings) out += one.name + ": " + one.text + "|";
  return out;
}

TEST(ScriptInput, WhatIsHandedOnAsTextMayReadVariables) {
  EXPECT_EQ(readings("echo $A plain \"in $B quotes\"\n"), "job.sh: $A\n$B\nin $B quotes\n|");
  EXPECT_EQ(readings("cat <<'E'\n$X\nE\n"), "job.sh: $X\n|");
  EXPECT_EQ(readings("bash -c 'echo $A'\n"), "job.sh: $A\n|job.sh: |");
}

TEST(ScriptInput, AScriptWithinAScriptIsRead) {
  EXPECT_EQ(settings("srun bash -c 'export A=1; B=2 python'\n"), (Texts{"1:22 A=1 once", "1:27 B=2 once"}));
  EXPECT_EQ(settings("bash -lc \"\nexport A=1\n  export B=2\n\"\n"),
            (Texts{"2:8 A=1 once", "3:10 B=2 once"}));
  EXPECT_EQ(settings("if x; then bash -c 'export A=1'; fi\n"), Texts{"1:28 A=1 maybe once"});
  EXPECT_EQ(settings("bash -c 'C=1'\n"), Texts{"1:10 C=1 local once"});
  EXPECT_EQ(settings("bash -c 'export A=1; echo A'\n"), Texts{"1:17 A=1 once"});
  EXPECT_EQ(settings("bash script.sh 'export A=1'\npython -c 'export A=1'\n"), Texts{});
}

TEST(ScriptInput, AScriptWithinKnowsWhatIsExported) {
  EXPECT_EQ(settings("export A=1\nbash -c 'export B=$A'\n"), (Texts{"1:8 A=1", "2:17 B=1 once"}));
  EXPECT_EQ(settings("A=1\nbash -c 'export B=$A'\n"), (Texts{"1:1 A=1 local", "2:17 B? once"}));
  EXPECT_EQ(settings("A=1\nexport A\nbash -c 'export B=$A; A=2'\n"),
            (Texts{"1:1 A=1", "3:17 B=1 once", "3:23 A=2 once"}));
  EXPECT_EQ(settings("A=1\nbash -c \"export B=$A\"\n"), (Texts{"1:1 A=1 local", "2:17 B=1 once"}));
  EXPECT_EQ(settings("bash -c \"export B=$A\"\n"), Texts{"1:17 B? once"});
  EXPECT_EQ(settings("bash -c \"export 'B=$A'\"\n"), Texts{"1:18 B? once"});
  EXPECT_EQ(settings("bash -c \"export B='$A'\"\n"), Texts{"1:17 B? once"});
}

TEST(ScriptInput, ModulesAndSecretsOfAScriptWithinAreThoseOfItsWord) {
  const auto input = script("bash -c 'module load a; serve --token s3cr3t-value'\n");
  ASSERT_EQ(input.modules.size(), 1U);
  EXPECT_EQ(input.modules[0].span.where(), "job.sh:1:9");
  ASSERT_EQ(input.secrets.size(), 1U);
  EXPECT_EQ(input.secrets[0].what, "the value of --token");
  EXPECT_EQ(input.secrets[0].value, "s3cr3t-value");
  EXPECT_EQ(input.secrets[0].span.where(), "job.sh:1:9");
}

TEST(ScriptInput, ScriptsWithinScriptsEnd) {
  std::string text = "export A=1";
  for (int i = 0; i < 4; ++i) text = "bash -c " + text::shell_quote(text);
  EXPECT_EQ(settings(text + "\n").size(), 1U);
  EXPECT_EQ(settings("bash -c " + text::shell_quote(text) + "\n").size(), 0U);
}

TEST(ScriptInput, OfVeryManySettingsTheWordIsPlaceEnough) {
  const auto places = [](int count) {
    std::string inner;
    for (int i = 0; i < count; ++i) inner += "export A=1;";
    const auto input = script("bash -c '" + inner + "'\n");
    return std::pair(input.environments[0].settings.size(), input.environments[0].settings[0].span.where());
  };
  EXPECT_EQ(places(999), std::pair(std::size_t{999}, std::string("job.sh:1:17")));
  EXPECT_EQ(places(1000), std::pair(std::size_t{1000}, std::string("job.sh:1:9")));
}

TEST(ScriptInput, TheVariablesOfARayJob) {
  const std::string json = R"({"env_vars": {"A": "1", "B": 2, "C": "$x", "D-E": "3"}, "pip": []})";
  EXPECT_EQ(settings("ray job submit --runtime-env-json '" + json + "' -- python\n"),
            (Texts{"1:51 A=1 once", "1:61 B? once", "1:69 C? once"}));
  EXPECT_EQ(settings("ray job submit --runtime-env-json='{\"env_vars\": {\"A\": \"1\"}}'\n"),
            Texts{"1:51 A=1 once"});
  EXPECT_EQ(settings("if x; then ray job submit --runtime-env-json '{\"env_vars\": {\"A\": \"1\"}}'; fi\n"),
            Texts{"1:62 A=1 maybe once"});
  for (const auto* other : {"{}", "[]", "{\"env_vars\": []}", "{", "text"}) {
    EXPECT_EQ(settings("ray job submit --runtime-env-json '" + std::string(other) + "'\n"), Texts{}) << other;
  }
  EXPECT_EQ(settings("ray job submit --runtime-env '{\"env_vars\": {\"A\": \"1\"}}'\n"), Texts{});
}

TEST(ScriptInput, ASecretThatIsASettingIsToldOnce) {
  EXPECT_EQ(found("secret", script("env HF_TOKEN=s3cr3t-value python\n")),
            Texts{"warning job.sh:1:5 the value of HF_TOKEN stands in this file"});
  EXPECT_EQ(found("secret", script("export HF_TOKEN=s3cr3t-value\nserve --token s3cr3t-value\n")).size(), 2U);
  EXPECT_EQ(found("secret", script("HF_TOKEN=s3cr3t-value serve --token s3cr3t-other\n")).size(), 2U);
}

Texts dotenv(const std::string& text) {
  return shown(lines_scene(a_file("a.env", text), Lines::dotenv));
}
Texts conf(const std::string& text) {
  return shown(lines_scene(a_file("a.conf", text), Lines::nccl_conf));
}

TEST(LinesScene, ADotenvFileHasQuotesAndComments) {
  EXPECT_EQ(
      dotenv("A=1\n  export B = 2\nexport  C=3\n# D=4\n\nE\nF='a # b' # c\nG=\"h\"\r\nI=j # k\nL=m#n\n"),
      (Texts{"1:1 A=1", "3:9 C=3", "7:1 F=a # b", "8:1 G=h", "9:1 I=j", "10:1 L=m#n"}));
  EXPECT_EQ(dotenv("A=\nB=#c\nC='\nD=\"e\nF=$G\nH='a'b'\nI=  j  \n"),
            (Texts{"1:1 A=", "2:1 B=", "3:1 C='", "4:1 D=\"e", "5:1 F?", "6:1 H=a'b", "7:1 I=j"}));
  EXPECT_EQ(dotenv("A-B=1\n1C=2\n=3\nAPPTAINERENV_D=4\n"), Texts{"4:1 D=4 once"});
}

TEST(LinesScene, AnNcclConfIsTakenAsItIs) {
  EXPECT_EQ(conf("A='1' # b\n C=$D\n#E=1\nF\nG=h\r\n=i\n"),
            (Texts{"1:1 A='1' # b", "2:1  C=$D", "5:1 G=h", "6:1 =i"}));
}

TEST(LinesScene, TheFileAndTheLengthOfNamesAreKept) {
  const auto input = lines_scene(a_file("a.env", "export NCCL_A=1\n"), Lines::dotenv);
  EXPECT_EQ(input.files.size(), 1U);
  const auto& span = input.environments.at(0).settings.at(0).span;
  EXPECT_EQ(span.where(), "a.env:1:8");
  EXPECT_EQ(span.length, 6U);
}

}  // namespace
}  // namespace nlaunch::lint

#include <gtest/gtest.h>

#include "unit/lint/support.h"

namespace nlaunch::lint {
namespace {

using namespace support;

TEST(SecretRule, ValuesAndOptionsAreTold) {
  EXPECT_EQ(found("secret", script("export HF_TOKEN=s3cr3t-value\nserve --api-key s3cr3t-other\n")),
            (Texts{"warning job.sh:1:8 the value of HF_TOKEN is in this file",
                   "warning job.sh:2:17 the value of --api-key is in this file"}));
  EXPECT_EQ(whole("secret", script("export HF_TOKEN=s3cr3t-value\n")).at(2),
            "read it where it is needed: HF_TOKEN=$(< ~/.secrets/HF_TOKEN)  (nlaunch: secrets:)");
  EXPECT_EQ(found("secret", script("export HF_TOKEN=$(< ~/.token)\n")), Texts{});
  const ScriptJob given{.variables = {"WANDB_API_KEY=0123456789abcdef"}};
  EXPECT_EQ(found("secret", script("export KEY=1 WANDB_API_KEY=$WANDB_API_KEY\npython x.py\n", given)),
            Texts{});
  const Texts words{"note job.sh:1:15 the value of WANDB_API_KEY is in the arguments of a command"};
  const std::string docker = "docker run -e WANDB_API_KEY=$WANDB_API_KEY image python x.py\n";
  EXPECT_EQ(found("secret", script(docker, given)), words);
  EXPECT_EQ(found("secret", script(docker)), words);
  EXPECT_EQ(found("secret", script("docker run -e WANDB_API_KEY image python x.py\n", given)), Texts{});
  EXPECT_EQ(found("secret", script("python x.py --use_wandb $WANDB_API_KEY\n", given)),
            Texts{"note job.sh:1:25 the value of WANDB_API_KEY is in the arguments of a command"});
  EXPECT_EQ(found("secret", script("python x.py\n", given)), Texts{});
}

TEST(SecretRule, AnOptionIsOfNoRole) {
  LintInput input;
  input.environments = {environment("learner", {set("HF_TOKEN", "s3cr3t-value")})};
  input.secrets = {{"the value of --token", "s3cr3t-value", {a_file("z.sh"), 1, 1, 1}}};
  EXPECT_EQ(found("secret", input),
            (Texts{"warning learner.env:1:1 (learner) the value of HF_TOKEN is in this file",
                   "warning z.sh:1:1 the value of --token is in this file"}));
}

TEST(SecretRule, AFewHundredAreEnough) {
  LintInput input;
  const auto file = a_file("z.sh");
  for (std::uint32_t line = 1; line <= 300; ++line) {
    input.secrets.push_back({"the value of --token", "s3cr3t-value", {file, line, 1, 1}});
  }
  EXPECT_EQ(found("secret", input).size(), 201U);
}

TEST(SecretRule, InTheArgumentsOfACommandWithoutAValueHere) {
  for (const std::string line :
       {"huggingface-cli login --token $HF_TOKEN", "wandb login \"${WANDB_API_KEY}\"",
        "curl -H \"Authorization: Bearer $HF_TOKEN\" https://x",
        "sbatch --export=ALL,HF_TOKEN=$HF_TOKEN job"})
    EXPECT_EQ(found("secret", script(line + "\n")).size(), 1U) << line;
  for (const std::string line :
       {"HF_TOKEN=$HF_TOKEN python x.py", "export HF_TOKEN=$HF_TOKEN", "[ -n \"$HF_TOKEN\" ] && python x.py",
        "echo $HF_TOKEN | docker login --password-stdin", "python x.py --pad $PAD_TOKEN --key $CACHE_KEY",
        "gantry run --env-secret HF_TOKEN=HF_TOKEN_2 --dataset-secret NAME=/a",
        "curl -H \"token: $TOKEN\" http://h/meta-data/metadata", "python x.py '$HF_TOKEN'",
        "API_KEY=EMPTY; python x.py --url ${API_KEY:+set}",
        "HF_TOKEN=/secrets/token; python x.py --token-file $HF_TOKEN"})
    EXPECT_EQ(found("secret", script(line + "\n")), Texts{}) << line;
}

TEST(SecretPrinted, ByEcho) {
  EXPECT_EQ(
      whole("secret-printed", script("echo \"key: $WANDB_API_KEY\"\n")),
      (Texts{"this prints the value of WANDB_API_KEY",
             "anyone who can read the job's log can see it, and logs are copied and attached to reports",
             "echo \"WANDB_API_KEY: ${WANDB_API_KEY:+set}\" tells whether it is set",
             "sbatch(1), --output; bash(1), Parameter Expansion"}));
  EXPECT_EQ(
      found("secret-printed", script("if true; then\n  printf '%s\\n' \"${HF_TOKEN:-none}\" >&2\nfi\n")),
      Texts{"warning job.sh:2:20 this prints the value of HF_TOKEN"});
  for (const std::string line :
       {"echo \"$WANDB_API_KEY\" > ~/.wandb", "echo $HF_TOKEN | docker login --password-stdin",
        "echo \"${HF_TOKEN:+set}\"", "echo \"${HF_TOKEN:0:4}...\"", "echo '$HF_TOKEN'", "echo ${#HF_TOKEN}",
        "echo \"$SECRET_FILE $EOS_TOKEN $MAX_TOKENS\"", "# echo $HF_TOKEN",
        "HF_TOKEN=/run/token\necho $HF_TOKEN", "cat <<EOF > a\necho $HF_TOKEN\nEOF"})
    EXPECT_EQ(found("secret-printed", script(line + "\n")), Texts{}) << line;
}

TEST(SecretTraced, UnderSetX) {
  EXPECT_EQ(found("secret-traced", script("set -x\nexport HF_TOKEN=$(cat ~/.token)\n")),
            Texts{"warning job.sh:2:8 set -x prints the value of HF_TOKEN"});
  for (const std::string text :
       {"set -ex\nWANDB_API_KEY=s3cr3t-value\n", "#!/bin/bash -x\nwandb login $WANDB_API_KEY\n",
        "set -x\nif [ -z \"$HF_TOKEN\" ]; then A=1; fi\n"})
    EXPECT_EQ(found("secret-traced", script(text)).size(), 1U) << text;
  for (const std::string text :
       {"export HF_TOKEN=$(cat ~/.token)\nset -x\npython x.py\n",
        "set -x\nset +x\nexport HF_TOKEN=$(cat ~/.token)\n", "set -x\nexport HF_TOKEN=your_token_here\n",
        "set -x\nexport HF_TOKEN=\n", "set -x\nexport HF_TOKEN=\"\"\n",
        "set -x\nrun --env-secret HF_TOKEN=HF_TOKEN_2\n", "set -x\npython x.py --pad $PAD_TOKEN\n"})
    EXPECT_EQ(found("secret-traced", script(text)), Texts{}) << text;
}

TEST(EnvironmentPrinted, InAJob) {
  const std::string job = "#!/bin/bash\n#SBATCH -N 1\n";
  EXPECT_EQ(found("environment-printed", script(job + "printenv\npython a.py\n")),
            Texts{"note job.sh:3:1 printenv prints all variables of the job, with every token among them"});
  EXPECT_EQ(found("environment-printed", script(job + "env | sort\n")).size(), 1U);
  for (const std::string& fine :
       {std::string("printenv\n"), job + "env | grep NCCL\n", job + "printenv HOME\n",
        job + "env > env.txt\n", job + "env A=1 python a.py\n"})
    EXPECT_EQ(found("environment-printed", script(fine)), Texts{}) << fine;
}

TEST(SecretTraced, OfASourcedFile) {
  EXPECT_EQ(found("secret-traced", script("set -x\nsource ~/.shadow\n")),
            Texts{"warning job.sh:2:1 set -x prints what .shadow sets"});
  for (const std::string text :
       {"set -x\nsource .env\n", "set -ex\n. /home/me/secrets.sh\n", "set -x\nsource \"$HOME/tokens\"\n"})
    EXPECT_EQ(found("secret-traced", script(text)).size(), 1U) << text;
  for (const std::string text :
       {"set -x\nsource ~/.bashrc\n", "source ~/.shadow\nset -x\n", "set -x\nsource env.sh\n",
        "set -x\nsource venv/bin/activate\n", "set -x\nset +x\nsource .env\nset -x\n"})
    EXPECT_EQ(found("secret-traced", script(text)), Texts{}) << text;
}

TEST(SecretRule, FromAnArgumentOfABatchScript) {
  const std::string job = "#!/bin/bash\n#SBATCH -N 1\n";
  EXPECT_EQ(whole("secret", script(job + "export WANDB_API_KEY=$2\npython a.py\n")),
            (Texts{"WANDB_API_KEY comes from an argument of the script",
                   "it is on sbatch's command line: anyone can see it in scontrol show job and sacct "
                   "(SubmitLine), and it stays in the shell's history",
                   "read it where it is needed: WANDB_API_KEY=$(< ~/.secrets/WANDB_API_KEY)", ""}));
  for (const std::string fine : {"MODEL=$1\n", "f() {\n  HF_TOKEN=$1\n}\n", "HF_TOKEN=$HF_TOKEN_2\n"})
    EXPECT_EQ(found("secret", script(job + fine)), Texts{}) << fine;
  EXPECT_EQ(found("secret", script("export WANDB_API_KEY=$2\npython a.py\n")), Texts{});
}

TEST(EnvironmentPrinted, AfterTheTraceWasTurnedOff) {
  EXPECT_EQ(found("environment-printed", script("#SBATCH -N 1\nset +x\nenv\n")),
            Texts{"note job.sh:3:1 env prints all variables of the job, with every token among them"});
}

TEST(SecretRule, OnlyInTheLineThatHasIt) {
  EXPECT_EQ(
      found_on_node("secret", "KEY=hf_abcdefghijklmnop1234\nCMD=\"vllm serve m --api-key $KEY\"\n$CMD\n")
          .size(),
      1U);
  EXPECT_EQ(found_on_node("secret", "export HF_TOKEN=hf_abcdefghijklmnop1234$X\npython a.py\n").size(), 1U);
}

}  // namespace
}  // namespace nlaunch::lint

#include <gtest/gtest.h>

#include "unit/lint/support.h"

namespace nlaunch::lint {
namespace {

using namespace support;

TEST(NotExported, OfAKnownFamily) {
  EXPECT_EQ(found("not-exported", scene({local(set("NCCL_DEBUG", "WARN")), set("NCCL_ALGO", "Ring"),
                                         local(set("MY_OWN", "1")), local(unset("NCCL_NET"))})),
            Texts{"warning a.env:1:1 NCCL_DEBUG is not exported"});
  EXPECT_EQ(whole("not-exported", scene({local(set("NCCL_DEBUG", "WARN"))})).at(2), "export NCCL_DEBUG=…");
  auto input = scene({local(set("NCCL_DEBUG", "WARN"))});
  input.readings = {{"a.sh", "echo $NCCL_DEBUG"}};
  EXPECT_EQ(found("not-exported", input), Texts{});
  EXPECT_EQ(found("not-exported", script("MASTER_ADDR=localhost\npython train.py\n")),
            Texts{"warning job.sh:1:1 MASTER_ADDR is not exported"});
  EXPECT_EQ(found("not-exported", script("MASTER_ADDR=a\ntorchrun --master_addr $MASTER_ADDR train.py\n")),
            Texts{});
}

TEST(NotExported, WhatProgramsReadAndAShellDoesNot) {
  EXPECT_EQ(found("not-exported", script("CUDA_VISIBLE_DEVICES=0,1\npython train.py\n")),
            Texts{"warning job.sh:1:1 CUDA_VISIBLE_DEVICES is not exported"});
  EXPECT_EQ(found("not-exported", script("HF_MODEL=a\nWANDB_MODE=offline python train.py\n")), Texts{});
  EXPECT_EQ(
      found("not-exported", script("CUDA_VISIBLE_DEVICES=0\npython a.py --gpus $CUDA_VISIBLE_DEVICES\n")),
      Texts{});
}

TEST(NotExported, NotWhatTheScriptItselfUses) {
  EXPECT_EQ(found("not-exported", script("VLLM_TIMEOUT=600\nend=$((SECONDS + VLLM_TIMEOUT))\npython a.py\n")),
            Texts{});
}

TEST(ArrayExport, HasNoEffect) {
  EXPECT_EQ(
      found("array-export", script("export HOSTS=(a b)\n# export X=(a)\nexport Y=\"(a)\"\npython a.py\n")),
      Texts{"note job.sh:1:8 HOSTS is an array: bash does not export it"});
  EXPECT_EQ(found("array-export", script("HOSTS=(a b)\nexport HOSTS\npython a.py\n")),
            Texts{"note job.sh:2:8 HOSTS is an array: bash does not export it"});
  EXPECT_EQ(found("array-export", script("export HOSTS=(a b)\npython a.py ${HOSTS[0]}\n")), Texts{});
  EXPECT_EQ(found("array-export", script("export HOSTS=(a b)\nexport HOSTS=\"${HOSTS[*]}\"\npython a.py\n")),
            Texts{});
}

Texts twice(const std::string& between, const std::string& second = "WARN") {
  return found("set-twice",
               script("export NCCL_DEBUG=INFO\n" + between + "export NCCL_DEBUG=" + second + "\n"));
}

TEST(SetTwice, TheFirstValueIsNeverSeen) {
  EXPECT_EQ(twice(""), Texts{"warning job.sh:1:8 NCCL_DEBUG=INFO is set again on line 2, to WARN"});
  EXPECT_EQ(twice("", "''"), Texts{"warning job.sh:1:8 NCCL_DEBUG=INFO is set again on line 2, to nothing"});
  EXPECT_EQ(twice("A=1\nexport NCCL_ALGO=Ring\n"),
            Texts{"warning job.sh:1:8 NCCL_DEBUG=INFO is set again on line 4, to WARN"});
  EXPECT_EQ(twice("", "INFO"), Texts{});
  EXPECT_EQ(twice("", "$LEVEL"), Texts{});
  EXPECT_EQ(twice("export NCCL_DEBUG=ABORT\n"),
            (Texts{"warning job.sh:1:8 NCCL_DEBUG=INFO is set again on line 2, to ABORT",
                   "warning job.sh:2:8 NCCL_DEBUG=ABORT is set again on line 3, to WARN"}));
}

TEST(SetTwice, UnlessSomethingIsStartedInBetween) {
  for (const std::string start : {"python a.py\n", "srun a\n", "source settings.sh\n"}) {
    EXPECT_EQ(twice(start), Texts{}) << start;
  }
  EXPECT_EQ(found("set-twice", script("export NCCL_DEBUG=INFO; python a.py\nexport NCCL_DEBUG=WARN\n")),
            Texts{});
  EXPECT_EQ(found("set-twice", script("export NCCL_DEBUG=INFO\nexport A=$(a); export NCCL_DEBUG=WARN\n")),
            Texts{});
  for (const std::string own :
       {"export A=1\n", "declare B\n", "typeset C=2\n", "readonly D=3\n", "unset E\n", "set -x\n",
        "ulimit -n 9\n", "cd /tmp\n", "echo a\n", "mkdir -p b\n", "module load c\n", "ml d\n"}) {
    EXPECT_EQ(twice(own), Texts{"warning job.sh:1:8 NCCL_DEBUG=INFO is set again on line 3, to WARN"}) << own;
  }
  EXPECT_EQ(
      found("set-twice", script("python a.py\nexport NCCL_DEBUG=INFO\nexport NCCL_DEBUG=WARN\npython b.py\n"))
          .size(),
      1U);
}

TEST(SetTwice, OnlyWhatIsCertain) {
  const auto said = [](const Setting& one, const Setting& other) {
    return found("set-twice", scene({one, other})).size();
  };
  EXPECT_EQ(said(set("NCCL_DEBUG", "INFO"), set("NCCL_DEBUG", "WARN")), 1U);
  EXPECT_EQ(said(maybe(set("NCCL_DEBUG", "INFO")), set("NCCL_DEBUG", "WARN")), 0U);
  EXPECT_EQ(said(set("NCCL_DEBUG", "INFO"), maybe(set("NCCL_DEBUG", "WARN"))), 0U);
  EXPECT_EQ(said(open("NCCL_DEBUG"), set("NCCL_DEBUG", "WARN")), 0U);
  EXPECT_EQ(said(set("NCCL_DEBUG", "INFO"), open("NCCL_DEBUG")), 0U);
  EXPECT_EQ(said(set("NCCL_DEBUG", "INFO"), once(set("NCCL_DEBUG", "WARN"))), 0U);
  EXPECT_EQ(said(once(set("NCCL_DEBUG", "INFO")), set("NCCL_DEBUG", "WARN")), 0U);
  EXPECT_EQ(said(set("MY_OWN", "INFO"), set("MY_OWN", "WARN")), 0U);
  EXPECT_EQ(said(set("NCCL_DEBUG", "INFO"), set("NCCL_ALGO", "Ring")), 0U);
}

TEST(SetTwice, OfTwoFilesOrInAPlanOneStandsAboveTheOther) {
  auto input = scene({set("NCCL_DEBUG", "INFO"), set("NCCL_DEBUG", "WARN")});
  input.plan = true;
  EXPECT_EQ(found("set-twice", input), Texts{});
  input.plan = false;
  input.environments[0].settings[1].span.file = a_file("b.env");
  EXPECT_EQ(found("set-twice", input), Texts{});
}

TEST(NeverSet, AnExportWithoutAValue) {
  EXPECT_EQ(found("never-set", script("export NCCL_IB_HCA\npython a.py\n")),
            Texts{"warning job.sh:1:1 NCCL_IB_HCA is exported, but nothing sets it"});
  for (const auto* fine :
       {"NCCL_IB_HCA=mlx5\nexport NCCL_IB_HCA\npython a.py\n", "export MINE\npython a.py\n",
        "export NCCL_IB_HCA\nNCCL_IB_HCA=mlx5\npython a.py\n", "export HF_TOKEN\npython a.py\n"}) {
    EXPECT_EQ(found("never-set", script(fine)), Texts{}) << fine;
  }
  EXPECT_EQ(found("never-set", script("export NCCL_IB_HCA\n", {.variables = {"NCCL_IB_HCA=mlx5"}})), Texts{});
}

TEST(SetToItself, ChangesNothing) {
  for (const auto* form : {"$WANDB_DIR", "${WANDB_DIR}", "\"$WANDB_DIR\"", "\"${WANDB_DIR}\" B=1"}) {
    EXPECT_EQ(found("set-to-itself", script(fmt::format("export WANDB_DIR={}\npython a.py\n", form))),
              Texts{"note job.sh:1:1 WANDB_DIR is set to itself, but nothing has set it"});
  }
  for (const auto* fine : {"export A=$A:x\n", "A=1\nexport A=$A\n", "export A=$B\n", "export A=${A:-1}\n"})
    EXPECT_EQ(found("set-to-itself", script(fine)), Texts{}) << fine;
}

TEST(Unused, AVariableThatNothingReads) {
  EXPECT_EQ(
      whole("unused", script("RAY_PORT_OF_HEAD=6382\nray start --head\npython a.py\n")),
      (Texts{
          "nothing reads RAY_PORT_OF_HEAD",
          "the script does not use it, and programs see only exported variables: the setting has no effect",
          "use it, remove it, or export RAY_PORT_OF_HEAD if a program reads it",
          "bash(1), ENVIRONMENT; shellcheck SC2034"}));
  EXPECT_EQ(found("unused", script("nodes=2\npython a.py --nodes $nnodes\n")),
            Texts{"note job.sh:1:1 nothing reads nodes"});
  EXPECT_EQ(found("unused", script("MOUNTS=/a\nMOUNTS=\"$MOUNTS,/b\"\npython a.py\n")).size(), 1U);
  EXPECT_EQ(found("unused", script("OPTS=\"--a\"\n# python a.py $OPTS\npython a.py\n")).size(), 1U);
}

TEST(Unused, NotIfSomethingMayReadIt) {
  for (const std::string text :
       {"port=1\npython a.py --port $port\n", "port=1\npython a.py --port=${port}\n",
        "export port=1\npython a.py\n", "port=1 python a.py\n", "port=1\nexport port\npython a.py\n",
        "port=1\neval python a.py\n", "port=1\nsource env.sh\npython a.py\n",
        "port=1\nx=$((port + 1))\npython a.py $x\n", "port=1\ncat <<EOF > a\n$port\nEOF\npython a.py\n",
        "IFS=,\npython a.py\n", "port=1\n", "PATH=/x\npython a.py\n", "NAME_OF=${NAME_OF:-x}\npython a.py\n",
        "data_path=/x\npython a.py\n", "python a.py &\nPIDS=$!\npython b.py\n",
        "set -a\nport=1\npython a.py\n", "PORT=1; python a.py $PORT\n",
        "ports=1\nif [[ -v ports ]]; then python a.py; fi\n"})
    EXPECT_EQ(found("unused", script(text)), Texts{}) << text;
}

TEST(ArgumentsLost, WhereTheyAreOverwritten) {
  EXPECT_EQ(
      whole("arguments-lost",
            script("args=\"${@}\"\necho $args\nfor a in b c; do\n  args=\"--x=$a\"\n  python a.py $args\n"
                   "done\n")),
      (Texts{"args has the script's arguments, but line 4 overwrites it",
             "nothing uses them in between: what is passed to the script has no effect",
             "args=\"… $args\" on line 4, or leave this line out", "bash(1), Special Parameters"}));
  EXPECT_EQ(found("arguments-lost", script("A=$*\nA=--x\npython a.py $A\n")),
            Texts{"warning job.sh:1:1 A has the script's arguments, but line 2 overwrites it"});
  for (const std::string fine :
       {"A=$@\npython a.py $A\nA=--x\npython b.py $A\n", "A=$@\nA=\"--x $A\"\npython a.py $A\n",
        "A=$@\nA+=' --x'\npython a.py $A\n", "A=$@\nA=--x\npython a.py $A $1\n",
        "A=$@\nif [ -z \"$A\" ]; then\n  A=--x\nfi\npython a.py $A\n",
        "A=$@\nif [ -f x ]; then\n  A=--x\nfi\npython a.py $A\n",
        "A=$@\nsource b.sh\nA=--x\npython a.py $A\n", "A=$@\nrun() {\n  A=--x\n}\npython a.py $A\n",
        "A=$@\n[ -f x ] && A=--x\npython a.py $A\n", "A=--x\npython a.py $A \"$@\"\n"})
    EXPECT_EQ(found("arguments-lost", script(fine)), Texts{}) << fine;
}

TEST(SetTwice, NotUnderACondition) {
  for (const std::string text : {"export NCCL_DEBUG=INFO\nif true; then\n  export NCCL_DEBUG=WARN\nfi\n",
                                 "export NCCL_DEBUG=INFO\n[ -n \"$HOME\" ] && export NCCL_DEBUG=WARN\n"})
    EXPECT_EQ(found("set-twice", script(text)), Texts{}) << text;
}

TEST(SetToItself, NotWhatReadHasSet) {
  EXPECT_EQ(
      found(
          "set-to-itself",
          script("IFS=: read -r MODEL API_KEY <<< \"a:\"\nexport API_KEY=${API_KEY}\npython a.py $MODEL\n")),
      Texts{});
}

TEST(SingleQuotes, ExpandNothing) {
  EXPECT_EQ(whole("single-quotes", script("export XLA_FLAGS='--a=1 ${XLA_FLAGS}'\npython a.py\n")),
            (Texts{"the value of XLA_FLAGS contains the text $XLA_FLAGS",
                   "bash expands nothing in single quotes: what reads the variable gets this text",
                   "double quotes", "bash(1), Quoting"}));
  EXPECT_EQ(found("single-quotes", script("export HF_HOME='$SCRATCH/hf'\npython a.py\n")).size(), 1U);
  for (const std::string fine :
       {"export XLA_FLAGS=\"--a=1 ${XLA_FLAGS}\"\npython a.py\n", "export PS1='$PS1 > '\npython a.py\n",
        "F='--a ${FLAGS}'\npython a.py\n", "export C='python $FILE'\neval \"$C\"\n"})
    EXPECT_EQ(found("single-quotes", script(fine)), Texts{}) << fine;
}

TEST(OptionUnread, WhatTheUserGives) {
  const std::string loop =
      "while [[ $# -gt 0 ]]; do\n  case $1 in\n    --device)\n      device=\"$2\"\n      shift 2 ;;\n  "
      "esac\ndone\n";
  EXPECT_EQ(whole("option-unread", script(loop + "python a.py --device cpu\n")),
            (Texts{"nothing reads device: what the user gives is lost",
                   "the argument is accepted, and has no effect", "pass it on, or leave it out", ""}));
  EXPECT_EQ(found("option-unread", script("SIZE=$1\npython a.py\n")),
            Texts{"note job.sh:1:1 nothing reads SIZE: what the user gives is lost"});
  EXPECT_EQ(found("unused", script("SIZE=$1\npython a.py\n")), Texts{});
  for (const auto& fine :
       {loop + "python a.py --device $device\n", std::string("export SIZE=$1\npython a.py\n"),
        std::string("SIZE=$1\nexport SIZE\npython a.py\n"),
        std::string("f() {\n  local model=$1\n  python a.py $model\n}\nf x\n")})
    EXPECT_EQ(found("option-unread", script(fine)), Texts{}) << fine;
}

TEST(GivenOverwritten, WithoutEffect) {
  const ScriptJob job{.variables = {"IMAGE=mine:1"}};
  EXPECT_EQ(whole("given-overwritten", script("export IMAGE=theirs:2\npython a.py\n", job)),
            (Texts{"--env IMAGE has no effect: the script sets IMAGE here",
                   "what the user gives is overwritten", "IMAGE=${IMAGE:-…} keeps what is given", ""}));
  for (const std::string fine :
       {"export IMAGE=${IMAGE:-theirs}\npython a.py\n", "export IMAGE=x/$IMAGE\npython a.py\n",
        "IMAGE=a python a.py\n", "python a.py $IMAGE\n"})
    EXPECT_EQ(found("given-overwritten", script(fine, job)), Texts{}) << fine;
}

}  // namespace
}  // namespace nlaunch::lint

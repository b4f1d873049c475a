#include <gtest/gtest.h>

#include "unit/lint/support.h"

namespace nlaunch::lint {
namespace {

using namespace support;

const std::string kJob = "#!/bin/bash\n#SBATCH --nodes=1\n";

Texts of(const char* rule, const std::string& text) {
  return found(rule, script(kJob + text));
}

TEST(UnexpandedWord, ANameInPlaceOfItsValue) {
  const auto words = [](const std::string& text) {
    return found("unexpanded-word", script("export NAME=1\n" + text));
  };
  EXPECT_EQ(words("python a.py --n='$NAME'\n"),
            Texts{"warning job.sh:2:1 python gets the text $NAME instead of its value"});
  for (const std::string right :
       {"python a.py $NAME\n", "python a.py '$OTHER'\n", "bash -c 'python a.py $NAME'\n",
        "python -c '$NAME'\n", "python a.py '${NAME.b}'\n", "python a.py '${NAME}'\n"})
    EXPECT_EQ(words(right), Texts{}) << right;
}

TEST(BlanksAroundEquals, AreNoAssignment) {
  EXPECT_EQ(of("blanks-around-equals", "NAME = 1\npython a.py\n"),
            Texts{"error job.sh:3:1 bash treats NAME as a program"});
  for (const std::string right : {"NAME=1\n", "[ a = b ]\n", "test a = b\n", "python = 1\n"})
    EXPECT_EQ(of("blanks-around-equals", right).size(), right.starts_with("python") ? 1U : 0U) << right;
}

TEST(StepWithoutProgram, ALineThatDoesNotGoOn) {
  EXPECT_EQ(of("step-without-program", "srun -n 1 --ntasks-per-node=1\npython a.py\n"),
            Texts{"error job.sh:3:1 this srun starts no program"});
  EXPECT_EQ(of("step-without-program", "srun -n 1 python a.py\nsrun -w '' python b.py\n"), Texts{});
}

TEST(OwnPath, OfACopy) {
  for (const std::string line :
       {"cd \"$(dirname \"$0\")\"", "DIR=$(dirname \"${BASH_SOURCE[0]}\")", "A=$(realpath $0)"})
    EXPECT_EQ(of("own-path", line + "\npython a.py\n"),
              Texts{"warning job.sh:3:1 the script looks up its own directory, but runs as a copy"})
        << line;
  EXPECT_EQ(of("own-path", "cd \"${SLURM_SUBMIT_DIR:-$(dirname $0)}\"\n"), Texts{});
  EXPECT_EQ(of("own-path", "echo $0\ncd $(dirname $A)\n"), Texts{});
  EXPECT_EQ(found("own-path", script("cd $(dirname $0)\npython a.py\n")), Texts{});
}

TEST(AllAddresses, TakenForOne) {
  EXPECT_EQ(of("all-addresses", "IP=$(hostname -I)\npython a.py --ip $IP\n"),
            Texts{"note job.sh:3:1 hostname -I prints all addresses of the node"});
  for (const std::string right : {"IP=$(hostname -I | awk '{print $1}')\n", "IP=$(hostname)\n",
                                  "IP=$(hostname -I)\nA=${IP%% *}\n", "IP=$(hostname -i | cut -d' ' -f1)\n"})
    EXPECT_EQ(of("all-addresses", right + "python a.py\n"), Texts{}) << right;
  EXPECT_EQ(of("all-addresses", "IP=$(srun -N1 -n1 hostname --ip-address)\npython a.py --ip $IP\n"),
            Texts{"note job.sh:3:1 hostname --ip-address can print several addresses"});
}

TEST(PortRange, BelowThoseOfUsers) {
  EXPECT_EQ(of("port-range", "PORT=$(shuf -i 0-65535 -n 1)\n"),
            Texts{"warning job.sh:3:1 a random port is chosen from 0 up"});
  EXPECT_EQ(of("port-range", "PORT=$(shuf -i 20000-30000 -n 1)\nSEED=$(shuf -i 0-10 -n 1)\n"), Texts{});
}

TEST(ProxyScheme, OfTheProxyItself) {
  EXPECT_EQ(of("proxy-scheme", "export https_proxy=https://p:3128\npython a.py\n"),
            Texts{"note job.sh:3:8 https_proxy requests TLS to the proxy itself"});
  EXPECT_EQ(of("proxy-scheme", "export https_proxy=http://p:3128\npython a.py\n"), Texts{});
}

TEST(LibraryPath, WithoutWhatModulesHavePut) {
  EXPECT_EQ(of("library-path", "module load cuda\nexport LD_LIBRARY_PATH=/opt/lib\npython a.py\n"),
            Texts{"warning job.sh:4:1 LD_LIBRARY_PATH is overwritten after modules were loaded"});
  for (const std::string right :
       {"module load cuda\nexport LD_LIBRARY_PATH=/opt/lib:$LD_LIBRARY_PATH\n",
        "export LD_LIBRARY_PATH=/opt/lib\nmodule load cuda\n", "export LD_LIBRARY_PATH=/opt/lib\n"})
    EXPECT_EQ(of("library-path", right + "python a.py\n"), Texts{}) << right;
}

TEST(EndlessWait, ForAServerThatMayHaveDied) {
  for (const std::string loop :
       {"until curl -sf localhost:8000/health; do sleep 5; done\n",
        "while ! nc -z localhost 8000; do\n  sleep 1\ndone\n",
        "while true; do\n  if curl -s localhost:8000; then break; fi\n  sleep 5\ndone\n"})
    EXPECT_EQ(of("endless-wait", "vllm serve a &\n" + loop + "python a.py\n"),
              Texts{"note job.sh:4:1 this waits forever if the server has died"})
        << loop;
  for (const std::string loop :
       {"until curl -sf localhost:8000/health; do kill -0 $! || exit 1; sleep 5; done\n",
        "for i in 1 2 3; do curl localhost:8000 && break; done\n",
        "timeout 60 bash -c 'until curl -sf localhost:8000; do sleep 1; done'\n"})
    EXPECT_EQ(of("endless-wait", "vllm serve a &\n" + loop + "python a.py\n"), Texts{}) << loop;
}

TEST(OpenDashboard, OnAllInterfaces) {
  EXPECT_EQ(of("open-dashboard", "ray start --head --dashboard-host=0.0.0.0\npython a.py\n"),
            Texts{"warning job.sh:3:1 Ray's dashboard is open to everyone who can reach the node"});
  EXPECT_EQ(of("open-dashboard", "ray start --head --dashboard-host 127.0.0.1\npython a.py\n"), Texts{});
}

TEST(PortRange, ThatReachesThoseOfTheKernel) {
  EXPECT_EQ(of("port-range", "MASTER_PORT=$((20000 + SLURM_JOB_ID % 20000))\n"),
            Texts{"note job.sh:3:1 the port is between 20000 and 39999"});
  EXPECT_EQ(of("port-range", "PORT=$((RANDOM % 30000 + 10000))\n").size(), 1U);
  EXPECT_EQ(of("port-range", "PORT=$((RANDOM % 30000 + 100))\n").size(), 1U);
  for (const std::string fine :
       {"PORT=$((20000 + SLURM_JOB_ID % 10000))\n", "PORT=$((29500 + SLURM_JOB_ID % 1000))\n",
        "N=$((20000 + SLURM_JOB_ID % 20000))\n", "PORT=$((RANDOM % 10000 + 20000))\n"})
    EXPECT_EQ(of("port-range", fine), Texts{}) << fine;
}

TEST(BlanksAroundEquals, CommandsMayGetAnEqualsSign) {
  for (const std::string text :
       {"echo \"=\"", "echo = y", "printf = x", "log() { echo \"$@\"; }\nlog = x", "RULE '=' x"})
    EXPECT_EQ(found("blanks-around-equals", script(text + "\n")), Texts{}) << text;
  EXPECT_EQ(found("blanks-around-equals", script("RANK = 3\n")),
            Texts{"error job.sh:1:1 bash treats RANK as a program"});
}

TEST(DoubleBackslash, TheNextLineIsACommandOfItsOwn) {
  EXPECT_EQ(
      whole("double-backslash", script("python a.py \\\\\n  --model x \\\\\n  --size 3\n")),
      (Texts{"two backslashes end the command here",
             "the first one quotes the second: the program gets a backslash as its last argument, and the "
             "next line is a command of its own",
             "one backslash", "bash(1), QUOTING"}));
  for (const std::string text :
       {"python a.py \\\n  --model x\n", "echo a \\\\\necho b\n",
        "bash -c \"python a.py \\\\\n  --model x\"\n", "cat <<EOF\npython a.py \\\\\n  --model x\nEOF\n"})
    EXPECT_EQ(found("double-backslash", script(text)), Texts{}) << text;
}

TEST(OptionAsProgram, ALineWithoutItsBackslash) {
  EXPECT_EQ(of("option-as-program", "python a.py \\\n  --lr 1\n  --bs 2 \\\n  --x 3\n"),
            Texts{"error job.sh:5:3 bash starts the option --bs as a program"});
  EXPECT_EQ(of("option-as-program", "python a.py \\\n  --lr 1 \\\n  --bs 2\n"), Texts{});
}

TEST(SimilarHosts, AreRemovedToo) {
  const std::string head = "M=$(hostname)\n";
  EXPECT_EQ(
      of("similar-hosts", head + "S=$(scontrol show hostnames | grep -v $M)\npython a.py $S\n"),
      Texts{
          "warning job.sh:4:1 grep -v with the name of a node also removes nodes whose names begin with it"});
  for (const std::string right :
       {"S=$(scontrol show hostnames | grep -vx $M)\n", "S=$(scontrol show hostnames | grep -v -w $M)\n",
        "S=$(scontrol show hostnames | grep $M)\n", "S=$(ls | grep -v a)\n"})
    EXPECT_EQ(of("similar-hosts", head + right + "python a.py $S\n"), Texts{}) << right;
}

TEST(AllAddresses, ThatAreNarrowedLater) {
  EXPECT_EQ(of("all-addresses",
               "IP=$(hostname --ip-address)\nIP=$(echo $IP | cut -d' ' -f1)\npython a.py --ip $IP\n"),
            Texts{});
}

TEST(PartedText, AllArgumentsInOneText) {
  const std::string job = "#SBATCH -N 2\n";
  const ScriptJob two{.arguments = {"--epochs", "2"}};
  EXPECT_EQ(found("parted-text", script(job + "srun bash -c \"python a.py $@\"\n", two)),
            Texts{"error job.sh:2:1 $@ cuts off the text for bash -c at its first argument"});
  for (const auto* fine : {"srun bash -c \"python a.py $*\"\n",
                           "srun bash -c 'python a.py \"$@\"' x \"$@\"\n", "srun python a.py \"$@\"\n"})
    EXPECT_EQ(found("parted-text", script(job + fine, two)), Texts{}) << fine;
  EXPECT_EQ(found("parted-text", script(job + "srun bash -c \"python a.py $@\"\n", {.arguments = {"a"}})),
            Texts{});
}

TEST(LostArguments, TheInnerShellHasNone) {
  const auto with = [](const std::string& command) {
    return found("lost-arguments", script("#!/bin/bash\n#SBATCH -N 1\n" + command + "\n"));
  };
  EXPECT_EQ(with("srun bash -c \"torchrun train.py \\\"\\$@\\\"\""),
            Texts{"warning job.sh:3:1 \"$@\" within this text is empty: the inner shell gets no arguments"});
  EXPECT_EQ(with("srun bash -c 'python train.py $*'").size(), 1U);
  EXPECT_EQ(with("srun apptainer exec a.sif bash -c 'python train.py \"$@\"'").size(), 1U);
  for (const std::string fine :
       {"srun bash -c 'python train.py \"$@\"' _ \"$@\"", "srun bash -c \"python train.py $*\"",
        "srun bash -c 'set -- a b; python train.py \"$@\"'", "srun python train.py \"$@\""})
    EXPECT_EQ(with(fine), Texts{}) << fine;
}

TEST(NoCommand, ASignOfADiff) {
  EXPECT_EQ(
      whole("no-command", script("- python a.py\n")),
      (Texts{"bash starts - as a program",
             "it is not found, and the rest of the line does not run: a line of a diff, or a dash too much",
             "leave it out", "bash(1), Command Execution; Definitions, name"}));
  EXPECT_EQ(whole("no-command", script("LLaVA-HOME=/x\npython a.py\n")).at(1),
            "the name of a variable has no dash: nothing is set");
  EXPECT_EQ(found("no-command", script("A=1\npython a.py --x=1\n")), Texts{});
}

TEST(BlanksAroundEquals, BehindExport) {
  EXPECT_EQ(found("blanks-around-equals", script("export ENV_PATH = \"/x\"\npython a.py\n")),
            Texts{"error job.sh:1:1 this exports ENV_PATH as it is, and then fails at ="});
}

}  // namespace
}  // namespace nlaunch::lint

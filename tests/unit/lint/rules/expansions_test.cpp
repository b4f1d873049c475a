#include <gtest/gtest.h>

#include "unit/lint/support.h"

namespace nlaunch::lint {
namespace {

using namespace support;

TEST(VariableAsCommand, AsInAMakefile) {
  EXPECT_EQ(whole("variable-as-command", script("export PYTHONPATH=$(PSI_ROOT):$PYTHONPATH\npython a.py\n")),
            (Texts{"$(PSI_ROOT) runs a command called PSI_ROOT",
                   "bash finds none, and the value is empty: $(NAME) is a variable only in a Makefile",
                   "${PSI_ROOT}", "bash(1), Command Substitution"}));
  for (const std::string fine : {"A=${ROOT}\n", "A=$(hostname)\n", "A='$(ROOT)'\n",
                                 "ROOT() { echo a; }\nA=$(ROOT)\n", "A=$((ROOT))\n", "# $(ROOT)\n"})
    EXPECT_EQ(found("variable-as-command", script(fine)), Texts{}) << fine;
}

TEST(BadSubstitution, ADollarWithinBraces) {
  EXPECT_EQ(whole("bad-substitution", script("ssh ${$NODE} ls\npython a.py\n")),
            (Texts{"${$NODE} is a bad substitution",
                   "bash ends the command, and a script that is not interactive with it",
                   "${NAME}, or ${!NAME} for the variable that NAME names", "bash(1), Parameter Expansion"}));
  for (const std::string fine : {"A=${!NODE}\n", "A=$$\n", "A='${$NODE}'\n", "A=${B:-$C}\n"})
    EXPECT_EQ(found("bad-substitution", script(fine)), Texts{}) << fine;
}

TEST(DefaultAsCommand, WithoutAColon) {
  EXPECT_EQ(whole("default-as-command", script("${PORT:=8000}\npython a.py --port $PORT\n")),
            (Texts{"this sets PORT, and then runs its value as a command",
                   "a command of that name is not found, or is one that nobody meant",
                   ": \"${PORT:=…}\", with the colon in front", "bash(1), Parameter Expansion; :"}));
  EXPECT_EQ(found("default-as-command", script("A=1; ${PORT:=\"\"}\npython a.py\n")).size(), 1U);
  for (const std::string fine : {": ${PORT:=8000}\n", "A=${PORT:=8000}\n", "${PYTHON:-python} a.py\n"})
    EXPECT_EQ(found("default-as-command", script(fine)), Texts{}) << fine;
}

TEST(Octal, ALeadingZero) {
  EXPECT_EQ(whole("octal", script("N=08\npython a.py $((N + 1))\n")),
            (Texts{"N is 08, which $(( )) takes for an octal number", "08 and 09 are errors, and 010 is 8",
                   "$((10#$N))", "bash(1), Arithmetic Evaluation"}));
  for (const std::string fine : {"N=8\npython a.py $((N + 1))\n", "N=08\npython a.py $N\n",
                                 "N=08\npython a.py $((10#$N + 1))\n", "N=0\npython a.py $((N + 1))\n"})
    EXPECT_EQ(found("octal", script(fine)), Texts{}) << fine;
}

TEST(LiteralDollar, OfAKill) {
  EXPECT_EQ(whole("literal-dollar", script("f() {\n  pkill -f \"vllm.*\\$1\"\n}\nf 8000\npython a.py\n")),
            (Texts{"pkill gets the text vllm.*$1", "a backslash or single quotes keep bash from expanding it",
                   "leave the backslash out; or double quotes", "bash(1), Quoting"}));
  for (const std::string fine :
       {"pkill -f \"vllm.*$1\"\n", "pkill -f 'a$'\n", "awk '{print $1}' x\n", "mkdir -p \"$OUT\"\n"})
    EXPECT_EQ(found("literal-dollar", script(fine)), Texts{}) << fine;
}

TEST(TildeInQuotes, OfAFile) {
  EXPECT_EQ(whole("tilde-in-quotes", script("OUT=\"~/out\"\nmkdir -p $OUT\npython a.py\n")),
            (Texts{"mkdir gets ~/out, with the ~",
                   "bash expands ~ only outside of quotes: this is a directory called ~ here", "\"$HOME/…\"",
                   "bash(1), Tilde Expansion"}));
  for (const std::string fine :
       {"mkdir -p ~/out\n", "OUT=~/out\nmkdir -p $OUT\n", "python a.py --out '~/out'\n"})
    EXPECT_EQ(found("tilde-in-quotes", script(fine)), Texts{}) << fine;
}

TEST(DollarInBraces, StayThere) {
  EXPECT_EQ(whole("dollar-in-braces", script("ID=1\ncat slurm-{$ID}.out\npython a.py\n")),
            (Texts{"{$ID} is the value of ID within braces", "the braces stay: they are part of the name",
                   "${ID}", "bash(1), Brace Expansion; Parameter Expansion"}));
  for (const std::string fine : {"cat slurm-${ID}.out\n", "ls {$A,$B}\n", "awk '{$1}' x\n", "f() {$X; }\n"})
    EXPECT_EQ(found("dollar-in-braces", script(fine)), Texts{}) << fine;
}

TEST(SlashInSed, APathAsReplacement) {
  EXPECT_EQ(
      whole("slash-in-sed", script("OUT=/data/x\nsed -i \"s/OUTPUT/$OUT/g\" c.yaml\npython a.py c.yaml\n")),
      (Texts{"a / in the value of OUT ends the s command of sed",
             "sed fails with \"unknown option to `s'\", and the file stays as it is",
             "another delimiter: s|…|…|", "sed(1), s/regexp/replacement/"}));
  EXPECT_EQ(found("slash-in-sed", script("sed \"s/X/${MODEL_PATH}/\" a > b\n")).size(), 1U);
  for (const std::string fine : {"OUT=/x\nsed -i \"s|OUTPUT|$OUT|g\" c.yaml\n",
                                 "N=4\nsed -i \"s/N/$N/g\" c.yaml\n", "sed -i 's/a/b/' c.yaml\n"})
    EXPECT_EQ(found("slash-in-sed", script(fine)), Texts{}) << fine;
}

}  // namespace
}  // namespace nlaunch::lint

#include "shell/notes.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include "base/text.h"

namespace nlaunch::shell {
namespace {

std::string said(const std::vector<Absent>& all) {
  std::vector<std::string> texts;
  for (const auto& one : all) texts.push_back(fmt::format("{}: {}", one.line, one.name));
  return text::join(texts, "|");
}

std::string unset(const std::string& script, std::set<std::string> known = {}) {
  return said(unset_in(script, script, std::move(known)));
}

TEST(Notes, PlaceholdersAreInAngles) {
  EXPECT_EQ(said(placeholders_in("A=/a/<team>/b\n# <x>\necho 1 < 2 > 3\n")), "1: <team>");
  EXPECT_EQ(said(placeholders_in("#SBATCH -p { queue } # {y}\nA={x} B=${y}\n#SBATCH -A <you>\n")),
            "1: { queue }|3: <you>");
}

TEST(Notes, VariablesThatNothingSets) {
  EXPECT_EQ(unset("A=1\necho $A ${B} $C\n", {"C"}), "2: B");
  EXPECT_EQ(unset("for a in 1; do read b c; echo $a $b $c $d; done\n"), "1: d");
  EXPECT_EQ(unset("# $a\n[ -z $b ]\nawk '{print $c}'\necho \\\\$d ${e:-1} $RANDOM $SLURM_NODEID\n"), "");
  EXPECT_EQ(unset("cd $SLURM_TMPDIR\n"), "1: SLURM_TMPDIR");
  EXPECT_EQ(unset("echo $a\necho $a\n"), "1: a");
  EXPECT_EQ(said(unset_in("echo $a\n", "echo $a\nexport a=1\n", {})), "");
  EXPECT_EQ(unset("python a.py 'b=${c}' \"$d's\" 'e'$f\n"), "1: d|1: f");
  EXPECT_EQ(unset("srun bash -c 'echo $a'\nssh b 'echo $c'\n"), "1: a|2: c");
  EXPECT_EQ(unset("ray start --num-cpus $SLURM_CPUS_PER_TASK\n"), "1: SLURM_CPUS_PER_TASK");
  EXPECT_EQ(unset("if [ -n \"$SLURM_CPUS_PER_TASK\" ]; then\nexport N=$SLURM_CPUS_PER_TASK\nfi\n"), "");
  EXPECT_EQ(unset("bash -c 'echo $a' 'b=$c' $d\n"), "1: a|1: d");
}

TEST(Notes, ArgumentsThatAreNotGiven) {
  const auto missing = [](const std::string& script, std::size_t given) {
    std::set<std::uint32_t> all;
    for (std::uint32_t line = 1; line < 50; ++line) all.insert(line);
    return said(missing_arguments_in(script, given, all));
  };
  EXPECT_EQ(missing("a=$1\nb=${2}\necho $1 ${3:-x} '$4' $$5\n", 0), "1: 1|2: 2");
  EXPECT_EQ(missing("a=$1\nb=$2\n", 1), "2: 2");
  EXPECT_EQ(missing("f() {\n  echo $1\n}\nfunction g {\n  { echo $1; }\n}\nh() { echo $1; }\n", 0), "");
  EXPECT_EQ(missing("awk '{print $1}'\nsrun bash -c 'echo $1' _ 5\ntrap 'echo $2' EXIT\n", 0), "");
  EXPECT_EQ(missing("if [ -z \"$1\" ]; then m=a; else m=$1; fi\n", 0), "");
  EXPECT_EQ(missing("f() { local a=${1}\n  echo $2\n}\n", 0), "");
  EXPECT_EQ(said(missing_arguments_in("cat <<'E'\n$1\nE\necho $2\n", 0, {1, 4})), "4: 2");
  EXPECT_EQ(missing("set -- a b\necho $1\n", 0), "");
  EXPECT_EQ(
      missing("while [[ $# -gt 0 ]]; do\n  case $1 in\n  -m) m=$2; shift ;;\n  esac\n  shift\ndone\n", 0),
      "");
}

TEST(Notes, WhatBashCouldNotOpen) {
  EXPECT_EQ(
      said(not_opened_in(
          "x\n/a/job.sh: line 7: in/a.txt: No such file or directory\ncat: b: No such file or directory\n")),
      "7: in/a.txt");
  EXPECT_EQ(not_opened_in("/a/b.sh: line 7: in/a.txt: No such file or directory\n").at(0).script, "/a/b.sh");
}

TEST(Notes, FilesThatProgramsPrint) {
  const auto files = [](const std::string& line) {
    return text::join(files_printed_by(text::split(line, ' ')), " ");
  };
  EXPECT_EQ(files("cat -n /a b.txt c"), "/a b.txt");
  EXPECT_EQ(files("grep a.b /c"), "/c");
  EXPECT_EQ(files("find -L /a /b -name *.py"), "/a /b");
  EXPECT_EQ(files("sed -n -e /a/p -e /b:/p"), "");
  EXPECT_EQ(files("grep -e a.b /c"), "/c");
  EXPECT_EQ(files("python a.py"), "");
}

TEST(Notes, TheFolderOfAJobIsWhereItIsSubmitted) {
  RecordRequest request;
  request.script = "/a/b/job.sh";
  EXPECT_EQ(folder_of(request), "/a/b");
  request.folder = "/c";
  EXPECT_EQ(folder_of(request), "/c");
}

}  // namespace
}  // namespace nlaunch::shell

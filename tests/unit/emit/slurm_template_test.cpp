#include "emit/slurm_template.h"

#include <gtest/gtest.h>

namespace nlaunch::emit {
namespace {

std::string complaint(std::string text) {
  const auto read =
      read_slurm_template(std::make_shared<const SourceFile>(SourceFile{"job.sbatch", std::move(text)}));
  return read ? "no error\n" : render(read.error());
}

TEST(SlurmTemplate, TheBuiltInOneIsGood) {
  const auto read = read_slurm_template(built_in_slurm_template());
  EXPECT_TRUE(read) << render(read.error());
}

TEST(SlurmTemplate, CommandsMayStandBeforeTheLast) {
  EXPECT_EQ(
      complaint(
          "#!/bin/bash -l\n\n# {{NAME}} on {{SITE}}: {{EXPERIMENT}}, {{PLAN}}, {{NLAUNCH}}\n{{DIRECTIVES}}\n"
          "ulimit -c 0\n# last\nexec {{COMMAND}}\n\n# end\n"),
      "no error\n");
}

TEST(SlurmTemplate, NlaunchTakesThePlaceOfTheShell) {
  constexpr std::string_view kHint =
      "hint: Slurm sends its signals to this shell: it must exec nlaunch, or nlaunch never receives them\n";
  EXPECT_EQ(complaint("#!/bin/bash\n{{DIRECTIVES}}\n{{COMMAND}}\n"),
            "job.sbatch:3:1: error: the last command must be 'exec {{COMMAND}}' [emit.last-line]\n"
            "   3 | {{COMMAND}}\n"
            "     | ^^^^^^^^^^^\n" +
                std::string(kHint));
  EXPECT_EQ(complaint("#!/bin/bash\n{{DIRECTIVES}}\nexec {{COMMAND}}\necho done\n"),
            "job.sbatch:3:6: error: {{COMMAND}} is allowed only on the last line [emit.misplaced-name]\n"
            "   3 | exec {{COMMAND}}\n"
            "     |      ^^^^^^^^^^^\n"
            "hint: exec {{COMMAND}}\n"
            "\n"
            "job.sbatch:4:1: error: the last command must be 'exec {{COMMAND}}' [emit.last-line]\n"
            "   4 | echo done\n"
            "     | ^^^^^^^^^\n" +
                std::string(kHint) +
                "\n"
                "2 errors\n");
  for (const auto* last : {"exec bash -c '{{COMMAND}}'", "exec {{COMMAND}} || true", "  exec {{COMMAND}}"}) {
    EXPECT_TRUE(
        complaint(std::string("#!/bin/bash\n{{DIRECTIVES}}\n") + last + "\n").contains("[emit.last-line]"))
        << last;
  }
}

TEST(SlurmTemplate, DirectivesStandWhereSbatchReadsThem) {
  EXPECT_EQ(complaint("#!/bin/bash\nset -u\n{{DIRECTIVES}}\nexec {{COMMAND}}\n"),
            "job.sbatch:3:1: error: {{DIRECTIVES}} must be alone on its line, above the first command "
            "[emit.misplaced-name]\n"
            "   3 | {{DIRECTIVES}}\n"
            "     | ^^^^^^^^^^^^^^\n"
            "hint: sbatch ignores directives after a command\n");
  EXPECT_TRUE(
      complaint("#!/bin/bash\n# {{DIRECTIVES}}\nexec {{COMMAND}}\n").contains("[emit.misplaced-name]"));
  EXPECT_EQ(complaint("#!/bin/bash\n{{DIRECTIVES}}\n#SBATCH --nodes=9\nexec {{COMMAND}}\n"),
            "job.sbatch:3:1: error: directives are not allowed in a template [emit.directive]\n"
            "   3 | #SBATCH --nodes=9\n"
            "     | ^^^^^^^^^^^^^^^^^\n"
            "hint: put it under `scheduler: {directives: ...}` in the profile, where it is checked\n");
}

TEST(SlurmTemplate, NamesStandWhereNothingIsInterpreted) {
  EXPECT_EQ(complaint("#!/bin/bash\n{{DIRECTIVES}}\necho {{EXPERIMENT}}\nexec {{COMMAND}}\n"),
            "job.sbatch:3:6: error: {{EXPERIMENT}} is allowed only in a comment above the first command "
            "[emit.misplaced-name]\n"
            "   3 | echo {{EXPERIMENT}}\n"
            "     |      ^^^^^^^^^^^^^^\n"
            "hint: start the line with '# '; in the script's own commands, use Slurm's variables instead: "
            "$SLURM_JOB_NAME\n");
  for (const auto* line : {"#{{NAME}}", "cat <<X\n# {{NAME}}\nX", "# exec {{COMMAND}}", "#! {{PLAN}}"}) {
    EXPECT_TRUE(complaint(std::string("#!/bin/bash\n{{DIRECTIVES}}\n") + line + "\nexec {{COMMAND}}\n")
                    .contains("[emit.misplaced-name]"))
        << line;
  }
}

TEST(SlurmTemplate, WhatSbatchWouldRefuseIsRefused) {
  EXPECT_EQ(complaint("{{DIRECTIVES}}\nexec {{COMMAND}}\n"),
            "job.sbatch:1:1: error: a batch script starts with #! and its interpreter [emit.first-line]\n"
            "   1 | {{DIRECTIVES}}\n"
            "     | ^^^^^^^^^^^^^^\n"
            "hint: #!/bin/bash\n");
  EXPECT_EQ(
      complaint("#!/bin/bash\r\n{{DIRECTIVES}}\r\nexec {{COMMAND}}\r\n"),
      "job.sbatch:1:1: error: the line has a DOS line ending (CRLF), which sbatch rejects [emit.line-ends]\n"
      "   1 | #!/bin/bash\n"
      "     | ^^^^^^^^^^^\n"
      "hint: sed -i 's/\\r$//' job.sbatch\n");
}

}  // namespace
}  // namespace nlaunch::emit

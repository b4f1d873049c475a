#include "cli/usage.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>

#include "cli/options.h"

namespace nlaunch::cli {
namespace {

/// A program with one command, whose help has all parts.
class Usage : public testing::Test {
 protected:
  void make(std::size_t width) {
    set_usage(program, width);
    program.add_flag("-q,--quiet", flag, "Print less");
    auto command =
        Command(&program)
            .subcommand("train", "Train a model on the nodes that the scheduler has assigned to the job")
            .examples({"nlaunch train a.yaml", "nlaunch train a.yaml -- --lr 1"});
    command.option("EXPERIMENT", text, "What to run").required();
    command.option("WORDS", words, "For the program").value_name("-- [WORD...]");
    command.section("Plan options")
        .option("--site", text, "Site profile, by name or by file; the default is the profile that matches");
    command.option("--level", text, "How thorough").one_of({"quick", "deep"});
    command.option("--an-option-with-a-long-name", text, "Below its name").value_name("FILE");
    command.option("-n,--number", number, "How many");
    command.flag("--inner", flag, "").hidden();
  }

  std::string help() { return program.get_subcommand("train")->help("nlaunch"); }

  CLI::App program{"Launch", "nlaunch"};
  std::string text;
  std::vector<std::string> words;
  unsigned number = 0;
  bool flag = false;
};

TEST_F(Usage, HelpHasExamplesThenOptionsInGroups) {
  make(60);
  EXPECT_EQ(help(), R"(Usage: nlaunch train EXPERIMENT [OPTIONS] -- [WORD...]

Train a model on the nodes that the scheduler has assigned
to the job.

Examples:
  nlaunch train a.yaml
  nlaunch train a.yaml -- --lr 1

Arguments:
  EXPERIMENT            What to run
  WORDS                 For the program

Plan options:
  --site SITE           Site profile, by name or by file;
                        the default is the profile that
                        matches

Options:
  --level {quick,deep}  How thorough
  --an-option-with-a-long-name FILE
                        Below its name
  -n, --number N        How many

General options:
  -h, --help            Print this help message and exit
  -q, --quiet           Print less
)");
}

TEST_F(Usage, AWordIsNeverCut) {
  set_usage(program, 20);
  Command(&program).subcommand("train", "Train from /a/path/that/is/longer/than/the/line twice");
  EXPECT_NE(help().find("\n\nTrain from\n/a/path/that/is/longer/than/the/line\ntwice.\n\n"),
            std::string::npos)
      << help();
}

}  // namespace
}  // namespace nlaunch::cli

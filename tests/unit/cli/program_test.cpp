#include "cli/program.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "base/exit_code.h"
#include "cli/console.h"

namespace nlaunch::cli {
namespace {

/// A command as a file of src/commands/ adds it.
std::vector<std::string> greeted;

void add(Command program, Context& context) {
  auto name = std::make_shared<std::string>("world");
  auto command =
      program.subcommand("greet", "Says hello to somebody, by name if there is one, else to the world")
          .examples({"nlaunch greet", "nlaunch greet you"});
  command.option("NAME", *name, "Whom");
  command.when_called([name, &context] {
    context.run = [name, &context] {
      greeted.push_back(*name + (context.console.quiet ? ", quietly" : ""));
      return 3;
    };
  });
}

const Registered<CommandEntry> registered{{"greet", 5, add, CommandGroup::see}};

int run(std::vector<const char*> words) {
  words.insert(words.begin(), "nlaunch");
  greeted.clear();
  return run_program(static_cast<int>(words.size()), words.data());
}

TEST(Program, HasACommandThatOneFileAdds) {
  EXPECT_EQ(run({"greet", "you"}), 3);
  EXPECT_EQ(greeted, std::vector<std::string>{"you"});
  EXPECT_EQ(run({"--quiet", "greet"}), 3);
  EXPECT_EQ(greeted, std::vector<std::string>{"world, quietly"});
}

std::string printed(std::vector<const char*> words) {
  testing::internal::CaptureStdout();
  EXPECT_EQ(run(std::move(words)), exit_code::ok);
  return testing::internal::GetCapturedStdout();
}

/// A command that states no group.
const Registered<CommandEntry> hidden{
    {"inner", 1, [](Command program, Context&) { program.subcommand("inner", "For nlaunch itself"); }}};

TEST(Program, HelpBeginsWithExamplesAndListsCommandsInTheirGroups) {
  const auto help = printed({"--help"});
  EXPECT_TRUE(help.starts_with("Examples:\n  nlaunch run configs/quickstart.yaml\n")) << help;
  EXPECT_NE(help.find("\n\nUsage: nlaunch COMMAND [OPTIONS]\n\n"), std::string::npos) << help;
  EXPECT_NE(help.find("\n"
                      "See:\n"
                      "  greet       Says hello to somebody, by name if there is one, else to the world\n"
                      "\n"
                      "Set up:\n"
                      "  completion  Print the completion script for bash or zsh\n"
                      "  help        Show help for nlaunch or for one command\n"
                      "\n"
                      "General options:\n"
                      "  -h, --help  "),
            std::string::npos)
      << help;
  EXPECT_EQ(help.find("inner"), std::string::npos) << help;
}

TEST(Program, HelpOfACommandHasTheGeneralOptionsLast) {
  const auto help = printed({"greet", "--help"});
  EXPECT_TRUE(
      help.starts_with("Usage: nlaunch greet [NAME] [OPTIONS]\n"
                       "\n"
                       "Says hello to somebody, by name if there is one, else to the world.\n"
                       "\n"
                       "Examples:\n"
                       "  nlaunch greet\n"
                       "  nlaunch greet you\n"
                       "\n"
                       "Arguments:\n"
                       "  NAME           Whom\n"
                       "\n"
                       "General options:\n"
                       "  -h, --help     Print this help message and exit\n"))
      << help;
  EXPECT_EQ(printed({"help", "greet"}), help);
  EXPECT_NE(printed({"--help-all"}).find("\n\n" + help), std::string::npos);
}

TEST(Program, AWordThatNobodyKnowsIsAUsageError) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(run({"gret"}), exit_code::usage);
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "nlaunch: unknown command 'gret': did you mean 'greet'?\n"
            "available commands: greet, completion, help; see nlaunch help\n");
  EXPECT_TRUE(greeted.empty());
}

}  // namespace
}  // namespace nlaunch::cli

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
  auto command = program.subcommand("greet", "Says hello");
  command.option("NAME", *name, "Whom");
  command.when_called([name, &context] {
    context.run = [name, &context] {
      greeted.push_back(*name + (context.console.quiet ? ", quietly" : ""));
      return 3;
    };
  });
}

const Registered<CommandEntry> registered{{"greet", 5, add}};

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

TEST(Program, HelpListsTheCommandInItsPlace) {
  testing::internal::CaptureStdout();
  EXPECT_EQ(run({"--help"}), exit_code::ok);
  const auto help = testing::internal::GetCapturedStdout();
  const auto greet = help.find("\n  greet");
  ASSERT_NE(greet, std::string::npos) << help;
  EXPECT_LT(greet, help.find("\n  help")) << help;
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

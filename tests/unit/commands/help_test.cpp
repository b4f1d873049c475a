#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "base/text.h"
#include "cli/console.h"
#include "cli/man.h"
#include "cli/program.h"
#include "cli/tables.h"

namespace nlaunch::cli {
namespace {

struct Documented {
  std::vector<std::string> called;  ///< "sites", "check"; empty: nlaunch itself
  const CLI::App* app;
};

void collect(const CLI::App& app, const std::vector<std::string>& called, std::vector<Documented>& out) {
  out.push_back({called, &app});
  for (const auto& name : commands_of(app)) {
    auto below = called;
    below.push_back(name);
    collect(*app.get_subcommand(name), below, out);
  }
}

/// The program with all of its commands.
class Help : public testing::Test {
 protected:
  Help() { collect(*program, {}, all); }

  Context context;
  std::unique_ptr<CLI::App> program = command_line(context, 80);
  std::vector<Documented> all;
};

/// The command that the parser finds in a line; "failed: ..." if it does not accept it.
std::vector<std::string> parsed(const std::string& line) {
  auto words = text::split(line, ' ');
  if (words.front() != "nlaunch") return {"failed: another program"};
  words.erase(words.begin());
  std::ranges::reverse(words);  // CLI11 takes them from the end
  Context context;
  const auto program = command_line(context, 80);
  try {
    program->parse(words);
  } catch (const CLI::ParseError& error) {
    return {std::string("failed: ") + error.what()};
  }
  std::vector<std::string> called;
  for (const CLI::App* app = program.get(); !app->get_subcommands().empty();) {
    app = app->get_subcommands().front();
    called.push_back(app->get_name());
  }
  return context.run ? called : std::vector<std::string>{"failed: nothing to run"};
}

TEST_F(Help, EveryExampleIsALineThatItsCommandAccepts) {
  EXPECT_EQ(parsed("nlaunch plan grpo.yaml"), (std::vector<std::string>{"plan"}));
  EXPECT_EQ(parsed("nlaunch plan grpo.yaml --nodse 4").front().substr(0, 7), "failed:");
  for (const auto& [called, app] : all) {
    const auto examples = examples_of(*app);
    EXPECT_GE(examples.size(), 2U) << text::join(called, " ");
    EXPECT_LE(examples.size(), 3U) << text::join(called, " ");
    for (const auto& line : examples) {
      const auto found = parsed(line);
      if (called.empty())
        EXPECT_FALSE(found.front().starts_with("failed")) << line << ": " << found.front();
      else
        EXPECT_EQ(found, called) << line;
    }
  }
}

TEST_F(Help, EveryCommandIsInAGroup) {
  std::vector<std::string> headings;
  for (const auto& section : command_sections_of(*program)) headings.push_back(section.heading);
  EXPECT_EQ(headings, (std::vector<std::string>{"Run", "See", "Check", "Convert and share", "Set up"}));
}

TEST_F(Help, LinesAreNotLongerThanTheTerminal) {
  for (const std::size_t width : {80, 100}) {
    Context other;
    const auto page = command_line(other, width)->help("", CLI::AppFormatMode::All);
    std::size_t longest = 0;
    for (const auto& line : text::split(page, '\n')) {
      longest = std::max(longest, line.size());
      EXPECT_LE(line.size(), width) << line;
      EXPECT_FALSE(line.ends_with(' ')) << line;
    }
    EXPECT_GT(longest, width - 5);
  }
}

TEST_F(Help, OptionsAreInGroupsThatEndWithTheGeneralOnes) {
  for (const auto& [called, app] : all) {
    const auto sections = sections_of(*app);
    EXPECT_EQ(sections.back().heading, "General options") << text::join(called, " ");
    for (const auto& section : sections) {
      for (const auto* option : section.options)
        EXPECT_FALSE(option->get_description().empty()) << option->get_name();
    }
  }
  const auto sections = sections_of(*program->get_subcommand("run"));
  EXPECT_EQ(sections.front().heading, "Plan options");
  EXPECT_EQ(sections.front().options.back()->get_name(), "--plan");
}

TEST_F(Help, ManPagesAreAscii) {
  const auto pages = man_pages(*program);
  EXPECT_EQ(pages.size(), all.size());
  for (const auto& page : pages) {
    EXPECT_TRUE(std::ranges::all_of(page.text, [](unsigned char c) { return c < 0x80; })) << page.name;
  }
}

}  // namespace
}  // namespace nlaunch::cli

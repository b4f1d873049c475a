#include "cli/options.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>

namespace nlaunch::cli {
namespace {

struct Parsed {
  std::string failure;  ///< empty: the line was read
  explicit operator bool() const { return failure.empty(); }
};

Parsed parse(CLI::App& app, std::vector<std::string> words) {
  std::ranges::reverse(words);  // CLI11 takes them from the end
  try {
    app.parse(words);
  } catch (const CLI::ParseError& error) {
    return {error.what()};
  }
  return {};
}

TEST(Options, ReadEveryKindOfValue) {
  CLI::App app;
  Command command(&app);
  std::string text;
  std::vector<std::string> words;
  unsigned number = 0;
  std::optional<unsigned> maybe;
  std::optional<std::uint64_t> seed;
  bool flag = false;
  command.option("TEXT", text);
  command.option("--word", words).one_word_each();
  command.option("--number", number).in_range(1, 9);
  command.option("--maybe", maybe);
  command.option("--seed", seed);
  command.flag("-f,--flag", flag, "");
  ASSERT_TRUE(parse(
      app, {"--word", "a", "here", "--word", "b", "--number", "9", "--seed", "18446744073709551615", "-f"}));
  EXPECT_EQ(text, "here");
  EXPECT_EQ(words, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(number, 9U);
  EXPECT_FALSE(maybe);
  EXPECT_EQ(seed, 18446744073709551615U);
  EXPECT_TRUE(flag);
}

TEST(Options, RefuseWhatTheyAreToldTo) {
  CLI::App app;
  Command command(&app);
  std::string level;
  std::string name;
  bool first = false;
  bool second = false;
  unsigned number = 0;
  command.option("--level", level).one_of({"quick", "deep"});
  command.option("--name", name).checked([](const std::string& given) {
    return given == "x" ? "x is no name" : "";
  });
  command.option("--number", number).in_range(1, 9);
  const auto one = command.flag("--first", first, "");
  command.flag("--second", second, "").excludes(one);
  command.flag("--third", second, "").needs(one);
  EXPECT_EQ(parse(app, {"--level", "slow"}).failure, "--level: slow not in {quick,deep}");
  EXPECT_EQ(parse(app, {"--name", "x"}).failure, "--name: x is no name");
  EXPECT_EQ(parse(app, {"--number", "10"}).failure, "--number: Value 10 not in range 1 to 9");
  EXPECT_EQ(parse(app, {"--first", "--second"}).failure, "--first excludes --second");
  EXPECT_EQ(parse(app, {"--third"}).failure, "--third requires --first");
}

TEST(Options, AValueThatMayBeLeftOutHasAFallback) {
  CLI::App app;
  Command command(&app);
  std::string explain;
  const auto option = command.option("--explain", explain).value_optional("all");
  ASSERT_TRUE(parse(app, {}));
  EXPECT_FALSE(option.given());
  ASSERT_TRUE(parse(app, {"--explain"}));
  EXPECT_TRUE(option.given());
  EXPECT_EQ(explain, "all");
  ASSERT_TRUE(parse(app, {"--explain", "one"}));
  EXPECT_EQ(explain, "one");
}

TEST(Options, ACommandRefusesWhatItsOwnCheckDoes) {
  CLI::App app;
  Command command(&app);
  auto sub = command.subcommand("sub", "");
  sub.when_called([] { missing("--role"); });
  EXPECT_EQ(parse(app, {"sub"}).failure, "--role is required");
  auto other = command.subcommand("other", "");
  other.when_called([] { excluded("--list", "--role"); });
  EXPECT_EQ(parse(app, {"other"}).failure, "--list excludes --role");
}

}  // namespace
}  // namespace nlaunch::cli

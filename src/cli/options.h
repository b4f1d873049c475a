#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

/// What a command takes on its line. The parser itself (CLI11) is seen by options.cpp, usage.cpp and
/// tables.cpp alone: it is the most expensive header of all.
namespace nlaunch::cli {

/// One option or argument, to say more about it. A handle: copies are the same option.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}

  Option required();
  /// One of these words.
  Option one_of(const std::vector<std::string>& words);
  Option in_range(long least, long most);
  Option existing_folder();
  /// `check` returns what is wrong with a value, or nothing.
  Option checked(const std::function<std::string(const std::string&)>& check);
  /// Called with each word, which it may refuse by wrong_usage().
  Option each(const std::function<void(const std::string&)>& take);
  /// How help names its value: "FILE".
  Option value_name(const std::string& name);
  /// So many words.
  Option words(int exactly);
  /// The value may be left out: it is `fallback` then.
  Option value_optional(const std::string& fallback = "");
  /// One word each time it is given, which may be often.
  Option one_word_each();
  /// "a,b" are two words.
  Option split_at(char separator);
  Option needs(Option other);
  Option excludes(Option other);
  Option excludes(const std::string& name);
  /// Not for people: help does not show it.
  Option hidden();

  [[nodiscard]] bool given() const;

 private:
  CLI::Option* option_;
};

/// One command, to say what it takes. A handle: copies are the same command. Everything that values are read
/// into outlives the parsing.
class Command {
 public:
  explicit Command(CLI::App* app) : app_(app) {}

  Command subcommand(const std::string& name, const std::string& help);
  /// Options of which `least` to `most` are to be given.
  Command group(const std::string& name, const std::string& help, std::size_t least, std::size_t most);
  /// Not for people: help does not show it.
  Command hidden();

  /// `name`: "--site", "-q,--quiet", or "RUN" for an argument.
  Option option(const std::string& name, std::string& value, const std::string& help = "");
  Option option(const std::string& name, std::vector<std::string>& values, const std::string& help = "");
  Option option(const std::string& name, unsigned& value, const std::string& help = "");
  Option option(const std::string& name, std::optional<unsigned>& value, const std::string& help = "");
  Option option(const std::string& name, std::optional<std::uint64_t>& value, const std::string& help = "");
  Option flag(const std::string& name, bool& value, const std::string& help);

  /// Called when this command was given and its line has been read, before any other.
  void after_parsing(std::function<void()> act);
  /// The same, after all of after_parsing.
  void when_called(std::function<void()> act);
  [[nodiscard]] bool has_called_subcommand() const;

  [[nodiscard]] CLI::App& parser() const { return *app_; }

 private:
  CLI::App* app_;
};

/// End the parsing with a message, in after_parsing, when_called or each().
[[noreturn]] void wrong_usage(const std::string& sentence);
[[noreturn]] void missing(const std::string& name);
[[noreturn]] void excluded(const std::string& name, const std::string& by);

}  // namespace nlaunch::cli

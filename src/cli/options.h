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

/// The command line of a command. Only files of this layer include the parser itself (CLI11): it is the most
/// expensive header of all.
namespace nlaunch::cli {

/// One option or argument, for further settings. A handle: copies refer to the same option.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}

  Option required();
  /// One of these words.
  Option one_of(const std::vector<std::string>& words);
  Option in_range(long least, long most);
  Option existing_folder();
  /// `check` returns the problem with a value, or an empty string.
  Option checked(const std::function<std::string(const std::string&)>& check);
  /// Called with each word; it can reject one with wrong_usage().
  Option each(const std::function<void(const std::string&)>& take);
  /// The value in help: "FILE" (see value_of in cli/tables.h for the one without). Completion goes by it. Of
  /// an argument that stands behind all options: "-- COMMAND".
  Option value_name(const std::string& name);
  /// Exactly this number of words.
  Option words(int exactly);
  /// The value is optional; without it, it is `fallback`.
  Option value_optional(const std::string& fallback = "");
  /// One word each time the option is given; it may be repeated.
  Option one_word_each();
  /// "a,b" is two words.
  Option split_at(char separator);
  Option needs(Option other);
  Option excludes(Option other);
  Option excludes(const std::string& name);
  /// Internal: not shown in help.
  Option hidden();

  [[nodiscard]] bool given() const;

 private:
  CLI::Option* option_;
};

/// One command, for adding options to it. A handle: copies refer to the same command. Everything that values
/// are written to must outlive the parsing.
class Command {
 public:
  explicit Command(CLI::App* app) : app_(app) {}

  Command subcommand(const std::string& name, const std::string& help);
  /// Two or three lines that a user can copy, "nlaunch run grpo.yaml", which help shows first.
  Command examples(const std::vector<std::string>& lines);
  /// The same command; options that are added to it are listed under this heading.
  [[nodiscard]] Command section(const std::string& heading) const;
  /// A group of options, of which `least` to `most` must be given.
  Command group(const std::string& name, const std::string& help, std::size_t least, std::size_t most);

  /// `name`: "--site", "-q,--quiet", or "RUN" for an argument.
  Option option(const std::string& name, std::string& value, const std::string& help = "");
  Option option(const std::string& name, std::vector<std::string>& values, const std::string& help = "");
  Option option(const std::string& name, unsigned& value, const std::string& help = "");
  Option option(const std::string& name, std::optional<unsigned>& value, const std::string& help = "");
  Option option(const std::string& name, std::optional<std::uint64_t>& value, const std::string& help = "");
  Option flag(const std::string& name, bool& value, const std::string& help);

  /// Called if this command was given, once its line has been parsed and before any when_called.
  void after_parsing(std::function<void()> act);
  /// Likewise, after all after_parsing callbacks.
  void when_called(std::function<void()> act);
  [[nodiscard]] bool has_called_subcommand() const;

  [[nodiscard]] CLI::App& parser() const { return *app_; }

 private:
  Option listed(CLI::Option* option) const;

  CLI::App* app_;
  std::string heading_;  ///< empty: the parser's own, "Options"
};

/// These end the parsing with a message. Use them in after_parsing, when_called or each().
[[noreturn]] void wrong_usage(const std::string& sentence);
[[noreturn]] void missing(const std::string& name);
[[noreturn]] void excluded(const std::string& name, const std::string& by);

}  // namespace nlaunch::cli

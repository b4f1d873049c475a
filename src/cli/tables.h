#pragma once
#include <CLI/CLI.hpp>
#include <string>
#include <vector>

/// What CLI11's tables contain for a command: for help, man pages, errors about an unknown word, and
/// completion.
namespace nlaunch::cli {

/// The subcommands that help shows.
std::vector<std::string> commands_of(const CLI::App& app);
/// Its options, including those of its option groups.
std::vector<const CLI::Option*> all_options_of(const CLI::App& app);
/// The positional ones among them that help shows, in order.
std::vector<const CLI::Option*> positionals_of(const CLI::App& app);
/// The names of the other options that help shows: "--site", "-q".
std::vector<std::string> options_of(const CLI::App& app);
/// "--site", "-q": the names of an option, the short ones first.
std::vector<std::string> names_of(const CLI::Option& option);

/// Options that help shows together.
struct Section {
  std::string heading;
  std::vector<const CLI::Option*> options;
};
/// The options that a command accepts: its own, those of the commands above it, and the general ones.
std::vector<Section> sections_of(const CLI::App& command);
/// Subcommands that help shows together.
struct CommandSection {
  std::string heading;
  std::vector<const CLI::App*> commands;
};
std::vector<CommandSection> command_sections_of(const CLI::App& app);

/// The value of an option as help shows it: its value_name, else "{A,B}", "N" or the last word of the
/// option's name, such as "DIR" of --runs-dir. Empty: the option takes none.
std::string value_of(const CLI::Option& option);
/// The words between braces in the value of an option: all that it accepts.
std::vector<std::string> choices_of(const CLI::Option& option);
/// An argument in the line of its command: "RUN", "[FILE...]", "-- COMMAND".
std::string argument_of(const CLI::App& app, const CLI::Option& argument);
/// The line of a command: "nlaunch run EXPERIMENT [OPTIONS]". `name`: with the commands above it.
std::string usage_of(const CLI::App& app, const std::string& name);
/// See Command::examples.
std::vector<std::string> examples_of(const CLI::App& app);

}  // namespace nlaunch::cli

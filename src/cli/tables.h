#pragma once
#include <CLI/CLI.hpp>
#include <string>
#include <vector>

/// What CLI11's tables contain for a command: for help, for errors about an unknown word, and for completion.
namespace nlaunch::cli {

/// The subcommands that help shows.
std::vector<std::string> commands_of(const CLI::App& app);
/// Its options, including those of its option groups.
std::vector<const CLI::Option*> all_options_of(const CLI::App& app);
/// The positional ones among them, in order.
std::vector<const CLI::Option*> positionals_of(const CLI::App& app);
/// The names of the other options: "--site", "-q".
std::vector<std::string> options_of(const CLI::App& app);

}  // namespace nlaunch::cli

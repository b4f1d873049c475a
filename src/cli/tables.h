#pragma once
#include <CLI/CLI.hpp>
#include <string>
#include <vector>

/// What CLI11's tables say of a command: for help, for what is said of a wrong word, and for completion.
namespace nlaunch::cli {

/// The commands below it that a person is told of.
std::vector<std::string> commands_of(const CLI::App& app);
/// Its options, those of its option groups too.
std::vector<const CLI::Option*> all_options_of(const CLI::App& app);
/// The positional ones of them, in their order.
std::vector<const CLI::Option*> positionals_of(const CLI::App& app);
/// The names of the others, "--site", "-q".
std::vector<std::string> options_of(const CLI::App& app);

}  // namespace nlaunch::cli

#pragma once
#include <cstddef>

namespace CLI {
class App;
}

namespace nlaunch::cli {

/// Makes `app` print help and usage errors in the style of this program: in help, examples and the groups of
/// commands or options, in lines of at most `width` columns unless one word is longer; for an unknown word,
/// the nearest known one and the list of all. Must be called before subcommands are added.
void set_usage(CLI::App& app, std::size_t width);

}  // namespace nlaunch::cli

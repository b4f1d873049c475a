#pragma once
namespace CLI {
class App;
}

namespace nlaunch::cli {

/// Makes `app` print help and usage errors in the style of this program: "Usage: nlaunch run EXPERIMENT
/// [OPTIONS]", and for an unknown word the nearest known one and the list of all. Must be called before
/// subcommands are added.
void set_usage(CLI::App& app);

}  // namespace nlaunch::cli

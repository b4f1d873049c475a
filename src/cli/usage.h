#pragma once
namespace CLI {
class App;
}

namespace nlaunch::cli {

/// Makes `app` say how it is used in the words of this program: "Usage: nlaunch run EXPERIMENT [OPTIONS]",
/// and for a word that nobody knows, the nearest one and all that there are. To be called before subcommands
/// are added.
void set_usage(CLI::App& app);

}  // namespace nlaunch::cli

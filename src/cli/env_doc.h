#pragma once
#include <CLI/CLI.hpp>
#include <string>

#include "cli/context.h"

/// `nlaunch env --doc NAME` and `--list [PATTERN]`: what is known of variables, without any experiment.
namespace nlaunch::cli {

struct EnvDocArgs {
  std::string name;             ///< --doc
  std::string pattern;          ///< --list
  CLI::Option* list = nullptr;  ///< whose pattern may be left out

  [[nodiscard]] bool asked() const { return !name.empty() || list->count() > 0; }
};
/// `args` outlives the app's parsing.
void add_env_doc_options(CLI::App& command, EnvDocArgs& args);
int env_doc(const EnvDocArgs& args, bool json, const Context& context);

}  // namespace nlaunch::cli

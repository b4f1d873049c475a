#pragma once
#include <optional>
#include <string>

#include "cli/console.h"

/// `nlaunch env --doc NAME` and `--list [PATTERN]`: what the catalogue knows about variables. Needs no
/// experiment.
namespace nlaunch::commands {

struct EnvDocArgs {
  std::string name;                 ///< --doc
  std::string pattern;              ///< --list
  std::optional<cli::Option> list;  ///< its pattern is optional

  [[nodiscard]] bool asked() const { return !name.empty() || list->given(); }
};
/// `args` must outlive the app's parsing.
void add_env_doc_options(cli::Command command, EnvDocArgs& args);
int env_doc(const EnvDocArgs& args, bool json, const cli::Context& context);

}  // namespace nlaunch::commands

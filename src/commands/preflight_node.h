#pragma once
#include <string>

#include "base/units.h"
#include "cli/console.h"
#include "cli/load.h"
#include "cli/preflight_output.h"

/// `nlaunch preflight --node`: checks only this machine, for a Prolog, a health check or a person.
namespace nlaunch::commands {

struct NodeCheck {
  bool wanted = false;
  bool prolog = false;  ///< one line on standard error unless all is well; only *fail* is an error
  bool drain = false;   ///< drains a node that fails
  std::string timeout = "50s";
  std::string inner;  ///< time limit of the checking process, which is killed if it hangs; empty: this is not
                      ///< that process
};

/// Adds --node and the options that require it.
void add_node_options(cli::Command app, NodeCheck& check);

struct NodeCheckRequest {
  const NodeCheck& check;
  const cli::PlanArgs& plan;
  std::string level;  ///< empty: the plan's level
  const cli::OutputArgs& output;
};

/// Finishes within the timeout even if something on the machine hangs. Needs no HOME, no PATH and no current
/// directory. A second check of the machine by the same user waits for the first.
int check_node(const NodeCheckRequest& request, const cli::Context& context);

}  // namespace nlaunch::commands

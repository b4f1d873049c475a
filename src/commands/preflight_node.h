#pragma once
#include <string>

#include "base/units.h"
#include "cli/console.h"
#include "cli/load.h"
#include "cli/preflight_output.h"

/// `nlaunch preflight --node`: this machine alone, for a Prolog, a health check or a person.
namespace nlaunch::commands {

struct NodeCheck {
  bool wanted = false;
  bool prolog = false;  ///< says a line on standard error unless all is well, and fails for *fail* alone
  bool drain = false;   ///< takes a node that fails out of service
  std::string timeout = "50s";
  std::string inner;  ///< how long the process may check that is killed where it hangs; empty: this is not it
};

/// Adds --node and what belongs to it.
void add_node_options(cli::Command app, NodeCheck& check);

struct NodeCheckRequest {
  const NodeCheck& check;
  const cli::PlanArgs& plan;
  std::string level;  ///< empty: the plan's
  const cli::OutputArgs& output;
};

/// Ends by the timeout, whatever hangs on the machine, and needs no HOME, no PATH and no folder of the
/// caller's. A second check of the machine by the same user waits for the first.
int check_node(const NodeCheckRequest& request, const cli::Context& context);

}  // namespace nlaunch::commands

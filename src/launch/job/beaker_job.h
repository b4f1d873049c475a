#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "plan/plan.h"

/// A Beaker job, on the machine that submits it.
namespace nlaunch::launch {

/// The experiment spec of a plan. The replicas share no directory with this machine, so it contains the
/// frozen plan. `arguments` are passed to `nlaunch run`.
Result<std::string> make_beaker_spec(const plan::Plan& plan, const std::vector<std::string>& arguments);

/// The plan in a variable of a replica. A failure says what is wrong with it.
Result<plan::Plan> plan_from_variable(const std::string& variable,
                                      const std::vector<std::string>& environment);

/// The command that submits a spec. The program is the first of the plan's that is on PATH, else empty: then
/// `words` start with its name.
struct BeakerCommand {
  std::optional<std::string> program;
  std::vector<std::string> words;  ///< as the user types them
};
BeakerCommand beaker_command(const plan::Plan& plan, const std::filesystem::path& spec,
                             const std::vector<std::string>& environment);

/// Submits and returns the program's output. If it refuses, the failure has its message.
Result<std::string> submit_to_beaker(const BeakerCommand& command,
                                     const std::vector<std::string>& environment);

}  // namespace nlaunch::launch

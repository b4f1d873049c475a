#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/load.h"

namespace nlaunch::commands {

/// `nlaunch run --vary`: whole runs, compared.
struct RunArms {
  std::vector<std::string> vary;
  std::optional<std::uint32_t> repeats;  ///< of each arm
  std::optional<std::uint64_t> seed;
  bool json = false;

  bool here = false;  ///< on this machine, whatever the site's scheduler
  bool no_lint = false;
  std::string runs_dir;
  std::vector<std::string> arguments;  ///< of `nlaunch run`, for each of them

  [[nodiscard]] bool asked() const { return !vary.empty() || repeats; }
};

void add_arms_options(cli::Command command, RunArms& args);

/// Makes the runs, each by an nlaunch of its own with a frozen plan, and prints what they show. What is known
/// is written to RUNS/NAME/ab-ID.json after every run. The exit code: ok, bench_failed where an arm has no
/// run that ended well, or that of what stopped it.
int run_arms(RunArms args, const cli::PlanArgs& wanted, const cli::Context& context);

}  // namespace nlaunch::commands

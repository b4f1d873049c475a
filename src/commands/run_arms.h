#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/load.h"

namespace nlaunch::commands {

/// `nlaunch run --vary`: compares whole runs.
struct RunArms {
  std::vector<std::string> vary;
  std::optional<std::uint32_t> repeats;  ///< of each arm
  std::optional<std::uint64_t> seed;
  bool json = false;

  bool here = false;  ///< on this machine, whatever scheduler the site has
  bool no_lint = false;
  std::string runs_dir;
  std::vector<std::string> arguments;  ///< of `nlaunch run`, passed to each run

  [[nodiscard]] bool asked() const { return !vary.empty() || repeats; }
};

void add_arms_options(cli::Command command, RunArms& args);

/// Starts the runs, each in a separate nlaunch with a frozen plan, and prints the results. Writes the results
/// so far to RUNS/NAME/ab-ID.json after every run. The exit code: ok, bench_failed if an arm has no
/// successful run, or the code of what stopped the comparison.
int run_arms(RunArms args, const cli::PlanArgs& wanted, const cli::Context& context);

}  // namespace nlaunch::commands

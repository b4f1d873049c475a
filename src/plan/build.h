#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "config/experiment.h"
#include "config/site.h"
#include "plan/plan.h"

namespace nlaunch::plan {

/// Facts about the machine on which the plan is made. A plan for a scheduler's nodes needs none of them.
struct MachineFacts {
  std::string arch;
  std::vector<std::string> gpus;              ///< one model per GPU; empty without GPUs
  std::map<std::string, std::string> caller;  ///< nlaunch's own environment
};

/// What the command line adds.
struct PlanOptions {
  std::optional<std::uint32_t> nodes;
  std::uint32_t spares = 0;
  std::vector<std::string> with;                     ///< overlays, in order
  std::vector<std::string> env;                      ///< "[ROLE:]NAME=VALUE", in order
  std::map<std::string, std::uint32_t> nodes_of{};   ///< `nodes` of individual pools, by name
  std::map<std::string, std::uint32_t> spares_of{};  ///< likewise
};

/// Resolves an experiment and a site into a plan. All errors are reported together; nothing is modified.
Result<Plan> build(const config::Experiment& experiment, const config::Site& site, const MachineFacts& facts,
                   const PlanOptions& options);

/// For an experiment that has errors already: also finds the errors in names that build() would report, in
/// `${...}` and in libraries, but not those that could follow from the known errors, because the definitions
/// in a part with an error are not known.
Diagnostics mistakes_in_names(const config::Experiment& experiment, const config::Site& site,
                              const MachineFacts& facts, const PlanOptions& options);

}  // namespace nlaunch::plan

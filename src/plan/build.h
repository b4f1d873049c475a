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

/// What is known of the machine that the plan is made on. A plan for a scheduler's nodes needs none of it.
struct MachineFacts {
  std::string arch;
  std::vector<std::string> gpus;              ///< models, one an entry; empty without GPUs
  std::map<std::string, std::string> caller;  ///< the environment in which nlaunch was called
};

/// What the command line adds.
struct PlanOptions {
  std::optional<std::uint32_t> nodes;
  std::uint32_t spares = 0;
  std::vector<std::string> with;                     ///< overlays, in order
  std::vector<std::string> env;                      ///< "[ROLE:]NAME=VALUE", in order
  std::map<std::string, std::uint32_t> nodes_of{};   ///< `nodes` of single pools, by name
  std::map<std::string, std::uint32_t> spares_of{};  ///< likewise
};

/// Resolves an experiment and a site into a plan. All mistakes are reported together; nothing is touched.
Result<Plan> build(const config::Experiment& experiment, const config::Site& site, const MachineFacts& facts,
                   const PlanOptions& options);

/// Of an experiment in which mistakes were found as it was read: those in names that build() would find
/// besides, of `${...}` and of libraries. None that may follow from what was found: what a part with a
/// mistake in it defines is not known.
Diagnostics mistakes_in_names(const config::Experiment& experiment, const config::Site& site,
                              const MachineFacts& facts, const PlanOptions& options);

}  // namespace nlaunch::plan

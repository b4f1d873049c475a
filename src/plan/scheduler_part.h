#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "config/experiment.h"
#include "config/site.h"
#include "plan/plan.h"

/// The settings for a scheduler are a part of the plan. This lists the parts by the scheduler's name, for
/// code that makes, reads or writes a plan.
namespace nlaunch::plan {

/// The input of a part.
struct PartInput {
  const config::Experiment& experiment;
  const config::Site& site;
  std::uint32_t spares = 0;
  const std::map<std::string, std::uint32_t>& spares_of;  ///< by pool
  std::uint16_t port = 0;                                 ///< for a leader, if none was requested
  std::function<std::string(const config::Text&)> resolve;
  /// Resolves a path relative to a directory; an empty directory means the one where commands run.
  std::function<std::string(const std::string& path, const std::string& folder)> absolute;
  Diagnostics& diagnostics;
};

struct SchedulerPart {
  std::string_view name;  ///< of the scheduler, and of its part in plan.json
  int order = 0;
  void (*make)(const PartInput& input, Plan& plan);  ///< called with a plan that knows its pools
  nlohmann::ordered_json (*write)(const Plan& plan);
  void (*read)(const nlohmann::json& from, Plan& plan);  ///< throws if something does not match
  /// The known options that directives can use; null if there are no directives.
  std::vector<std::string> (*options)();
};

/// Nothing for a scheduler without a part.
const SchedulerPart* find_part(std::string_view scheduler);

}  // namespace nlaunch::plan

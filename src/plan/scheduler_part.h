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

/// What a scheduler is told is a part of the plan. Here are those parts by the scheduler's name, for who
/// makes a plan and who reads or writes one.
namespace nlaunch::plan {

/// What a part is made from.
struct PartInput {
  const config::Experiment& experiment;
  const config::Site& site;
  std::uint32_t spares = 0;
  const std::map<std::string, std::uint32_t>& spares_of;  ///< by pool
  std::uint16_t port = 0;                                 ///< for a leader, where nobody has asked for one
  std::function<std::string(const config::Text&)> resolve;
  /// A path, relative to a folder; an empty folder is the one where commands run.
  std::function<std::string(const std::string& path, const std::string& folder)> absolute;
  Diagnostics& diagnostics;
};

struct SchedulerPart {
  std::string_view name;  ///< of the scheduler, and of the part in plan.json
  int order = 0;
  void (*make)(const PartInput& input, Plan& plan);  ///< of a plan that knows its pools
  nlohmann::ordered_json (*write)(const Plan& plan);
  void (*read)(const nlohmann::json& from, Plan& plan);  ///< what does not fit is an exception
  /// The options that directives may name, as far as they are known; null where there are no directives.
  std::vector<std::string> (*options)();
};

/// Nothing for a scheduler that has no part.
const SchedulerPart* find_part(std::string_view scheduler);

}  // namespace nlaunch::plan

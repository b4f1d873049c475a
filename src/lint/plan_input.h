#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lint/lint_input.h"
#include "plan/plan.h"

namespace nlaunch::lint {

/// What is known about the machine on which a plan is linted.
struct PlanFacts {
  std::map<std::string, std::string> library_versions;  ///< of the site's libraries, by name, if found
  /// Wheels of each venv: name as in its directory ("nvidia_nccl_cu12"), version.
  std::map<std::string, std::map<std::string, std::string>> wheels;
  std::vector<plan::EnvOp> modules;  ///< what the plan's modules change, if they could be loaded
  std::vector<Reading> readings;     ///< programs of roles that are text files
  std::vector<std::shared_ptr<const SourceFile>> conf;  ///< nccl.conf files, the first wins
  /// A file that the plan was built from, by the name that its origins use; nullptr if it does not exist.
  std::function<std::shared_ptr<const SourceFile>(const std::string&)> source;
};

/// What each role of a plan gets.
LintInput plan_input(const plan::Plan& plan, const PlanFacts& facts);

}  // namespace nlaunch::lint

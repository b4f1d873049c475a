#pragma once
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "plan/plan.h"

/// The environment of a process as a pure function of the plan and of what its node knows.
namespace nlaunch::plan {

using Environment = std::map<std::string, std::string>;

/// What a condition is held against.
struct ConditionFacts {
  std::uint32_t nodes = 1;
  std::string gpu;
  std::string arch;
  RoleKind kind = RoleKind::service;
  std::map<std::string, std::string> library_versions;  ///< those that are known
};

struct Applicability {
  enum class Answer { yes, no, unknown };
  Answer answer = Answer::yes;
  std::string why;  ///< "nodes is 1, not >1"; empty for a plain yes
};
/// *unknown* when a library's version is not known here.
Applicability applies(const Condition& condition, const ConditionFacts& facts);

/// One operation on one variable, as `nlaunch env --explain` shows it.
struct Step {
  EnvOp op;
  Applicability applied;
  std::optional<std::string> after;  ///< the variable's value after it; nothing: not set
};

/// Applies operations in their order. An operation whose condition is *unknown* is left out.
Environment apply(Environment environment, std::span<const EnvOp> operations, const ConditionFacts& facts);
/// What each operation on `name` did, the winner last among those that applied.
std::vector<Step> explain(const std::string& name, const Environment& inherited,
                          std::span<const EnvOp> operations, const ConditionFacts& facts);

/// The caller's environment without what a launcher must own.
struct Inherited {
  Environment kept;
  std::vector<std::string> dropped;  ///< names that were set, sorted
};
Inherited inherit(const std::vector<std::string>& environment);
/// True for a variable of the families that are not inherited: NCCL_*, FI_*, LD_PRELOAD, RANK ...
bool owned_by_launcher(std::string_view name);
/// The family of such a variable, "NCCL_*" or "RANK"; empty for any other.
std::string owned_family(std::string_view name);

/// The operations that turn `before` into `after`.
std::vector<EnvOp> difference(const Environment& before, const Environment& after, Layer layer,
                              const std::string& origin);

/// "NAME=VALUE" entries to a map and back; an entry without '=' is left out.
Environment to_environment(const std::vector<std::string>& entries);
std::vector<std::string> to_entries(const Environment& environment);

}  // namespace nlaunch::plan

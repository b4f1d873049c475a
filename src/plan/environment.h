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

/// What a condition is compared with.
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
  std::string why;  ///< "nodes is 1, not >1"; empty if it simply applies
};
/// *unknown* if a library's version is not known here.
Applicability applies(const Condition& condition, const ConditionFacts& facts);

/// One operation on one variable, as `nlaunch env --explain` shows it.
struct Step {
  EnvOp op;
  Applicability applied;
  std::optional<std::string> after;  ///< the variable's value afterwards; nothing: not set
};

/// Applies operations in order. An operation whose condition is *unknown* is skipped.
Environment apply(Environment environment, std::span<const EnvOp> operations, const ConditionFacts& facts);
/// What each operation on `name` did; the last one that applied wins.
std::vector<Step> explain(const std::string& name, const Environment& inherited,
                          std::span<const EnvOp> operations, const ConditionFacts& facts);

/// The caller's environment without the variables that only a launcher can set.
struct Inherited {
  Environment kept;
  std::vector<std::string> dropped;  ///< names that were set, sorted
};
Inherited inherit(const std::vector<std::string>& environment);
/// True for a variable that is never inherited: NCCL_*, FI_*, LD_PRELOAD, RANK ...
bool owned_by_launcher(std::string_view name);
/// The family of such a variable, "NCCL_*" or "RANK"; empty for any other.
std::string owned_family(std::string_view name);

/// The operations that turn `before` into `after`.
std::vector<EnvOp> difference(const Environment& before, const Environment& after, Layer layer,
                              const std::string& origin);

/// "NAME=VALUE" entries to a map and back; an entry without '=' is skipped.
Environment to_environment(const std::vector<std::string>& entries);
std::vector<std::string> to_entries(const Environment& environment);

}  // namespace nlaunch::plan

#pragma once
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "lint/rule.h"
#include "report/table.h"

namespace nlaunch::report {

/// Findings for people: each with its location, its line, the reason, and what to write instead; a count at
/// the end.
std::string lint_text(std::span<const lint::Finding> findings, const Paint& paint);
/// "5 findings: 4 errors, 1 warning".
std::string lint_count(std::span<const lint::Finding> findings);
nlohmann::ordered_json lint_json(std::span<const lint::Finding> findings);
/// A rule, for --explain.
std::string rule_text(const lint::Rule& rule, const Paint& paint);

}  // namespace nlaunch::report

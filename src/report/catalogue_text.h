#pragma once
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>

#include "lint/catalogue.h"
#include "report/table.h"

/// What the catalogue knows about variables, for people and as JSON.
namespace nlaunch::report {

/// Everything about one variable, with a block for each owner that reads it.
std::string variable_text(std::span<const lint::Variable* const> variables, const Paint& paint);
/// One line for each.
std::string variables_text(std::span<const lint::Variable* const> variables, const Paint& paint);
nlohmann::ordered_json variable_json(const lint::Variable& variable);

/// For a name that is not in the catalogue: that it is a known mistake, or which name may be meant.
std::string unknown_variable_text(std::string_view name);
nlohmann::ordered_json unknown_variable_json(std::string_view name);

/// "since 2.5.6", "2.10.3 to 2.12.12 (removed)"; empty if the catalogue has no releases of the owner.
std::string releases_text(const lint::Variable& variable);
/// "one of AF_INET, AF_INET6 (case-sensitive)", "a number from 16 to 16384".
std::string values_text(const lint::Variable& variable);

}  // namespace nlaunch::report

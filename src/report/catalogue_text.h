#pragma once
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>

#include "lint/catalogue.h"
#include "report/table.h"

/// What the catalogue knows of variables, for a person and as JSON.
namespace nlaunch::report {

/// All that is known of one variable; a block for each owner that reads it.
std::string variable_text(std::span<const lint::Variable* const> variables, const Paint& paint);
/// A line for each.
std::string variables_text(std::span<const lint::Variable* const> variables, const Paint& paint);
nlohmann::ordered_json variable_json(const lint::Variable& variable);

/// Of a name that is in no table: that it is a known mistake, or what it may have been meant to be.
std::string unknown_variable_text(std::string_view name);
nlohmann::ordered_json unknown_variable_json(std::string_view name);

/// "since 2.5.6", "2.10.3 to 2.12.12, no longer"; empty where the owner has no releases in the catalogue.
std::string releases_text(const lint::Variable& variable);
/// "one of AF_INET, AF_INET6, in this case", "a number from 16 to 16384".
std::string values_text(const lint::Variable& variable);

}  // namespace nlaunch::report

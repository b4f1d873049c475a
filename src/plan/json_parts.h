#pragma once
#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>

#include "base/json.h"
#include "plan/plan.h"

/// What the parts of plan.json have in common, for json*.cpp. What does not fit is an exception here, which
/// from_json turns into a message.
namespace nlaunch::plan {

using nlohmann::json;
using nlohmann::ordered_json;

/// One of `all`, by its name.
template <class Enum, std::size_t N>
Enum word(const json& from, const std::array<Enum, N>& all) {
  for (const auto value : all) {
    if (from == name_of(value)) return value;
  }
  throw std::domain_error(fmt::format("unknown word {}", json_text(from)));
}

/// The enumerator of the number that a name has in `names`.
template <class Enum, std::size_t N>
Enum numbered(const json& from, const std::array<std::string_view, N>& names) {
  for (std::size_t i = 0; i < N; ++i) {
    if (from == names[i]) return static_cast<Enum>(i);
  }
  throw std::domain_error(fmt::format("unknown word {}", json_text(from)));
}

/// A range in a text; nothing where the key is not there.
std::optional<VersionRange> range(const json& from, const char* key);
Duration milliseconds(const json& from);

ordered_json write_restart(const Restart& restart);
Restart read_restart(const json& from);
ordered_json write_role(const Role& role);
Role read_role(const json& from);

}  // namespace nlaunch::plan

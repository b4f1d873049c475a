#pragma once
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>

#include "base/registry.h"

namespace nlaunch::probe {

using Arguments = std::span<const std::string>;

/// What nlaunch-probe can be asked: a subcommand. Each registers itself in the file that answers it, and has
/// one of the two functions.
struct Question {
  int order;  ///< in the usage
  std::string_view name;
  std::string_view arguments{};  ///< as the usage shows them
  std::string_view what;         ///< what the answer is about, in one line
  std::size_t at_least = 0;      ///< arguments
  /// The answer, one object with its name under "event".
  nlohmann::json (*answer)(Arguments arguments) = nullptr;
  /// For answers of more than one object: prints them (output.h) and returns the exit code.
  int (*run)(Arguments arguments) = nullptr;
};

}  // namespace nlaunch::probe

#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/source.h"

namespace nlaunch::import {

/// A function of the script, from its brace to the one that closes it: line and column.
struct ShellFunction {
  std::pair<std::uint32_t, std::uint32_t> first, last;  ///< last: of line 0 where nothing closes it

  [[nodiscard]] bool holds(const SourceSpan& span) const;
};

/// By name; of those that are defined twice the last.
using ShellFunctions = std::map<std::string, ShellFunction, std::less<>>;
ShellFunctions functions_of(const std::vector<std::string>& lines);

}  // namespace nlaunch::import

#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "import/loops.h"
#include "import/values.h"

namespace nlaunch::import {

/// What the loops of the script do to its variables, while its commands are read in their order.
class LoopValues {
 public:
  LoopValues() = default;
  LoopValues(const std::vector<std::string>& lines, const lint::Script& script);

  /// A command that begins there is read. A loop's variable has the first of its words in it, and the last
  /// behind it, where these are known; what else a loop changes is doubted from its beginning.
  void enter(std::uint32_t line, std::uint32_t column, Values& values, const NumberIn& number);
  /// That the last command is in; nullptr: none.
  [[nodiscard]] const Loop* innermost() const { return around_.empty() ? nullptr : &loops_[around_.back()]; }

 private:
  void begin(const Loop& loop, Values& values, const NumberIn& number) const;

  std::vector<Loop> loops_;
  std::vector<std::size_t> around_;  ///< the innermost last
  std::vector<std::pair<std::uint32_t, std::string>>
      changes_;  ///< lines and variables, in loops and conditions
};

}  // namespace nlaunch::import

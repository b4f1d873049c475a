#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "lint/script_text.h"

namespace nlaunch::lint {

/// A loop of a script's text, from its first line to its `done`.
struct Loop {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  std::string head;  ///< its first line
  std::string text;  ///< all of it, without comments
};

/// The loops of at most 30 lines, also those in the text of `bash -c`; longer ones do more than wait.
std::vector<Loop> short_loops(const SourceLines& lines);

/// A loop that goes on until something is ready, or until a program succeeds.
bool polls(const Loop& loop);

}  // namespace nlaunch::lint

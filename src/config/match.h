#pragma once
#include "config/reader.h"
#include "config/site.h"

namespace nlaunch::config {

/// Reads `match:`.
Match read_match(const Value& value);
/// True if all given conditions match, and at least one is given.
bool fits(const Match& match, const MatchFacts& facts);

}  // namespace nlaunch::config

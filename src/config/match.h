#pragma once
#include "config/reader.h"
#include "config/site.h"

namespace nlaunch::config {

/// Reads `match:`.
Match read_match(const Value& value);
/// True when all that is given fits, and something is given.
bool fits(const Match& match, const MatchFacts& facts);

}  // namespace nlaunch::config

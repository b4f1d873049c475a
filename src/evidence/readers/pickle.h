#pragma once
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/diagnostic.h"

namespace nlaunch::evidence {

/// The value in a pickle of dicts, lists, tuples, texts, numbers, booleans and None, in protocols 0 to 5, as
/// JSON: a tuple is a list, a key that is no text becomes one. Nothing in it is executed or looked up: an
/// opcode that would (GLOBAL, REDUCE, INST, ...), and any other that such values do not need, is a failure
/// with its name. So is a value that is deeper than 100 or has more than 16 million parts, which a few bytes
/// can describe.
Result<nlohmann::json> read_pickle(std::string_view bytes);

}  // namespace nlaunch::evidence

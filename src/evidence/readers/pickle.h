#pragma once
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/diagnostic.h"

namespace nlaunch::evidence {

/// The value in a pickle of dicts, lists, tuples, texts, numbers, booleans and None, in protocols 0 to 5, as
/// JSON: a tuple is a list, a key that is no text becomes one. What a dict has under the key `without` is
/// left out. Nothing in it is executed or looked up: an opcode that would (GLOBAL, REDUCE, INST, ...), and
/// any other that such values do not need, is a failure with its name. So is what a few bytes can describe,
/// and no machine can hold: a value that is deeper than 100, or has more than 2 million parts or 64 MiB of
/// texts.
Result<nlohmann::json> read_pickle(std::string_view bytes, std::string_view without = {});

}  // namespace nlaunch::evidence

#pragma once
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/diagnostic.h"

namespace nlaunch::evidence {

/// The value in a pickle of dicts, lists, tuples, strings, numbers, booleans and None, in protocols 0 to 5,
/// as JSON: a tuple becomes a list, a key that is not a string becomes one. What a dict has under the key
/// `without` is left out. Nothing in it is executed or looked up: an opcode that would do so (GLOBAL, REDUCE,
/// INST, ...), and any other that such values do not need, is an error with its name. So is a value that a
/// few bytes can describe but no machine can hold: nested deeper than 100, with more than 2 million parts or
/// more than 64 MiB of text.
Result<nlohmann::json> read_pickle(std::string_view bytes, std::string_view without = {});

}  // namespace nlaunch::evidence

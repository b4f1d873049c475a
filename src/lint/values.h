#pragma once
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lint/catalogue.h"

/// How the owners of variables read their values.
namespace nlaunch::lint {

/// True where the value is one of these words, in any case.
bool is_word(std::string_view value, std::initializer_list<std::string_view> words);

/// What C's strtoll makes of a text in base 0, and whether it took the whole of it.
struct ReadNumber {
  long long value = 0;
  bool whole = false;
  bool octal = false;  ///< a leading 0 made it octal, and so another number
};
ReadNumber read_number(std::string_view text);

/// What C++'s std::stoi makes of a text: an int in base 10.
struct ReadDecimal {
  long long value = 0;
  bool digits = false;  ///< it begins with a number that an int holds; otherwise std::stoi throws
  bool whole = false;   ///< and nothing stands behind it
};
ReadDecimal read_decimal(std::string_view text);

/// A `^` in front, and the words between commas.
struct WordList {
  bool inverted = false;
  std::vector<std::string> words;
};
WordList read_list(std::string_view text);

/// The entry of a choice or a list that a word is, or nullptr.
const Accepted* find_value(const Variable& variable, std::string_view word);
/// "VERSION, WARN, INFO, ABORT or TRACE": of a release, where it is known.
std::string shown_values(const Variable& variable, const Version* release);

/// True where a protocol list of NCCL (NCCL_PROTO) forces `protocol`: names it without `^`.
bool forces(std::string_view list, std::string_view protocol);
/// True where it leaves `protocol` out.
bool excludes(std::string_view list, std::string_view protocol);

}  // namespace nlaunch::lint

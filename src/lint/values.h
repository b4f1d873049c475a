#pragma once
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lint/catalogue.h"

/// How the owners of variables parse their values.
namespace nlaunch::lint {

/// True if the value is one of these words, in any case.
bool is_word(std::string_view value, std::initializer_list<std::string_view> words);

/// The result of C's strtoll in base 0, and whether it parsed the whole text.
struct ReadNumber {
  long long value = 0;
  bool whole = false;
  bool octal = false;  ///< a leading 0 made it octal, and so a different number
};
ReadNumber read_number(std::string_view text);

/// The result of C++'s std::stoi: an int in base 10.
struct ReadDecimal {
  long long value = 0;
  bool digits = false;  ///< it starts with a number that fits an int; otherwise std::stoi throws
  bool whole = false;   ///< and nothing follows it
};
ReadDecimal read_decimal(std::string_view text);

/// An optional leading `^`, and words separated by commas.
struct WordList {
  bool inverted = false;
  std::vector<std::string> words;
};
WordList read_list(std::string_view text);

/// The entry of a choice or list that matches a word, or nullptr.
const Accepted* find_value(const Variable& variable, std::string_view word);
/// "VERSION, WARN, INFO, ABORT or TRACE": for a release, if known.
std::string shown_values(const Variable& variable, const Version* release);

/// True if a protocol list of NCCL (NCCL_PROTO) forces `protocol`: names it without `^`.
bool forces(std::string_view list, std::string_view protocol);
/// True if it excludes `protocol`.
bool excludes(std::string_view list, std::string_view protocol);

}  // namespace nlaunch::lint

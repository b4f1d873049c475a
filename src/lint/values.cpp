#include "lint/values.h"

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "base/text.h"

namespace nlaunch::lint {

bool is_word(std::string_view value, std::initializer_list<std::string_view> words) {
  const auto lower = text::lower(value);
  return std::ranges::find(words, lower) != words.end();
}

ReadNumber read_number(std::string_view text) {
  const std::string copy(text);
  char* end = nullptr;
  ReadNumber read;
  read.value = std::strtoll(copy.c_str(), &end, 0);
  read.whole = end != copy.c_str() && *end == '\0';
  const auto digits = text::trim(text);
  read.octal = read.whole && digits.size() > 1 && digits[0] == '0' && digits[1] != 'x' && digits[1] != 'X';
  return read;
}

ReadDecimal read_decimal(std::string_view text) {
  const std::string copy(text);
  char* end = nullptr;
  constexpr int kBase = 10;
  ReadDecimal read;
  read.value = std::strtoll(copy.c_str(), &end, kBase);
  using Int = std::numeric_limits<int>;
  read.digits = end != copy.c_str() && read.value >= Int::min() && read.value <= Int::max();
  read.whole = read.digits && text::trim(std::string_view(end)).empty();
  return read;
}

WordList read_list(std::string_view text) {
  WordList list;
  if (text.starts_with('^')) {
    list.inverted = true;
    text.remove_prefix(1);
  }
  for (const auto& word : text::split(text, ',')) {
    if (!word.empty()) list.words.push_back(word);
  }
  return list;
}

const Accepted* find_value(const Variable& variable, std::string_view word) {
  const auto found = std::ranges::find_if(variable.values, [&](const Accepted& one) {
    return variable.any_case ? text::lower(one.value) == text::lower(word) : one.value == word;
  });
  return found == variable.values.end() ? nullptr : &*found;
}

std::string shown_values(const Variable& variable, const Version* release) {
  std::vector<std::string> words;
  for (const auto& one : variable.values) {
    if (release == nullptr || !one.since || *release >= *one.since) words.emplace_back(one.value);
  }
  if (words.size() < 2) return text::join(words, "");
  const auto last = words.back();
  words.pop_back();
  return text::join(words, ", ") + " or " + last;
}

bool forces(std::string_view list, std::string_view protocol) {
  // "LL128;allreduce:Simple" (since 2.24): per-function lists, separated by semicolons.
  return std::ranges::any_of(text::split(list, ';'), [&](const std::string& entry) {
    const auto words = read_list(std::string_view(entry).substr(entry.find(':') + 1));
    return !words.inverted && std::ranges::any_of(words.words, [&](const std::string& word) {
      return text::lower(word) == text::lower(protocol);
    });
  });
}

bool excludes(std::string_view list, std::string_view protocol) {
  const auto entries = text::split(list, ';');
  return !list.empty() && std::ranges::all_of(entries, [&](const std::string& entry) {
    const auto words = read_list(std::string_view(entry).substr(entry.find(':') + 1));
    const bool named = std::ranges::any_of(
        words.words, [&](const std::string& word) { return text::lower(word) == text::lower(protocol); });
    return named == words.inverted;
  }) && entries.front().find(':') == std::string::npos;  // else other functions keep it
}

}  // namespace nlaunch::lint

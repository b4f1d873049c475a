#include "import/functions.h"

#include "base/text.h"
#include "import/loops.h"

namespace nlaunch::import {
namespace {

constexpr std::size_t kMost = 256;  // more is no script that a person wrote

/// The word is a function's name: () stands behind it.
bool has_parentheses(std::string_view line, const FirstWord& word) {
  return text::trim(line.substr(word.column - 1 + word.text.size())).starts_with("()");
}

}  // namespace

bool ShellFunction::holds(const SourceSpan& span) const {
  const auto at = std::pair(span.line, span.column);
  return first < at && at < last;
}

ShellFunctions functions_of(const std::vector<std::string>& lines) {
  ShellFunctions all;
  std::vector<std::string> open;  // braces, with the names of those that are functions'
  std::string name;               // of one whose brace has not come yet
  bool named = false;             // by `function`
  for (std::uint32_t number = 1; number <= lines.size() && all.size() < kMost; ++number) {
    const auto& line = lines[number - 1];
    for (const auto& word : first_words(line)) {
      if (word.text == "{") {
        if (!name.empty()) all[name] = {{number, word.column}, {}};
        open.push_back(std::exchange(name, {}));
      } else if (word.text == "}" && !open.empty()) {
        if (!open.back().empty()) all[open.back()].last = {number, word.column};
        open.pop_back();
      } else {
        name = named || has_parentheses(line, word) ? std::string(word.text) : std::string();
        if (!name.empty()) all.try_emplace(name);  // whatever its body begins with
      }
      named = word.text == "function";
    }
  }
  return all;
}

}  // namespace nlaunch::import

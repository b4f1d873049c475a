#pragma once
#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "lint/lint_input.h"

namespace nlaunch::lint {

/// Finds what reads a variable by name, among the texts in the input.
class Readers {
 public:
  explicit Readers(const LintInput& input) {
    for (const auto& reading : input.readings) {
      std::string_view rest = reading.text;
      while (!rest.empty()) {
        const auto length = std::min(rest.find_first_not_of(kOfNames), rest.size());
        if (length > 0) by_name_.try_emplace(rest.substr(0, length), &reading);
        rest.remove_prefix(std::min(length + 1, rest.size()));
      }
    }
  }
  [[nodiscard]] const Reading* find(std::string_view name) const {
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : found->second;
  }

 private:
  static constexpr std::string_view kOfNames =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_";
  std::unordered_map<std::string_view, const Reading*> by_name_;
};

}  // namespace nlaunch::lint

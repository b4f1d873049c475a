#include "import/arithmetic.h"

#include <charconv>

#include "import/values.h"

namespace nlaunch::import {
namespace {

class Reader {
 public:
  Reader(std::string_view text, const NumberOf& number_of) : text_(text), number_of_(number_of) {}

  std::optional<long> value() {
    const auto result = sum();
    skip();
    return at_ == text_.size() ? result : std::nullopt;
  }

 private:
  void skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
  }
  bool take(char c) {
    skip();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  static std::optional<long> bounded(std::optional<long> number) {
    constexpr long kMost = 1'000'000'000;
    return number && *number <= kMost && *number >= -kMost ? number : std::nullopt;
  }

  std::optional<long> sum() {
    auto left = product();
    while (left) {
      const bool plus = take('+');
      if (!plus && !take('-')) break;
      const auto right = product();
      left = right ? bounded(plus ? *left + *right : *left - *right) : std::nullopt;
    }
    return left;
  }
  std::optional<long> product() {
    auto left = atom();
    while (left) {
      if (take('*')) {
        const auto right = atom();
        left = right ? bounded(*left * *right) : std::nullopt;
      } else if (take('/')) {
        const auto right = atom();
        left = right && *right != 0 ? std::optional(*left / *right) : std::nullopt;
      } else {
        break;
      }
    }
    return left;
  }
  std::optional<long> atom() {
    skip();
    const auto from = at_;
    while (at_ < text_.size() && is_name_character(text_[at_])) ++at_;
    const auto word = text_.substr(from, at_ - from);
    if (const auto known = number_of_(std::string(word))) return bounded(known);
    long number = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (word.empty() || error != std::errc() || end != word.data() + word.size()) return std::nullopt;
    return bounded(number);
  }

  std::string_view text_;
  const NumberOf& number_of_;
  std::size_t at_ = 0;
};

}  // namespace

std::optional<long> arithmetic(std::string_view text, const NumberOf& number_of) {
  std::string plain;
  for (const char c : text) {
    if (c != '$' && c != '{' && c != '}') plain += c;
  }
  return Reader(plain, number_of).value();
}

}  // namespace nlaunch::import

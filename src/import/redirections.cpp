#include "import/redirections.h"

#include <algorithm>
#include <string_view>

namespace nlaunch::import {
namespace {

constexpr std::size_t kMostSearched = 4096;  // of what is searched

/// A command's lines from where it begins, joined.
std::string text_from(const std::vector<std::string>& lines, std::uint32_t line, std::uint32_t column) {
  std::string text;
  for (std::size_t i = line; i >= 1 && i <= lines.size() && text.size() < kMostSearched; ++i) {
    const auto& whole = lines[i - 1];
    const auto from = i == line ? std::min<std::size_t>(column - 1, whole.size()) : 0;
    text += std::string_view(whole).substr(from, kMostSearched);
    if (!text.ends_with('\\')) break;
    text.back() = ' ';
  }
  return text;
}

std::string_view first_word(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  const bool quoted = text.starts_with('"') || text.starts_with('\'');
  if (quoted) return text.substr(1, text.find(text[0], 1) - 1);
  return text.substr(0, text.find_first_of(" \t;|&)"));
}

/// Of what stands behind the first `>`; another descriptor is no file.
std::string_view target(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(">|"), text.size()));
  const bool descriptor = text.starts_with('&');
  if (descriptor) text.remove_prefix(1);
  const auto word = first_word(text);
  const bool number = word.find_first_not_of("0123456789-") == std::string_view::npos;
  return word == "/dev/null" || (descriptor && number) ? std::string_view() : word;
}

/// Of what stands behind a `|`.
std::string_view of_tee(std::string_view text) {
  if (text.starts_with('&')) text.remove_prefix(1);
  auto word = first_word(text);
  if (word != "tee") return {};
  do {
    text.remove_prefix(static_cast<std::size_t>(word.data() - text.data()) + word.size());
    word = first_word(text);
  } while (word.starts_with('-'));
  return word;
}

}  // namespace

std::string output_file(const std::vector<std::string>& lines, std::uint32_t line, std::uint32_t column) {
  const auto text = text_from(lines, line, column);
  const auto whole = std::string_view(text);
  char quote = '\0';
  int level = 0;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    const char c = whole[i];
    const char next = i + 1 < whole.size() ? whole[i + 1] : '\0';
    if (c == '\\' && quote != '\'') {
      ++i;
    } else if (quote != '\0') {
      if (c == quote) quote = '\0';
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '(' || c == ')') {
      level += c == '(' ? 1 : -1;
    } else if (level > 0) {
      continue;
    } else if (c == '>') {
      if (const auto file = target(whole.substr(i)); !file.empty()) return std::string(file);
      i = std::min(whole.find_first_not_of(">&|", i), whole.size()) - 1;
    } else if (c == '|') {
      return std::string(of_tee(whole.substr(i + 1)));
    } else if (c == '#' && i > 0 && whole[i - 1] == ' ') {
      break;
    } else if (c == ';' || level < 0 || (c == '&' && next != '>')) {
      break;
    }
  }
  return {};
}

}  // namespace nlaunch::import

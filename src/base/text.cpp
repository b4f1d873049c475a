#include "base/text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>

namespace nlaunch::text {
namespace {

/// The length of the valid UTF-8 sequence at the start of `text`, or 0.
std::size_t sequence_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto tail = [&](std::size_t i) { return i < text.size() && (byte(i) & 0xC0U) == 0x80U; };
  const unsigned first = byte(0);
  if (first < 0x80U) return 1;
  if (first >= 0xC2U && first <= 0xDFU) return tail(1) ? 2 : 0;
  if (first >= 0xE0U && first <= 0xEFU) {
    if (!tail(1) || !tail(2)) return 0;
    const bool overlong = first == 0xE0U && byte(1) < 0xA0U;
    const bool surrogate = first == 0xEDU && byte(1) > 0x9FU;
    return overlong || surrogate ? 0 : 3;
  }
  if (first >= 0xF0U && first <= 0xF4U) {
    if (!tail(1) || !tail(2) || !tail(3)) return 0;
    const bool overlong = first == 0xF0U && byte(1) < 0x90U;
    const bool too_large = first == 0xF4U && byte(1) > 0x8FU;
    return overlong || too_large ? 0 : 4;
  }
  return 0;
}

/// An inserted, missing or changed letter counts as one step; so do two transposed letters.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  std::vector<std::size_t> above = row;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    const auto two_above = std::exchange(above, row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({replaced, above[j] + 1, row[j - 1] + 1});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], two_above[j - 2] + 1);
    }
  }
  return row.back();
}

}  // namespace

std::string_view trim(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  const auto first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

std::vector<std::string_view> split_views(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const auto at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

std::vector<std::string> split(std::string_view text, char separator) {
  const auto parts = split_views(text, separator);
  return {parts.begin(), parts.end()};
}

std::string join(std::span<const std::string> parts, std::string_view separator) {
  return fmt::format("{}", fmt::join(parts, separator));
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return out;
}

std::vector<std::string_view> characters(std::string_view utf8) {
  std::vector<std::string_view> out;
  while (!utf8.empty()) {
    const auto length = std::max<std::size_t>(1, sequence_length(utf8));
    out.push_back(utf8.substr(0, length));
    utf8.remove_prefix(length);
  }
  return out;
}

std::optional<std::size_t> first_invalid_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const auto length = sequence_length(text.substr(at));
    if (length == 0) return at;
    at += length;
  }
  return std::nullopt;
}

std::string without_escapes(std::string_view text) {
  constexpr std::string_view kBegin = "\x1b[";
  std::string out;
  for (;;) {
    const auto at = text.find(kBegin);
    out += text.substr(0, at);
    if (at == std::string_view::npos) return out;
    // Parameter and intermediate bytes, then one final byte (ECMA-48, 5.4).
    auto end = at + kBegin.size();
    while (end < text.size() && text[end] >= 0x20 && text[end] < 0x40) ++end;
    const bool whole = end < text.size() && text[end] >= 0x40 && text[end] < 0x7F;
    if (!whole) out += text.substr(at, end - at);
    text.remove_prefix(whole ? end + 1 : end);
  }
}

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const auto* plain = std::ranges::find_if_not(text, [](char c) { return c >= 0x20 && c < 0x7F; });
    if (plain != text.begin()) {
      out.append(text.begin(), plain);
      text.remove_prefix(static_cast<std::size_t>(plain - text.begin()));
      continue;
    }
    const auto length = sequence_length(text);
    const auto byte = static_cast<unsigned char>(text[0]);
    // C1 controls (U+0080..U+009F) affect some terminals, too.
    const bool c1 = length == 2 && byte == 0xC2U && static_cast<unsigned char>(text[1]) < 0xA0U;
    if (byte == '\n') {
      out += "\\n";
    } else if (byte == '\t') {
      out += "\\t";
    } else if (length == 0 || byte < 0x20U || byte == 0x7FU) {
      out += fmt::format("\\x{:02x}", byte);
    } else if (c1) {
      out += fmt::format("\\x{:02x}\\x{:02x}", byte, static_cast<unsigned char>(text[1]));
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(std::max<std::size_t>(1, length));
  }
  return out;
}

bool glob_match(std::string_view glob, std::string_view name) {
  return ::fnmatch(std::string(glob).c_str(), std::string(name).c_str(), 0) == 0;
}

std::optional<std::string> nearest(std::string_view name, std::span<const std::string> candidates) {
  constexpr std::size_t kLongest = 64;  // a typo in a longer name is more than a letter or two
  if (name.size() > kLongest) return std::nullopt;
  std::optional<std::string> best;
  std::size_t best_distance = std::max<std::size_t>(1, name.size() / 3) + 1;
  const auto wanted = lower(name);
  for (const auto& candidate : candidates) {
    // No distance is smaller than the difference of the lengths.
    const auto shorter = std::min(name.size(), candidate.size());
    if (std::max(name.size(), candidate.size()) - shorter >= best_distance) continue;
    const auto distance = edit_distance(wanted, lower(candidate));
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

namespace {

/// For strings with unreadable bytes: $'...'.
std::string shell_escape(std::string_view text) {
  std::string out = "$'";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20U || byte >= 0x7FU) {
      out += fmt::format("\\{:03o}", byte);
      continue;
    }
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + "'";
}

}  // namespace

std::string shell_quote(std::string_view text) {
  constexpr std::string_view kSafe =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";
  if (!text.empty() && text.find_first_not_of(kSafe) == std::string_view::npos) return std::string(text);
  if (printable(text) != text) return shell_escape(text);
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      out += c;
    }
  }
  return out + "'";
}

std::string shell_join(std::span<const std::string> argv) {
  std::string out;
  for (const auto& word : argv) {
    if (!out.empty()) out += ' ';
    out += shell_quote(word);
  }
  return out;
}

std::string count(std::size_t n, std::string_view noun) {
  return fmt::format("{} {}{}", n, noun, n == 1 ? "" : noun.ends_with("ss") ? "es" : "s");
}

}  // namespace nlaunch::text

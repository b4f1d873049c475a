#pragma once
#include <charconv>
#include <concepts>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Small pure functions on strings.
namespace nlaunch::text {

std::string_view trim(std::string_view text);
/// Splits at every `separator`; "a,,b" has three parts and "" has one.
std::vector<std::string> split(std::string_view text, char separator);
/// The same, as views of `text`.
std::vector<std::string_view> split_views(std::string_view text, char separator);
std::string join(std::span<const std::string> parts, std::string_view separator);
std::string lower(std::string_view text);

/// The characters of a UTF-8 string; a byte that is not valid UTF-8 counts as one character.
std::vector<std::string_view> characters(std::string_view utf8);
/// The offset of the first byte that is not valid UTF-8 (overlong forms and surrogates are invalid).
std::optional<std::size_t> first_invalid_utf8(std::string_view text);
/// The string with control characters, DEL and invalid bytes shown as \xNN, so that it cannot affect a
/// terminal. Newline and tab are shown as \n and \t.
std::string printable(std::string_view text);
/// The string without ECMA-48 sequences for color and cursor movement ("\x1b[36m", "\x1b[A").
std::string without_escapes(std::string_view text);

/// True if `name` matches the shell pattern `glob` (*, ?, [set]).
bool glob_match(std::string_view glob, std::string_view name);

/// The number in `digits`; nothing if there is any other text, no digit, or a number that `T` cannot hold.
template <std::integral T>
std::optional<T> whole_number(std::string_view digits) {
  T value{};
  const auto* const end = std::to_address(digits.end());
  const auto done = std::from_chars(std::to_address(digits.begin()), end, value);
  return done.ec == std::errc() && done.ptr == end ? std::optional(value) : std::nullopt;
}

/// The candidate that was most likely meant by `name`, or nothing if none is close.
std::optional<std::string> nearest(std::string_view name, std::span<const std::string> candidates);

/// `text` as one word for bash, always on one line; unchanged if it needs no quotes.
std::string shell_quote(std::string_view text);
/// A command line as a user could type it.
std::string shell_join(std::span<const std::string> argv);

/// "1 GPU", "2 GPUs".
std::string count(std::size_t n, std::string_view noun);

}  // namespace nlaunch::text

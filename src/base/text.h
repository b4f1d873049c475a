#pragma once
#include <charconv>
#include <concepts>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Small pure functions on text.
namespace nlaunch::text {

std::string_view trim(std::string_view text);
/// Splits at every `separator`; "a,,b" has three parts and "" has one.
std::vector<std::string> split(std::string_view text, char separator);
std::string join(std::span<const std::string> parts, std::string_view separator);
std::string lower(std::string_view text);

/// The characters of a UTF-8 text; a byte that is not valid UTF-8 counts as one character.
std::vector<std::string_view> characters(std::string_view utf8);
/// The offset of the first byte that is not valid UTF-8 (overlong forms and surrogates are not).
std::optional<std::size_t> first_invalid_utf8(std::string_view text);
/// The text with control characters, DEL and invalid bytes shown as \xNN, so that it cannot act on a
/// terminal. Newline and tab are shown as \n and \t.
std::string printable(std::string_view text);
/// The text without the sequences of ECMA-48 that colour it or move the cursor ("\x1b[36m", "\x1b[A").
std::string without_escapes(std::string_view text);

/// True when `name` matches the shell pattern `glob` (*, ?, [set]).
bool glob_match(std::string_view glob, std::string_view name);

/// The number that `digits` are, all of them; nothing for other text, for none and for what `T` cannot hold.
template <std::integral T>
std::optional<T> whole_number(std::string_view digits) {
  T value{};
  const auto* const end = std::to_address(digits.end());
  const auto done = std::from_chars(std::to_address(digits.begin()), end, value);
  return done.ec == std::errc() && done.ptr == end ? std::optional(value) : std::nullopt;
}

/// The candidate that `name` was most likely meant to be, or nothing when none is near.
std::optional<std::string> nearest(std::string_view name, std::span<const std::string> candidates);

/// `text` as one word for bash, on one line whatever is in it; left alone when it needs no quotes.
std::string shell_quote(std::string_view text);
/// A command line as a person could type it.
std::string shell_join(std::span<const std::string> argv);

/// "1 GPU", "2 GPUs".
std::string count(std::size_t n, std::string_view noun);

}  // namespace nlaunch::text

#pragma once
#include <string>
#include <string_view>
#include <utility>

/// What the text of a YAML value looks like, and what yaml-cpp's error messages mean.
namespace nlaunch::config {

struct Extent {
  std::size_t start = 0;   ///< after an anchor or a tag
  std::size_t length = 1;  ///< within its first line
  bool plain = true;       ///< neither quoted nor a block
  bool closed = true;      ///< false: a quote is open until the end of the text (yaml-cpp accepts that)
};

/// The place in `text` of the scalar whose mark is `at` and whose value is `value`.
Extent scalar_extent(std::string_view text, std::size_t at, std::string_view value);

/// The length of `~` or `null` at the start of `text`, or 0.
std::size_t null_word_length(std::string_view text);

/// What a yaml-cpp message means at this location, and how to fix it.
std::pair<std::string, std::string> explain_syntax(std::string_view message, std::string_view text,
                                                   std::size_t at);

}  // namespace nlaunch::config

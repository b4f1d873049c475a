#include "config/yaml_syntax.h"

#include <algorithm>
#include <array>

namespace nlaunch::config {
namespace {

constexpr std::string_view kBlank = " \t\r\n";

/// Skips anchors and tags in front of a value.
std::size_t skip_properties(std::string_view text, std::size_t at) {
  while (at < text.size() && (text[at] == '&' || text[at] == '!')) {
    at = std::min(text.find_first_of(kBlank, at), text.size());
    at = std::min(text.find_first_not_of(kBlank, at), text.size());
  }
  return at;
}

/// The offset of the quote that closes the one at `at`, or npos.
std::size_t closing_quote(std::string_view text, std::size_t at) {
  const char quote = text[at];
  for (auto i = at + 1; i < text.size(); ++i) {
    if (quote == '"' && text[i] == '\\') {
      ++i;
    } else if (text[i] == quote) {
      if (quote == '"' || i + 1 >= text.size() || text[i + 1] != '\'') return i;
      ++i;
    }
  }
  return std::string_view::npos;
}

struct Complaint {
  std::string_view of_yaml_cpp;
  std::string_view message;
  std::string_view hint;
};

constexpr std::array<Complaint, 17> kComplaints{{
    {"end of sequence flow not found", "the list that opens here is not closed", "close it with ]"},
    {"end of map flow not found", "the map that opens here is not closed", "close it with }"},
    {"illegal flow end", "this closing bracket has no opening bracket", "remove it, or quote the value"},
    {"end of map not found", "this line does not fit the surrounding map",
     "indent it like its neighbours, or write it as 'key: value'"},
    {"end of sequence not found", "this line does not fit the surrounding list",
     "start it with '- ', or indent it"},
    {"illegal block entry", "a list cannot start here",
     "put '-' on its own line below the key, or write [a, b]"},
    {"illegal map value", "unexpected ':'",
     "quote a value that contains ': ', and indent the keys of a map equally"},
    {"illegal map key", "unexpected key", "indent the keys of a map equally"},
    {"unknown token", "a value cannot start with this character", "quote the value"},
    {"the referenced anchor is not defined", "no anchor with this name is defined above",
     "quote a string that starts with *"},
    {"alias not found after *", "missing name after '*'", "quote a string that starts with *"},
    {"anchor not found after &", "missing name after '&'", "quote a string that starts with &"},
    {"unknown escape character", "unknown escape in a quoted string",
     "write \\\\ for a backslash, or use single quotes"},
    {"illegal tab", "tabs are not allowed for indentation", "use spaces"},
    {"illegal EOF in scalar", "the file ends inside a quoted string", "close the quote"},
    {"illegal document indicator in scalar", "'---' or '...' inside a quoted string", "close the quote"},
    {"bad character found while scanning hex", "an escape in this string has no valid hexadecimal digits",
     "write \\\\ for a backslash, or use single quotes"},
}};

}  // namespace

Extent scalar_extent(std::string_view text, std::size_t at, std::string_view value) {
  Extent extent;
  extent.start = skip_properties(text, at);
  if (extent.start >= text.size()) return extent;
  const char first = text[extent.start];
  const auto line = text.substr(extent.start, text.find('\n', extent.start) - extent.start);
  if (first == '"' || first == '\'') {
    const auto end = closing_quote(text, extent.start);
    extent.plain = false;
    extent.closed = end != std::string_view::npos;
    extent.length = std::min(line.size(), end - extent.start + 1);
  } else if (first == '|' || first == '>') {
    extent.plain = false;
  } else {
    extent.length = line.starts_with(value) ? value.size() : line.size();
  }
  return extent;
}

std::size_t null_word_length(std::string_view text) {
  for (const std::string_view word : {"~", "null", "Null", "NULL"}) {
    if (text.starts_with(word)) return word.size();
  }
  return 0;
}

std::pair<std::string, std::string> explain_syntax(std::string_view message, std::string_view text,
                                                   std::size_t at) {
  const auto known = std::ranges::find_if(
      kComplaints, [&](const Complaint& complaint) { return message.starts_with(complaint.of_yaml_cpp); });
  if (known == kComplaints.end()) return {"the file is not valid YAML: " + std::string(message), ""};
  std::pair<std::string, std::string> found{known->message, known->hint};
  const auto line_start = at == 0 ? 0 : text.rfind('\n', at - 1) + 1;
  const auto indent = text.substr(line_start, at - line_start);
  if (indent.starts_with('\t') || text.substr(at).starts_with('\t')) {
    found = {"tabs are not allowed for indentation", "use spaces"};
  } else if (at > 0 && text.substr(at - 1).starts_with("${")) {
    found.second = "quote a string with ${...} inside [ ] or { }";
  }
  return found;
}

}  // namespace nlaunch::config

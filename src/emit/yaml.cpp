#include "emit/yaml.h"

#include <fmt/format.h>

#include <cstdint>

#include "base/text.h"

namespace nlaunch::emit {
namespace {

std::uint32_t code_point(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return first;
  std::uint32_t code = first & (0x7FU >> character.size());
  for (const char c : character.substr(1)) code = code << 6U | (static_cast<unsigned char>(c) & 0x3FU);
  return code;
}

/// What YAML 1.1 does not allow unescaped: control characters, and what it treats as a line break or a byte
/// order mark.
bool must_be_escaped(std::uint32_t code) {
  return code < 0x20 || (code >= 0x7F && code < 0xA0) || code == 0x2028 || code == 0x2029 || code == 0xFEFF ||
         code == 0xFFFE || code == 0xFFFF;
}

}  // namespace

std::string yaml_quote(std::string_view text) {
  std::string out = "\"";
  for (const auto character : text::characters(text)) {
    const auto code = code_point(character);
    if (character == "\"" || character == "\\") {
      out += fmt::format("\\{}", character);
    } else if (character == "\n") {
      out += "\\n";
    } else if (must_be_escaped(code)) {
      out += fmt::format("\\u{:04X}", code);
    } else {
      out += character;
    }
  }
  return out + "\"";
}

}  // namespace nlaunch::emit

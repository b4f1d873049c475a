#include "import/command_line.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "import/wrappers.h"

namespace nlaunch::import {
namespace {

/// A pattern as bash expands it: what else it might take for its own is escaped.
std::string pattern_word(std::string_view text) {
  constexpr std::string_view kPlain = "_./:=,@%+-*?[]{}^!";
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       static_cast<unsigned char>(c) >= 0x80U || kPlain.find(c) != std::string_view::npos;
    if (!plain) out += '\\';
    out += c;
  }
  return out;
}

/// One word for bash.
std::string shell_word(const Value& value, const std::string& head) {
  std::string out;
  for (const auto& piece : value.pieces) {
    if (piece.kind == Piece::Kind::text) {
      if (!piece.text.empty())
        out += piece.pattern ? pattern_word(piece.text) : text::shell_quote(piece.text);
    } else if (piece.kind == Piece::Kind::head) {
      out.append(head.empty() ? std::string("\"$MASTER_ADDR\"") : text::shell_quote(head));
    } else {
      out += piece.pattern ? literal(piece.text) : fmt::format("\"{}\"", literal(piece.text));
    }
  }
  return out.empty() ? "''" : out;
}

}  // namespace

std::vector<std::string> command_line(const std::vector<Value>& words, const std::string& head) {
  std::vector<std::string> out;
  for (const auto& word : words) {
    const auto text = plain_text(word, head);
    if (!text || std::ranges::any_of(word.pieces, &Piece::pattern)) {
      std::string line = "exec";
      for (const auto& one : words) line += fmt::format(" {}", shell_word(one, head));
      return {"bash", "-c", line};
    }
    out.push_back(*text);
  }
  return out;
}

std::vector<std::string> variables_in(const std::string& written) {
  const auto is_name = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  std::vector<std::string> names;
  const bool number = written.starts_with("$((");
  for (std::size_t i = 0; i < written.size();) {
    const bool begins = written[i] == '$' || (number && i > 0 && !is_name(written[i - 1]));
    auto from = i + (written[i] == '$' ? 1 : 0);
    while (begins && from < written.size() && (written[from] == '{' || written[from] == '#')) ++from;
    auto end = from;
    while (end < written.size() && is_name(written[end])) ++end;
    const auto name = written.substr(from, end - from);
    if (begins && is_variable_name(name)) names.push_back(name);
    i = std::max(i + 1, begins ? end : i + 1);
  }
  return names;
}

std::optional<std::string> plain_text(const Value& value, const std::string& head) {
  std::string out;
  for (const auto& piece : value.pieces) {
    const bool known = piece.kind == Piece::Kind::text || (piece.kind == Piece::Kind::head && !head.empty());
    if (!known) return std::nullopt;
    out += piece.kind == Piece::Kind::text ? piece.text : head;
  }
  return out;
}

}  // namespace nlaunch::import

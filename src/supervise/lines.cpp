#include "supervise/lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"

namespace nlaunch::supervise {
namespace {

/// True if every byte is printable. Without a branch per byte, so that it is vectorised.
bool is_plain(std::string_view text) {
  unsigned other = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    other |= static_cast<unsigned>(byte < 0x20U && byte != '\t') | static_cast<unsigned>(byte >= 0x7FU);
  }
  return other == 0;
}

std::string make_prefix(std::string_view name, std::size_t width, std::size_t hue, LinePrinter::Style style,
                        std::string_view bar) {
  if (style == LinePrinter::Style::plain) return fmt::format("{:<{}} {} ", name, width, bar);
  constexpr std::array kHues{36, 33, 32, 35, 34, 96, 93, 92, 95, 94};
  return fmt::format("\x1b[{}m{:<{}} {}\x1b[0m ", kHues[hue % kHues.size()], name, width, bar);
}

}  // namespace

std::size_t LineCutter::last_character_border(std::string_view text) {
  constexpr std::size_t kLongestCharacter = 4;
  const auto from = text.size() - std::min(kLongestCharacter, text.size());
  for (auto at = text.size(); at > from; --at) {
    const auto byte = static_cast<unsigned char>(text[at - 1]);
    if (byte < 0x80U) return text.size();
    if (byte < 0xC0U) continue;
    const std::size_t length = byte >= 0xF0U ? 4 : byte >= 0xE0U ? 3 : 2;
    return at - 1 + length > text.size() ? at - 1 : text.size();
  }
  return text.size();
}

void append_shown(std::string& out, std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (is_plain(line)) {
    out += line;
    return;
  }
  if (const auto over = line.rfind('\r'); over != std::string_view::npos) line.remove_prefix(over + 1);
  const auto text = text::without_escapes(line);
  line = text;
  for (;;) {
    const auto tab = line.find('\t');
    out += text::printable(line.substr(0, tab));
    if (tab == std::string_view::npos) return;
    out += '\t';
    line.remove_prefix(tab + 1);
  }
}

std::size_t FollowedLines::feed(std::string_view bytes, std::string& out) {
  std::size_t lines = 0;
  const auto show = [&](std::string_view line, bool) {
    append_shown(out, line);
    out += '\n';
    ++lines;
  };
  auto whole = std::string(returned_ ? "\r" : "").append(bytes);
  returned_ = whole.ends_with('\r');
  if (returned_) whole.pop_back();
  auto rest = std::string_view(whole);
  const auto end = rest.rfind('\n') + 1;
  cutter_.feed(rest.substr(0, end), show);
  rest.remove_prefix(end);
  if (const auto over = rest.rfind('\r'); over != std::string_view::npos) {
    std::string shown;
    cutter_.feed(rest.substr(0, over), show);
    cutter_.finish([&](std::string_view line, bool) { append_shown(shown, line); });
    rest.remove_prefix(over + 1);
    if (!shown.empty()) {
      out += shown + '\n';
      ++lines;
    }
  }
  cutter_.feed(rest, show);
  return lines;
}

std::size_t FollowedLines::finish(std::string& out) {
  std::size_t lines = 0;
  cutter_.finish([&](std::string_view line, bool) {
    append_shown(out, line);
    out += '\n';
    ++lines;
  });
  return lines;
}

LinePrinter::LinePrinter(std::string_view name, std::size_t width, std::size_t hue, Style style)
    : prefix_(make_prefix(name, width, hue, style, "│")),
      continued_prefix_(make_prefix(name, width, hue, style, "┆")) {}

std::size_t LinePrinter::feed(std::string_view bytes, std::string& out) {
  std::size_t lines = 0;
  cutter_.feed(bytes, [&](std::string_view line, bool continued) {
    print(line, continued, out);
    ++lines;
  });
  return lines;
}

std::size_t LinePrinter::finish(std::string& out) {
  std::size_t lines = 0;
  cutter_.finish([&](std::string_view line, bool continued) {
    print(line, continued, out);
    ++lines;
  });
  return lines;
}

void LinePrinter::print(std::string_view line, bool continued, std::string& out) const {
  out += continued ? continued_prefix_ : prefix_;
  append_shown(out, line);
  out += '\n';
}

}  // namespace nlaunch::supervise

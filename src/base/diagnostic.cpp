#include "base/diagnostic.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "base/text.h"

namespace nlaunch {
namespace {

/// Characters of a source line that fit between "  12 | " with "…" and a "…" at the end.
std::size_t shown_of_line(std::size_t width) {
  constexpr std::size_t kMost = 160;
  constexpr std::size_t kLeast = 20;
  constexpr std::size_t kBeside = 9;
  return width == 0 ? kMost : std::clamp(width, kLeast + kBeside, kMost + kBeside) - kBeside;
}

std::string paint(Color color, std::string_view code, std::string_view text) {
  if (color == Color::never) return std::string(text);
  return fmt::format("\x1b[{}m{}\x1b[0m", code, text);
}

/// The source line with its caret line, or nothing if the line is not known.
std::string excerpt(const SourceSpan& span, Color color, std::size_t width) {
  const auto most = shown_of_line(width);
  constexpr std::size_t kLongestCharacter = 4;  // bytes
  auto line = span.source_line();
  line.resize(std::min(line.size(), (span.column + most) * kLongestCharacter));
  if (text::trim(line).empty()) return {};
  const auto characters = text::characters(line);
  const std::size_t at = std::min<std::size_t>(span.column - 1, characters.size());
  const std::size_t first = at > most / 2 ? at - most / 2 : 0;
  const std::size_t last = std::min(characters.size(), first + most);

  std::string shown = first > 0 ? "…" : "";
  std::string caret = first > 0 ? " " : "";
  for (std::size_t i = first; i < last; ++i) {
    const bool tab = characters[i] == "\t";
    const auto visible = tab ? std::string(characters[i]) : text::printable(characters[i]);
    shown += visible;
    if (i < at) caret += tab ? std::string("\t") : std::string(text::characters(visible).size(), ' ');
  }
  if (last < characters.size()) shown += "…";
  const std::size_t room = std::max<std::size_t>(1, last - at);
  const auto marks = std::string(std::clamp<std::size_t>(span.length, 1, room), '^');
  const auto number = fmt::format("{:>4}", span.line);
  return fmt::format("{} | {}\n{} | {}{}\n", number, shown, std::string(number.size(), ' '), caret,
                     paint(color, "1;32", marks));
}

std::string_view colour_of(Severity severity) {
  if (severity == Severity::error) return "1;31";
  return severity == Severity::warning ? "1;33" : "1;34";
}

}  // namespace

Diagnostic& Diagnostics::add(Diagnostic item) {
  items_.push_back(std::move(item));
  return items_.back();
}

Diagnostic& Diagnostics::error(std::string id, SourceSpan span, std::string message) {
  return add({Severity::error, std::move(id), std::move(message), std::move(span), {}, {}});
}

Diagnostic& Diagnostics::warning(std::string id, SourceSpan span, std::string message) {
  return add({Severity::warning, std::move(id), std::move(message), std::move(span), {}, {}});
}

void Diagnostics::append(const Diagnostics& other) {
  items_.insert(items_.end(), other.items_.begin(), other.items_.end());
}

bool Diagnostics::has_errors() const {
  return std::ranges::any_of(items_, [](const Diagnostic& d) { return d.severity == Severity::error; });
}

std::string render(const Diagnostic& diagnostic, Color color, std::size_t width) {
  const auto label = fmt::format("{}:", name_of(diagnostic.severity));
  const auto where = diagnostic.span.where();
  std::string out =
      fmt::format("{}{} {} [{}]\n", where.empty() ? "" : paint(color, "1", text::printable(where)) + ": ",
                  paint(color, colour_of(diagnostic.severity), label), text::printable(diagnostic.message),
                  diagnostic.id);
  out += excerpt(diagnostic.span, color, width);
  for (const auto& note : diagnostic.notes) {
    const auto place = note.span.where();
    out += fmt::format("note: {}{}\n", place.empty() ? "" : text::printable(place) + ": ",
                       text::printable(note.message));
  }
  if (!diagnostic.hint.empty()) {
    out += fmt::format("{} {}\n", paint(color, "1;36", "hint:"), text::printable(diagnostic.hint));
  }
  return out;
}

std::string render(const Diagnostics& diagnostics, Color color, std::size_t width) {
  std::string out;
  std::size_t errors = 0;
  std::set<std::string> said;  // a mistake in a part that several roles share is found once per role
  for (const auto& item : diagnostics.items()) {
    const auto [text, is_new] = said.insert(render(item, color, width));
    if (!is_new) continue;
    if (!out.empty()) out += "\n";
    out += *text;
    errors += item.severity == Severity::error ? 1 : 0;
  }
  if (errors > 1) out += fmt::format("\n{} errors\n", errors);
  return out;
}

}  // namespace nlaunch

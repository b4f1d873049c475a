#include "report/console.h"

#include <algorithm>

#include "base/exit_code.h"
#include "base/text.h"

namespace nlaunch::report {
namespace {

/// The length of the colour sequence (ECMA-48, 8.3.117: SGR) at the start of a text; 0: there is none.
std::size_t colour_length(std::string_view text) {
  if (!text.starts_with("\x1b[")) return 0;
  const auto end = text.find_first_not_of("0123456789;", 2);
  return end != std::string_view::npos && text[end] == 'm' ? end + 1 : 0;
}

std::string harmless(std::string_view text, bool colours) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const auto special = text.find_first_of("\n\t\x1b");
    out += text::printable(text.substr(0, special));
    if (special == std::string_view::npos) break;
    text.remove_prefix(special);
    const auto colour = colours ? colour_length(text) : 0;
    const auto length = std::max<std::size_t>(1, colour);
    const auto token = text.substr(0, length);
    out += token == "\x1b" ? text::printable(token) : std::string(token);
    text.remove_prefix(length);
  }
  return out;
}

}  // namespace

void Console::result(std::string_view text) const {
  if (result_) result_(wrapped_text(harmless(text, result_paint.on()), result_paint.width()));
}
void Console::document(std::string_view bytes) const {
  if (result_) result_(bytes);
}
void Console::say(std::string_view text) const {
  if (message_ && *message_) (*message_)(wrapped_text(harmless(text, paint.on()), paint.width()));
}
void Console::note(std::string_view sentence) const {
  if (!quiet) say(fmt::format("{} {}\n", paint.dim("note:"), sentence));
}
void Console::warn(std::string_view sentence) const {
  if (!quiet) say(fmt::format("{} {}\n", paint.yellow("warning:"), sentence));
}
int Console::error(const Diagnostics& diagnostics) const {
  say(render(diagnostics, paint.on() ? Color::always : Color::never, paint.width()));
  return exit_code::bad_input;
}

Console::Diversion Console::divert(Write write) const {
  return {message_, std::move(write)};
}

}  // namespace nlaunch::report

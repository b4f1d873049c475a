#include "report/console.h"

#include "base/exit_code.h"

namespace nlaunch::report {

void Console::result(std::string_view text) const {
  if (result_) result_(text);
}
void Console::say(std::string_view text) const {
  if (message_) message_(text);
}
void Console::note(std::string_view sentence) const {
  if (!quiet) say(fmt::format("{} {}\n", paint.dim("note:"), sentence));
}
void Console::warn(std::string_view sentence) const {
  if (!quiet) say(fmt::format("{} {}\n", paint.yellow("warning:"), sentence));
}
int Console::error(const Diagnostics& diagnostics) const {
  say(render(diagnostics, paint.on() ? Color::always : Color::never));
  return exit_code::bad_input;
}

}  // namespace nlaunch::report

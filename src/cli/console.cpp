#include "cli/console.h"

#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/exit_code.h"
#include "sys/files.h"
#include "sys/proc.h"
#include "sys/spawn.h"

namespace nlaunch::cli {
namespace {

/// errno of the first result that could not be written; 0: none.
int output_error = 0;

bool colours(const Context& context, int fd) {
  if (context.color != "auto") return context.color == "always";
  const auto no_color = sys::env_value(context.environment, "NO_COLOR");  // no-color.org
  const auto term = sys::env_value(context.environment, "TERM");
  return ::isatty(fd) == 1 && no_color.empty() && term != "dumb";
}

bool draws(const Context& context) {
  struct stat out {};
  struct stat err {};
  return !context.plain && !context.quiet && ::isatty(STDOUT_FILENO) == 1 &&
         sys::env_value(context.environment, "TERM") != "dumb" && ::fstat(STDOUT_FILENO, &out) == 0 &&
         ::fstat(STDERR_FILENO, &err) == 0 && out.st_rdev == err.st_rdev;
}

/// Asks whether the shell has this process in the foreground. In a run, this process becomes the guardian;
/// the supervisor, which draws, is in another session.
std::function<bool()> foreground_of_this_process() {
  return [pid = ::getpid()] {
    const auto process = sys::process_info(pid);
    return process && sys::in_foreground(*process);
  };
}

/// Of a terminal, in characters; 0: it is none.
std::size_t width_of(int fd) {
  winsize size{};
  return ::isatty(fd) == 1 && ::ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

constexpr std::size_t kHelpWidth = 80;
constexpr std::size_t kLeastHelpWidth = 40;
constexpr std::size_t kMostHelpWidth = 100;

void write_result(std::string_view text) {
  if (!sys::write_all(STDOUT_FILENO, text) && errno != EPIPE && output_error == 0) output_error = errno;
}

}  // namespace

report::Console terminal_console(const Context& context) {
  report::Console console(write_result, [](std::string_view text) { sys::write_all(STDERR_FILENO, text); });
  console.quiet = context.quiet;
  console.plain = context.plain;
  console.footer = draws(context);
  console.in_foreground = foreground_of_this_process();
  console.result_paint = report::Paint(colours(context, STDOUT_FILENO), width_of(STDOUT_FILENO));
  console.paint = report::Paint(colours(context, STDERR_FILENO), width_of(STDERR_FILENO));
  return console;
}

std::size_t help_width() {
  const auto width = width_of(STDOUT_FILENO);
  return width == 0 ? kHelpWidth : std::clamp(width, kLeastHelpWidth, kMostHelpWidth);
}

int code_after_output(int code, const report::Console& console) {
  if (output_error == 0) return code;
  console.say(fmt::format("nlaunch: output truncated: cannot write to standard output: {}\n",
                          std::strerror(output_error)));
  return code == exit_code::ok ? exit_code::internal : code;
}

}  // namespace nlaunch::cli

#include "cli/context.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/exit_code.h"
#include "sys/files.h"
#include "sys/spawn.h"

namespace nlaunch::cli {
namespace {

/// Of the first print that failed; 0: none has.
int output_error = 0;

bool colours(const Context& context, int fd) {
  if (context.color != "auto") return context.color == "always";
  const auto no_color = sys::env_value(context.environment, "NO_COLOR");  // no-color.org
  const auto term = sys::env_value(context.environment, "TERM");
  return ::isatty(fd) == 1 && no_color.empty() && term != "dumb";
}

}  // namespace

report::Paint Context::out() const {
  return report::Paint(colours(*this, STDOUT_FILENO));
}
report::Paint Context::err() const {
  return report::Paint(colours(*this, STDERR_FILENO));
}

void print(std::string_view text) {
  if (!sys::write_all(STDOUT_FILENO, text) && errno != EPIPE && output_error == 0) output_error = errno;
}
int code_after_output(int code) {
  if (output_error == 0) return code;
  say(fmt::format("nlaunch: the output is not whole: cannot write to standard output: {}\n",
                  std::strerror(output_error)));
  return code == exit_code::ok ? exit_code::internal : code;
}
void say(std::string_view text) {
  sys::write_all(STDERR_FILENO, text);
}

int complain(const Context& context, const Diagnostics& diagnostics) {
  say(render(diagnostics, colours(context, STDERR_FILENO) ? Color::always : Color::never));
  return exit_code::bad_input;
}

const std::vector<Subcommand> kSubcommands{
    {"run", add_run},
    {"preflight", add_preflight},
    {"bench", add_bench},
    {"plan", add_plan},
    {"render", add_render},
    {"import", add_import},
    {"lint", add_lint},
    {"diagnose", add_diagnose},
    {"reference", add_reference},
    {"env", add_env},
    {"sites", add_sites},
    // of runs
    {"ps", add_ps},
    {"logs", add_logs},
    {"stop", add_stop},
    {"exec", add_exec},
    {"evidence", add_evidence},
    {"bundle", add_bundle},
    {"diff", add_diff},
    // of nlaunch itself
    {"schema", add_schema},
    {"completion", add_completion},
    {"help", add_help},
    {"agent", add_agent},
    {"collect", add_collect},
};

}  // namespace nlaunch::cli

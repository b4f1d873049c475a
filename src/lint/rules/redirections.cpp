#include <fmt/format.h>
#include <re2/re2.h>

#include <string>

#include "base/registry.h"
#include "base/text.h"
#include "lint/rule.h"
#include "lint/script_text.h"

/// Where the output of programs goes.
namespace nlaunch::lint {
namespace {

/// `python train.py 2>&1 > log`
void check_errors_elsewhere(const LintInput& input, Report& report) {
  if (!input.script || !input.script->file) return;
  static const RE2 kOrder(R"re(\s2>&1\s+(>>?\s*)("[^"]*"|'[^']*'|[^\s;|&<>()]+)([^|;&\n]*)(.?))re");
  const SourceLines lines(input.script->file);
  for (const auto number : lines_of_commands(lines)) {
    std::string arrow, file, rest, end;
    if (!RE2::PartialMatch(lines.command(number), kOrder, &arrow, &file, &rest, &end)) continue;
    // `2>&1 >log | tee errors` sends only the errors through the pipe.
    if (end == "|" || file == "/dev/null" || rest.find("2>") != std::string::npos) continue;
    report.warning(lines.whole(number),
                   {fmt::format("errors do not go into {}", text::printable(file)),
                    "2>&1 copies where the output goes at that moment: it goes into the file only behind it",
                    fmt::format("{} {} 2>&1", text::trim(arrow), text::printable(file)), ""});
  }
}

const Registered<Rule> errors_elsewhere_rule{{
    .order = 510,
    .name = "errors-elsewhere",
    .title = "errors that are not in the log",
    .explain = "bash reads redirections from left to right: `2>&1 > FILE` leaves the errors, also a "
               "traceback, where "
               "the output went before.",
    .source = "bash(1), REDIRECTION; ShellCheck SC2069",
    .check = check_errors_elsewhere,
}};

}  // namespace
}  // namespace nlaunch::lint

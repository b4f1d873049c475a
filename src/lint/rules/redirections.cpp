#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
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
  static const RE2 kOrder(R"re(^(.*?)\s2>&1\s+1?(>>?)\s*("[^"]*"|'[^']*'|[^\s;|&<>()]+)([^|;&\n]*)(.?))re");
  // `err=$(... 2>&1 >out)`, `{ ... 2>&1 >out; } | tee errors`: only the errors are read.
  static const RE2 kReads(R"re(\$\(|<\(|`|^\s*(?:echo|printf)\b)re");
  static const RE2 kPiped(R"re([})]\s*\|)re");
  const SourceLines lines(input.script->file);
  for (const auto number : lines_of_commands(lines)) {
    std::string before, arrow, file, rest, end;
    const auto text = lines.command(number);
    if (!RE2::PartialMatch(text, kOrder, &before, &arrow, &file, &rest, &end)) continue;
    // `2>&1 >log | tee errors` sends only the errors through the pipe.
    const bool is_quoted =
        std::ranges::count(before, '"') % 2 != 0 || std::ranges::count(before, '\'') % 2 != 0;
    if (end == "|" || file == "/dev/null" || rest.contains("2>") || is_quoted ||
        RE2::PartialMatch(before, kReads) || RE2::PartialMatch(text, kPiped))
      continue;
    report.warning(lines.whole(number),
                   {fmt::format("errors do not go into {}", text::printable(file)),
                    "2>&1 copies where the output goes at that moment: it goes into the file only behind it",
                    fmt::format("{} {} 2>&1", arrow, text::printable(file)), ""});
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

/// `python train.py | tee log 2> errors`
void check_errors_of_tee(const LintInput& input, Report& report) {
  if (!input.script || !input.script->file) return;
  static const RE2 kTee(R"re((^|[^|])\|\s*tee\s[^|;&>]*\s2>>?\s*("[^"]*"|[^\s&;|]+))re");
  const SourceLines lines(input.script->file);
  for (const auto number : lines_of_commands(lines)) {
    std::string before;
    std::string file;
    const auto text = lines.command(number);
    if (!RE2::PartialMatch(text, kTee, &before, &file) || file == "/dev/null" || text.contains("2>&1") ||
        text.contains("|&"))
      continue;
    report.warning(lines.whole(number),
                   {fmt::format("{} gets the errors of tee, not those of the program", text::printable(file)),
                    "a redirection belongs to the command that it stands behind",
                    fmt::format("PROGRAM 2> {} | tee …", text::printable(file)), ""});
  }
}

const Registered<Rule> errors_of_tee_rule{{
    .order = 568,
    .name = "errors-of-tee",
    .title = "2> behind tee",
    .explain = "The errors of the program go where those of the script go.",
    .source = "bash(1), Redirection",
    .check = check_errors_of_tee,
}};

}  // namespace
}  // namespace nlaunch::lint

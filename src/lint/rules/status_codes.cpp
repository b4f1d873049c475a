#include <fmt/format.h>
#include <re2/re2.h>

#include <string>

#include "base/registry.h"
#include "lint/rule.h"
#include "lint/script_text.h"

/// What curl prints of the status code of an answer.
namespace nlaunch::lint {
namespace {

/// `s=$(curl -s URL -w '%{http_code}')`, compared with 200: the page stands in front of the code.
void check_code_with_page(const LintInput& input, Report& report) {
  if (!input.script) return;
  static const RE2 kAsks(R"re((\w+)=["']?\$\(\s*curl\s([^|;)]*%\{http_code\}[^|;)]*)\))re");
  static const RE2 kApart(
      R"re((?:^|\s)(?:-[a-zA-Z]*[oI]|--output|--head)\b|>|/(?:health\w*|ping|ready\w*|livez|version)["'\s])re");
  const SourceLines lines(input.script->file);
  for (const auto number : lines_of_commands(lines)) {
    std::string name;
    std::string options;
    if (!RE2::PartialMatch(lines.command(number), kAsks, &name, &options) ||
        RE2::PartialMatch(options + " ", kApart))
      continue;
    const RE2 compares(R"re(\$\{?)re" + name + R"re(\}?["']?\s*(?:==?|-eq|!=|-ne)\s*["']?\d{3})re");
    if (!RE2::PartialMatch(input.script->file->text, compares)) continue;
    report.warning(lines.whole(number),
                   {"the page that the server sends stands in front of its code here",
                    "curl prints both: a comparison with 200 fails whenever the page is not empty",
                    "curl -s -o /dev/null -w '%{http_code}'", ""});
  }
}

const Registered<Rule> code_with_page_rule{{
    .order = 508,
    .name = "code-with-page",
    .title = "a status code with a page in front of it",
    .explain =
        "-w adds to what curl prints. Not reported for /health and its kind, which send an empty page.",
    .source = "curl(1), --write-out, --output",
    .check = check_code_with_page,
}};

/// `code=$(curl -s -o /dev/null -w '%{http_code}' URL || echo 000)`: curl has printed 000 itself.
void check_code_twice(const LintInput& input, Report& report) {
  if (!input.script) return;
  static const RE2 kAgain(
      R"re((?:\$\(|`)[^()|;`]*\bcurl\s[^|;()`]*%\{http_code\}[^|;()`]*\|\|\s*(?:echo|printf)\s+(?:-n\s+)?["']?(\d{1,3})\b[^()]*[)`])re");
  const SourceLines lines(input.script->file);
  for (const auto number : lines_of_commands(lines)) {
    std::string printed;
    if (!RE2::PartialMatch(lines.command(number), kAgain, &printed)) continue;
    report.warning(
        lines.whole(number),
        {fmt::format("if nobody answers, this yields 000{}, not {}", printed, printed),
         fmt::format("curl prints the code 000 itself when it cannot connect, and the echo adds to it: a "
                     "comparison with {} fails",
                     printed),
         "curl -s -o /dev/null -w '%{http_code}' URL || true", ""});
  }
}

const Registered<Rule> code_twice_rule{{
    .order = 511,
    .name = "code-twice",
    .title = "a status code that is printed twice",
    .explain = "-w prints the code also after a failure: 000 if there was no answer.",
    .source = "curl(1), --write-out, http_code",
    .check = check_code_twice,
}};

}  // namespace
}  // namespace nlaunch::lint

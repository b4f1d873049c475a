#include "cli/lint_gate.h"

#include <algorithm>

#include "launch/lint_facts.h"
#include "report/lint_text.h"

namespace nlaunch::cli {

bool lint_stops(const plan::Plan& plan, const launch::Install& install, bool skip, std::string_view command,
                const Context& context) {
  if (skip) {
    if (!context.quiet) say(fmt::format("{} not linted (--no-lint)\n", context.err().yellow("note:")));
    return false;
  }
  auto findings = lint::lint(launch::lint_scene(plan, install, context.environment, false));
  const bool stops = std::ranges::find(findings, Severity::error, &lint::Finding::severity) != findings.end();
  std::erase_if(findings, [&](const lint::Finding& finding) {
    return finding.severity == Severity::note || (context.quiet && finding.severity != Severity::error);
  });
  say(report::lint_text(findings, context.err()));
  if (stops) say(fmt::format("{}: errors; --no-lint goes on all the same\n", command));
  return stops;
}

}  // namespace nlaunch::cli

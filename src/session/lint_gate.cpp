#include "session/lint_gate.h"

#include <algorithm>

#include "launch/lint_facts.h"
#include "report/lint_text.h"

namespace nlaunch::session {

bool lint_stops(const plan::Plan& plan, const launch::Install& install, bool skip, std::string_view command,
                const Caller& caller) {
  if (skip) {
    if (!caller.console.quiet)
      caller.console.say(fmt::format("{} not linted (--no-lint)\n", caller.console.paint.yellow("note:")));
    return false;
  }
  auto findings = lint::lint(launch::lint_input(plan, install, caller.environment, false));
  const bool stops = std::ranges::find(findings, Severity::error, &lint::Finding::severity) != findings.end();
  std::erase_if(findings, [&](const lint::Finding& finding) {
    return finding.severity == Severity::note ||
           (caller.console.quiet && finding.severity != Severity::error);
  });
  caller.console.say(report::lint_text(findings, caller.console.paint));
  if (stops) caller.console.say(fmt::format("{}: lint errors; use --no-lint to continue anyway\n", command));
  return stops;
}

}  // namespace nlaunch::session

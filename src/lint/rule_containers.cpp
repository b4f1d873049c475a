#include <fmt/format.h>

#include "lint/rule_checks.h"

namespace nlaunch::lint {

void check_container_environment(const LintInput& input, Report& report) {
  for (const auto& environment : input.environments) {
    if (environment.cleaned_by.empty()) continue;
    report.of(environment.name);
    const auto what = fmt::format("the wrapper of '{}' takes the environment away ({})", environment.name,
                                  environment.cleaned_by);
    if (!environment.plan_passes) {
      report.error(environment.wrapper_span,
                   {what, "nothing that the plan sets reaches the program: no rank, no GPU, no setting",
                    fmt::format("leave {} out: the environment is the plan's", environment.cleaned_by), ""});
    } else if (!input.from_modules.empty()) {
      report.warning(
          environment.wrapper_span,
          {what,
           fmt::format("what the site's modules set ({}, ...) does not reach the program; what the plan "
                       "sets does",
                       input.from_modules.front().name),
           "set under `env:` what the program needs of it", ""});
    }
  }
}

}  // namespace nlaunch::lint

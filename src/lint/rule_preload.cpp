#include <fmt/format.h>

#include "lint/rule_checks.h"

namespace nlaunch::lint {

void check_preload_everywhere(const LintInput& input, Report& report) {
  if (input.plan) return;  // there `preload:` belongs to a role
  each_setting(input, report, [&](const Environment&, const Setting& setting) {
    if (setting.name != "LD_PRELOAD" || setting.unset || !setting.exported || setting.one_command) return;
    if (setting.value && setting.value->empty()) return;
    report.error(
        setting.span,
        {"LD_PRELOAD is exported to everything that follows",
         "srun, bash, Ray and every helper load the library as well; engines get the learners' copy, and two "
         "copies "
         "may meet in one process",
         "LD_PRELOAD=… in front of the one command that needs it (nlaunch: preload: in the role)", ""});
  });
}

void check_preload_unneeded(const LintInput& input, Report& report) {
  for (const auto& environment : input.environments) {
    if (environment.preload.empty() || environment.kind != RoleKind::service) continue;
    report.of(environment.name);
    report.warning(environment.preload_span, {fmt::format("the service '{}' preloads {}", environment.name,
                                                          environment.preload.front()),
                                              "services run helpers, which neither train nor generate: what "
                                              "they start inherits a library that it does "
                                              "not need",
                                              "preload in learners alone", ""});
  }
}

}  // namespace nlaunch::lint

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "lint/rule_checks.h"

namespace nlaunch::lint {
namespace {

bool before(const SourceSpan& one, const SourceSpan& other) {
  return one.line < other.line;
}

/// What is loaded in a script behind a setting may set it again: a module of NCCL does.
void check_order(const LintInput& input, Report& report) {
  for (const auto& module : input.modules) {
    if (text::lower(module.name).find("nccl") == std::string::npos) continue;
    for (const auto& setting : input.environments.front().settings) {
      if (!setting.name.starts_with("NCCL_") || setting.unset || setting.one_command) continue;
      if (!before(setting.span, module.span)) continue;
      report.warning(setting.span,
                     {fmt::format("{} is set before the module {} is loaded", setting.name, module.name),
                      "a module for NCCL sets NCCL's variables too, and the later one wins",
                      "set it behind the last module load", ""});
      return;  // the first says it for all
    }
  }
}

}  // namespace

void check_module_overrides(const LintInput& input, Report& report) {
  if (input.script) return check_order(input, report);
  for (const auto& module : input.from_modules) {
    for (const auto& environment : input.environments) {
      const auto* setting = environment.find(module.name);
      if (setting == nullptr || setting->unset || !setting->value || !module.value ||
          setting->value == module.value)
        continue;
      report.of(environment.name);
      report.note(setting->span, {fmt::format("a module sets {}={} too", module.name, *module.value),
                                  fmt::format("{} is what the processes get: a profile stands above modules",
                                              *setting->value),
                                  "", ""});
    }
  }
}

void check_module_purge(const LintInput& input, Report& report) {
  if (!input.script) return;
  const bool cray = std::ranges::any_of(input.modules, [](const Module& one) {
    return one.name.starts_with("PrgEnv-") || one.name.starts_with("brics/") ||
           one.name.starts_with("craype");
  });
  if (!cray) return;
  for (const auto& command : input.script->commands) {
    const bool purge =
        command.name() == "module" && command.words.size() > 1 && command.words[1].constant() == "purge";
    if (!purge) continue;
    report.warning(command.span, {"module purge on a Cray system",
                                  "it takes away what the site loads by itself, and with it TMPDIR, "
                                  "PROJECTDIR and the compiler wrappers",
                                  "module reset", ""});
  }
}

}  // namespace nlaunch::lint

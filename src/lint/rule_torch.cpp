#include <fmt/format.h>

#include "base/text.h"
#include "lint/rule_checks.h"
#include "lint/values.h"

namespace nlaunch::lint {
namespace {

bool is_yes(const std::string& value) {
  const auto word = text::lower(value);
  return word == "1" || word == "true" || word == "yes" || word == "y" || word == "t";
}

}  // namespace

void check_blocking_wait(const LintInput& input, Report& report) {
  for (const auto* name : {"TORCH_NCCL_BLOCKING_WAIT", "NCCL_BLOCKING_WAIT"}) {
    each_value(
        input, report, name, [&](const Environment&, const Setting& setting, const std::string& value) {
          if (!is_yes(value)) return;
          report.error(
              setting.span,
              {fmt::format("{}={} takes PyTorch's watchdog away", setting.name, value),
               "without the watchdog no other collective times out, nothing is dumped, and a hang lasts "
               "until the walltime",
               "leave it out: TORCH_NCCL_ASYNC_ERROR_HANDLING's default ends a hang by itself", ""});
        });
  }
}

void check_recorder_path(const LintInput& input, Report& report) {
  for (const auto& environment : input.environments) {
    report.of(environment.name);
    if (environment.may("TORCH_FR_DUMP_TEMP_FILE", [](const auto&) { return true; }) ||
        environment.may("TORCH_NCCL_DEBUG_INFO_TEMP_FILE", [](const auto&) { return true; })) {
      continue;
    }
    for (const auto* name : {"TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE"}) {
      const auto* setting = environment.find(name);
      if (setting == nullptr || setting->unset || setting->value == "0") continue;
      report.warning(
          setting->span,
          {fmt::format("{} turns the flight recorder on, and nothing says where it writes", name),
           "dumps go to /tmp of the node, or into ~/.cache/torch where the next job overwrites them",
           "TORCH_FR_DUMP_TEMP_FILE and TORCH_NCCL_DEBUG_INFO_TEMP_FILE: a path in the job's own folder, to "
           "which the "
           "rank is added",
           ""});
      break;
    }
  }
}

}  // namespace nlaunch::lint

#include <fmt/format.h>

#include <algorithm>

#include "lint/rule_checks.h"
#include "lint/values.h"

namespace nlaunch::lint {
namespace {

bool names_rdzv(const StepOption& option) {
  return option.text.starts_with("--network") && option.text.find("disable_rdzv_get") != std::string::npos;
}

bool turns_on(const Environment& environment, std::string_view name) {
  const auto value = environment.value(name);
  return value && read_number(*value).value != 0;
}

bool is_zero(const std::string& value) {
  return read_number(value).whole && read_number(value).value == 0;
}

}  // namespace

void check_alt_read(const LintInput& input, Report& report) {
  const bool in_batch = std::ranges::any_of(input.batch, names_rdzv);
  const bool in_steps = !input.steps.empty() && std::ranges::all_of(input.steps, [](const Step& step) {
    return step.open_ended || std::ranges::any_of(step.options, names_rdzv);
  });
  // A file that starts nothing by itself cannot say.
  if (in_batch || in_steps || (!input.slurm && input.script)) return;
  if (!input.slurm && !input.plan) return;
  each_value(
      input, report, "FI_CXI_RDZV_PROTO",
      [&](const Environment& environment, const Setting& setting, const std::string& value) {
        if (value != "alt_read" || environment.find(setting.name) != &setting) return;
        report.error(
            setting.span,
            {"FI_CXI_RDZV_PROTO=alt_read without srun --network=disable_rdzv_get",
             "the protocol needs a network whose NIC does not do the rendezvous get by itself; without the "
             "option transfers fail or hang",
             "srun --network=disable_rdzv_get (Slurm 23.11 or newer)", ""});
      });
}

void check_gdrcopy(const LintInput& input, Report& report) {
  if (input.gpu != "GH200" || input.nodes == 1U) return;
  for (const auto* name : {"NCCL_GDRCOPY_ENABLE", "FI_HMEM_CUDA_USE_GDRCOPY"}) {
    each_setting(input, report, [&](const Environment& environment, const Setting& setting) {
      if (setting.name != name || environment.find(name) != &setting || !turns_on(environment, name)) return;
      if (environment.may("FI_CXI_RDZV_THRESHOLD", is_zero) &&
          environment.may("FI_CXI_RDZV_GET_MIN", is_zero))
        return;
      report.warning(
          setting.span,
          {fmt::format("{} turns GDRCopy on, on Grace Hopper, without the rendezvous settings", name),
           "small messages then take the path that has damaged data; HPE advises against GDRCopy there",
           fmt::format("{}=0, or FI_CXI_RDZV_THRESHOLD=0 and FI_CXI_RDZV_GET_MIN=0 beside it", name), ""});
    });
  }
}

void check_mpich(const LintInput& input, Report& report) {
  each_value(input, report, "MPICH_GPU_SUPPORT_ENABLED",
             [&](const Environment& environment, const Setting& setting, const std::string& value) {
               const bool nccl = std::ranges::any_of(environment.settings, [](const Setting& one) {
                 return one.name.starts_with("NCCL_") || one.name.starts_with("TORCH_NCCL_");
               });
               if (value == "0" || !nccl) return;
               report.warning(setting.span, {fmt::format("MPICH_GPU_SUPPORT_ENABLED={} beside NCCL", value),
                                             "Cray MPICH and NCCL on one GPU can wait for each other",
                                             "MPICH_GPU_SUPPORT_ENABLED=0", ""});
             });
}

}  // namespace nlaunch::lint

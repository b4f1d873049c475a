#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/registry.h"
#include "base/text.h"
#include "lint/catalogue.h"
#include "lint/rule.h"

/// What a program gets or loses at its start: preloaded libraries, modules, and the environment in Ray and in
/// containers.
namespace nlaunch::lint {
namespace {

/// Libraries that any program may load: an allocator, or libraries that system programs link anyway.
bool is_for_all(std::string_view library) {
  constexpr std::array<std::string_view, 10> kNames{"libtcmalloc", "libjemalloc", "libmimalloc", "libcrypto",
                                                    "libssl",      "libssh",      "libstdc++",   "libgcc_s",
                                                    "libgomp",     "libiomp5"};
  library = library.substr(library.rfind('/') + 1);
  return library.empty() ||
         std::ranges::any_of(kNames, [&](std::string_view name) { return library.starts_with(name); });
}

bool are_for_all(std::string_view list) {
  std::string blanks(list);
  std::ranges::replace(blanks, ':', ' ');
  return std::ranges::all_of(text::split(blanks, ' '), is_for_all);
}

void check_preload_everywhere(const LintInput& input, Report& report) {
  if (input.plan) return;  // there `preload:` belongs to a role
  each_setting(input, report, [&](const Environment&, const Setting& setting) {
    if (setting.name != "LD_PRELOAD" || setting.unset || !setting.exported || setting.one_command) return;
    if (setting.value && are_for_all(*setting.value)) return;
    report.error(
        setting.span,
        {"LD_PRELOAD is exported to everything that follows",
         "srun, bash, Ray and every helper load the library as well; engines get the learners' copy, and one "
         "process "
         "can end up with two copies",
         "put LD_PRELOAD=… in front of the one command that needs it (nlaunch: `preload:` in the role)", ""});
  });
}

const Registered<Rule> preload_everywhere_rule{{
    .order = 270,
    .name = "preload-everywhere",
    .title = "LD_PRELOAD exported to a whole script",
    .explain = "Every child process inherits a preload: srun, bash, ssh, Ray, the engines. Set it only for "
               "the command that needs it. Allocators, and libraries that system programs load anyway, are "
               "not reported.",
    .source = "ld.so(8)",
    .check = check_preload_everywhere,
}};

void check_preload_unneeded(const LintInput& input, Report& report) {
  for (const auto& environment : input.environments) {
    if (environment.preload.empty() || !environment.kind || computes(*environment.kind)) continue;
    report.of(environment.name);
    report.warning(environment.preload_span,
                   {fmt::format("the {} '{}' preloads {}", name_of(*environment.kind), environment.name,
                                environment.preload.front()),
                    "services run helpers that neither train nor generate: the "
                    "programs they start inherit a library they "
                    "do not need",
                    "preload only in learners", ""});
  }
}

const Registered<Rule> preload_unneeded_rule{{
    .order = 280,
    .name = "preload-unneeded",
    .title = "a library preloaded for a role that does not need it",
    .explain = "Programs that a service starts inherit the library as well.",
    .source = "ld.so(8)",
    .check = check_preload_unneeded,
}};

void check_ray_job(const LintInput& input, Report& report) {
  for (const auto& environment : input.environments) {
    std::vector<const Setting*> lost;
    for (const auto& setting : environment.settings) {
      const auto known = find_variables(setting.name);
      // Variables of Ray and launchers are for the submitting command; Ray itself sets the devices.
      const bool matters = !known.empty() && known.front()->owner != "Ray" &&
                           known.front()->owner != "launchers" && known.front()->owner != "Slurm" &&
                           setting.name != "CUDA_VISIBLE_DEVICES";
      if (matters && !setting.unset && environment.lost.contains(setting.name)) lost.push_back(&setting);
    }
    if (lost.empty()) continue;
    report.warning(
        lost.front()->span,
        {fmt::format("{} {} not reach the job that `ray job submit` starts", lost.front()->name,
                     lost.size() == 1   ? "does"
                     : lost.size() == 2 ? "and another variable do"
                                        : fmt::format("and {} other variables do", lost.size() - 1)),
         "a job gets the environment of the Ray cluster plus its runtime environment; exports of this "
         "shell "
         "do not reach it",
         fmt::format("--runtime-env-json='{{\"env_vars\": {{\"{}\": …}}}}', or export it before ray start",
                     lost.front()->name),
         ""});
    return;
  }
}

const Registered<Rule> ray_job_rule{{
    .order = 285,
    .name = "ray-job-environment",
    .title = "variables that a Ray job does not get",
    .explain =
        "ray job submit sends a command line to a running cluster. It does not send the caller's "
        "environment; --runtime-env-json does. Not reported if the same script starts the cluster with the "
        "variable set, or if the runtime environment comes from a file.",
    .source = "Ray docs, Ray Jobs; Runtime environments",
    .check = check_ray_job,
}};

void check_container_environment(const LintInput& input, Report& report) {
  for (const auto& environment : input.environments) {
    if (environment.cleaned_by.empty()) continue;
    report.of(environment.name);
    const auto what = fmt::format("the wrapper of '{}' clears the environment ({})", environment.name,
                                  environment.cleaned_by);
    if (!environment.plan_passes) {
      report.error(
          environment.wrapper_span,
          {what, "nothing that the plan sets reaches the program: no rank, no GPU, no setting",
           fmt::format("remove {}: the plan already sets the environment", environment.cleaned_by), ""});
    } else if (!input.from_modules.empty()) {
      report.warning(
          environment.wrapper_span,
          {what,
           fmt::format("variables set by the site's modules ({}, ...) do not reach the program; those "
                       "set by the plan do",
                       input.from_modules.front().name),
           "set the ones that the program needs under `env:`", ""});
    }
  }
}

const Registered<Rule> container_environment_rule{{
    .order = 290,
    .name = "container-environment",
    .title = "a wrapper that keeps the environment from the program",
    .explain = "A container tool decides what reaches the process. bwrap --clearenv lets nothing "
               "through; apptainer --cleanenv and enroot pass what the plan sets, but not what modules set.",
    .source = "bwrap(1); apptainer internal/pkg/util/env/create.go; enroot doc/cmd/start.md",
    .check = check_container_environment,
}};

bool stands_above(const SourceSpan& one, const SourceSpan& other) {
  return one.file == other.file && one.line < other.line;
}

/// A module loaded after a setting may set it again: NCCL modules do.
void check_module_order(const LintInput& input, Report& report) {
  for (const auto& module : input.modules) {
    if (text::lower(module.name).find("nccl") == std::string::npos) continue;
    const Setting* first = nullptr;  // it covers all
    for (const auto& environment : input.environments) {
      for (const auto& setting : environment.settings) {
        if (!setting.name.starts_with("NCCL_") || setting.unset || setting.one_command || !setting.exported ||
            !stands_above(setting.span, module.span))
          continue;
        if (first == nullptr || setting.span.line < first->span.line) first = &setting;
      }
    }
    if (first == nullptr) continue;
    report.warning(first->span,
                   {fmt::format("{} is set before the module {} is loaded", first->name, module.name),
                    "a module for NCCL also sets NCCL's variables, and the later setting wins",
                    "set it after the last `module load`", ""});
    return;
  }
}

void check_module_overrides(const LintInput& input, Report& report) {
  if (input.script) return check_module_order(input, report);
  for (const auto& module : input.from_modules) {
    for (const auto& environment : input.environments) {
      const auto* setting = environment.find(module.name);
      if (setting == nullptr || setting->unset || !setting->value || !module.value ||
          setting->value == module.value)
        continue;
      report.of(environment.name);
      report.note(
          setting->span,
          {fmt::format("a module also sets {}={}", module.name, *module.value),
           fmt::format("the processes get {}: the profile takes precedence over modules", *setting->value),
           "", ""});
    }
  }
}

const Registered<Rule> module_overrides_rule{{
    .order = 330,
    .name = "module-overrides",
    .title = "a module that sets the same variable",
    .explain = "The module's setting and yours conflict; the order decides which one wins.",
    .source = "the module file",
    .check = check_module_overrides,
}};

void check_module_purge(const LintInput& input, Report& report) {
  if (!input.script) return;
  const bool cray = std::ranges::any_of(input.modules, [](const Module& one) {
    return one.name.starts_with("PrgEnv-") || one.name.starts_with("brics/") ||
           one.name.starts_with("craype");
  });
  if (!cray) return;
  for (const auto& command : input.script->commands) {
    const bool purge =
        command.words[0] == "module" && command.words.size() > 1 && command.words[1] == "purge";
    if (!purge) continue;
    report.warning(command.span, {"module purge on a Cray system",
                                  "it unloads the site's default modules, and with them TMPDIR, "
                                  "PROJECTDIR and the compiler wrappers",
                                  "module reset", ""});
  }
}

const Registered<Rule> module_purge_rule{{
    .order = 340,
    .name = "module-purge",
    .title = "module purge on a Cray system",
    .explain = "It unloads the modules that the site loads for everyone.",
    .source = "docs.isambard.ac.uk; HPE Cray PE",
    .check = check_module_purge,
}};

}  // namespace
}  // namespace nlaunch::lint

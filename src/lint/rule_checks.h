#pragma once
#include "lint/rule.h"

/// The checks that the table of rules names; each is in the file of its subject, rule_SUBJECT.cpp.
namespace nlaunch::lint {

/// Calls `look` for each setting of each environment, with the report set to it.
template <class Look>
void each_setting(const LintInput& input, Report& report, const Look& look) {
  for (const auto& environment : input.environments) {
    report.of(environment.name);
    for (const auto& setting : environment.settings) {
      if (report.full()) return;
      look(environment, setting);
    }
  }
}

/// The same for those of one variable with a known value.
template <class Look>
void each_value(const LintInput& input, Report& report, std::string_view name, const Look& look) {
  each_setting(input, report, [&](const Environment& environment, const Setting& setting) {
    if (setting.name == name && !setting.unset && setting.value) look(environment, setting, *setting.value);
  });
}

// rule_names.cpp
void check_unknown_variable(const LintInput& input, Report& report);
void check_release(const LintInput& input, Report& report);
void check_legacy_name(const LintInput& input, Report& report);
void check_not_exported(const LintInput& input, Report& report);
// rule_twice.cpp
void check_set_twice(const LintInput& input, Report& report);
// rule_values.cpp
void check_number(const LintInput& input, Report& report);
void check_choice(const LintInput& input, Report& report);
void check_range(const LintInput& input, Report& report);
void check_algorithms(const LintInput& input, Report& report);
void check_recorder_size(const LintInput& input, Report& report);
void check_noset_devices(const LintInput& input, Report& report);
// rule_interfaces.cpp
void check_interfaces(const LintInput& input, Report& report);
// rule_protocols.cpp
void check_forced_ll128(const LintInput& input, Report& report);
void check_forced_ll(const LintInput& input, Report& report);
void check_ll128_guard(const LintInput& input, Report& report);
// rule_slingshot.cpp
void check_alt_read(const LintInput& input, Report& report);
void check_gdrcopy(const LintInput& input, Report& report);
void check_mpich(const LintInput& input, Report& report);
// rule_network.cpp
void check_net_on_one_node(const LintInput& input, Report& report);
void check_net_plugin(const LintInput& input, Report& report);
void check_ib_disabled(const LintInput& input, Report& report);
void check_same_identity(const LintInput& input, Report& report);
// rule_torch.cpp
void check_blocking_wait(const LintInput& input, Report& report);
void check_recorder_path(const LintInput& input, Report& report);
// rule_groups.cpp
void check_cumem_differs(const LintInput& input, Report& report);
void check_release_differs(const LintInput& input, Report& report);
// rule_preload.cpp
void check_preload_everywhere(const LintInput& input, Report& report);
void check_preload_unneeded(const LintInput& input, Report& report);
// rule_containers.cpp
void check_container_environment(const LintInput& input, Report& report);
// rule_files.cpp
void check_debug_folder(const LintInput& input, Report& report);
void check_shared_cache(const LintInput& input, Report& report);
void check_nccl_conf(const LintInput& input, Report& report);
// rule_modules.cpp
void check_module_overrides(const LintInput& input, Report& report);
void check_module_purge(const LintInput& input, Report& report);
// rule_scripts.cpp
void check_unreadable(const LintInput& input, Report& report);
void check_line_ends(const LintInput& input, Report& report);
void check_exit_code_lost(const LintInput& input, Report& report);
void check_secret(const LintInput& input, Report& report);
// rule_slurm.cpp
void check_export_commas(const LintInput& input, Report& report);
void check_cpus_per_task(const LintInput& input, Report& report);
void check_usr1(const LintInput& input, Report& report);
void check_output_folder(const LintInput& input, Report& report);
void check_lost_directive(const LintInput& input, Report& report);

}  // namespace nlaunch::lint

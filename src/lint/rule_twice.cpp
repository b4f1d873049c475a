#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "lint/catalogue.h"
#include "lint/rule_checks.h"

namespace nlaunch::lint {
namespace {

/// The lines of the commands that may start a program, or read a file of settings.
std::vector<std::uint32_t> starts_in(const Script& script) {
  constexpr std::array<std::string_view, 13> kOfTheShell{"export", "declare", "typeset", "readonly", "local",
                                                         "unset",  "set",     "ulimit",  "cd",       "echo",
                                                         "mkdir",  "module",  "ml"};
  std::vector<std::uint32_t> lines;
  for (const auto& command : script.commands) {
    const bool starts =
        !command.words.empty() && std::ranges::find(kOfTheShell, command.name()) == kOfTheShell.end();
    if (starts) lines.push_back(command.span.line);
  }
  std::ranges::sort(lines);
  return lines;
}

}  // namespace

void check_set_twice(const LintInput& input, Report& report) {
  if (input.plan) return;  // there one layer stands above another, by design
  const auto starts = input.script ? starts_in(*input.script) : std::vector<std::uint32_t>();
  for (const auto& environment : input.environments) {
    report.of(environment.name);
    std::map<std::string_view, const Setting*> last;
    for (const auto& setting : environment.settings) {
      if (setting.one_command || report.full()) continue;
      const auto* before = std::exchange(last[setting.name], &setting);
      if (before == nullptr || before->span.file != setting.span.file) continue;
      const bool plain = before->sure && setting.sure && before->value && setting.value;
      if (!plain || *before->value == *setting.value || find_variables(setting.name).empty()) continue;
      // What is started in between has the first value.
      const auto next = std::ranges::lower_bound(starts, before->span.line);
      if (next != starts.end() && *next <= setting.span.line) continue;
      report.warning(
          before->span,
          {fmt::format("{}={} is set again in line {}, to {}", setting.name, *before->value,
                       setting.span.line, setting.value->empty() ? "nothing" : *setting.value),
           "nothing is started in between: no program ever sees the first value", "one of the two", ""});
    }
  }
}

}  // namespace nlaunch::lint

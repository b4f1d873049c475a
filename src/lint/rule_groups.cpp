#include <fmt/format.h>

#include <map>

#include "base/text.h"
#include "lint/rule_checks.h"

namespace nlaunch::lint {
namespace {

/// The environments of a group by something that they should have in common.
template <class Of>
std::map<std::string, std::vector<std::string>> sorted_by(const LintInput& input,
                                                          const std::vector<std::size_t>& members,
                                                          const Of& of) {
  std::map<std::string, std::vector<std::string>> by;
  for (const auto index : members) {
    const auto& environment = input.environments[index];
    if (const auto key = of(environment)) by[*key].push_back(environment.name);
  }
  return by;
}

std::string shown(const std::map<std::string, std::vector<std::string>>& by) {
  std::vector<std::string> parts;
  for (const auto& [value, names] : by)
    parts.push_back(fmt::format("{} in {}", value, text::join(names, ", ")));
  return text::join(parts, ", ");
}

}  // namespace

void check_cumem_differs(const LintInput& input, Report& report) {
  for (const auto& [group, members] : input.groups) {
    const Setting* place = nullptr;
    bool known = true;
    for (const auto index : members) {
      const auto* setting = input.environments[index].find("NCCL_CUMEM_ENABLE");
      if (setting == nullptr) continue;
      place = setting;
      known = known && setting->sure && (setting->unset || setting->value);
    }
    if (place == nullptr || !known) continue;
    const auto by = sorted_by(input, members, [](const Environment& environment) {
      return std::optional(environment.value("NCCL_CUMEM_ENABLE").value_or("unset"));
    });
    if (by.size() < 2) continue;
    report.error(place->span, {fmt::format("NCCL_CUMEM_ENABLE differs within {}: {}", group, shown(by)),
                               "the ranks of one communicator have to agree about how memory is shared, or "
                               "setting it up fails or hangs",
                               "one value in all of them, or none", ""});
  }
}

void check_release_differs(const LintInput& input, Report& report) {
  for (const auto& [group, members] : input.groups) {
    const auto by =
        sorted_by(input, members, [](const Environment& environment) -> std::optional<std::string> {
          const auto* release = environment.release("NCCL");
          return release == nullptr ? std::nullopt : std::optional(release->str());
        });
    if (by.size() < 2) continue;
    SourceSpan place;
    for (const auto index : members) {
      if (input.environments[index].preload_span) place = input.environments[index].preload_span;
    }
    report.error(place, {fmt::format("{} has several releases of NCCL: {}", group, shown(by)),
                         "NCCL refuses a communicator of two versions (\"Mismatched NCCL version detected\")",
                         "one release in all: preload the same library, or install the same wheel", ""});
  }
}

}  // namespace nlaunch::lint

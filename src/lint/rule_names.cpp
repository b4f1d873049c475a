#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "base/text.h"
#include "lint/catalogue.h"
#include "lint/rule_checks.h"

namespace nlaunch::lint {
namespace {

/// Who reads a variable by its name, of what the scene can see.
class Readers {
 public:
  explicit Readers(const LintInput& input) {
    for (const auto& reading : input.readings) {
      std::string_view rest = reading.text;
      while (!rest.empty()) {
        const auto length = std::min(rest.find_first_not_of(kOfNames), rest.size());
        if (length > 0) by_name_.try_emplace(rest.substr(0, length), &reading);
        rest.remove_prefix(std::min(length + 1, rest.size()));
      }
    }
  }
  [[nodiscard]] const Reading* find(std::string_view name) const {
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : found->second;
  }

 private:
  static constexpr std::string_view kOfNames =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_";
  std::unordered_map<std::string_view, const Reading*> by_name_;
};

std::string meant(std::string_view name) {
  const auto near = nearest_variable(name);
  return near ? fmt::format("{}, if that is meant (nlaunch env --doc {})", *near, *near) : std::string();
}

/// The release that an environment loads is newer than what the table was made from.
bool beyond_table(const Environment& environment, const Owner& owner) {
  const auto* release = environment.release(owner.name);
  const auto newest = parse_version(owner.newest);
  return release != nullptr && newest && *release > *newest;
}

void check_unknown(const Readers& readers, const Environment& environment, const Setting& setting,
                   Report& report) {
  const auto* mistake = find_mistake(setting.name);
  const auto* owner = owner_of_family(setting.name);
  if (mistake == nullptr && owner == nullptr) return;
  if (const auto* reader = readers.find(setting.name)) {
    if (!setting.exported) return;  // a variable of the script's own
    report.note(setting.span, {fmt::format("{} is read by {} alone", setting.name, reader->name),
                               "no release of NCCL, PyTorch, vLLM or libfabric reads this name; it does what "
                               "the script does with it",
                               "", ""});
    return;
  }
  if (mistake != nullptr) {
    report.error(setting.span, {fmt::format("{} does nothing", setting.name), mistake->why, mistake->instead,
                                mistake->source});
    return;
  }
  Report::Saying saying{fmt::format("{} is a name that no release of {} reads", setting.name, owner->name),
                        "nobody complains about an unknown name: the setting is without effect",
                        meant(setting.name),
                        fmt::format("every name up to {} {} is in the catalogue: nlaunch env --list",
                                    owner->name, owner->newest)};
  if (beyond_table(environment, *owner)) {
    saying.why = fmt::format("this nlaunch knows {} up to {}, and {} is loaded", owner->name, owner->newest,
                             environment.release(owner->name)->str());
    report.warning(setting.span, std::move(saying));
  } else {
    report.error(setting.span, std::move(saying));
  }
}

}  // namespace

void check_unknown_variable(const LintInput& input, Report& report) {
  const Readers readers(input);
  each_setting(input, report, [&](const Environment& environment, const Setting& setting) {
    if (!setting.unset && find_variables(setting.name).empty())
      check_unknown(readers, environment, setting, report);
  });
}

void check_release(const LintInput& input, Report& report) {
  each_setting(input, report, [&](const Environment& environment, const Setting& setting) {
    const auto all = find_variables(setting.name);
    if (setting.unset || all.empty()) return;
    const bool read = std::ranges::any_of(all, [&](const Variable* one) {
      const auto* release = environment.release(one->owner);
      return release == nullptr ? !one->last.has_value() : reads(*release, *one);
    });
    if (read) return;
    const auto& first = *all.front();
    const auto* release = environment.release(first.owner);
    const auto source = fmt::format("{}: {}", first.owner, first.source);
    if (release != nullptr && first.first && *release < *first.first) {
      report.error(setting.span,
                   {fmt::format("{} {} does not read {} yet", first.owner, release->str(), setting.name),
                    fmt::format("{} reads it since {}; before, nobody does", first.owner, first.first->str()),
                    fmt::format("{} {} or newer, or leave it out", first.owner, first.first->str()), source});
    } else if (first.last) {
      report.warning(setting.span,
                     {fmt::format("{} is read no longer", setting.name),
                      fmt::format("{} {} was the last release that did", first.owner, first.last->str()),
                      first.instead.empty() ? "leave it out" : first.instead, source});
    }
  });
}

void check_legacy_name(const LintInput& input, Report& report) {
  each_setting(input, report, [&](const Environment& environment, const Setting& setting) {
    const auto all = find_variables(setting.name);
    if (setting.unset || all.empty() || all.front()->instead.empty()) return;
    const auto& variable = *all.front();
    const auto* release = environment.release(variable.owner);
    if (variable.last || (release != nullptr && !reads(*release, variable))) return;  // said by another rule
    const auto source = fmt::format("{}: {}", variable.owner, variable.source);
    if (const auto* now = environment.find(variable.instead); now != nullptr && !now->unset) {
      // Both names set the same: for a range of releases that is how it is done.
      if (!now->value || !setting.value || *now->value == *setting.value) return;
      report.warning(setting.span, {fmt::format("{}={} beside {}={}", setting.name, *setting.value,
                                                variable.instead, *now->value),
                                    "two names of one setting: which of them counts depends on the release",
                                    "one value for both", source});
      return;
    }
    report.warning(
        setting.span,
        {fmt::format("{} is an old name", setting.name), fmt::format("{} is its name now", variable.instead),
         fmt::format("{} (both, where older releases have to read it)", variable.instead), source});
  });
}

void check_not_exported(const LintInput& input, Report& report) {
  const Readers readers(input);
  each_setting(input, report, [&](const Environment&, const Setting& setting) {
    if (setting.exported || setting.unset) return;
    const auto* owner = owner_of_family(setting.name);
    if (owner == nullptr || readers.find(setting.name) != nullptr) return;
    report.warning(setting.span,
                   {fmt::format("{} is not exported", setting.name),
                    "it stays a variable of this shell, and no program that the shell starts sees it",
                    fmt::format("export {}=…", setting.name), ""});
  });
}

}  // namespace nlaunch::lint

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <unordered_map>
#include <utility>

#include "base/registry.h"
#include "base/text.h"
#include "lint/catalogue.h"
#include "lint/rule.h"

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

void check_unknown_variable(const LintInput& input, Report& report) {
  const Readers readers(input);
  each_setting(input, report, [&](const Environment& environment, const Setting& setting) {
    if (!setting.unset && find_variables(setting.name).empty())
      check_unknown(readers, environment, setting, report);
  });
}

const Registered<Rule> unknown_variable_rule{{
    .order = 10,
    .name = "unknown-variable",
    .title = "a name that no release of its owner reads",
    .explain = "NCCL, libfabric and PyTorch read the names that they know and say nothing about others: a "
               "mistyped or invented name is a setting that was never made. nlaunch knows every name of "
               "these families by release (nlaunch env --list). A name that the script itself reads, or "
               "hands on under another name, is told as that.",
    .source = "the catalogue of variables: nlaunch env --list",
    .check = check_unknown_variable,
}};

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

const Registered<Rule> not_in_release_rule{{
    .order = 20,
    .name = "not-in-release",
    .title = "a name that the release which will be loaded does not read yet, or no longer",
    .explain = "Variables come and go with releases. The release is the one that the role will load (its "
               "preload, its wheel), a module's, or the one named with --release.",
    .source = "the catalogue of variables: nlaunch env --doc NAME",
    .check = check_release,
}};

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

const Registered<Rule> legacy_name_rule{{
    .order = 30,
    .name = "legacy-name",
    .title = "an old name that is still read",
    .explain = "The old name still works, often with a warning in the log. Where both are set, and not to "
               "the same, which one counts depends on the release.",
    .source = "the catalogue of variables: nlaunch env --doc NAME",
    .check = check_legacy_name,
}};

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

const Registered<Rule> not_exported_rule{{
    .order = 40,
    .name = "not-exported",
    .title = "a setting that stays within the shell",
    .explain = "NAME=value on a line of its own sets a variable of the shell. Programs see it only where it "
               "is exported, or was in the environment before.",
    .source = "bash(1), ENVIRONMENT",
    .check = check_not_exported,
}};

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

const Registered<Rule> set_twice_rule{{
    .order = 50,
    .name = "set-twice",
    .title = "a variable that is set to two values, one behind the other",
    .explain = "The later one counts, and nothing was started in between. Most likely one of them was to be "
               "taken out.",
    .source = "bash(1), ENVIRONMENT",
    .check = check_set_twice,
}};

}  // namespace
}  // namespace nlaunch::lint

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/registry.h"
#include "base/text.h"
#include "lint/catalogue.h"
#include "lint/readers.h"
#include "lint/rule.h"

/// Names of variables that nothing reads, or that a release does not know.
namespace nlaunch::lint {
namespace {

std::string meant(std::string_view name) {
  const auto near = nearest_variable(name);
  return near ? fmt::format("{}, if that is what you meant (nlaunch env --doc {})", *near, *near)
              : std::string();
}

/// True if the release that an environment loads is newer than the table.
bool beyond_table(const Environment& environment, const Owner& owner) {
  const auto* release = environment.release(owner.name);
  const auto newest = parse_version(owner.newest);
  return release != nullptr && newest && *release > *newest;
}

/// True if one letter of a name is wrong, missing or too much.
bool is_off_by_one(std::string_view name, std::string_view other) {
  if (name.size() > other.size()) std::swap(name, other);
  if (name == other || other.size() - name.size() > 1) return false;
  const auto at = static_cast<std::size_t>(std::ranges::mismatch(name, other).in1 - name.begin());
  return name.substr(std::min(name.size(), at + (name.size() == other.size() ? 1 : 0))) ==
         other.substr(at + 1);
}

/// True if a line of the script uses a variable for more than printing it.
bool is_used_by(const std::string& script, const std::string& name) {
  const RE2 uses(fmt::format(R"re(\$\{{?{}\b)re", name));
  return std::ranges::any_of(text::split(script, '\n'), [&](const std::string& line) {
    re2::StringPiece match;
    if (!uses.Match(line, 0, line.size(), RE2::UNANCHORED, &match, 1)) return false;
    const auto before =
        std::string_view(line).substr(0, static_cast<std::size_t>(match.data() - line.data()));
    const auto command = before.substr(before.find_last_of(";&|") + 1);
    return command.find("echo ") == std::string_view::npos &&
           command.find("printf ") == std::string_view::npos;
  });
}

/// "NNCL_DEBUG": the first part of a name is almost that of NCCL, and with NCCL's it is a variable.
std::optional<std::string> in_near_family(const std::string& name) {
  const auto underscore = name.find('_');
  if (underscore == std::string::npos) return std::nullopt;
  const auto begin = name.substr(0, underscore);
  for (const std::string family : {"NCCL", "VLLM", "GLOO"}) {
    auto sorted = begin;
    auto other = family;
    std::ranges::sort(sorted);
    std::ranges::sort(other);
    const bool is_near = is_off_by_one(begin, family) || (begin != family && sorted == other);
    if (is_near && !find_variables(family + name.substr(underscore)).empty())
      return family + name.substr(underscore);
  }
  return std::nullopt;
}

/// Variables of libraries beside NCCL, whose names differ from its own in a letter: Ascend's collectives.
bool is_of_another_library(std::string_view name) {
  return name.starts_with("HCCL_") || name.starts_with("ASCEND_");
}

/// Variables of other owners that launch scripts set often, and mistype.
constexpr auto kOften = std::to_array<std::string_view>({
    "PYTHONUNBUFFERED",
    "PYTHONFAULTHANDLER",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONNOUSERSITE",
    "PYTHONHASHSEED",
    "TOKENIZERS_PARALLELISM",
    "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_MAX_CONNECTIONS",
    "CUDA_LAUNCH_BLOCKING",
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "PYTORCH_CUDA_ALLOC_CONF",
    "LD_LIBRARY_PATH",
    "HF_HUB_OFFLINE",
    "HF_DATASETS_OFFLINE",
    "HF_DATASETS_CACHE",
    "HF_HUB_ENABLE_HF_TRANSFER",
    "WANDB_PROJECT",
    "WANDB_MODE",
    "RAY_DEDUP_LOGS",
    "RAY_DISABLE_DOCKER_CPU_WARNING",
});

/// The one of these from which a name differs in a letter; empty if there is none.
std::string often_meant(const std::string& name) {
  const auto* near =
      std::ranges::find_if(kOften, [&](std::string_view one) { return is_off_by_one(name, one); });
  return near == kOften.end() ? std::string() : std::string(*near);
}

/// vLLM's table is not complete: only a name that is almost one of its own is told.
void check_near_name(const Setting& setting, Report& report) {
  if (is_of_another_library(setting.name)) return;
  if (const auto near = in_near_family(setting.name);
      near && setting.exported && setting.span.file && !is_used_by(setting.span.file->text, setting.name))
    return report.warning(setting.span,
                          {fmt::format("nothing reads {}, but {} is a variable", setting.name, *near),
                           "unknown variables are silently ignored: the setting has no effect",
                           fmt::format("{} (nlaunch env --doc {})", *near, *near), ""});
  if (const auto often = often_meant(setting.name); !often.empty() && setting.exported && setting.span.file &&
                                                    find_variables(setting.name).empty() &&
                                                    !is_used_by(setting.span.file->text, setting.name))
    return report.warning(setting.span,
                          {fmt::format("nothing reads {}, but {} is a variable", setting.name, often),
                           "unknown variables are silently ignored: the setting has no effect",
                           fmt::format("{}, if that is what you meant", often), ""});
  constexpr std::string_view kPrefix = "VLLM_";
  if (!setting.exported || !setting.name.starts_with(kPrefix) || !setting.span.file ||
      is_used_by(setting.span.file->text, setting.name))
    return;
  for (const auto& known : variables()) {
    if (!known.name.starts_with(kPrefix) || !is_off_by_one(setting.name, known.name)) continue;
    // VLLM_HOST_IF=hsn0 is not a slip of the pen: the name that vLLM reads wants something else.
    const bool wants_address = known.name.ends_with("_IP") && !setting.name.ends_with("_IP");
    return report.warning(
        setting.span,
        {fmt::format("{} is not a variable of vLLM, but {} is", setting.name, known.name),
         "unknown variables are silently ignored: the setting has no effect",
         wants_address
             ? fmt::format("{} takes the address of the node it is set on, not the name of an interface: set "
                           "it in a command that runs on each node (nlaunch env --doc {})",
                           known.name, known.name)
             : fmt::format("{} (nlaunch env --doc {})", known.name, known.name),
         std::string(known.source)});
  }
}

void check_unknown(const Readers& readers, const Environment& environment, const Setting& setting,
                   Report& report) {
  const auto* mistake = find_mistake(setting.name);
  const auto* owner = owner_of_family(setting.name);
  if (mistake == nullptr && owner == nullptr) return check_near_name(setting, report);
  if (const auto* reader = readers.find(setting.name)) {
    if (!setting.exported) return;  // a variable of the script's own
    report.note(setting.span, {fmt::format("{} is read only by {}", setting.name, reader->name),
                               "no release of NCCL, PyTorch, vLLM or libfabric reads this variable; its only "
                               "effect is what the script does with it",
                               "", ""});
    return;
  }
  if (mistake != nullptr) {
    report.error(setting.span, {fmt::format("{} has no effect", setting.name), std::string(mistake->why),
                                std::string(mistake->instead), std::string(mistake->source)});
    return;
  }
  Report::Saying saying{fmt::format("{} is not read by any release of {}", setting.name, owner->name),
                        "unknown variables are silently ignored: the setting has no effect",
                        meant(setting.name),
                        fmt::format("the catalogue covers every variable up to {} {}: nlaunch env --list",
                                    owner->name, owner->newest)};
  if (beyond_table(environment, *owner)) {
    saying.why = fmt::format("this nlaunch knows {} up to {}, but {} is loaded", owner->name, owner->newest,
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
    .title = "a variable that no release of its owner reads",
    .explain = "NCCL, libfabric and PyTorch read the variables they know and silently ignore others: a "
               "mistyped or invented variable sets nothing. nlaunch knows every variable of these "
               "families by release (nlaunch env --list). A variable that the script itself reads, or "
               "passes on under another name, is reported as such.",
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
      report.error(
          setting.span,
          {fmt::format("{} {} does not read {} yet", first.owner, release->str(), setting.name),
           fmt::format("{} reads it since {}; earlier releases ignore it", first.owner, first.first->str()),
           fmt::format("use {} {} or newer, or leave it out", first.owner, first.first->str()), source});
    } else if (first.last) {
      report.warning(setting.span,
                     {fmt::format("{} is no longer read", setting.name),
                      fmt::format("{} {} was the last release that knew it", first.owner, first.last->str()),
                      std::string(first.instead.empty() ? "leave it out" : first.instead), source});
    }
  });
}

const Registered<Rule> not_in_release_rule{{
    .order = 20,
    .name = "not-in-release",
    .title = "a variable that the release that will be loaded does not read yet, or no longer reads",
    .explain = "Variables come and go with releases. The release is the one that the role will load (from "
               "its preload or wheel), the one from a module, or the one given with --release.",
    .source = "the catalogue of variables: nlaunch env --doc NAME",
    .check = check_release,
}};

void check_legacy_name(const LintInput& input, Report& report) {
  each_setting(input, report, [&](const Environment& environment, const Setting& setting) {
    const auto all = find_variables(setting.name);
    if (setting.unset || all.empty() || all.front()->instead.empty()) return;
    const auto& variable = *all.front();
    const auto* release = environment.release(variable.owner);
    if (variable.last || (release != nullptr && !reads(*release, variable)))
      return;  // reported by another rule
    const auto source = fmt::format("{}: {}", variable.owner, variable.source);
    if (const auto* now = environment.find(variable.instead); now != nullptr && !now->unset) {
      // Both names have the same value, which is how to support a range of releases.
      if (!now->value || !setting.value || *now->value == *setting.value) return;
      report.warning(setting.span,
                     {fmt::format("{}={} conflicts with {}={}", setting.name, *setting.value,
                                  variable.instead, *now->value),
                      "both name the same setting; which one takes effect depends on the release",
                      "use the same value for both", source});
      return;
    }
    report.warning(
        setting.span,
        {fmt::format("{} is an old name", setting.name), fmt::format("it is now called {}", variable.instead),
         fmt::format("{} (set both if older releases must read it)", variable.instead), source});
  });
}

const Registered<Rule> legacy_name_rule{{
    .order = 30,
    .name = "legacy-name",
    .title = "an old name that is still read",
    .explain = "The old name still works, often with a warning in the log. If both are set to different "
               "values, the one that takes effect depends on the release.",
    .source = "the catalogue of variables: nlaunch env --doc NAME",
    .check = check_legacy_name,
}};

}  // namespace
}  // namespace nlaunch::lint

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/registry.h"
#include "base/secrets.h"
#include "base/text.h"
#include "lint/catalogue.h"
#include "lint/programs.h"
#include "lint/rule.h"
#include "lint/script_text.h"
#include "shell/words.h"

/// Names of variables: those that nothing reads, that nothing sets, or that are set twice.
namespace nlaunch::lint {
namespace {

/// Finds what reads a variable by name, among the texts in the input.
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

/// vLLM's table is not complete: only a name that is almost one of its own is told.
void check_near_name(const Setting& setting, Report& report) {
  if (is_of_another_library(setting.name)) return;
  if (const auto near = in_near_family(setting.name);
      near && setting.exported && setting.span.file && !is_used_by(setting.span.file->text, setting.name))
    return report.warning(setting.span,
                          {fmt::format("nothing reads {}, but {} is a variable", setting.name, *near),
                           "unknown variables are silently ignored: the setting has no effect",
                           fmt::format("{} (nlaunch env --doc {})", *near, *near), ""});
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

/// What PyTorch's env:// rendezvous reads.
bool is_of_rendezvous(std::string_view name) {
  return std::ranges::any_of(std::array{"MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK", "LOCAL_RANK"},
                             [&](std::string_view one) { return one == name; });
}

/// A launcher, or Ray, sets these for its ranks.
bool makes_ranks_itself(const LintInput& input) {
  return input.script && std::ranges::any_of(input.script->programs, [](const Program& program) {
           return launcher_of(program) || shell::program_name(program.words[0]) == "ray";
         });
}

/// What programs read and a shell does not: settings of CUDA, PyTorch, vLLM and Hugging Face.
bool is_for_programs(std::string_view name) {
  static const RE2 kNames(
      R"re((?:CUDA|HIP|ROCR|ASCEND_RT)_VISIBLE_DEVICES|(?:VLLM|SGLANG|PYTORCH|TORCH|WANDB|TRANSFORMERS|TOKENIZERS)_[A-Z0-9_]+|HF_(?:HOME|TOKEN|ENDPOINT|HUB_[A-Z_]+|DATASETS_[A-Z_]+)|OMP_NUM_THREADS|PYTHONPATH|LD_LIBRARY_PATH|LD_PRELOAD|(?:OPENAI|ANTHROPIC)_API_KEY)re");
  return RE2::FullMatch(name, kNames);
}

/// The script itself uses it: `(( SECONDS > VLLM_TIMEOUT ))`.
bool is_used_by_script(const LintInput& input, const std::string& name) {
  if (!input.script) return false;
  const RE2 uses(R"re(\b)re" + name + R"re(\b(?:[^=]|$))re");
  return RE2::PartialMatch(without_comments(SourceLines(input.script->file)), uses);
}

void check_not_exported(const LintInput& input, Report& report) {
  const Readers readers(input);
  each_setting(input, report, [&](const Environment&, const Setting& setting) {
    if (setting.exported || setting.unset) return;
    const bool matters = owner_of_family(setting.name) != nullptr ||
                         (is_for_programs(setting.name) && !is_used_by_script(input, setting.name)) ||
                         (is_of_rendezvous(setting.name) && !makes_ranks_itself(input));
    if (!matters || readers.find(setting.name) != nullptr) return;
    report.warning(setting.span, {fmt::format("{} is not exported", setting.name),
                                  "it remains a shell variable; programs started by the shell do not see it",
                                  fmt::format("export {}=…", setting.name), ""});
  });
}

const Registered<Rule> not_exported_rule{{
    .order = 40,
    .name = "not-exported",
    .title = "a setting that never leaves the shell",
    .explain = "NAME=value on its own line sets a shell variable. Programs see it only if it is exported or "
               "was already in the environment.",
    .source = "bash(1), ENVIRONMENT",
    .check = check_not_exported,
}};

/// `export HOSTS=(a b)`.
void check_array_export(const LintInput& input, Report& report) {
  if (!input.script || !input.script->file) return;
  static const RE2 kExport(R"(^\s*export\s+([A-Za-z_]\w*)=\()");
  static const RE2 kLater(R"(^\s*export\s+([A-Za-z_]\w*)\s*)");
  const auto lines = text::split(input.script->file->text, '\n');
  std::string name;
  for (std::uint32_t line = 1; line <= lines.size(); ++line) {
    const bool at_once = RE2::PartialMatch(lines[line - 1], kExport, &name);
    if (!at_once && !(RE2::FullMatch(lines[line - 1], kLater, &name) &&
                      RE2::PartialMatch(input.script->file->text, RE2("(?m)^\\s*" + name + "=\\("))))
      continue;
    // The script's own list, or joined before it is used.
    const auto& text = input.script->file->text;
    if (text.contains("${" + name + "[") || text.contains(name + "=\"")) continue;
    const auto at = static_cast<std::uint32_t>(lines[line - 1].find(name) + 1);
    report.note({input.script->file, line, at, static_cast<std::uint32_t>(name.size())},
                {fmt::format("{} is an array: bash does not export it", name),
                 "programs and inner shells see no variable of this name",
                 fmt::format("join it: export {}=\"${{LIST[*]}}\"", name), ""});
  }
}

const Registered<Rule> array_export_rule{{
    .order = 41,
    .name = "array-export",
    .title = "an array that is exported",
    .explain = "An environment has only strings. bash marks an array as exported and passes nothing on.",
    .source = "bash(1), BUGS: Array variables may not (yet) be exported",
    .check = check_array_export,
}};

/// True for a command that may start a program or read a file with settings.
bool may_start(const ScriptCommand& command) {
  constexpr std::array<std::string_view, 19> kOfTheShell{
      "export", "declare", "typeset", "readonly", "local", "unset", "set",  "ulimit", "cd",  "echo",
      "printf", "mkdir",   "module",  "ml",       "[",     "[[",    "test", "trap",   "true"};
  const auto& name = command.words[0];
  const auto equals = name.find('=');
  const bool assigns = equals != std::string::npos && equals > 0 && name.find('/') > equals;
  return !assigns && std::ranges::find(kOfTheShell, name) == kOfTheShell.end();
}

struct Given {
  std::string value;
  SourceSpan span;
};

/// NAME=value, also after `export`: a word of a command that sets a variable of the catalogue.
std::vector<std::pair<std::string, Given>> given_by(const ScriptCommand& command) {
  std::vector<std::pair<std::string, Given>> given;
  const bool exports = command.words[0] == "export" || command.words[0] == "declare";
  for (std::size_t i = exports ? 1 : 0; i < (exports ? command.words.size() : 1); ++i) {
    const auto equals = command.words[i].find('=');
    if (equals == std::string::npos) continue;
    const auto name = command.words[i].substr(0, equals);
    if (find_variables(name).empty()) continue;
    given.emplace_back(name, Given{command.words[i].substr(equals + 1), command.span});
  }
  return given;
}

/// The later line is nested deeper, after a test, or builds its value from the earlier one: it does not
/// replace it.
bool builds_on(const SourceSpan& later, const SourceSpan& earlier, const std::string& name) {
  const auto line = later.source_line();
  const auto depth = [](const SourceSpan& span) { return span.source_line().find_first_not_of(" \t"); };
  return depth(later) > depth(earlier) || line.find("$" + name) != std::string::npos ||
         line.find("${" + name) != std::string::npos || line.find("&&") != std::string::npos ||
         line.find("||") != std::string::npos;
}

/// The place of a name in its line.
SourceSpan place_of(const std::string& name, SourceSpan span) {
  const auto at = span.source_line().find(name + "=");
  if (at == std::string::npos) return span;
  span.column = static_cast<std::uint32_t>(at) + 1;
  span.length = static_cast<std::uint32_t>(name.size());
  return span;
}

void tell_set_twice(const std::string& name, const Given& before, const Given& now, Report& report) {
  report.warning(
      place_of(name, before.span),
      {fmt::format("{}={} is set again on line {}, to {}", name, before.value, now.span.line,
                   now.value.empty() ? "nothing" : now.value),
       "nothing starts in between, so no program ever sees the first value", "remove one of the two", ""});
}

/// `if [ $NODES -eq 1 ]; then export NAME=VALUE; fi` behind it: with more nodes, the first value counts.
bool is_under_a_condition(const SourceSpan& now, const SourceSpan& before) {
  const auto indentation = [](const SourceSpan& span) { return span.source_line().find_first_not_of(" \t"); };
  const auto line = now.source_line();
  return indentation(now) > indentation(before) || line.contains("if ") || line.contains("&&") ||
         line.contains("||");
}

void check_set_twice_in_script(const Script& script, Report& report) {
  std::map<int, std::map<std::string, Given>> shells;  // what each has set since it last started something
  for (const auto& command : script.commands) {
    if (may_start(command)) shells.clear();
    auto& last = shells[command.shell];
    if (command.words[0] == "unset") {
      for (const auto& name : command.words) last.erase(name);
    }
    for (auto& [name, now] : given_by(command)) {
      if (now.value.empty() && now.span.source_line().find('$') != std::string::npos) {
        last.erase(name);  // known only when it runs
        continue;
      }
      const auto before = last.find(name);
      if (before != last.end() && before->second.span.file == now.span.file &&
          before->second.span.line < now.span.line && before->second.value != now.value &&
          !builds_on(now.span, before->second.span, name) &&
          !is_under_a_condition(now.span, before->second.span) && !report.full())
        tell_set_twice(name, before->second, now, report);
      last.insert_or_assign(name, std::move(now));
    }
  }
}

void check_set_twice(const LintInput& input, Report& report) {
  if (input.plan) return;  // layers override each other there, by design
  if (input.script) return check_set_twice_in_script(*input.script, report);
  for (const auto& environment : input.environments) {
    report.of(environment.name);
    std::map<std::string_view, const Setting*> last;
    for (const auto& setting : environment.settings) {
      if (setting.one_command || report.full()) continue;
      const auto* before = std::exchange(last[setting.name], &setting);
      if (before == nullptr || before->span.file != setting.span.file) continue;
      if (!before->sure || !setting.sure || !before->value || !setting.value ||
          *before->value == *setting.value || find_variables(setting.name).empty())
        continue;
      tell_set_twice(setting.name, {*before->value, before->span}, {*setting.value, setting.span}, report);
    }
  }
}

const Registered<Rule> set_twice_rule{{
    .order = 50,
    .name = "set-twice",
    .title = "a variable that is set twice in a row",
    .explain = "The later value takes effect, and nothing starts in between. Most likely one of them should "
               "have been removed.",
    .source = "bash(1), ENVIRONMENT",
    .check = check_set_twice,
}};

/// True if a command of the script got it, or a line of the script sets it.
bool is_given(const LintInput& input, const std::string& name) {
  for (const auto& environment : input.environments) {
    if (std::ranges::any_of(environment.settings,
                            [&](const Setting& one) { return one.name == name && !one.unset; }))
      return true;
  }
  return false;
}

void check_never_set(const LintInput& input, Report& report) {
  if (!input.script) return;
  std::set<std::string> told;
  for (const auto& command : input.script->commands) {
    if (command.words[0] != "export" || report.full()) continue;
    for (std::size_t i = 1; i < command.words.size(); ++i) {
      const auto& name = command.words[i];
      // Only names of the stack: what else a login environment has is unknown here.
      if (find_variables(name).empty() || is_given(input, name) || input.began_with.contains(name) ||
          looks_like_secret(name) || !told.insert(name).second)
        continue;
      report.warning(
          command.span,
          {fmt::format("{} is exported, but nothing sets it", name),
           "export passes on an existing value and does not create one: programs do not see the variable "
           "unless the job inherits it from the submitting shell",
           fmt::format("export {}=VALUE", name), ""});
    }
  }
}

const Registered<Rule> never_set_rule{{
    .order = 52,
    .name = "never-set",
    .title = "an export of a variable that nothing sets",
    .explain =
        "export NAME marks a variable to be passed to later programs. If it has no value, nothing is passed "
        "on, and bash does not warn.",
    .source = "bash(1), export",
    .check = check_never_set,
}};

/// `args="$@"`, and `args=` again before anything uses it.
void check_arguments_lost(const LintInput& input, Report& report) {
  if (!input.script) return;
  const SourceLines lines(input.script->file);
  static const RE2 kKeeps(R"re(^([A-Za-z_]\w*)=["']?\$(?:[@*]|\{[@*]\})["']?\s*$)re");
  static const RE2 kReads(R"re(\$(?:[@*#1-9]|\{[@*#1-9])|\bshift\b|\bgetopts?\b)re");
  static const RE2 kMayRead(R"re(^\s*(?:source|eval|\.)\s)re");
  static const RE2 kPrints(R"re(^\s*(?:echo|printf)\s[^;&|<>`(]*$)re");
  static const RE2 kOpens(R"re(^\s*(?:if|case|while|until|\{|[A-Za-z_]\w*\s*\(\)|function)(?:\s|$))re");
  static const RE2 kCloses(R"re(^\s*(?:fi|esac|\})(?:\s|;|$))re");
  std::string name;
  SourceSpan kept;
  SourceSpan lost;
  int blocks = 0;  // in which the line may not run
  for (const auto number : lines_of_commands(lines)) {
    const auto command = lines.command(number);
    if (!kept.file && RE2::FullMatch(lines.line(number), kKeeps, &name)) {
      kept = lines.whole(number);
      continue;
    }
    if (RE2::PartialMatch(command, kReads)) return;  // the arguments have another use
    if (!kept.file || lost.file) continue;
    if (RE2::PartialMatch(command, kOpens)) ++blocks;
    if (RE2::PartialMatch(command, kCloses)) --blocks;
    if (RE2::PartialMatch(command, kMayRead)) return;
    const bool names = static_cast<bool>(lines.find(name, number, lines.end_of_command(number)));
    if (!names || RE2::FullMatch(command, kPrints)) continue;
    const bool uses =
        command.find("$" + name) != std::string::npos || command.find("${" + name) != std::string::npos;
    if (uses || blocks > 0 || !text::trim(command).starts_with(name + "=")) return;
    lost = lines.whole(number);
  }
  if (!lost.file) return;
  report.warning(kept,
                 {fmt::format("{} has the script's arguments, but line {} overwrites it", name, lost.line),
                  "nothing uses them in between: what is passed to the script has no effect",
                  fmt::format("{}=\"… ${}\" on line {}, or leave this line out", name, name, lost.line), ""});
}

const Registered<Rule> arguments_lost_rule{{
    .order = 56,
    .name = "arguments-lost",
    .title = "arguments of the script that are overwritten",
    .explain = "The script puts its arguments into a variable, and sets the variable again before anything "
               "reads it.",
    .source = "bash(1), Special Parameters",
    .check = check_arguments_lost,
}};

void check_set_to_itself(const LintInput& input, Report& report) {
  if (!input.script) return;
  std::set<std::string> told;
  for (const auto& command : input.script->commands) {
    const bool exports = command.words[0] == "export";
    for (std::size_t i = exports ? 1 : 0; i < (exports ? command.words.size() : 1) && !report.full(); ++i) {
      const auto& word = command.words[i];
      if (!word.ends_with('=')) continue;
      const auto name = word.substr(0, word.size() - 1);
      const auto line = command.span.source_line();
      const auto plain = "$" + name;
      const auto braced = "${" + name + "}";
      const bool itself = std::ranges::any_of(
          std::array{plain, braced, '"' + plain + '"', '"' + braced + '"'}, [&](const std::string& form) {
            const auto at = line.find(word + form);
            if (at == std::string::npos) return false;
            const auto end = at + word.size() + form.size();
            return end == line.size() || std::string_view(" \t;&").find(line[end]) != std::string_view::npos;
          });
      if (!itself || input.began_with.contains(name) || !told.insert(name).second) continue;
      report.note(
          command.span,
          {fmt::format("{} is set to itself, but nothing has set it", name),
           "unless the job inherits it from the submitting shell, programs now see an empty value instead "
           "of an unset variable",
           fmt::format("leave it out, or use ${{{}:?}} to stop the script if it is missing", name), ""});
    }
  }
}

const Registered<Rule> set_to_itself_rule{{
    .order = 54,
    .name = "set-to-itself",
    .title = "a variable that is set to itself",
    .explain =
        "export NAME=$NAME changes nothing if the variable is set. If it is unset, this makes it empty, "
        "which many programs treat as a value.",
    .source = "bash(1), ENVIRONMENT",
    .check = check_set_to_itself,
}};

/// True for variables that bash itself reads.
bool is_read_by_bash(std::string_view name) {
  constexpr std::array<std::string_view, 24> kNames{"IFS",        "PATH",
                                                    "PS1",        "PS4",
                                                    "TIMEFORMAT", "SECONDS",
                                                    "RANDOM",     "OPTIND",
                                                    "HOME",       "CDPATH",
                                                    "LANG",       "LANGUAGE",
                                                    "TMOUT",      "REPLY",
                                                    "COLUMNS",    "LINES",
                                                    "BASH_ENV",   "TZ",
                                                    "HISTFILE",   "GLOBIGNORE",
                                                    "OPTERR",     "PROMPT_COMMAND",
                                                    "SHELLOPTS",  "POSIXLY_CORRECT"};
  return name.starts_with('_') || name.starts_with("LC_") || std::ranges::find(kNames, name) != kNames.end();
}

/// True if something may read variables by names that the text does not show: eval, or a sourced file that is
/// not here.
bool may_read_any(const LintInput& input) {
  constexpr std::array<std::string_view, 11> kSigns{"eval ",      "${!",      "envsubst",  "declare -p",
                                                    "declare -n", "local -n", "allexport", "set -a",
                                                    "compgen",    "export $", "typeset -p"};
  for (const auto& file : input.files)
    for (const auto sign : kSigns)
      if (file->text.find(sign) != std::string::npos) return true;
  return std::ranges::any_of(input.script->commands, [&](const ScriptCommand& command) {
    const auto& words = command.words;
    if ((words[0] != "source" && words[0] != ".") || words.size() < 2) return false;
    const auto name = words[1].substr(words[1].rfind('/') + 1);
    // These set up an environment and read nothing of the script's own.
    const bool known = name.ends_with("activate") || name.ends_with("rc") || name.ends_with("profile") ||
                       name == "conda.sh" || name == "mamba.sh" || name == "bash" || name == "modules.sh";
    return !known && std::ranges::none_of(input.files, [&](const auto& file) {
      return !file->text.empty() && (file->name == name || file->name.ends_with("/" + name));
    });
  });
}

/// True if a line contains a name in a way that may read it.
bool line_reads(std::string_view line, std::string_view name) {
  constexpr std::array<std::string_view, 10> kByName{"((",      "$[",      "let ",  "export", "readonly",
                                                     "declare", "typeset", "unset", "read ",  " -v "};
  const bool by_name = std::ranges::any_of(name, [](char c) { return c >= 'A' && c <= 'Z'; }) ||
                       std::ranges::any_of(kByName, [&](std::string_view word) {
                         return line.find(word) != std::string_view::npos;
                       });
  const auto is_of_name = [](char c) {
    return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  for (auto at = line.find(name); at != std::string_view::npos; at = line.find(name, at + 1)) {
    const auto end = at + name.size();
    const auto behind = line.substr(std::min(end, line.size()));
    if ((at > 0 && is_of_name(line[at - 1])) || (!behind.empty() && is_of_name(behind[0]))) continue;
    const bool expanded = at > 0 && (line[at - 1] == '$' || line[at - 1] == '{' || line[at - 1] == '#');
    const bool assigns = behind.starts_with('=') || behind.starts_with("+=");
    if (expanded || (by_name && !assigns)) return true;
  }
  return false;
}

/// True for `NAME=value` or `NAME+=value` and nothing else, as opposed to `NAME=value program`.
bool assigns_alone(std::string_view text) {
  static const RE2 kAlone(
      R"re(\s*[A-Za-z_]\w*\+?=("[^"]*"|'[^']*'|\$\([^()]*\)|[^\s"'`$();&|]|\$\w+|\$\{[^{}]*\})*\s*;?\s*(\s#.*)?)re");
  return RE2::FullMatch(text, kAlone);
}

/// True if the script reads a variable, other than to extend its own value.
bool is_read(const LintInput& input, std::string_view name) {
  return std::ranges::any_of(input.files, [&](const auto& file) {
    return std::ranges::any_of(text::split(file->text, '\n'), [&](const std::string& line) {
      const auto text = text::trim(line);
      const bool own = text.starts_with(name) && assigns_alone(text) &&
                       std::string_view("+=").find(text[name.size()]) != std::string_view::npos;
      return !text.starts_with('#') && !own && line_reads(text, name);
    });
  });
}

/// Paths are often kept in a script for another day.
bool names_path(std::string_view name) {
  const auto lower = text::lower(name);
  return std::ranges::any_of(std::array{"path", "file", "dir", "data", "home", "root"},
                             [&](std::string_view end) { return lower.ends_with(end); });
}

/// The name that a command of its own sets: `PORT=6382`, not `PORT=6382 python a.py`; empty for any other
/// command.
std::string name_set_alone(const ScriptCommand& command, const SourceLines& lines) {
  const auto equals = command.words[0].find('=');
  if (equals == std::string::npos || command.words.size() > 1) return {};
  const auto name = command.words[0].substr(0, equals);
  const auto text = lines.command(command.span.line);
  const bool alone = text::trim(text).starts_with(name + "=") && assigns_alone(text);
  return alone && is_variable_name(name) ? name : std::string();
}

void check_unused(const LintInput& input, Report& report) {
  if (!input.script || may_read_any(input)) return;
  const auto& script = *input.script;
  const bool works =
      std::ranges::any_of(script.commands, [](const ScriptCommand& command) { return command.works; });
  if (!works) return;  // it may be meant to be sourced
  constexpr std::size_t kMost = 3;
  const SourceLines lines(script.file);
  std::set<std::string> seen;
  std::size_t told = 0;
  for (const auto& command : script.commands) {
    if (command.shell != script.shell || command.span.file != script.file || told >= kMost) continue;
    const auto name = name_set_alone(command, lines);
    constexpr std::size_t kShortest = 3;
    if (name.size() < kShortest || names_path(name) || input.began_with.contains(name) ||
        is_read_by_bash(name) || !find_variables(name).empty() || owner_of_family(name) != nullptr ||
        !seen.insert(name).second)
      continue;
    const auto line = command.span.source_line();
    const bool keeps_result = line.find("=$!") != std::string::npos || line.find("=$?") != std::string::npos;
    // A default for a variable of the environment, which is then exported.
    const bool of_outside = line.find("${" + name) != std::string::npos;
    if (keeps_result || of_outside || is_read(input, name)) continue;
    ++told;
    report.note(
        place_of(name, command.span),
        {fmt::format("nothing reads {}", name),
         "the script does not use it, and programs see only exported variables: the setting has no effect",
         fmt::format("use it, remove it, or export {} if a program reads it", name), ""});
  }
}

const Registered<Rule> unused_rule{{
    .order = 42,
    .name = "unused",
    .title = "a variable of the script that nothing reads",
    .explain =
        "A port, a size or a list that is set and then forgotten: programs run with another value, often a "
        "default. Not reported if a file that is not here is sourced, or if the script uses eval.",
    .source = "bash(1), ENVIRONMENT; shellcheck SC2034",
    .check = check_unused,
}};

}  // namespace
}  // namespace nlaunch::lint

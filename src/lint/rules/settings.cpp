#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "base/registry.h"
#include "base/secrets.h"
#include "base/text.h"
#include "lint/catalogue.h"
#include "lint/programs.h"
#include "lint/readers.h"
#include "lint/rule.h"
#include "lint/script_text.h"
#include "shell/words.h"

/// Variables that are set without effect: not exported, never, twice, or to themselves.
namespace nlaunch::lint {
namespace {

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
      const RE2 reads(R"re(\bread\s[^\n]*\b)re" + name + R"re(\b)re");
      if (!itself || input.began_with.contains(name) || RE2::PartialMatch(input.script->file->text, reads) ||
          !told.insert(name).second)
        continue;
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

/// True if a line other than those that set it names the variable.
bool is_read_elsewhere(const SourceLines& lines, const std::string& name, std::uint32_t number) {
  const RE2 sets(fmt::format(R"re(^\s*(?:-{{1,2}}[^()\s]*\)\s*)?(?:export\s+|local\s+)?{}=)re", name));
  const RE2 exports(fmt::format(R"re(^\s*export\s+{}\b)re", name));
  for (std::uint32_t at = 1; at <= lines.count(); ++at) {
    const auto line = text::trim(lines.line(at));
    if (RE2::PartialMatch(line, exports)) return true;
    const auto rest = RE2::PartialMatch(line, sets) ? line.substr(line.find('=')) : line;
    if (at != number && !line.starts_with('#') && line_reads(rest, name)) return true;
  }
  return false;
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
  static const RE2 kOfUser(R"re(=["']?\$\{?[1-9@*]\}?["']?\s*(?:;|#|$))re");  // option-unread
  for (const auto& command : script.commands) {
    if (command.shell != script.shell || command.span.file != script.file || told >= kMost ||
        RE2::PartialMatch(command.span.source_line(), kOfUser))
      continue;
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

/// `$NAME` or `${NAME}` within the single quotes of an assignment; empty if there is none.
std::string variable_in_quotes(const Setting& setting) {
  static const RE2 kVariable(R"re(\$(?:([A-Z][A-Z0-9_]{2,})|\{([A-Z][A-Z0-9_]{2,})\}))re");
  std::string bare;
  std::string braced;
  if (!setting.value || !RE2::PartialMatch(*setting.value, kVariable, &bare, &braced)) return {};
  const auto line = std::string(setting.span.source_line());
  const auto& name = bare.empty() ? braced : bare;
  const RE2 quoted(fmt::format(R"re({}='[^']*\$\{{?{}\b)re", RE2::QuoteMeta(setting.name), name));
  return RE2::PartialMatch(line, quoted) ? name : std::string();
}

void check_single_quotes(const LintInput& input, Report& report) {
  if (!input.script || input.script->file->text.contains("eval ") ||
      input.script->file->text.contains("envsubst"))
    return;
  each_setting(input, report, [&](const Environment&, const Setting& setting) {
    if (!setting.exported || setting.unset || setting.name.starts_with("PS") ||
        setting.name == "PROMPT_COMMAND")
      return;
    const auto name = variable_in_quotes(setting);
    if (name.empty()) return;
    report.error(setting.span,
                 {fmt::format("the value of {} contains the text ${}", setting.name, name),
                  "bash expands nothing in single quotes: what reads the variable gets this text",
                  "double quotes", ""});
  });
}

const Registered<Rule> single_quotes_rule{{
    .order = 555,
    .name = "single-quotes",
    .title = "a variable within single quotes",
    .explain = "export NAME='$OTHER/x' sets NAME to this text. Not reported if the script uses eval or "
               "envsubst.",
    .source = "bash(1), Quoting",
    .check = check_single_quotes,
}};

/// `--device) device="$2"`, where nothing reads `device`.
void check_option_unread(const LintInput& input, Report& report) {
  if (!input.script || may_read_any(input)) return;
  const SourceLines lines(input.script->file);
  static const RE2 kKeeps(
      R"re(^\s*(?:-{1,2}[^()\s]*\)\s*)?([A-Za-z_]\w*)=["']?\$\{?[1-9@*]\}?["']?\s*(?:;|$))re");
  std::set<std::string> told;
  for (const auto number : lines_of_commands(lines)) {
    std::string name;
    if (!RE2::PartialMatch(lines.line(number), kKeeps, &name) || !find_variables(name).empty() ||
        owner_of_family(name) != nullptr || is_read_by_bash(name) || is_read_elsewhere(lines, name, number) ||
        !told.insert(name).second)
      continue;
    report.note(lines.find(name, number, number),
                {fmt::format("nothing reads {}: what the user gives is lost", name),
                 "the argument is accepted, and has no effect", "pass it on, or leave it out", ""});
  }
}

const Registered<Rule> option_unread_rule{{
    .order = 575,
    .name = "option-unread",
    .title = "an argument of the script that has no effect",
    .explain = "Reported for NAME=$2 and the like, if the script does not use NAME.",
    .check = check_option_unread,
}};

void check_given_overwritten(const LintInput& input, Report& report) {
  if (!input.script) return;
  for (const auto& entry : input.given) {
    const auto name = entry.substr(0, entry.find('='));
    const auto value = entry.substr(std::min(entry.size(), name.size() + 1));
    for (const auto& environment : input.environments) {
      const auto set = std::ranges::find_if(environment.settings, [&](const Setting& one) {
        return one.name == name && !one.unset && !one.one_command && !one.in_words && one.span.file &&
               one.value && *one.value != value;
      });
      if (set == environment.settings.end()) continue;
      const std::string line(text::trim(set->span.source_line()));
      const bool alone =
          line.starts_with("export " + name + "=") || (line.starts_with(name + "=") && assigns_alone(line));
      if (!alone || line.contains("$" + name) || line.contains("${" + name)) continue;
      report.note(set->span, {fmt::format("--env {0} has no effect: the script sets {0} here", name),
                              "what the user gives is overwritten",
                              fmt::format("{0}=${{{0}:-…}} keeps what is given", name), ""});
    }
  }
}

const Registered<Rule> given_overwritten_rule{{
    .order = 556,
    .name = "given-overwritten",
    .title = "a variable that the user gives and the script overwrites",
    .explain = "Reported for variables of --env.",
    .check = check_given_overwritten,
}};

}  // namespace
}  // namespace nlaunch::lint

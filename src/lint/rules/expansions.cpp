#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "base/registry.h"
#include "base/text.h"
#include "lint/rule.h"
#include "lint/script_text.h"
#include "shell/words.h"

/// Expansions of bash that do something else than what is meant.
namespace nlaunch::lint {
namespace {

/// Calls `look` with each command's first line and its text, without what is in single quotes.
template <class Look>
void each_expanded(const Script& script, const Look& look) {
  static const RE2 kSingle(R"re((^|[\s=(])'[^']*')re");
  const SourceLines lines(script.file);
  for (const auto number : lines_of_commands(lines)) {
    auto text = lines.command(number);
    RE2::GlobalReplace(&text, kSingle, R"(\1'')");
    look(lines.whole(number), text);
  }
}

void check_variable_as_command(const LintInput& input, Report& report) {
  if (!input.script) return;
  static const RE2 kCommand(R"re((?:^|[^\\$])\$\(([A-Z][A-Z0-9_]{2,})\))re");
  each_expanded(*input.script, [&](const SourceSpan& span, const std::string& text) {
    std::string name;
    if (!RE2::PartialMatch(text, kCommand, &name)) return;
    if (input.script->file->text.contains(name + "()") || input.script->file->text.contains(name + " ()"))
      return;
    report.error(span, {fmt::format("$({0}) runs a command called {0}", name),
                        "bash finds none, and the value is empty: $(NAME) is a variable only in a Makefile",
                        fmt::format("${{{}}}", name), ""});
  });
}

const Registered<Rule> variable_as_command_rule{{
    .order = 559,
    .name = "variable-as-command",
    .title = "$(NAME) where ${NAME} is meant",
    .explain = "$( ) runs a command.",
    .source = "bash(1), Command Substitution",
    .check = check_variable_as_command,
}};

void check_bad_substitution(const LintInput& input, Report& report) {
  if (!input.script) return;
  static const RE2 kBad(R"re((?:^|[^\\])(\$\{\$\w+\}?))re");
  each_expanded(*input.script, [&](const SourceSpan& span, const std::string& text) {
    std::string bad;
    if (!RE2::PartialMatch(text, kBad, &bad)) return;
    report.error(span, {fmt::format("{} is a bad substitution", bad),
                        "bash ends the command, and a script that is not interactive with it",
                        "${NAME}, or ${!NAME} for the variable that NAME names", ""});
  });
}

const Registered<Rule> bad_substitution_rule{{
    .order = 560,
    .name = "bad-substitution",
    .title = "a $ within the braces of ${NAME}",
    .explain = "bash -n does not find it: the script ends when it gets there.",
    .source = "bash(1), Parameter Expansion",
    .check = check_bad_substitution,
}};

void check_default_as_command(const LintInput& input, Report& report) {
  if (!input.script) return;
  static const RE2 kDefault(R"re((?:^|;)\s*"?\$\{(\w+):?=[^}]*\}"?\s*(?:#.*|;.*)?$)re");
  each_expanded(*input.script, [&](const SourceSpan& span, const std::string& text) {
    std::string name;
    if (!RE2::PartialMatch(text, kDefault, &name)) return;
    report.warning(span, {fmt::format("this sets {}, and then runs its value as a command", name),
                          "a command of that name is not found, or is one that nobody meant",
                          fmt::format(": \"${{{}:=…}}\", with the colon in front", name), ""});
  });
}

const Registered<Rule> default_as_command_rule{{
    .order = 561,
    .name = "default-as-command",
    .title = "${NAME:=…} as a line of its own",
    .explain = "The expansion is the command. The command `:` does nothing with it.",
    .source = "bash(1), Parameter Expansion; :",
    .check = check_default_as_command,
}};

void check_octal(const LintInput& input, Report& report) {
  if (!input.script) return;
  static const RE2 kSets(R"re(([A-Za-z_]\w*)=(0[0-9]+))re");
  std::set<std::string> told;
  for (const auto& command : input.script->commands) {
    std::string name;
    std::string value;
    if (!RE2::FullMatch(command.words.back(), kSets, &name, &value) || !told.insert(name).second) continue;
    const RE2 reckons(fmt::format(R"re(\(\((?:[^)]*[^#\w)])?(?:\$\{{?)?{0}\b)re", name));
    each_expanded(*input.script, [&](const SourceSpan& span, const std::string& text) {
      if (!RE2::PartialMatch(text, reckons) || text.contains("10#")) return;
      report.error(span, {fmt::format("{} is {}, which $(( )) takes for an octal number", name, value),
                          "08 and 09 are errors, and 010 is 8", fmt::format("$((10#${}))", name), ""});
    });
  }
}

const Registered<Rule> octal_rule{{
    .order = 562,
    .name = "octal",
    .title = "a number with a leading zero in arithmetic",
    .explain = "Numbers that begin with 0 are octal.",
    .source = "bash(1), Arithmetic Evaluation",
    .check = check_octal,
}};

void check_literal_dollar(const LintInput& input, Report& report) {
  if (!input.script) return;
  static const shell::Options kOfFiles{"kill", "pkill", "pgrep", "fuser", "mkdir", "rm", "cd", "tail"};
  static const RE2 kVariable(R"re(\$(?:\w+|\{\w+\}))re");
  std::set<std::uint32_t> told;
  // `local port=\$1`
  static const RE2 kEscaped(R"re(^\s*(?:local\s+|export\s+)?(\w+)="?\\\$(?:\w+|\{\w+\})"?\s*$)re");
  const SourceLines lines(input.script->file);
  for (const auto number : lines_of_commands(lines)) {
    std::string variable;
    if (!RE2::PartialMatch(lines.line(number), kEscaped, &variable) || !told.insert(number).second) continue;
    report.warning(lines.whole(number),
                   {fmt::format("the value of {} is a text that begins with $", variable),
                    "the backslash keeps bash from expanding it", "leave the backslash out", ""});
  }
  for (const auto& command : input.script->commands) {
    const auto name = shell::program_name(command.words[0]);
    const auto found = std::find_if(command.words.begin() + 1, command.words.end(), [](const auto& word) {
      return RE2::PartialMatch(word, kVariable) && !word.ends_with('$');
    });
    if (!kOfFiles.contains(name) || found == command.words.end() || command.span.file != input.script->file ||
        !told.insert(command.span.line).second)
      continue;
    report.error(command.span, {fmt::format("{} gets the text {}", name, text::printable(*found)),
                                "a backslash or single quotes keep bash from expanding it",
                                "leave the backslash out; or double quotes", ""});
  }
}

const Registered<Rule> literal_dollar_rule{{
    .order = 564,
    .name = "literal-dollar",
    .title = "a variable that bash does not expand",
    .explain =
        "Reported for kill, pkill, mkdir, rm, cd and the like, which expand nothing themselves, and for "
        "assignments such as NAME=\\$1.",
    .source = "bash(1), Quoting",
    .check = check_literal_dollar,
}};

void check_tilde_in_quotes(const LintInput& input, Report& report) {
  if (!input.script) return;
  static const shell::Options kOfFiles{"mkdir", "cd",    "pushd",  "cp", "mv",   "rm",
                                       "ls",    "touch", "source", ".",  "cat",  "tail",
                                       "rsync", "ln",    "bash",   "sh", "chmod"};
  std::set<std::uint32_t> told;
  for (const auto& command : input.script->commands) {
    const auto found = std::find_if(command.words.begin() + 1, command.words.end(),
                                    [](const auto& word) { return word.starts_with("~/"); });
    if (!kOfFiles.contains(shell::program_name(command.words[0])) || found == command.words.end() ||
        command.span.file != input.script->file || !told.insert(command.span.line).second)
      continue;
    report.error(
        command.span,
        {fmt::format("{} gets {}, with the ~", command.words[0], text::printable(*found)),
         "bash expands ~ only outside of quotes: this is a directory called ~ here", "\"$HOME/…\"", ""});
  }
}

const Registered<Rule> tilde_in_quotes_rule{{
    .order = 577,
    .name = "tilde-in-quotes",
    .title = "a ~ in quotes",
    .explain =
        "\"~/x\" is not in the home directory. Reported for commands on files, also if a variable has the "
        "path.",
    .source = "bash(1), Tilde Expansion",
    .check = check_tilde_in_quotes,
}};

void check_dollar_in_braces(const LintInput& input, Report& report) {
  if (!input.script) return;
  static const RE2 kBraces(R"re((?:^|[\s"=/._-])\{\$(\w+)\})re");
  static const RE2 kOfOthers(R"re(\b(?:awk|jq|python3?|perl|envsubst)\b|\$\{\{)re");
  each_expanded(*input.script, [&](const SourceSpan& span, const std::string& text) {
    std::string name;
    if (RE2::PartialMatch(text, kOfOthers) || !RE2::PartialMatch(text, kBraces, &name)) return;
    report.warning(span, {fmt::format("{{${0}}} is the value of {0} within braces", name),
                          "the braces stay: they are part of the name", fmt::format("${{{}}}", name), ""});
  });
}

const Registered<Rule> dollar_in_braces_rule{{
    .order = 578,
    .name = "dollar-in-braces",
    .title = "{$NAME} where ${NAME} is meant",
    .explain = "Braces with one word in them are characters.",
    .source = "bash(1), Brace Expansion; Parameter Expansion",
    .check = check_dollar_in_braces,
}};

void check_slash_in_sed(const LintInput& input, Report& report) {
  if (!input.script) return;
  static const RE2 kReplaces(R"re(\bsed\s[^|;]*"s/[^/"]*/[^/"]*\$\{?(\w+)[^"]*/[a-zA-Z]*")re");
  each_expanded(*input.script, [&](const SourceSpan& span, const std::string& text) {
    std::string name;
    if (!RE2::PartialMatch(text, kReplaces, &name)) return;
    const auto has_path = [&](const Environment& environment) {
      return std::ranges::any_of(environment.settings, [&](const Setting& one) {
        return one.name == name && one.value && one.value->contains('/');
      });
    };
    static const RE2 kOfPath(R"re((?i)(?:path|dir|folder|root|home)$)re");
    if (!std::ranges::any_of(input.environments, has_path) && !RE2::PartialMatch(name, kOfPath)) return;
    report.error(span, {fmt::format("a / in the value of {} ends the s command of sed", name),
                        "sed fails with \"unknown option to `s'\", and the file stays as it is",
                        "another delimiter: s|…|…|", ""});
  });
}

const Registered<Rule> slash_in_sed_rule{{
    .order = 579,
    .name = "slash-in-sed",
    .title = "a path in the replacement of s/…/…/",
    .explain =
        "Reported for variables with a / in their value, or whose name ends with PATH, DIR and the like.",
    .source = "sed(1), s/regexp/replacement/",
    .check = check_slash_in_sed,
}};

}  // namespace
}  // namespace nlaunch::lint

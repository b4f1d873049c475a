#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>

#include "base/registry.h"
#include "base/secrets.h"
#include "base/text.h"
#include "lint/rule.h"
#include "lint/script_text.h"
#include "lint/shell_options.h"
#include "shell/words.h"

/// Secrets that a script contains, passes in arguments, or prints.
namespace nlaunch::lint {
namespace {

/// True if the value comes from outside the script: an argument, or a variable that it is given.
bool comes_from_outside(const LintInput& input, const Setting& setting) {
  if (!input.script || !setting.value) return false;
  const std::string_view value = *setting.value;
  const auto is_there = [&](std::string_view secret) {
    return !secret.empty() && std::ranges::any_of(input.files, [&](const auto& file) {
      return file->text.find(secret) != std::string::npos;
    });
  };
  return !is_there(value) && !is_there(password_in(value)) && !is_there(key_in(value));
}

Report::Saying in_words(const std::string& what) {
  return {fmt::format("{} is in the arguments of a command", what),
          "anyone on the machine can see them in the process list (ps), Slurm and Ray store them with the "
          "job, and "
          "set -x prints them",
          "let the program read its environment variable, or a file that only you can read", ""};
}

/// The value that the script gives a variable is a path or a number, whatever its name says.
bool holds_no_secret(const LintInput& input, const std::string& name) {
  return std::ranges::any_of(input.environments, [&](const Environment& environment) {
    const auto found = std::ranges::find(environment.settings, name, &Setting::name);
    return found != environment.settings.end() && found->value && !found->value->empty() &&
           found->value->find(' ') == std::string::npos && !may_be_secret(*found->value);
  });
}

/// The first variable with a secret whose value a text expands whole: not ${KEY:0:4}, ${KEY:+set}.
std::string secret_in(const LintInput& input, std::string_view text) {
  for (const auto& one : expansions_in(text)) {
    const bool whole = one.rest.empty() || one.rest.starts_with(":-") || one.rest.starts_with('-') ||
                       one.rest.starts_with(":?");
    if (whole && names_secret(one.name) && !holds_no_secret(input, one.name)) return one.name;
  }
  return {};
}

/// A command of the main script, without the comments between its lines.
std::string text_of(const SourceLines& lines, std::uint32_t begin) {
  std::string text;
  for (auto at = begin; at <= lines.end_of_command(begin); ++at)
    if (!text::trim(lines.line(at)).starts_with('#')) text += std::string(lines.line(at)) + "\n";
  return text;
}

/// True for commands of the shell itself, whose words are in no process list.
bool is_of_shell(const std::string& name) {
  constexpr std::array<std::string_view, 19> kNames{
      "export", "declare", "typeset", "readonly", "local",  "echo", "printf", "[",    "[[",  "test",
      "unset",  "return",  "exit",    "eval",     "source", ".",    "set",    "case", "read"};
  return name.find('=') != std::string::npos || std::ranges::find(kNames, name) != kNames.end();
}

/// Variables that the text of a command puts in its arguments; they may have no value here.
void tell_arguments(const LintInput& input, Report& report) {
  if (!input.script) return;
  const SourceLines lines(input.script->file);
  std::set<std::string> told;
  for (const auto& one : input.secrets)
    if (one.from_outside) told.insert(one.what.substr(one.what.rfind(' ') + 1));
  for (const auto& environment : input.environments)
    for (const auto& setting : environment.settings)
      if (setting.in_words) told.insert(setting.name);
  for (const auto& command : input.script->commands) {
    const auto& name = command.words[0];
    if (command.span.file != input.script->file || is_of_shell(name) || report.full()) continue;
    const auto text = text_of(lines, command.span.line);
    // What is set in front of a program is in its environment, not in its arguments.
    const auto program = text.find(shell::program_name(name));
    // The token of a cloud's metadata service is only valid on this machine.
    if (program == std::string::npos || text.find("metadata") != std::string::npos) continue;
    const auto secret = secret_in(input, std::string_view(text).substr(program));
    if (secret.empty() || !told.insert(secret).second) continue;
    report.note(lines.find_text(secret, command.span.line, lines.end_of_command(command.span.line)),
                in_words("the value of " + secret));
  }
}

/// `WANDB_API_KEY=$2` in a batch script, outside functions.
void tell_positional(const LintInput& input, Report& report) {
  if (!input.script || input.batch.empty()) return;
  static const RE2 kTakes(
      R"re(^(?:export\s+)?([A-Za-z_]\w*)=["']?(?:\$[1-9]|\$\{[1-9][^}]*\})["']?\s*(?:#.*)?$)re");
  const SourceLines lines(input.script->file);
  for (const auto number : lines_of_commands(lines)) {
    std::string name;
    if (!RE2::FullMatch(lines.line(number), kTakes, &name) || !names_secret(name)) continue;
    return report.note(lines.find_text(name, number, number),
                       {fmt::format("{} comes from an argument of the script", name),
                        "it is on sbatch's command line: anyone can see it in scontrol show job and sacct "
                        "(SubmitLine), and it stays in the shell's history",
                        fmt::format("read it where it is needed: {}=$(< ~/.secrets/{})", name, name), ""});
  }
}

/// False for `COMMAND="serve --api-key $KEY"`, where the secret is that of another line.
bool has_it_in_its_line(const Setting& setting) {
  static const RE2 kKey(R"re(([A-Za-z0-9_-]{8,}))re");
  const auto line = setting.span.source_line();
  if (!setting.value || !line.contains('$') || line.contains(*setting.value)) return true;
  std::string key;
  for (re2::StringPiece rest(*setting.value); RE2::FindAndConsume(&rest, kKey, &key);)
    if (key.find_first_of("0123456789") != std::string::npos && line.contains(key)) return true;
  return false;
}

void check_secret(const LintInput& input, Report& report) {
  each_setting(input, report, [&](const Environment&, const Setting& setting) {
    const bool outside = comes_from_outside(input, setting);
    if (setting.in_words && looks_like_secret(setting.name) &&
        (setting.value ? outside && setting.holds_secret() : !setting.unset)) {
      report.note(setting.span, in_words("the value of " + setting.name));
      return;
    }
    if (outside || !setting.holds_secret() || !has_it_in_its_line(setting)) return;
    report.warning(setting.span,
                   {fmt::format("the value of {} is in this file", setting.name),
                    "anyone who can read the file, the job's record (scontrol show job, sacct) or a "
                    "process's environment can see it",
                    fmt::format("read it where it is needed: {}=$(< ~/.secrets/{})  (nlaunch: secrets:)",
                                setting.name, setting.name),
                    ""});
  });
  report.of("");
  for (const auto& one : input.secrets) {
    if (report.full()) return;
    if (one.from_outside) {
      report.note(one.span, in_words(one.what));
      continue;
    }
    report.warning(
        one.span,
        {fmt::format("{} is in this file", one.what),
         "anyone who can read the file, the job's record (scontrol show job, sacct) or the "
         "process list (ps) can see it",
         "use a variable that is read where it is needed: NAME=$(< ~/.secrets/NAME)  (nlaunch: secrets:)",
         ""});
  }
  tell_arguments(input, report);
  tell_positional(input, report);
}

const Registered<Rule> secret_rule{{
    .order = 380,
    .name = "secret",
    .title = "a secret written into a file",
    .explain = "Slurm stores a job's script, an exported variable is in every process's environment, and a "
               "command's arguments are in the process list, even if their value comes from a variable. "
               "Secrets are recognized as variables and options by "
               "name (HF_TOKEN, --api-key), passwords in URLs, the key of wandb login, and keys with the "
               "prefixes of well-known services (hf_, sk-, ghp_).",
    .check = check_secret,
}};

/// What is left of a text without its quoted parts.
std::string without_quoted(std::string_view text) {
  std::string rest;
  char quote = 0;
  for (const char c : text) {
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else {
      rest += c;
    }
  }
  return rest;
}

/// True if the command prints into the script's own output: not into a file, nor for another program.
bool prints_to_log(std::string_view command) {
  static const RE2 kPrints(R"re(^\s*(then\s|do\s|else\s|\{\s)?\s*(echo|printf)\s)re");
  static const RE2 kToErrors(R"re(\d?>&\d)re");
  auto rest = without_quoted(command);
  RE2::GlobalReplace(&rest, kToErrors, "");
  return RE2::PartialMatch(command, kPrints) && rest.find_first_of(">|") == std::string::npos;
}

void check_secret_printed(const LintInput& input, Report& report) {
  if (!input.script) return;
  const SourceLines lines(input.script->file);
  for (const auto number : lines_of_commands(lines)) {
    const auto command = lines.command(number);
    const auto secret = prints_to_log(command) ? secret_in(input, command) : std::string();
    if (secret.empty() || report.full()) continue;
    report.warning(
        lines.find_text(secret, number, lines.end_of_command(number)),
        {fmt::format("this prints the value of {}", secret),
         "anyone who can read the job's log can see it, and logs are copied and attached to reports",
         fmt::format("echo \"{0}: ${{{0}:+set}}\" tells whether it is set", secret), ""});
  }
}

const Registered<Rule> secret_printed_rule{{
    .order = 382,
    .name = "secret-printed",
    .title = "a secret that the script prints",
    .explain =
        "The output of a job goes into its log, which others can often read. Secrets are recognized by the "
        "name "
        "of their variable. Printing a part of it, or whether it is set (${NAME:+set}), is not reported.",
    .source = "sbatch(1), --output; bash(1), Parameter Expansion",
    .check = check_secret_printed,
}};

/// The secret that a command sets: `export HF_TOKEN=$(cat ~/.token)`; empty if it sets none, or a
/// placeholder.
std::string secret_set_by(const ScriptCommand& command, std::string_view text) {
  constexpr std::array<std::string_view, 4> kSetters{"export", "declare", "readonly", "typeset"};
  const bool sets = command.words[0].find('=') != std::string::npos ||
                    std::ranges::find(kSetters, command.words[0]) != kSetters.end();
  if (!sets) return {};
  for (const auto& word : command.words) {
    const auto equals = word.find('=');
    if (equals == std::string::npos) continue;
    const auto name = word.substr(0, equals);
    const auto value = word.substr(equals + 1);
    if (!is_variable_name(name) || !names_secret(name)) continue;
    // A value that is empty here may come from a variable or a command.
    const auto at = text.find(name + "=");
    const auto rest = at == std::string_view::npos ? std::string_view() : text.substr(at + equals + 1);
    const bool computed = rest.starts_with('$') || rest.starts_with("\"$") || rest.starts_with('`');
    const bool secret = value.empty() ? computed : may_be_secret(value) && !is_to_be_filled_in(value);
    if (secret) return name;
  }
  return {};
}

/// The file that `source` reads, if it seems to hold secrets: ~/.tokens, .env, secrets.sh; else empty.
std::string secret_file_of(const ScriptCommand& command) {
  const auto& words = command.words;
  if (words.size() < 2 || (words[0] != "source" && words[0] != ".")) return {};
  const auto name = shell::program_name(words[1]);
  const auto lower = text::lower(name);
  constexpr std::array<std::string_view, 6> kOfLogin{".bashrc", ".bash_profile", ".profile",
                                                     ".zshrc",  ".bash_aliases", ".bash_login"};
  constexpr std::array<std::string_view, 5> kMarks{"secret", "token", "credential", "apikey", "api_key"};
  const bool marked = std::ranges::any_of(
      kMarks, [&](std::string_view mark) { return lower.find(mark) != std::string::npos; });
  const bool keys = lower == "keys" || lower == "keys.sh" || lower == ".keys";
  const bool of_env = lower == ".env" || lower.starts_with(".env.");
  const bool hidden =
      name.starts_with('.') && command.span.source_line().find("~/" + name) != std::string::npos;
  const bool login = std::ranges::find(kOfLogin, name) != kOfLogin.end();
  return !login && (marked || keys || of_env || hidden) ? name : std::string();
}

void check_secret_traced(const LintInput& input, Report& report) {
  if (!input.script || input.script->commands.empty()) return;
  const auto& script = *input.script;
  const SourceLines lines(script.file);
  const auto shell = script.shell;
  bool xtrace = shebang_sets(script, kXtrace);
  for (const auto& command : script.commands) {
    if (command.shell != shell) continue;
    xtrace = sets_option(command, kXtrace).value_or(xtrace);
    if (!xtrace || command.span.file != script.file) continue;
    if (const auto file = secret_file_of(command); !file.empty())
      return report.warning(
          command.span, {fmt::format("set -x prints what {} sets", text::printable(file)),
                         "bash prints each line of a sourced file with its values: anyone who can read the "
                         "job's log can see the tokens in it",
                         "set +x above, and set -x again below", ""});
    const auto text = text_of(lines, command.span.line);
    const auto set = secret_set_by(command, text);
    const auto secret = set.empty() ? secret_in(input, text) : set;
    if (secret.empty()) continue;
    return report.warning(lines.find_text(secret, command.span.line, lines.end_of_command(command.span.line)),
                          {fmt::format("set -x prints the value of {}", secret),
                           "bash prints each command with its values before it runs it: anyone who can read "
                           "the job's log can see it",
                           "set +x above, and set -x again below", ""});
  }
}

const Registered<Rule> secret_traced_rule{{
    .order = 384,
    .name = "secret-traced",
    .title = "a secret that set -x prints",
    .explain = "With set -x, bash prints each command after it has expanded it: export KEY=$(cat FILE) shows "
               "the key, "
               "and so does a test of it.",
    .source = "bash(1), set -x",
    .check = check_secret_traced,
}};

void check_environment_printed(const LintInput& input, Report& report) {
  if (!input.script || !(input.slurm || !input.batch.empty())) return;
  static const RE2 kAll(R"re(^\s*(env|printenv|export -p|declare -x)\s*(\|\s*sort\s*)?(#.*)?$)re");
  for (const auto& command : input.script->commands) {
    std::string program;
    if (!RE2::FullMatch(command.span.source_line(), kAll, &program) ||
        command.words[0] != program.substr(0, program.find(' ')))
      continue;
    return report.note(
        command.span,
        {fmt::format("{} prints all variables of the job, with every token among them", program),
         "a job inherits the environment in which it was submitted (--export=ALL): what a login file "
         "exports, such as HF_TOKEN or WANDB_API_KEY, is then in the log",
         "env | grep -E '^(SLURM|NCCL|CUDA)_'", ""});
  }
}

const Registered<Rule> environment_printed_rule{{
    .order = 386,
    .name = "environment-printed",
    .title = "the whole environment in the job's log",
    .explain =
        "sbatch passes on the environment of the submitting shell by default. Printing all of it also prints "
        "the tokens in it.",
    .source = "sbatch(1), --export; env(1)",
    .check = check_environment_printed,
}};

}  // namespace
}  // namespace nlaunch::lint

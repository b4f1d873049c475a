#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/registry.h"
#include "base/text.h"
#include "lint/rule.h"

namespace nlaunch::lint {
namespace {

/// What `set -e`, `set -euo pipefail` or a first line with -e do; nothing for any other command.
std::optional<bool> sets_errexit(const Command& command) {
  if (command.name() != "set") return std::nullopt;
  for (std::size_t i = 1; i < command.words.size(); ++i) {
    const auto text = command.words[i].constant().value_or("");
    const auto before = command.words[i - 1].constant().value_or("");
    if (text == "errexit" && (before.ends_with('o'))) return before.starts_with('-');
    if (text.size() > 1 && (text[0] == '-' || text[0] == '+') && text[1] != '-' &&
        text.find('e') != std::string::npos) {
      return text[0] == '-';
    }
  }
  return std::nullopt;
}

bool shebang_has_e(const Script& script) {
  if (script.comments.empty() || script.comments.front().span.line != 1) return false;
  const auto words = text::split(script.comments.front().text, ' ');
  return script.comments.front().text.starts_with("#!") &&
         std::ranges::any_of(words, [](const std::string& word) {
           return word.starts_with('-') && !word.starts_with("--") && word.find('e') != std::string::npos;
         });
}

bool takes_exit_code(const Assignment& one) {
  return one.value.parts.size() == 1 && one.value.parts.front().kind == Part::Kind::variable &&
         one.value.parts.front().text == "?";
}

/// A trap on EXIT or ERR cleans up whatever happens.
bool has_trap(const Script& script) {
  return std::ranges::any_of(script.commands, [](const Command& command) {
    return command.name() == "trap" && std::ranges::any_of(command.words, [](const Word& word) {
             const auto text = word.constant().value_or("");
             return text == "EXIT" || text == "ERR" || text == "0";
           });
  });
}

void check_unreadable(const LintInput& input, Report& report) {
  if (!input.script) return;
  for (const auto& one : input.script->unread) {
    report.warning(one.span, {one.message, "what stands within was not looked at", "", ""});
  }
  for (const auto& command : input.script->commands) {
    if (command.name() != "eval" || command.nested) continue;
    const bool constant =
        std::ranges::all_of(command.words, [](const Word& word) { return word.constant().has_value(); });
    if (constant) continue;
    report.note(command.span, {"eval runs a text that is made when the script runs",
                               "what it sets is not known here", "", ""});
    return;
  }
}

const Registered<Rule> unreadable_rule{{
    .order = 350,
    .name = "unreadable",
    .title = "a part of a script that could not be read",
    .explain = "The rest was read.",
    .check = check_unreadable,
}};

void check_line_ends(const LintInput& input, Report& report) {
  if (!input.script) return;
  const auto& file = input.script->file;
  const auto at = file->text.find("\r\n");
  if (at == std::string::npos) return;
  const auto line = static_cast<std::uint32_t>(std::count(
                        file->text.begin(), file->text.begin() + static_cast<std::ptrdiff_t>(at), '\n')) +
                    1;
  report.error({file, line, 1, 1},
               {"the lines end as on Windows (CRLF)",
                "bash takes the carriage return as part of every value, and sbatch refuses the script",
                fmt::format("sed -i 's/\\r$//' {}", file->name), ""});
}

const Registered<Rule> line_ends_rule{{
    .order = 360,
    .name = "line-ends",
    .title = "lines that end as on Windows",
    .explain = "A carriage return is a character like any other for bash.",
    .source = "sbatch(1)",
    .check = check_line_ends,
}};

void check_exit_code_lost(const LintInput& input, Report& report) {
  if (!input.script || has_trap(*input.script)) return;
  bool errexit = shebang_has_e(*input.script);
  const Command* last = nullptr;
  for (const auto& command : input.script->commands) {
    if (command.nested) continue;
    if (const auto now = sets_errexit(command)) errexit = *now;
    const bool reads = command.words.empty() && std::ranges::any_of(command.assignments, takes_exit_code);
    if (reads && errexit && last != nullptr && last->sure && !last->guarded && command.sure &&
        !last->words.empty()) {
      report.error(command.span, {fmt::format("under set -e this line is reached only where {} succeeded",
                                              last->name().empty() ? "the command before it" : last->name()),
                                  "a failure ends the script on the spot: what cleans up, keeps the exit "
                                  "code or submits the next job below is "
                                  "skipped",
                                  "COMMAND || code=$?   (or: trap 'clean up' EXIT)", ""});
    }
    last = &command;
  }
}

const Registered<Rule> exit_code_lost_rule{{
    .order = 370,
    .name = "exit-code-lost",
    .title = "code after a failure that set -e never reaches",
    .explain = "set -e ends the script at the first command that fails: the line which keeps its exit code "
               "runs only after a success.",
    .source = "bash(1), set -e",
    .check = check_exit_code_lost,
}};

void check_secret(const LintInput& input, Report& report) {
  each_setting(input, report, [&](const Environment&, const Setting& setting) {
    if (!setting.holds_secret()) return;
    report.warning(setting.span,
                   {fmt::format("the value of {} stands in this file", setting.name),
                    "whoever can read the file, the job's record (scontrol show job, sacct) or a process's "
                    "environment has it",
                    fmt::format("read it where it is needed: {}=$(< ~/.secrets/{})  (nlaunch: secrets:)",
                                setting.name, setting.name),
                    ""});
  });
  report.of("");
  for (const auto& one : input.secrets) {
    if (report.full()) return;
    report.warning(
        one.span,
        {fmt::format("{} stands in this file", one.what),
         "whoever can read the file, the job's record (scontrol show job, sacct) or the list of "
         "processes (ps) has it",
         "a variable that is read where it is needed: NAME=$(< ~/.secrets/NAME)  (nlaunch: secrets:)", ""});
  }
}

const Registered<Rule> secret_rule{{
    .order = 380,
    .name = "secret",
    .title = "a secret written into a file",
    .explain = "A job's script is kept by Slurm, an exported variable is in every process's environment, and "
               "a command's arguments are in the list of processes. Known are variables and options by their "
               "names (HF_TOKEN, --api-key), passwords in addresses, the key of wandb login, and keys that "
               "begin as those of well-known services do (hf_, sk-, ghp_).",
    .check = check_secret,
}};

}  // namespace
}  // namespace nlaunch::lint

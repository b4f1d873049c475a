#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "base/registry.h"
#include "base/secrets.h"
#include "base/text.h"
#include "lint/programs.h"
#include "lint/rule.h"
#include "lint/script_text.h"

namespace nlaunch::lint {
namespace {

/// The effect of `set -e`, `set -euo pipefail` or a first line with -e; nullopt for any other command.
std::optional<bool> sets_errexit(const ScriptCommand& command) {
  if (command.words[0] != "set") return std::nullopt;
  for (std::size_t i = 1; i < command.words.size(); ++i) {
    const auto& text = command.words[i];
    const auto& before = command.words[i - 1];
    if (text == "errexit" && before.ends_with('o')) return before.starts_with('-');
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

/// `code=$?` at the start of a line: bash traces only what it reaches.
bool takes_exit_code(const SourceSpan& span) {
  const auto line = span.source_line();
  const auto equals = line.find('=');
  if (equals == std::string::npos || !is_variable_name(line.substr(0, equals))) return false;
  const auto value = text::trim(std::string_view(line).substr(equals + 1));
  return value == "$?" || value == "\"$?\"" || value.starts_with("$? ") || value.starts_with("$?;");
}

/// A trap on EXIT or ERR cleans up in any case.
bool is_trap(const ScriptCommand& command) {
  return command.words[0] == "trap" && std::ranges::any_of(command.words, [](const std::string& word) {
           return word == "EXIT" || word == "ERR" || word == "0";
         });
}

bool has_trap(const Script& script) {
  return std::ranges::any_of(script.commands, is_trap);
}

void tell(const std::vector<Unread>& all, Report& report) {
  for (const auto& one : all) {
    const Report::Saying said{one.message, one.why, one.instead, ""};
    if (one.severity == Severity::error)
      report.error(one.span, said);
    else if (one.severity == Severity::warning)
      report.warning(one.span, said);
    else
      report.note(one.span, said);
  }
}

void check_unreadable(const LintInput& input, Report& report) {
  if (input.script) tell(input.script->unread, report);
}

const Registered<Rule> unreadable_rule{{
    .order = 350,
    .name = "unreadable",
    .title = "part of a script that bash did not reach",
    .explain = "nlaunch examines a script by letting bash run it without effects. The script can exit early "
               "there: an argument is missing, a variable is unset under set -u, or it reaches a limit. "
               "Everything up to that line is linted. Pass arguments after --, and variables with --env "
               "NAME=VALUE. "
               "Nothing is known about a sourced or started script that is not here.",
    .check = check_unreadable,
}};

void check_no_folder(const LintInput& input, Report& report) {
  if (input.script) tell(input.script->not_started, report);
}

const Registered<Rule> no_folder_rule{{
    .order = 357,
    .name = "no-folder",
    .title = "output into a directory that does not exist",
    .explain = "bash opens the file after > before it starts a program, and does not create directories: if "
               "the "
               "directory is missing, the program does not start. Directories are searched for in the "
               "directory where lint is called, then next to the script.",
    .source = "bash(1), REDIRECTION",
    .check = check_no_folder,
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
               {"the file has Windows line endings (CRLF)",
                "bash treats the carriage return as part of every value, and sbatch rejects the script",
                fmt::format("sed -i 's/\\r$//' {}", file->name), ""});
}

const Registered<Rule> line_ends_rule{{
    .order = 360,
    .name = "line-ends",
    .title = "Windows line endings",
    .explain = "For bash, a carriage return is an ordinary character.",
    .source = "sbatch(1)",
    .check = check_line_ends,
}};

/// The lines from one up to another, where a failure would be checked.
bool is_guarded(const SourceSpan& from, const SourceSpan& to) {
  for (auto at = from; at.line < to.line; ++at.line) {
    const auto line = at.source_line();
    const auto text = text::trim(line);
    if (text.starts_with("if ") || text.starts_with("while ") || text.starts_with("until ") ||
        text.starts_with("! ") || line.find("||") != std::string::npos ||
        line.find("&&") != std::string::npos)
      return true;
  }
  return false;
}

bool is_indented(const SourceSpan& span) {
  return span.source_line().find_first_not_of(" \t") != 0;
}

void check_exit_code_lost(const LintInput& input, Report& report) {
  if (!input.script || has_trap(*input.script)) return;
  std::map<int, bool> errexit;
  std::map<int, const ScriptCommand*> last;  // of each shell
  for (const auto& command : input.script->commands) {
    if (!errexit.contains(command.shell)) errexit[command.shell] = shebang_has_e(*input.script);
    if (const auto now = sets_errexit(command)) errexit[command.shell] = *now;
    const auto* before = std::exchange(last[command.shell], &command);
    if (before == nullptr || !errexit[command.shell] || before->span.file != command.span.file ||
        before->span.line >= command.span.line || !takes_exit_code(command.span))
      continue;
    // Inside a function or a loop, the caller may check the failure.
    if (is_indented(command.span) || is_indented(before->span) || is_guarded(before->span, command.span))
      continue;
    const auto& program = before->words[0];
    if (program.find('=') != std::string::npos) continue;
    report.error(command.span, {fmt::format("under set -e this line is reached only if {} succeeds",
                                            program.substr(program.rfind('/') + 1)),
                                "a failure exits the script immediately: code below that cleans up, "
                                "saves the exit code or submits the "
                                "next job is skipped",
                                "COMMAND || code=$?   (or: trap 'clean up' EXIT)", ""});
  }
}

const Registered<Rule> exit_code_lost_rule{{
    .order = 370,
    .name = "exit-code-lost",
    .title = "code after a failure that set -e never reaches",
    .explain = "set -e exits the script at the first command that fails: the line that saves its exit code "
               "runs only after a success.",
    .source = "bash(1), set -e",
    .check = check_exit_code_lost,
}};

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

void check_secret(const LintInput& input, Report& report) {
  each_setting(input, report, [&](const Environment&, const Setting& setting) {
    const bool outside = comes_from_outside(input, setting);
    if (setting.in_words && looks_like_secret(setting.name) &&
        (setting.value ? outside && setting.holds_secret() : !setting.unset)) {
      report.note(setting.span, in_words("the value of " + setting.name));
      return;
    }
    if (outside || !setting.holds_secret()) return;
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

void check_failed_test(const LintInput& input, Report& report) {
  if (input.script) tell(input.script->failed_tests, report);
}

const Registered<Rule> failed_test_rule{{
    .order = 355,
    .name = "failed-test",
    .title = "a test of a variable that nothing sets",
    .explain =
        "[ $NAME -gt 1 ] is not a valid test if NAME is empty: bash prints an error and continues as if the "
        "test were false. In [[ ]] or (( )) an empty variable is 0.",
    .source = "bash(1), CONDITIONAL EXPRESSIONS",
    .check = check_failed_test,
}};

void check_late_trap(const LintInput& input, Report& report) {
  if (!input.script || input.script->commands.empty()) return;
  const auto shell = input.script->shell();
  const ScriptCommand* trap = nullptr;
  bool worked = false;
  for (const auto& command : input.script->commands) {
    if (command.shell != shell) continue;
    const auto& name = command.words[0];
    if (command.works || name == "wait") {
      worked = worked || command.works;
      trap = nullptr;  // there is still something to catch
    } else if (name == "trap" && worked && command.words.size() > 2 && command.words[1] != "-" &&
               !command.words[1].empty() && command.words[1] != "--") {
      trap = &command;
    }
  }
  if (trap == nullptr) return;
  report.warning(trap->span,
                 {"this trap is set after the work is done",
                  "it catches nothing that happens earlier: the signal before the time limit kills "
                  "the script, and a failure under set -e exits it",
                  "set it before the first program", ""});
}

const Registered<Rule> late_trap_rule{{
    .order = 375,
    .name = "late-trap",
    .title = "a trap that is set after the work",
    .explain =
        "A trap takes effect from the line that sets it. After the last program, it saves nothing, requests "
        "no requeue and cleans up nothing for a failed job.",
    .source = "bash(1), trap",
    .check = check_late_trap,
}};

/// True if it blocks until something exits.
bool stays(const ScriptCommand& command) {
  constexpr std::array<std::string_view, 6> kNames{"wait", "sleep", "tail", "read", "inotifywait", "exec"};
  const auto& name = command.words[0];
  return std::ranges::find(kNames, name.substr(name.rfind('/') + 1)) != kNames.end();
}

void check_not_waited_for(const LintInput& input, Report& report) {
  if (!input.script || input.batch.empty()) return;
  const auto& commands = input.script->commands;
  const ScriptCommand* last = nullptr;
  for (const auto& command : commands) {
    if (command.works && command.span.file == input.script->file) last = &command;
  }
  if (last == nullptr || !last->background) return;
  // Background commands are traced when they get to run, so line numbers tell what follows them.
  const bool waits = std::ranges::any_of(commands, [&](const ScriptCommand& command) {
    const bool behind = command.span.file == input.script->file && command.span.line >= last->span.line;
    return behind && (stays(command) || (command.works && !command.background));
  });
  if (waits) return;
  report.error(last->span,
               {fmt::format("the script exits while {} still runs in the background", last->words[0]),
                "a Slurm job ends when its batch script exits, and everything it started is killed",
                "add `wait` as the last line", ""});
}

const Registered<Rule> not_waited_for_rule{{
    .order = 374,
    .name = "not-waited-for",
    .title = "a batch script that exits before its programs",
    .explain =
        "A command before an & runs in the background. When the batch script exits, Slurm ends the job "
        "and kills every program: wait keeps the script running until they finish.",
    .source = "sbatch(1); bash(1), wait",
    .check = check_not_waited_for,
}};

/// The effect of `set -o pipefail`; nullopt for any other command.
std::optional<bool> sets_pipefail(const ScriptCommand& command) {
  if (command.words[0] != "set") return std::nullopt;
  for (std::size_t i = 2; i < command.words.size(); ++i) {
    if (command.words[i] == "pipefail") return command.words[i - 1].starts_with('-');
  }
  return std::nullopt;
}

/// Where a line's text goes to tee: "| tee log", "|& tee log".
std::size_t tee_at(std::string_view line) {
  return std::max(line.rfind("| tee ") + 1, line.rfind("|& tee ") + 1);  // 0: nowhere
}

/// The first line of the command block that a line ends: `) | tee`, `} | tee`, `done | tee`; 0 if it ends
/// none. Both lines have the same indentation.
std::uint32_t begin_of_block(const SourceLines& lines, std::uint32_t end) {
  const auto begins = [](std::string_view text, std::initializer_list<std::string_view> words) {
    return std::ranges::any_of(words, [&](std::string_view word) { return text.starts_with(word); });
  };
  const auto line = lines.line(end);
  const auto indentation = line.find_first_not_of(" \t");
  if (indentation == std::string_view::npos || !begins(line.substr(indentation), {")", "}", "done"}))
    return 0;
  for (auto at = end - 1; at > 0; --at) {
    const auto text = lines.line(at);
    if (text.find_first_not_of(" \t") != indentation) continue;
    const auto rest = text.substr(indentation);
    if (begins(rest, {"(", "{", "for ", "while ", "until "})) return at;
    if (begins(rest, {")", "}", "done"})) return 0;
  }
  return 0;
}

/// The line where a command starting on a line, or a block around it, is piped to tee; 0 if it is not.
std::uint32_t line_of_tee(const SourceLines& lines, std::uint32_t begin) {
  const auto end = lines.end_of_command(begin);
  if (tee_at(lines.line(end)) > 0) return end;
  for (auto at = end + 1; at <= lines.count(); ++at) {
    const auto block = tee_at(lines.line(at)) > 0 ? begin_of_block(lines, at) : 0;
    if (block > 0 && block <= begin) return at;
  }
  return 0;
}

void check_exit_code_of_tee(const LintInput& input, Report& report) {
  if (!input.script) return;
  bool pipefail = false;
  const SourceLines lines(input.script->file);
  if (input.script->file->text.find("PIPESTATUS") != std::string::npos) return;
  for (const auto& command : input.script->commands) {
    pipefail = sets_pipefail(command).value_or(pipefail);
    if (pipefail || !command.works || command.span.file != input.script->file) continue;
    const auto end = line_of_tee(lines, command.span.line);
    if (end == 0 || text::trim(lines.line(end)).ends_with('&')) continue;
    const bool both = lines.line(end).find("|& tee ") != std::string_view::npos;
    report.warning(
        lines.find_text(both ? "|& tee " : "| tee ", end, end),
        {"after | tee the exit code of the program is lost",
         "without pipefail, a pipe returns the exit code of its last command: a failed run counts as a "
         "success for Slurm, for set -e and for dependent jobs",
         "add `set -o pipefail` above", ""});
    return;  // one finding covers all
  }
}

const Registered<Rule> exit_code_of_tee_rule{{
    .order = 372,
    .name = "exit-code-of-tee",
    .title = "a program whose exit code is hidden by tee",
    .explain =
        "The exit code of a pipe is that of its last command, and tee succeeds. With set -o pipefail it is "
        "that of the last command that failed.",
    .source = "bash(1), Pipelines",
    .check = check_exit_code_of_tee,
}};

/// True if it always succeeds, unlike `exit $code`.
bool always_succeeds(const ScriptCommand& command) {
  constexpr std::array<std::string_view, 9> kNames{"echo",   "printf", "date",  "true",      ":",
                                                   "export", "unset",  "sleep", "deactivate"};
  const auto& words = command.words;
  if (words[0] == "exit")
    return words.size() > 1 && words[1] == "0" && command.span.source_line().find('$') == std::string::npos;
  if (words[0] == "wait") return words.size() == 1;
  const auto name = words[0].substr(0, words[0].find('='));
  const bool assigns = name.size() < words[0].size() && is_variable_name(name) &&
                       command.span.source_line().find("$(") == std::string::npos;
  return assigns || std::ranges::find(kNames, words[0]) != kNames.end();
}

/// True if the script checks, or may check, the exit code of a command starting on a line: a function may be
/// called in a test.
bool looks_at_codes(const Script& script, std::uint32_t line) {
  const auto& text = script.file->text;
  const SourceLines lines(script.file);
  const auto begin = lines.line(line);
  const bool is_within = begin.starts_with(' ') || begin.starts_with('\t');
  for (const auto* sign : {"() {", "(){", "function "})
    if (is_within && text.find(sign) != std::string::npos) return true;
  for (; line <= lines.count(); ++line)
    for (const auto* sign : {"$?", "${?", "PIPESTATUS"})
      if (lines.line(line).find(sign) != std::string::npos) return true;
  return std::ranges::any_of(script.commands, [](const ScriptCommand& command) {
    return command.words[0] == "wait" && command.words.size() > 1;
  });
}

void check_exit_code_hidden(const LintInput& input, Report& report) {
  if (!input.script || input.script->commands.empty()) return;
  const auto& script = *input.script;
  if (!ran_to_its_end(script) || !(input.slurm || !input.batch.empty()) || has_trap(script)) return;
  bool errexit = shebang_has_e(script);
  const ScriptCommand* program = nullptr;
  const ScriptCommand* last = nullptr;
  for (const auto& command : script.commands) {
    // The first command that a line starts is the one that it names: srun.
    const bool same = program != nullptr && program->span.line == command.span.line;
    if (command.works && command.span.file == script.file && !same)
      program = errexit && !command.background ? nullptr : &command;
    if (command.shell != script.shell()) continue;
    errexit = sets_errexit(command).value_or(errexit);
    last = &command;
  }
  if (program == nullptr || last == nullptr || last->span.file != script.file ||
      last->span.line <= program->span.line || !always_succeeds(*last) ||
      looks_at_codes(script, program->span.line))
    return;
  auto behind = last->span;
  ++behind.line;
  const bool waits = last->words[0] == "wait";
  if (is_guarded(waits ? last->span : program->span, behind)) return;
  // A background program that nothing waits for is killed when the script exits.
  if (program->background && !waits) return;
  const auto name = program->words[0].substr(program->words[0].rfind('/') + 1);
  report.warning(
      last->span,
      {waits ? std::string("`wait` without a process id succeeds even if a program failed")
             : fmt::format("the script exits with the exit code of this line: a failure of {} is lost", name),
       "Slurm considers the job successful and starts dependent jobs (afterok)",
       waits ? "add pids+=($!) after each &, then: for pid in \"${pids[@]}\"; do wait \"$pid\" || code=$?; "
               "done; "
               "exit ${code:-0}"
             : fmt::format("add `set -e` above, or use {} … || exit", name),
       ""});
}

const Registered<Rule> exit_code_hidden_rule{{
    .order = 371,
    .name = "exit-code-hidden",
    .title = "a failure that the script's last command hides",
    .explain = "A script exits with the exit code of its last command. Without set -e, bash continues "
               "after a failure, and echo succeeds. `wait` without a process id succeeds even if a "
               "background program failed.",
    .source = "bash(1), EXIT STATUS, wait",
    .check = check_exit_code_hidden,
}};

/// bash finds the function `conda` there.
bool brings_conda(const ScriptCommand& command) {
  const auto line = text::join(command.words, " ");
  const auto& name = command.words[0];
  const bool sources = name == "source" || name == ".";
  const bool reads = line.find("conda") != std::string::npos || line.find("bashrc") != std::string::npos ||
                     line.find("profile") != std::string::npos || line.ends_with(".sh") ||
                     line.ends_with("activate");
  return (sources && reads) || name == "module" || name == "ml" || name == "eval" || name == "conda()" ||
         line.find("shell.bash") != std::string::npos || line.find("shell hook") != std::string::npos;
}

void check_conda(const LintInput& input, Report& report) {
  if (!input.script || input.batch.empty() || input.script->comments.empty()) return;
  const auto& first = input.script->comments.front();
  const bool login = first.span.line == 1 && (first.text.find(" -l") != std::string::npos ||
                                              first.text.find("--login") != std::string::npos ||
                                              first.text.find(" -i") != std::string::npos);
  if (login) return;
  for (const auto& command : input.script->commands) {
    if (brings_conda(command)) return;
    const auto& words = command.words;
    const bool tool = words[0] == "conda" || words[0] == "mamba" || words[0] == "micromamba";
    if (!tool || words.size() < 2 || words[1] != "activate") continue;
    report.warning(
        command.span,
        {fmt::format("{} activate in a shell that is not set up for it", words[0]),
         "a batch script does not read ~/.bashrc: this works only if the submitting shell exports conda's "
         "function; otherwise programs from another environment run",
         fmt::format("add eval \"$({} shell.bash hook)\" above, or source …/etc/profile.d/conda.sh",
                     words[0]),
         ""});
    return;
  }
}

const Registered<Rule> conda_rule{{
    .order = 358,
    .name = "conda",
    .title = "conda activate without its function",
    .explain = "conda activate is a function that conda's hook defines. `conda init` writes it to "
               "~/.bashrc, which "
               "only interactive shells read.",
    .source = "docs.conda.io, conda init; bash(1), INVOCATION",
    .check = check_conda,
}};

void check_installs_at_once(const LintInput& input, Report& report) {
  if (!input.script) return;
  const Program* first = nullptr;
  for (const auto& program : input.script->programs) {
    const auto& words = program.words;
    const bool pip =
        words[0].ends_with("pip") || words[0].ends_with("pip3") || std::ranges::count(words, "pip") > 0;
    if (!pip || std::ranges::find(words, "install") == words.end() || !program.step) continue;
    if (first != nullptr && first->step == program.step && first->rank != program.rank &&
        first->span.line == program.span.line)
      return report.warning(first->span,
                            {"several tasks install packages at the same time",
                             "if they share the environment, one replaces files that another is loading",
                             "install once, before the steps", ""});
    if (first == nullptr) first = &program;
  }
}

const Registered<Rule> installs_at_once_rule{{
    .order = 359,
    .name = "installs-at-once",
    .title = "pip install in each task of a step",
    .explain = "pip does not lock: two that write to the same environment corrupt it. In a container, each "
               "task may "
               "have its own environment.",
    .source = "pip.pypa.io",
    .check = check_installs_at_once,
}};

void check_unset(const LintInput& input, Report& report) {
  if (!input.script) return;
  for (const auto& one : input.script->unset)
    report.warning(
        one.span,
        {fmt::format("nothing sets {}", one.name),
         "bash silently treats it as empty: it is 0 in $(( )), and a path that starts "
         "with it starts at the root",
         one.set_name.empty()
             ? fmt::format("pass --env {}=… if the job gets it from outside", one.name)
             : fmt::format(
                   "{}, if that is what you meant; otherwise pass --env {}=… if the job gets it from outside",
                   one.set_name, one.name),
         ""});
}

const Registered<Rule> unset_rule{{
    .order = 356,
    .name = "unset",
    .title = "an unset variable in arithmetic or at the start of a path",
    .explain =
        "Without set -u, bash treats an unset variable as empty. The rule examines $(( )) and the start "
        "of paths: $data/train becomes /train. Uppercase names at the start "
        "of a path may be set by the site, and are reported only if a variable with a similar name is set.",
    .source = "bash(1), set -u",
    .check = check_unset,
}};

}  // namespace
}  // namespace nlaunch::lint

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "base/registry.h"
#include "base/text.h"
#include "lint/programs.h"
#include "lint/rule.h"
#include "lint/script_text.h"
#include "lint/shell_options.h"
#include "shell/words.h"

/// When a script exits, and with which code: failures that get lost, and failures that are none.
namespace nlaunch::lint {
namespace {

/// `code=$?` at the start of a line: bash traces only what it reaches.
bool takes_exit_code(const SourceSpan& span) {
  const auto line = span.source_line();
  const auto equals = line.find('=');
  if (equals == std::string::npos || !is_variable_name(line.substr(0, equals))) return false;
  const auto value = text::trim(std::string_view(line).substr(equals + 1));
  return value == "$?" || value == "\"$?\"" || value.starts_with("$? ") || value.starts_with("$?;");
}

bool is_indented(const SourceSpan& span) {
  return span.source_line().find_first_not_of(" \t") != 0;
}

void check_exit_code_lost(const LintInput& input, Report& report) {
  if (!input.script || has_exit_trap(*input.script)) return;
  std::map<int, bool> errexit;
  std::map<int, const ScriptCommand*> last;  // of each shell
  for (const auto& command : input.script->commands) {
    if (!errexit.contains(command.shell)) errexit[command.shell] = shebang_sets(*input.script, kErrexit);
    if (const auto now = sets_option(command, kErrexit)) errexit[command.shell] = *now;
    const auto* before = std::exchange(last[command.shell], &command);
    if (before == nullptr || !errexit[command.shell] || before->span.file != command.span.file ||
        before->span.line >= command.span.line || !takes_exit_code(command.span))
      continue;
    // Inside a function or a loop, the caller may check the failure.
    if (is_indented(command.span) || is_indented(before->span) || follows_test(before->span, command.span))
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
    pipefail = sets_option(command, kPipefail).value_or(pipefail);
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

/// True if it succeeds whatever the programs before it did, unlike `exit $code`.
bool always_succeeds(const ScriptCommand& command) {
  constexpr std::array<std::string_view, 29> kNames{
      "mv",    "cp",         "ls",    "du",     "tail",       "cat",    "echo",     "printf", "date",  "true",
      ":",     "export",     "unset", "sleep",  "deactivate", "pwd",    "hostname", "squeue", "sacct", "seff",
      "dcgmi", "nvidia-smi", "sync",  "module", "ml",         "uptime", "free",     "df",     "clear"};
  const auto& words = command.words;
  if (words[0] == "ray") return words.size() > 1 && words[1] == "stop";
  if (words[0] == "rm")
    return words.size() > 1 && words[1].starts_with('-') && words[1].find('f') != std::string::npos;
  if (words[0] == "exit")
    return words.size() > 1 && words[1] == "0" && command.span.source_line().find('$') == std::string::npos;
  if (words[0] == "wait") return words.size() == 1;
  const auto name = words[0].substr(0, words[0].find('='));
  const bool assigns = name.size() < words[0].size() && is_variable_name(name) &&
                       command.span.source_line().find("$(") == std::string::npos;
  return assigns || std::ranges::find(kNames, words[0]) != kNames.end();
}

/// True for a line that prints and does nothing else.
bool only_prints(std::string_view line) {
  const auto text = text::trim(line);
  return (text.starts_with("echo ") || text.starts_with("printf ")) &&
         text.find("&&") == std::string_view::npos && text.find("||") == std::string_view::npos &&
         text.find(';') == std::string_view::npos && text.find("$(") == std::string_view::npos;
}

/// True if the exit code that a line reads is printed and nothing else: `code=$?; echo $code`.
bool only_prints_code(const SourceLines& lines, std::uint32_t line) {
  if (only_prints(lines.line(line))) return true;
  static const RE2 kKeeps(
      R"re(^\s*([A-Za-z_]\w*)=["']?\$(\?|\{\?\}|\{PIPESTATUS\[\d+\]\})["']?\s*(#.*)?$)re");
  std::string name;
  if (!RE2::FullMatch(lines.line(line), kKeeps, &name)) return false;
  for (const auto number : lines_of_commands(lines)) {
    const auto command = lines.command(number);
    const bool keeps = text::trim(command).starts_with(name + "=") && RE2::PartialMatch(command, kKeeps);
    if (!keeps && !only_prints(command) && lines.find(name, number, lines.end_of_command(number)))
      return false;
  }
  return true;
}

/// True if the script checks, or may check, the exit code of a command starting on a line: a function may be
/// called in a test, which does not see the code of a program in the background.
bool looks_at_codes(const Script& script, std::uint32_t line, bool background = false) {
  const auto& text = script.file->text;
  const SourceLines lines(script.file);
  const auto begin = lines.line(line);
  const bool is_within = !background && (begin.starts_with(' ') || begin.starts_with('\t'));
  for (const auto* sign : {"() {", "(){", "function "})
    if (is_within && text.find(sign) != std::string::npos) return true;
  for (; line <= lines.count(); ++line) {
    const bool reads = std::ranges::any_of(std::array{"$?", "${?", "PIPESTATUS"}, [&](const char* sign) {
      return lines.line(line).find(sign) != std::string::npos;
    });
    if (reads && !only_prints_code(lines, line)) return true;
  }
  return std::ranges::any_of(script.commands, [](const ScriptCommand& command) {
    return command.words[0] == "wait" && command.words.size() > 1;
  });
}

/// The command with which the script ends. After set +x, which ends the trace, it is read from the text.
std::optional<ScriptCommand> last_command(const Script& script) {
  const ScriptCommand* last = nullptr;
  for (const auto& command : script.commands)
    if (command.shell == script.shell) last = &command;
  if (last == nullptr || sets_option(*last, kXtrace) != false)
    return last ? std::optional(*last) : std::nullopt;
  const SourceLines lines(script.file);
  const auto begins = lines_of_commands(lines);
  const auto text = begins.empty() ? std::string_view() : lines.line(begins.back());
  if (begins.empty() || begins.back() <= last->span.line || text.starts_with(' ') || text.starts_with('\t'))
    return std::nullopt;
  return ScriptCommand{.words = text::split(text::trim(text), ' '), .span = lines.whole(begins.back())};
}

/// The text of `srun bash -c '…'`: each of its tasks is a shell whose last command decides.
void check_code_of_task(const LintInput& input, const Step& step, Report& report) {
  const auto& script = *input.script;
  if (step.argv.empty() || !shell::is_shell(step.argv[0]) || step.span.file != script.file) return;
  const auto letter = std::ranges::find_if(
      step.argv, [](const std::string& word) { return word.starts_with('-') && word.ends_with('c'); });
  if (letter == step.argv.end() || letter + 1 == step.argv.end()) return;
  const auto& text = *(letter + 1);
  const bool looks =
      std::ranges::any_of(std::array{"$?", "${?", "PIPESTATUS", "||", "&&", "trap ", "if ", "wait $"},
                          [&](const char* sign) { return text.find(sign) != std::string::npos; });
  if (looks) return;
  struct Shell {
    bool errexit = false;
    const ScriptCommand* program = nullptr;
    const ScriptCommand* last = nullptr;
  };
  std::map<int, Shell> shells;
  for (const auto& command : script.commands) {
    if (command.shell == script.shell || command.span.file != script.file ||
        command.span.line != step.span.line || command.words[0] == "srun")
      continue;
    auto& one = shells[command.shell];
    if (command.works && !always_succeeds(command)) one.program = one.errexit ? nullptr : &command;
    one.errexit = sets_option(command, kErrexit).value_or(one.errexit);
    one.last = &command;
  }
  for (const auto& [id, one] : shells) {
    if (!always_succeeds(*one.last)) continue;
    const bool waits = one.last->words[0] == "wait";
    // A program in the background is run by a shell of its own.
    const auto* program = one.program;
    for (const auto& [other, child] : shells)
      if (waits && one.program == nullptr && other != id && child.program != nullptr) program = child.program;
    if (program == nullptr) continue;
    const auto name = shell::program_name(program->words[0]);
    return report.warning(
        step.span,
        {waits ? fmt::format("`wait` in this bash -c has no process id: a failure of {} is lost", name)
               : fmt::format("this bash -c ends with {}, which succeeds: a failure of {} is lost",
                             one.last->words[0], name),
         "srun gets the exit code of the shell that it starts: the step counts as a success",
         waits ? "wait $PID for each process id (PID=$! after the &), and exit with the codes"
               : "put set -e at the beginning of the text",
         ""});
  }
}

void check_exit_code_hidden(const LintInput& input, Report& report) {
  if (!input.script || input.script->commands.empty()) return;
  for (const auto& step : input.steps) check_code_of_task(input, step, report);
  const auto& script = *input.script;
  if (!ran_to_its_end(script) || !(input.slurm || !input.batch.empty()) || has_exit_trap(script)) return;
  bool errexit = shebang_sets(script, kErrexit);
  const ScriptCommand* program = nullptr;
  const auto last = last_command(script);
  for (const auto& command : script.commands) {
    // The first command that a line starts is the one that it names: srun.
    const bool same = program != nullptr && program->span.line == command.span.line;
    // mv and cp are recorded as work of the job, but are not what it is for.
    if (command.works && command.span.file == script.file && !same && !always_succeeds(command))
      program = errexit && !command.background ? nullptr : &command;
    if (command.shell != script.shell) continue;
    errexit = sets_option(command, kErrexit).value_or(errexit);
  }
  if (program == nullptr || !last || last->span.file != script.file ||
      last->span.line <= program->span.line || !always_succeeds(*last) ||
      looks_at_codes(script, program->span.line, program->background))
    return;
  auto behind = last->span;
  ++behind.line;
  const bool waits = last->words[0] == "wait";
  if (follows_test(waits ? last->span : program->span, behind)) return;
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

/// The name of a program that fails if there is no process to signal; empty for any other command.
std::string name_of_killer(const ScriptCommand& command) {
  auto name = shell::program_name(command.words[0]);
  return name == "pkill" || name == "killall" || name == "kill" ? name : std::string();
}

/// True if a program that a command starts stands alone on its line: its exit code is that of the line. An
/// EXIT trap appears to run on the first line, which does not name the program.
bool stands_alone(const SourceLines& lines, std::uint32_t line, std::string_view program) {
  const auto command = lines.command(line);
  if (command.find(program) == std::string::npos) return false;
  const auto text = text::trim(command);
  const auto has = [&](std::string_view sign) { return text.find(sign) != std::string_view::npos; };
  return !command.starts_with(' ') && !command.starts_with('\t') && !text.starts_with("if ") &&
         !text.starts_with("! ") && !has("||") && !has("&&") && !has(" | ") && !has("then ") &&
         !text.ends_with('&');
}

/// A program in the background whose name or arguments the pattern of a pkill may match.
bool may_match(const Script& script, const ScriptCommand& command) {
  return std::ranges::any_of(script.programs, [&](const Program& program) {
    if (!program.background || !program.works) return false;
    const auto words = text::join(program.words, " ");
    return std::any_of(command.words.begin() + 1, command.words.end(), [&](const std::string& word) {
      return !word.starts_with('-') && words.find(word) != std::string::npos;
    });
  });
}

void tell_cleanup_fails(const ScriptCommand& command, const std::string& name, bool worked, Report& report) {
  const std::string instead = "add || true at the end of the line";
  if (name == "kill") {
    report.note(command.span,
                {"kill fails if the process has already exited, and set -e then exits the script with 1",
                 "a job that finished its work then counts as failed, and the lines below do not run",
                 instead, "bash(1), set -e, kill"});
    return;
  }
  report.warning(
      command.span,
      {fmt::format("{} fails if it finds no process, and set -e then exits the script with 1", name),
       worked ? "a job that finished its work then counts as failed, and the lines below do not run"
              : "where nothing is left over from an earlier run, the script stops before it starts anything",
       instead, ""});
}

void check_cleanup_fails(const LintInput& input, Report& report) {
  if (!input.script || input.script->commands.empty()) return;
  const auto& script = *input.script;
  const SourceLines lines(script.file);
  const auto shell = script.shell;
  bool errexit = shebang_sets(script, kErrexit);
  bool worked = false;
  std::set<std::string> killed;
  std::set<bool> told;  // of kill, and of the others
  for (const auto& command : script.commands) {
    // A program in the background still runs until the script does something else.
    worked = worked || (command.works && !command.background) || command.words[0] == "wait";
    if (command.shell != shell) continue;
    errexit = sets_option(command, kErrexit).value_or(errexit);
    const auto name = name_of_killer(command);
    if (!errexit || name.empty() || command.span.file != script.file ||
        !stands_alone(lines, command.span.line, name))
      continue;
    const bool kill = name == "kill";
    // The first pkill finds what the script itself has started.
    const bool finds =
        !kill && killed.insert(text::join(command.words, " ")).second && may_match(script, command);
    if (finds || (kill && !worked) || !told.insert(kill).second) continue;
    tell_cleanup_fails(command, name, worked, report);
  }
}

const Registered<Rule> cleanup_fails_rule{{
    .order = 369,
    .name = "cleanup-fails",
    .title = "a cleanup under set -e that fails if there is nothing to clean up",
    .explain =
        "pkill and killall exit with 1 if no process matches, kill if the process no longer exists. Under "
        "set -e the script exits there: at its beginning before it starts anything, at its end with a "
        "failure "
        "after all work succeeded. Only commands outside blocks and functions are examined.",
    .source = "pkill(1), EXIT STATUS; bash(1), set -e",
    .check = check_cleanup_fails,
}};

/// The lines of the script whose program runs in the foreground more than once, without set -e: how often.
std::map<std::uint32_t, std::size_t> repeated_programs(const Script& script) {
  std::map<std::uint32_t, std::size_t> times;
  bool errexit = shebang_sets(script, kErrexit);
  const auto shell = script.shell;
  for (const auto& command : script.commands) {
    if (command.shell != shell) continue;
    errexit = sets_option(command, kErrexit).value_or(errexit);
    if (command.works && !command.background && !errexit && command.span.file == script.file)
      ++times[command.span.line];
  }
  return times;
}

void check_exit_code_of_last(const LintInput& input, Report& report) {
  if (!input.script || input.script->commands.empty() || input.batch.empty()) return;
  const auto& script = *input.script;
  if (!ran_to_its_end(script) || has_exit_trap(script)) return;
  const auto last = last_command(script);
  if (!last || last->span.file != script.file) return;
  const SourceLines lines(script.file);
  for (const auto& [line, count] : repeated_programs(script)) {
    // Otherwise the script's last command hides all of them.
    const bool decides = last->works && last->span.line == line;
    auto behind = lines.whole(line);
    behind.line = lines.end_of_command(line) + 1;
    if (count < 2 || !decides || follows_test(lines.whole(line), behind) || looks_at_codes(script, line))
      continue;
    const auto name = shell::program_name(last->words[0]);
    return report.note(
        last->span,
        {fmt::format("this line runs {} {} times, and only the last one decides whether the job failed", name,
                     count),
         "without set -e a failure of the others is lost: Slurm considers the job successful and starts "
         "dependent "
         "jobs (afterok)",
         fmt::format("{} … || code=$?, and at the end: exit ${{code:-0}}", name), ""});
  }
}

const Registered<Rule> exit_code_of_last_rule{{
    .order = 373,
    .name = "exit-code-of-last",
    .title = "a loop of programs of which only the last one's failure counts",
    .explain =
        "A loop returns the exit code of the last command of its last turn. Without set -e, bash continues "
        "after a turn that failed.",
    .source = "bash(1), Compound Commands; EXIT STATUS",
    .check = check_exit_code_of_last,
}};

void check_cancels_itself(const LintInput& input, Report& report) {
  if (!input.script || !(input.slurm || !input.batch.empty())) return;
  const auto& script = *input.script;
  const ScriptCommand* last = nullptr;
  bool worked = false;
  for (const auto& command : script.commands) {
    if (command.span.file != script.file) continue;
    worked = worked || command.works;
    if (command.shell == script.shell && command.words[0] != "exit" && command.words[0] != "echo")
      last = &command;
  }
  const SourceLines lines(script.file);
  if (last == nullptr || !worked || last->words[0] != "scancel" ||
      lines.command(last->span.line).find("SLURM_JOB") == std::string::npos)
    return;
  report.warning(last->span,
                 {"the job ends by cancelling itself: Slurm considers it CANCELLED, whatever it did",
                  "success and failure look the same in sacct, and dependent jobs (afterok) never start",
                  "kill what still runs (kill $PID), and let the script end", ""});
}

const Registered<Rule> cancels_itself_rule{{
    .order = 377,
    .name = "cancels-itself",
    .title = "a job that cancels itself at its end",
    .explain =
        "scancel of its own job stops everything that still runs, but the job's state is then CANCELLED. "
        "A batch script that exits also ends everything that it started.",
    .source = "scancel(1); squeue(1), JOB STATE CODES",
    .check = check_cancels_itself,
}};

void check_status_of_test(const LintInput& input, Report& report) {
  if (!input.script) return;
  static const RE2 kTest(R"re(^\s*if\s+(\[\[?|test|\(\()\s.*\$\?.*(?:;\s*then)?\s*$)re");
  static const RE2 kReads(R"re(^[^'#]*[^'#\\]\$\?)re");
  const SourceLines lines(input.script->file);
  for (const auto number : lines_of_commands(lines)) {
    if (!RE2::FullMatch(lines.line(number), kTest)) continue;
    auto next = number + 1;
    if (text::trim(lines.line(next)) == "then") ++next;
    if (!RE2::PartialMatch(lines.line(next), kReads)) continue;
    return report.warning(lines.find_text("$?", next, next),
                          {"$? is 0 here: it is the exit code of the test, not of the program",
                           "each command sets $?, also [ ]: the code that is printed or returned is wrong",
                           "code=$? before the test, then $code", ""});
  }
}

const Registered<Rule> status_of_test_rule{{
    .order = 387,
    .name = "status-of-test",
    .title = "$? read behind the test of $?",
    .explain = "In `if [ $? -ne 0 ]; then echo $?`, the second $? is the exit code of [ ], which is 0.",
    .source = "bash(1), Special Parameters",
    .check = check_status_of_test,
}};

/// The lines of the commands of a function; empty if the text does not have it.
std::vector<std::uint32_t> body_of(const SourceLines& lines, const std::string& name) {
  const RE2 begins(R"re(^(?:function\s+)?)re" + name + R"re(\s*(?:\(\))?\s*\{\s*$)re");
  std::vector<std::uint32_t> body;
  bool within = false;
  for (const auto number : lines_of_commands(lines)) {
    const auto line = lines.line(number);
    if (within && line.starts_with('}')) return body;
    if (within) body.push_back(number);
    within = within || RE2::FullMatch(line, begins);
  }
  return {};
}

/// `if ! scontrol requeue …; then echo FAILED; fi … exit 0` in a trap handler.
void check_handler_succeeds(const Script& script, const SourceLines& lines, Report& report) {
  static const RE2 kTries(R"re(^\s*if\s+!\s+(scontrol\s+requeue|sbatch)\s[^;|&]*;\s*then\s*$)re");
  static const RE2 kPrinted(R"re(^\s*(?:echo|printf)\s[^;|]*$|\|\|\s*true\s*$)re");
  std::set<std::string> told;
  for (const auto& trap : script.commands) {
    if (trap.words[0] != "trap" || trap.words.size() < 3 || !is_variable_name(trap.words[1]) ||
        !told.insert(trap.words[1]).second)
      continue;
    const auto body = body_of(lines, trap.words[1]);
    if (body.empty() || text::trim(lines.line(body.back())) != "exit 0") continue;
    for (std::size_t i = 0; i < body.size(); ++i) {
      std::string tried;
      if (!RE2::FullMatch(lines.line(body[i]), kTries, &tried)) continue;
      auto end = i + 1;
      while (end < body.size() && RE2::PartialMatch(lines.line(body[end]), kPrinted)) ++end;
      if (end == body.size() || text::trim(lines.line(body[end])) != "fi") continue;
      return report.note(
          lines.whole(body[i]),
          {fmt::format("a failure of {} is printed, and the handler exits with 0", tried),
           "Slurm considers the job successful, though it does not run again", "exit 1 in this branch", ""});
    }
  }
}

void check_failure_only_printed(const LintInput& input, Report& report) {
  if (!input.script || !(input.slurm || !input.batch.empty())) return;
  const auto& script = *input.script;
  const SourceLines lines(script.file);
  check_handler_succeeds(script, lines, report);
  static const RE2 kPrints(
      R"re(\|\|\s*(?:\{\s*)?(?:echo|printf)\s+("[^"]*"|'[^']*'|[^"';&|>$(])*\s*;?\s*\}?\s*$)re");
  for (const auto& command : script.commands) {
    if (!command.works || command.background || command.span.file != script.file) continue;
    const auto text = lines.command(command.span.line);
    if (!RE2::PartialMatch(text, kPrints)) continue;
    const auto name = shell::program_name(command.words[0]);
    return report.note(
        command.span,
        {fmt::format("a failure of {} is printed, and nothing else", name),
         "the script goes on, and its exit code does not tell: Slurm considers the job successful",
         "|| { echo FAILED; code=1; }, and at the end: exit ${code:-0}", ""});
  }
}

const Registered<Rule> failure_only_printed_rule{{
    .order = 378,
    .name = "failure-only-printed",
    .title = "a failure that is printed and then forgotten",
    .explain = "`program || echo FAILED` succeeds: neither set -e nor Slurm sees that the program failed.",
    .source = "bash(1), Lists",
    .check = check_failure_only_printed,
}};

/// Functions of the script that print what they are given, and do nothing else: `log() { echo "$*"; }`.
std::set<std::string> printing_functions(const SourceLines& lines) {
  static const RE2 kWhole(
      R"re(^\s*(?:function\s+)?([A-Za-z_]\w*)\s*\(\)\s*\{\s*(?:echo|printf)\s[^;&|<>]*;?\s*\}\s*$)re");
  static const RE2 kBegins(R"re(^\s*(?:function\s+)?([A-Za-z_]\w*)\s*\(\)\s*\{\s*$)re");
  static const RE2 kBody(
      R"re(^\s*(?:local\s[^;&|]*|(?:echo|printf)\s[^;&|<>]*(?:>&2\s*)?(?:\|\s*tee\s[^;&|<>]*)?)$)re");
  std::set<std::string> functions;
  std::string name;
  const auto begins = lines_of_commands(lines);
  for (std::size_t i = 0; i < begins.size(); ++i) {
    const auto line = lines.line(begins[i]);
    if (RE2::FullMatch(line, kWhole, &name)) functions.insert(name);
    if (!RE2::FullMatch(line, kBegins, &name)) continue;
    auto end = i + 1;
    while (end < begins.size() && RE2::FullMatch(lines.command(begins[end]), kBody)) ++end;
    if (end < begins.size() && text::trim(lines.line(begins[end])) == "}") functions.insert(name);
  }
  return functions;
}

/// What a line behind `code=$?` does with the code.
class CodeReader {
 public:
  CodeReader(const SourceLines& lines, std::string name)
      : lines_(lines), name_(std::move(name)), functions_(printing_functions(lines)) {}

  /// True if these lines test the code and print, and the script ends with printing.
  [[nodiscard]] bool only_prints(std::span<const std::uint32_t> begins) const {
    bool in_test = false;  // of the code: all branches have to print
    bool tests = false;
    bool prints_last = false;
    for (const auto number : begins) {
      const auto command = lines_.command(number);
      const auto text = text::trim(command);
      const bool names = static_cast<bool>(lines_.find(name_, number, lines_.end_of_command(number)));
      prints_last = is_print(text) || text == "exit 0";
      if (prints_last) continue;
      if (in_test) {
        prints_last = text == "fi";
        in_test = !prints_last;
        if (prints_last || text == "else" || text == "then" || is_test(text, "elif")) continue;
        return false;
      }
      if (names && !is_test(text, "if")) return false;
      in_test = names;
      tests = tests || names;
      if (!names && may_end(text)) return false;
    }
    return prints_last && tests;
  }

 private:
  [[nodiscard]] bool is_print(std::string_view text) const {
    static const RE2 kPrint(R"re(^([A-Za-z_]\w*)(?:\s[^;&|<>`]*(?:>&2\s*)?)?$)re");
    static const RE2 kHarmless(R"re(\$\((?:date|hostname)\b[^()]*\)|\$\(\([^()]*\)\))re");
    std::string plain(text);
    RE2::GlobalReplace(&plain, kHarmless, "");
    std::string program;
    return plain.find("$(") == std::string::npos && RE2::FullMatch(plain, kPrint, &program) &&
           (program == "echo" || program == "printf" || functions_.contains(program));
  }
  static bool is_test(std::string_view text, std::string_view word) {
    static const RE2 kTest(R"re(^(if|elif)\s+(?:\[|\[\[|\(\(|test)\s[^`;&|]*(?:;\s*then)?$)re");
    std::string begin;
    return RE2::FullMatch(text, kTest, &begin) && begin == word && text.find("$(") == std::string_view::npos;
  }
  /// It may end the script, or hand the rest over to something else.
  static bool may_end(std::string_view text) {
    static const RE2 kEnds(
        R"re(\b(?:exit|return|exec|eval|source|kill|scancel|trap|sbatch|scontrol|false)\b|^\.\s)re");
    return RE2::PartialMatch(text, kEnds);
  }

  const SourceLines& lines_;
  std::string name_;
  std::set<std::string> functions_;
};

/// True if the command that ran before one of the main shell does the work: the programs of a pipe have
/// shells of their own.
bool follows_work(const Script& script, std::size_t at) {
  while (at > 0) {
    const auto& command = script.commands[--at];
    if (command.works && !command.background && command.span.file == script.file && !always_succeeds(command))
      return true;
    if (command.shell == script.shell) return false;
  }
  return false;
}

void check_exit_code_printed(const LintInput& input, Report& report) {
  if (!input.script || !ran_to_its_end(*input.script) || has_exit_trap(*input.script)) return;
  const auto& script = *input.script;
  static const RE2 kKeeps(
      R"re(^([A-Za-z_]\w*)=["']?\$(?:\?|\{\?\}|\{PIPESTATUS\[\d+\]\})["']?\s*(?:#.*)?$)re");
  const SourceLines lines(script.file);
  const auto begins = lines_of_commands(lines);
  bool errexit = shebang_sets(script, kErrexit);
  for (std::size_t i = 0; i < script.commands.size(); ++i) {
    const auto& command = script.commands[i];
    if (command.shell != script.shell || command.span.file != script.file) continue;
    errexit = sets_option(command, kErrexit).value_or(errexit);
    const auto line = lines.line(command.span.line);
    std::string name;
    if (errexit || !RE2::FullMatch(line, kKeeps, &name) || !command.words[0].starts_with(name + "=") ||
        !follows_work(script, i))
      continue;
    const auto behind = std::ranges::upper_bound(begins, command.span.line);
    if (behind == begins.end() || !CodeReader(lines, name).only_prints({behind, begins.end()})) continue;
    const bool slurm = input.slurm || !input.batch.empty();
    return report.warning(
        command.span,
        {fmt::format("{} is printed, and then forgotten: the script exits with 0 after a failure", name),
         slurm ? "Slurm considers the job successful and starts dependent jobs (afterok)"
               : "whatever starts the script takes the failure for a success",
         fmt::format("exit \"${}\" at the end", name), ""});
  }
}

const Registered<Rule> exit_code_printed_rule{{
    .order = 379,
    .name = "exit-code-printed",
    .title = "an exit code that is kept, printed and then forgotten",
    .explain =
        "A script exits with the exit code of its last command: that of the echo which prints the code "
        "of the program, and not that code.",
    .source = "bash(1), EXIT STATUS",
    .check = check_exit_code_printed,
}};

/// The filter at the end of a pipeline in the background: "tee" for `python a.py | tee log &`; empty if there
/// is none.
std::string filter_in_background(std::string_view command) {
  static const RE2 kFilter(R"re([^|]\|&?\s*(tee|grep|sed|awk|ts)\s[^|]*[^&|>]&\s*$)re");
  std::string name;
  return RE2::PartialMatch(command, kFilter, &name) ? name : std::string();
}

/// What the text does with a variable that has a process id: `kill $PID`, `wait "$PID"`.
bool passes_to(const Script& script, const std::string& command, const std::string& variable) {
  const RE2 use(fmt::format(R"re((?m)^[^#\n]*\b{}\b[^;|&\n]*\$\{{?{}\b)re", command, variable));
  return use.ok() && RE2::PartialMatch(script.file->text, use);
}

void check_pid_of_tee(const LintInput& input, Report& report) {
  if (!input.script) return;
  const auto& script = *input.script;
  const SourceLines lines(script.file);
  const auto begins = lines_of_commands(lines);
  const bool pipefail = script.file->text.find("pipefail") != std::string::npos;
  for (std::size_t i = 0; i + 1 < begins.size(); ++i) {
    const auto filter = filter_in_background(lines.command(begins[i]));
    const auto next = begins[i + 1];
    if (filter.empty()) continue;
    static const RE2 kKeeps(R"re(^\s*([A-Za-z_]\w*)=["']?\$!)re");
    std::string variable;
    if (!RE2::PartialMatch(lines.line(next), kKeeps, &variable)) continue;
    const bool kills = passes_to(script, "kill", variable);
    const bool waits = passes_to(script, "wait", variable) && !pipefail;
    if (!kills && !waits) continue;
    report.warning(
        lines.whole(next),
        {fmt::format("$! is the process id of {}, the last program of the pipe", filter),
         kills
             ? fmt::format("kill ${} stops {}, and the program that does the work runs on", variable, filter)
             : fmt::format("wait ${} returns the exit code of {}: a failure of the program is lost", variable,
                           filter),
         filter == "tee" ? "program > >(tee log) 2>&1 &" : fmt::format("program > >({} …) 2>&1 &", filter),
         ""});
  }
}

const Registered<Rule> pid_of_tee_rule{{
    .order = 376,
    .name = "pid-of-tee",
    .title = "a process id that belongs to tee, not to the program",
    .explain = "$! is the process id of the last program of a pipe. After `program | tee log &`, kill and "
               "wait act on "
               "tee. With set -o pipefail, wait at least returns the exit code of the program.",
    .source = "bash(1), Special Parameters; Pipelines",
    .check = check_pid_of_tee,
}};

}  // namespace
}  // namespace nlaunch::lint

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/registry.h"
#include "base/text.h"
#include "lint/programs.h"
#include "lint/rule.h"
#include "lint/script_text.h"
#include "lint/shell_options.h"
#include "shell/words.h"

/// Exit codes that are lost because the script, or the shell of a task, ends with another command.
namespace nlaunch::lint {
namespace {

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
  const auto name = keeps_exit_code(lines.line(line));
  if (!name) return false;
  for (const auto number : lines_of_commands(lines)) {
    const auto command = lines.command(number);
    if (keeps_exit_code(command) != name && !only_prints(command) &&
        lines.find(*name, number, lines.end_of_command(number)))
      return false;
  }
  return true;
}

/// The ids that a `kill` is given: `kill -9 $A $B`.
std::set<std::string> killed_ids(const Script& script) {
  std::set<std::string> ids;
  for (const auto& command : script.commands)
    if (command.words[0] == "kill" && !shell::has(command.words, "-0"))
      ids.insert(command.words.begin() + 1, command.words.end());
  return ids;
}

/// `wait $PID` behind `kill $PID`: it returns the exit code of what was killed.
bool waits_for_killed(const Script& script, const ScriptCommand& command) {
  if (command.words[0] != "wait" || command.words.size() < 2) return false;
  const auto ids = killed_ids(script);
  return std::all_of(command.words.begin() + 1, command.words.end(),
                     [&](const std::string& id) { return ids.contains(id); });
}

/// `wait $PID` whose exit code decides: under set -e, in a test, or at the end.
bool waits_for_code(const Script& script) {
  static const RE2 kTests(R"(^\s*(?:if|elif|while|until|!)\s|\|\||&&)");
  const SourceLines lines(script.file);
  bool errexit = shebang_sets(script, kErrexit);
  const ScriptCommand* last = nullptr;
  for (const auto& command : script.commands)
    if (command.shell == script.shell) last = &command;
  for (const auto& command : script.commands) {
    if (command.shell == script.shell) errexit = sets_option(command, kErrexit).value_or(errexit);
    if (command.words[0] != "wait" || command.words.size() < 2 || waits_for_killed(script, command)) continue;
    const auto line = lines.line(command.span.line);
    const bool within = line.starts_with(' ') || line.starts_with('\t');
    if (errexit || within || &command == last || command.span.file != script.file ||
        RE2::PartialMatch(line, kTests))
      return true;
  }
  return false;
}

/// True if the script checks, or may check, the exit code of a command starting on a line: a function may be
/// called in a test, which does not see the code of a program in the background.
bool looks_at_codes(const Script& script, std::uint32_t line, bool background = false) {
  const SourceLines lines(script.file);
  const auto begin = lines.line(line);
  const bool is_within = !background && (begin.starts_with(' ') || begin.starts_with('\t'));
  if (is_within && tests_a_function(lines)) return true;
  for (; line <= lines.count(); ++line) {
    const bool reads = std::ranges::any_of(std::array{"$?", "${?", "PIPESTATUS"}, [&](const char* sign) {
      return lines.line(line).find(sign) != std::string::npos;
    });
    if (reads && !only_prints_code(lines, line)) return true;
  }
  return waits_for_code(script);
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
  if (!begins.empty() && begins.back() == last->span.line) return *last;
  const auto text = begins.empty() ? std::string_view() : lines.line(begins.back());
  if (begins.empty() || begins.back() <= last->span.line || text.starts_with(' ') || text.starts_with('\t'))
    return std::nullopt;
  return ScriptCommand{.words = text::split(text::trim(text), ' '), .span = lines.whole(begins.back())};
}

/// The text of `srun bash -c '…'`: each of its tasks is a shell whose last command decides.
void check_code_of_task(const LintInput& input, const Step& step, Report& report) {
  const auto& script = *input.script;
  if (step.argv.empty() || step.span.file != script.file) return;
  const auto text = shell::text_of_shell(step.argv);
  if (!text) return;
  const bool looks =
      std::ranges::any_of(std::array{"$?", "${?", "PIPESTATUS", "||", "&&", "trap ", "if ", "wait $"},
                          [&](const char* sign) { return text->contains(sign); });
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
  // `kill $PID`, and `wait $PID` behind it.
  const bool kills = last && (last->words[0] == "kill" || waits_for_killed(script, *last));
  if (program == nullptr || !last || last->span.file != script.file ||
      last->span.line <= program->span.line || (!kills && !always_succeeds(*last)) ||
      looks_at_codes(script, program->span.line, program->background) || tells_failure(script, program->span))
    return;
  auto behind = last->span;
  ++behind.line;
  const bool waits = last->words[0] == "wait" && !kills;
  if (follows_test(waits ? last->span : program->span, behind)) return;
  // A background program that nothing waits for is killed when the script exits.
  const bool is_awaited = std::ranges::any_of(script.commands, [&](const ScriptCommand& command) {
    return &command > program && command.shell == script.shell && command.words[0] == "wait" &&
           !waits_for_killed(script, command);
  });
  if (program->background && !waits && !is_awaited) return;
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

/// The launchers that run in the foreground on different lines, one after the other, without set -e.
std::vector<const ScriptCommand*> launchers_in_turn(const Script& script) {
  constexpr std::array<std::string_view, 6> kLaunchers{"srun",     "mpirun",     "mpiexec",
                                                       "torchrun", "accelerate", "deepspeed"};
  std::vector<const ScriptCommand*> found;
  bool errexit = shebang_sets(script, kErrexit);
  for (const auto& command : script.commands) {
    if (command.shell != script.shell) continue;
    errexit = sets_option(command, kErrexit).value_or(errexit);
    const bool launches =
        std::ranges::find(kLaunchers, shell::program_name(command.words[0])) != kLaunchers.end();
    if (!launches || !command.works || command.background || errexit || command.span.file != script.file)
      continue;
    if (found.empty() || found.back()->span.line != command.span.line) found.push_back(&command);
  }
  return found;
}

/// `torchrun a.py`, then `mpirun b`: the job fails only if the last one does.
void check_launchers_in_turn(const Script& script, const ScriptCommand& last, Report& report) {
  const SourceLines lines(script.file);
  const auto launchers = launchers_in_turn(script);
  if (launchers.size() < 2 || launchers.back()->span.line != last.span.line) return;
  const auto& first = *launchers.front();
  auto behind = lines.whole(first.span.line);
  behind.line = lines.end_of_command(first.span.line) + 1;
  if (follows_test(lines.whole(first.span.line), behind) || looks_at_codes(script, first.span.line) ||
      tells_failure(script, first.span))
    return;
  report.note(
      last.span,
      {fmt::format("only this line decides whether the job failed: a failure of {} in line {} is lost",
                   shell::program_name(first.words[0]), first.span.line),
       "without set -e the script continues: Slurm considers the job successful and starts dependent jobs "
       "(afterok)",
       "add `set -e` above, or: … || code=$?, and at the end: exit ${code:-0}", ""});
}

void check_exit_code_of_last(const LintInput& input, Report& report) {
  if (!input.script || input.script->commands.empty() || input.batch.empty()) return;
  const auto& script = *input.script;
  if (!ran_to_its_end(script) || has_exit_trap(script)) return;
  const auto last = last_command(script);
  if (!last || last->span.file != script.file) return;
  check_launchers_in_turn(script, *last, report);
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
    .title = "programs of which only the last one's failure counts",
    .explain =
        "A loop returns the exit code of the last command of its last turn, and a script that of its last "
        "command. Without set -e, bash continues after what failed.",
    .source = "bash(1), Compound Commands; EXIT STATUS",
    .check = check_exit_code_of_last,
}};

/// True if a line below tests whether the variable is empty.
bool is_tested_below(const SourceLines& lines, std::uint32_t number, const std::string& name) {
  constexpr std::uint32_t kNear = 12;
  const RE2 tests(fmt::format(
      R"re((?:-[zn]\s+|\[\[?\s+)"?\$\{{?{}\}}?"?\s*(?:\]|=|!=)|-[zn]\s+"?\$\{{?{}\b)re", name, name));
  for (auto at = number + 1; at <= number + kNear && at <= lines.count(); ++at)
    if (RE2::PartialMatch(lines.line(at), tests)) return true;
  return false;
}

void check_search_ends_script(const LintInput& input, Report& report) {
  if (!input.script) return;
  const auto& script = *input.script;
  OptionByShell errexit(script, kErrexit);
  OptionByShell pipefail(script, kPipefail);
  const SourceLines lines(script.file);
  static const RE2 kTakes(R"re(^\s*(?:export\s+)?(\w+)="?\$\((.*)\)"?\s*$)re");
  static const RE2 kLast(R"re(^\s*(?:\S*/)?[ef]?grep\s[^|]*$)re");
  static const RE2 kAny(R"re((?:^|\|)\s*(?:\S*/)?[ef]?grep\s)re");
  std::set<std::uint32_t> seen;
  for (const auto& command : script.commands) {
    const bool exits = errexit.after(command);
    const bool whole = pipefail.after(command);
    if (!exits || command.span.file != script.file || !seen.insert(command.span.line).second) continue;
    const auto text = lines.command(command.span.line);
    std::string name;
    std::string inner;
    if (!RE2::PartialMatch(text, kTakes, &name, &inner) || text.contains("||") ||
        text::trim(text).starts_with("export "))
      continue;
    const auto last = inner.substr(inner.rfind('|') + 1);
    const bool fails = RE2::PartialMatch(last, kLast) || (whole && RE2::PartialMatch(inner, kAny));
    if (!fails || !is_tested_below(lines, command.span.line, name)) continue;
    report.warning(command.span,
                   {"if grep finds nothing here, set -e ends the script",
                    fmt::format("the lines below provide for an empty {}, but are not reached then", name),
                    fmt::format("{}=$(… || true)", name), ""});
  }
}

const Registered<Rule> search_ends_script_rule{{
    .order = 548,
    .name = "search-ends-script",
    .title = "a search that ends the script if it finds nothing",
    .explain = "grep exits with 1 if it finds nothing, and so does NAME=$(grep …): under set -e that is the "
               "end. Reported if a line below tests whether NAME is empty.",
    .source = "grep(1), EXIT STATUS; bash(1), set -e",
    .check = check_search_ends_script,
}};

/// True if the `if` that ends on this line tests a command, and has no else.
bool tests_command_alone(const SourceLines& lines, std::uint32_t fi) {
  static const RE2 kTest(R"re(^\s*if\s+(?:!\s+)?(?:\[|\(\(|test\s))re");
  static const RE2 kNegated(R"re(^\s*if\s+!)re");
  const auto indent = lines.line(fi).find_first_not_of(" \t");
  for (auto at = fi - 1; at > 0; --at) {
    const auto line = lines.line(at);
    if (line.find_first_not_of(" \t") != indent) continue;
    const auto trimmed = text::trim(line);
    if (trimmed.starts_with("else") || trimmed.starts_with("elif") || trimmed == "fi") return false;
    if (trimmed.starts_with("if "))
      return !RE2::PartialMatch(line, kTest) && !RE2::PartialMatch(line, kNegated);
  }
  return false;
}

void check_status_of_if(const LintInput& input, Report& report) {
  if (!input.script) return;
  static const RE2 kReads(R"re(^\s*(?:local\s+)?\w+=["']?\$\?|^\s*if\s+\[+\s+"?\$\?)re");
  const SourceLines lines(input.script->file);
  for (const auto number : lines_of_commands(lines)) {
    if (text::trim(lines.line(number)) != "fi") continue;
    auto next = number + 1;
    while (next <= lines.count() && text::trim(lines.line(next)).empty()) ++next;
    if (!RE2::PartialMatch(lines.line(next), kReads) || !tests_command_alone(lines, number)) continue;
    report.error(lines.whole(next),
                 {"$? is the exit code of the if, not of the command that it tests",
                  "an if whose condition fails, without an else, exits with 0: the failure is lost",
                  "COMMAND; code=$?, and then the if", ""});
  }
}

const Registered<Rule> status_of_if_rule{{
    .order = 563,
    .name = "status-of-if",
    .title = "$? behind fi",
    .explain = "Reported for an if without else that tests a command.",
    .source = "bash(1), if",
    .check = check_status_of_if,
}};

void check_limit_ends_script(const LintInput& input, Report& report) {
  if (!input.script) return;
  const auto& script = *input.script;
  OptionByShell errexit(script, kErrexit);
  for (const auto& command : script.commands) {
    const bool exits = errexit.after(command);
    if (!exits || command.words[0] != "ulimit" || command.words.size() < 3 ||
        command.span.file != script.file)
      continue;
    const auto text = SourceLines(script.file).command(command.span.line);
    if (text.contains("||") || text.contains("&&") || text::trim(text).starts_with("if ") ||
        command.words[1] == "-c")
      continue;
    return report.note(
        command.span,
        {fmt::format("if the hard limit is below {}, set -e ends the script here",
                     text::printable(command.words[2])),
         "a user cannot raise it, and sites and containers have different ones",
         fmt::format("ulimit {} {} || true", command.words[1], text::printable(command.words[2])), ""});
  }
}

const Registered<Rule> limit_ends_script_rule{{
    .order = 572,
    .name = "limit-ends-script",
    .title = "ulimit under set -e",
    .explain = "ulimit fails if the limit is above the hard limit of the node.",
    .source = "bash(1), ulimit",
    .check = check_limit_ends_script,
}};

}  // namespace
}  // namespace nlaunch::lint

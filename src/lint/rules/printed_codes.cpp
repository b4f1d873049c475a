#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/registry.h"
#include "base/text.h"
#include "lint/programs.h"
#include "lint/rule.h"
#include "lint/script_text.h"
#include "lint/shell_options.h"
#include "shell/traps.h"
#include "shell/words.h"

/// Failures that a script prints instead of returning them, and exit codes that it prints wrongly.
namespace nlaunch::lint {
namespace {

/// `if ! scontrol requeue …; then echo FAILED; fi … exit 0` in a trap handler.
void check_handler_succeeds(const Script& script, const SourceLines& lines, Report& report) {
  static const RE2 kTries(R"re(^\s*if\s+!\s+(scontrol\s+requeue|sbatch)\s[^;|&]*;\s*then\s*$)re");
  static const RE2 kPrinted(R"re(^\s*(?:echo|printf)\s[^;|]*$|\|\|\s*true\s*$)re");
  std::set<std::string> told;
  for (const auto& command : script.commands) {
    const auto trap = shell::trap_of(command.words);
    if (!trap || !trap->handler || !is_variable_name(*trap->handler) || !told.insert(*trap->handler).second)
      continue;
    const auto body = body_of_function(lines, *trap->handler);
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
    if (!command.works || command.background || command.span.file != script.file ||
        tells_failure(script, command.span))
      continue;
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

  /// The lines behind an `if` that asks whether a program has failed: the branch of the failure only prints,
  /// and so does what follows. `failure_first`: that branch is the first one, not the one of `else`.
  [[nodiscard]] bool forgets_failure(std::span<const std::uint32_t> begins, bool failure_first) const {
    bool in_failure = failure_first;
    std::size_t depth = 1;
    for (const auto number : begins) {
      const auto command = lines_.command(number);
      const auto text = text::trim(command);
      if (depth == 0) {
        if (!is_print(text) && text != "exit 0") return false;
        continue;
      }
      if (text == "fi") {
        --depth;
      } else if (text.starts_with("if ")) {
        if (in_failure || text.ends_with("fi")) return false;
        ++depth;
      } else if (depth == 1 && (text == "else" || text.starts_with("elif "))) {
        if (text != "else") return false;
        in_failure = !in_failure;
      } else if (in_failure && text != "then" && !is_print(text)) {
        return false;
      }
    }
    return depth == 0;
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
  const SourceLines lines(script.file);
  const auto begins = lines_of_commands(lines);
  bool errexit = shebang_sets(script, kErrexit);
  for (std::size_t i = 0; i < script.commands.size(); ++i) {
    const auto& command = script.commands[i];
    if (command.shell != script.shell || command.span.file != script.file) continue;
    errexit = sets_option(command, kErrexit).value_or(errexit);
    const auto line = lines.line(command.span.line);
    const auto name = keeps_exit_code(line);
    // An indented line may be in a function or a branch, whose end is not that of the script.
    if (errexit || !name || !line.starts_with(*name) || !command.words[0].starts_with(*name + "=") ||
        !follows_work(script, i))
      continue;
    const auto behind = std::ranges::upper_bound(begins, command.span.line);
    if (behind == begins.end() || !CodeReader(lines, *name).only_prints({behind, begins.end()})) continue;
    const bool slurm = input.slurm || !input.batch.empty();
    return report.warning(
        command.span,
        {fmt::format("{} is printed, and then forgotten: the script exits with 0 after a failure", *name),
         slurm ? "Slurm considers the job successful and starts dependent jobs (afterok)"
               : "whatever starts the script takes the failure for a success",
         fmt::format("exit \"${}\" at the end", *name), ""});
  }
}

/// The first branch of an `if` is the one of the failure: `if ! srun …; then`, `if [ $? -ne 0 ]; then`;
/// nullopt if the line is no such test. `by_itself`: the line runs the program.
std::optional<bool> tests_failure(std::string_view line, bool by_itself) {
  static const RE2 kRuns(R"re(^if\s+(!\s+)?[^\s\[(].*?(?:;\s*then)?$)re");
  static const RE2 kReads(
      R"re(^if\s+(?:\[\[?|test|\(\()\s*"?\$\?"?\s*(-ne|!=|-gt|>|-eq|==?)\s*0\s*(?:\]\]?|\)\))?\s*(?:;\s*then)?$)re");
  std::string sign;
  const auto text = text::trim(line);
  if (by_itself) {
    if (text.find("||") != std::string_view::npos || text.find("&&") != std::string_view::npos ||
        !RE2::FullMatch(text, kRuns, &sign))
      return std::nullopt;
    return !sign.empty();
  }
  if (!RE2::FullMatch(text, kReads, &sign)) return std::nullopt;
  return sign != "-eq" && sign != "==" && sign != "=";
}

/// `if srun …; then echo OK; else echo FAILED; fi`, and the same with `if [ $? -ne 0 ]` in the next line.
void check_tested_failure(const LintInput& input, Report& report) {
  if (!input.script || !(input.slurm || !input.batch.empty()) || has_exit_trap(*input.script)) return;
  const auto& script = *input.script;
  if (!ran_to_its_end(script)) return;
  const SourceLines lines(script.file);
  const auto begins = lines_of_commands(lines);
  OptionByShell errexit(script, kErrexit);
  for (const auto& command : script.commands) {
    const bool ends = errexit.after(command);
    if (!command.works || command.background || command.span.file != script.file ||
        always_succeeds(command) || tells_failure(script, command.span))
      continue;
    const auto text = lines.command(command.span.line);
    if (text.starts_with(' ') || text.starts_with('\t')) continue;
    auto behind = std::ranges::upper_bound(begins, command.span.line);
    auto first = tests_failure(text, true);
    if (!first && !ends && behind != begins.end() && !text.starts_with("if ")) {
      first = tests_failure(lines.command(*behind), false);
      ++behind;
    }
    if (!first || !CodeReader(lines, "").forgets_failure({behind, begins.end()}, *first)) continue;
    return report.warning(
        command.span, {fmt::format("a failure of {} is tested, and then forgotten: the script exits with 0",
                                   shell::program_name(command.words[0])),
                       "Slurm considers the job successful and starts dependent jobs (afterok)",
                       "exit 1 in the branch of the failure", ""});
  }
}

const Registered<Rule> failure_forgotten_rule{{
    .order = 479,
    .name = "failure-forgotten",
    .title = "a failure that is tested and then forgotten",
    .explain =
        "An `if` ends with the exit code of the branch that ran: echo succeeds, and so does an `if` none "
        "of whose branches ran.",
    .source = "bash(1), Compound Commands",
    .check = check_tested_failure,
}};

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

}  // namespace
}  // namespace nlaunch::lint

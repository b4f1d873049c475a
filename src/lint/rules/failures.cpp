#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "base/registry.h"
#include "base/text.h"
#include "lint/programs.h"
#include "lint/rule.h"
#include "lint/script_text.h"
#include "shell/words.h"

/// What a script does when one of its programs fails, as bash did it (lint/trials.h).
namespace nlaunch::lint {
namespace {

using shell::program_name;

/// Rules that tell of a lost exit code by the text that loses it.
constexpr std::array<std::string_view, 9> kOthers{
    "exit-code-hidden",  "exit-code-of-tee", "exit-code-of-last", "failure-only-printed", "exit-code-printed",
    "failure-forgotten", "pid-of-tee",       "code-of-wait",      "endless-follow"};

/// `program || true`: its failure is meant not to matter.
bool is_ignored_on_purpose(const SourceLines& lines, const Program& program) {
  static const RE2 kWhatever(R"re(\|\|\s*(?:true|:)\s*\)?\s*;?\s*$)re");
  return program.called.file != lines.file() ||
         RE2::PartialMatch(text::trim(lines.command(program.called.line)), kWhatever);
}

/// What only moves files, or sets the scene.
bool only_prepares_files(const Program& program) {
  static const shell::Options kNames{"cp",    "mv",    "ln",    "rm",      "mkdir", "rmdir",
                                     "chmod", "chown", "touch", "install", "dd",    "ls",
                                     "tee",   "echo",  "sync",  "df",      "ulimit"};
  return kNames.contains(program_name(program.words[0]));
}

/// The first program that starts although this one has failed, and is not the same with other arguments;
/// nullptr if there is none.
const Program* started_in_spite(const LintInput& input, const Trial& trial) {
  const auto& script = *input.script;
  const auto& program = script.programs[trial.program];
  // A script that keeps the code knows of the failure.
  if (trial.serves || trial.exit_code != 0 || !trial.sure || !trial.replacements.empty() ||
      is_ignored_on_purpose(SourceLines(script.file), program) || only_prepares_files(program) ||
      is_server(program) || (program.background && !program.waited.is_awaited) ||
      (program.background && program_name(program.words[0]) == "ray"))
    return nullptr;
  const auto next = std::ranges::find_if(trial.later, [&](std::size_t i) {
    const auto& one = script.programs[i];
    // A line that bash takes for a program of its own: option-as-program.
    return one.called.file && !one.background && !one.words[0].starts_with('-') &&
           !only_prepares_files(one) && !shell::was_ended(program.waited, one.waited) &&
           shown_name(one) != shown_name(program) && !(one.step && one.step == program.step);
  });
  return next == trial.later.end() ? nullptr : &script.programs[*next];
}

/// "; the same is true of b.py in line 5 and c.py in line 7"
std::string name_others(const std::vector<const Program*>& others) {
  constexpr std::size_t kShown = 3;
  std::vector<std::string> names;
  for (const auto* program : others)
    if (names.size() < kShown)
      names.push_back(fmt::format("{} in line {}", shown_name(*program), program->called.line));
  if (names.empty()) return "";
  if (others.size() > kShown) names.push_back(fmt::format("{} more", others.size() - kShown));
  const auto last = names.back();
  names.pop_back();
  return fmt::format("; the same is true of {}{}{}", text::join(names, ", "), names.empty() ? "" : " and ",
                     last);
}

void check_failure_passed(const LintInput& input, Report& report) {
  if (!input.script) return;
  const Program* first = nullptr;
  const Program* next = nullptr;
  std::vector<const Program*> others;
  for (const auto& trial : input.script->trials) {
    const auto* started = started_in_spite(input, trial);
    if (started == nullptr) continue;
    const auto* program = &input.script->programs[trial.program];
    if (first == nullptr) {
      first = program;
      next = started;
    } else if (program->called.line != (others.empty() ? first : others.back())->called.line) {
      others.push_back(program);
    }
  }
  if (first == nullptr) return;
  report.note(
      first->called,
      {fmt::format("if {} fails, {} in line {} starts all the same, and the exit code does not show it{}",
                   shown_name(*first), shown_name(*next), next->called.line, name_others(others)),
       "it runs without what the first one should have made or started",
       first->background ? "wait for each by its process id: wait $PID || exit 1"
                         : "add `set -e` above, or … || exit 1 here",
       ""});
}

const Registered<Rule> failure_passed_rule{{
    .order = 488,
    .name = "failure-passed",
    .title = "a program that starts although the one before has failed",
    .explain = "bash ran the script again, and this program failed: the script went on. Not reported for the "
               "same program with other arguments, or if the line ends with || true.",
    .source = "bash(1), set -e",
    .check = check_failure_passed,
}};

void check_endless_retry(const LintInput& input, Report& report) {
  if (!input.script) return;
  for (const auto& trial : input.script->trials) {
    if (!trial.without_end) continue;
    const auto& program = input.script->programs[trial.program];
    return report.note(
        program.called,
        {fmt::format("if {} fails each time, the script starts it again and again, without a limit",
                     shown_name(program)),
         "a wrong option or a full disk fails at once, and the GPUs stay in use until somebody sees it",
         "count the tries: for try in 1 2 3; do … && break; done", ""});
  }
}

const Registered<Rule> endless_retry_rule{{
    .order = 517,
    .name = "endless-retry",
    .title = "a program that a loop starts again however often it fails",
    .explain = "bash ran the script again, and the program failed each time: the loop did not end. Not "
               "reported if the loop counts its tries.",
    .source = "bash(1), until, while",
    .check = check_endless_retry,
}};

void check_tries_unseen(const LintInput& input, Report& report) {
  if (!input.script) return;
  for (const auto& trial : input.script->trials) {
    if (!trial.tries_unseen) continue;
    const auto& program = input.script->programs[trial.program];
    return report.note(
        program.called,
        {fmt::format("if all tries of {} fail, the script still exits with 0", shown_name(program)),
         "whatever starts the script takes the failure for a success",
         "ok=1 where it succeeds, and behind the loop: [ \"$ok\" ] || exit 1", ""});
  }
}

const Registered<Rule> tries_unseen_rule{{
    .order = 530,
    .name = "tries-unseen",
    .title = "a program that is tried some times, and whose last failure nobody sees",
    .explain = "bash ran the script again, and the program failed each time: the script exited with 0.",
    .source = "bash(1), for, EXIT STATUS",
    .check = check_tries_unseen,
}};

/// A value that a failed program did not print.
void check_value_missing(const LintInput& input, Report& report) {
  if (!input.script) return;
  for (const auto& one : input.script->failed_values) {
    const auto& user = input.script->programs[one.used_by];
    report.note(one.span, {fmt::format("if {} fails, {} is empty, and {} in line {} starts all the same",
                                       one.program, one.variable, shown_name(user), user.span.line),
                           "it gets no value, or takes its next argument for one",
                           fmt::format("below: [ -n \"${}\" ] || exit 1", one.variable), ""});
  }
}

const Registered<Rule> value_missing_rule{{
    .order = 516,
    .name = "value-missing",
    .title = "a program that starts without the value that a failed one should have printed",
    .explain = "bash ran the script again, and the program in $(...) failed: the variable was empty, and the "
               "program that uses it started. Not reported if the script tests the exit code or the value.",
    .source = "bash(1), Command Substitution; Simple Command Expansion",
    .check = check_value_missing,
}};

void check_failure_unseen(const LintInput& input, Report& report) {
  if (!input.script) return;
  const auto& script = *input.script;
  const SourceLines lines(script.file);
  std::vector<const Trial*> unseen;
  for (const auto& trial : script.trials) {
    const auto& program = script.programs[trial.program];
    // The end of a job ends a step in the background, which may be all that it does.
    const bool only_steps = program.step && std::ranges::none_of(script.programs, [](const Program& one) {
                              return one.works && !one.background;
                            });
    const bool is_awaited = !program.background || program.waited.is_awaited || only_steps ||
                            program_name(program.words[0]) == "ray";
    const bool serves = trial.serves || is_server(program);
    if (!serves && trial.exit_code == 0 && trial.sure && trial.replacements.empty() && is_awaited &&
        !only_prepares_files(program) && !is_ignored_on_purpose(lines, program) &&
        started_in_spite(input, trial) == nullptr)
      unseen.push_back(&trial);
  }
  if (unseen.empty() || report.has_any_of(kOthers)) return;
  const auto& first = script.programs[unseen.front()->program];
  const auto turns = unseen.front()->turns;
  std::string others;
  if (unseen.size() == 2) {
    const auto& other = script.programs[unseen[1]->program];
    others = fmt::format(" or {} in line {}", shown_name(other), other.called.line);
  }
  if (unseen.size() > 2) others = fmt::format(" or one of {} others", unseen.size() - 1);
  const bool job = input.slurm || !input.batch.empty();
  const auto what = fmt::format("if {}{}{} fails, the script still exits with 0",
                                turns > 1 ? fmt::format("the first of the {} runs of ", turns) : "",
                                shown_name(first), others);
  const auto* why = job ? "Slurm considers the job successful and starts dependent jobs (afterok)"
                        : "whatever starts the script takes the failure for a success";
  report.note(first.called, {what, why, "keep the code: … || code=$?, and at the end: exit ${code:-0}", ""});
}

const Registered<Rule> failure_unseen_rule{{
    .order = 489,
    .name = "failure-unseen",
    .title = "a failure that the script's exit code does not tell",
    .explain =
        "bash ran the script again, and this program failed: the script exited with 0. Not reported if "
        "another rule tells where the exit code is lost, or if the line ends with || true.",
    .source = "bash(1), EXIT STATUS",
    .check = check_failure_unseen,
}};

void check_server_fails(const LintInput& input, Report& report) {
  constexpr std::array<std::string_view, 3> kToldOfWait{"endless-wait", "blind-wait", "wait-runs-out"};
  constexpr std::array<std::string_view, 1> kToldOfClient{"death-unnoticed"};
  constexpr std::uint64_t kLong = 120;  // seconds
  if (!input.script || report.has_any_of(kToldOfWait)) return;
  const auto& script = *input.script;
  for (const auto& trial : script.trials) {
    if (!trial.serves || (!trial.waits && !trial.exit_code)) continue;
    const auto& server = script.programs[trial.program];
    const auto failure = fmt::format("if {} {}", shown_name(server),
                                     is_engine(server) ? "ends while it loads" : "fails at its start");
    const std::string why =
        "a server that fails while it loads (memory, a wrong option) ends at once, and the job holds its "
        "GPUs until the wait is over";
    const auto client = std::ranges::find_if(trial.later, [&](std::size_t i) {
      return !script.programs[i].background && !is_server(script.programs[i]);
    });
    if (trial.waits)
      return report.note(server.span, {fmt::format("{}, the script waits for it for more than {}, or forever",
                                                   failure, shown_duration(trial.waited)),
                                       why, "in the loop: kill -0 $PID || exit 1", ""});
    if (client != trial.later.end() && !report.has_any_of(kToldOfClient)) {
      return report.note(
          server.span, {fmt::format("{}, {} in line {} starts all the same", failure,
                                    shown_name(script.programs[*client]), script.programs[*client].span.line),
                        "it fails later, or waits for answers until it gives up",
                        is_engine(server) ? "check the server before: "
                                            "kill -0 $PID && curl -sf http://HOST:PORT/health || exit 1"
                                          : "check it before: kill -0 $PID || exit 1",
                        ""});
    }
    if (trial.questions > 0 && trial.waited >= kLong)
      return report.note(server.span, {fmt::format("{}, the script waits for {} before it {}", failure,
                                                   shown_duration(trial.waited),
                                                   trial.later.empty() ? "gives up" : "goes on without it"),
                                       why, "in the loop: kill -0 $PID || exit 1", ""});
    if (trial.exit_code == 0 && trial.later.empty())
      return report.note(server.span, {fmt::format("{}, the script exits with 0", failure),
                                       "whatever starts the script takes the failure for a success",
                                       "exit 1 where the server is missed", ""});
  }
}

const Registered<Rule> server_fails_rule{{
    .order = 490,
    .name = "server-fails",
    .title = "a server whose failure at its start goes unnoticed",
    .explain = "bash ran the script again, the server had exited, and nothing answered. Not reported if "
               "another rule names the wait that does not notice it.",
    .source = "bash(1), kill",
    .check = check_server_fails,
}};

/// A test above this line has the name of a limit, or of a counter: a variable that the script adds to, or
/// reads from a file.
bool is_limited(const SourceLines& lines, const std::string& text, std::uint32_t number) {
  constexpr std::uint32_t kAbove = 12;
  static const RE2 kLimit(
      R"re((?i)(?:\b(?:if|while)\b|\[|\(\().*(?:restart|retr(?:y|ies)|attempt|count|max|tries|remain|chain|limit|iter|epoch|step|SECONDS))re");
  static const RE2 kCompares(R"re(\$\{?(\w+)[^\]&|]*?\s-(?:eq|ne|lt|le|gt|ge)\s)re");
  for (auto at = number > kAbove ? number - kAbove : 1; at <= number; ++at) {
    if (RE2::PartialMatch(lines.line(at), kLimit)) return true;
    const auto line = std::string(lines.line(at));
    std::string name;
    for (re2::StringPiece rest(line); RE2::FindAndConsume(&rest, kCompares, &name);) {
      const RE2 counts(
          fmt::format(
              R"re(\(\(\s*{0}\s*(?:\+\+|\+=)|\b{0}=["']?\$\(\(|\b{0}=["']?(?:\$\(\s*(?:cat|<)|`\s*cat)|\blet\s+{0}|\bread\s.*\b{0}\b|\$\(\(\s*\$?\{{?{0}\}}?\s*\+)re",
              name),
          RE2::Latin1);
      if (RE2::PartialMatch(text, counts)) return true;
    }
  }
  return false;
}

void check_endless_requeue(const LintInput& input, Report& report) {
  if (!input.script || (!input.slurm && input.batch.empty())) return;
  const auto& script = *input.script;
  const SourceLines lines(script.file);
  const auto text = without_comments(lines);
  if (text.contains("RESTART_COUNT")) return;
  const std::string why =
      "a program that fails before it does any work then runs again and again, until somebody cancels the "
      "job";
  const std::string instead = "[ \"${SLURM_RESTART_COUNT:-0}\" -lt 5 ] && scontrol requeue $SLURM_JOB_ID";
  for (const auto& trial : script.trials) {
    if (trial.serves || trial.submits_itself == 0 || is_limited(lines, text, trial.submits_itself)) continue;
    return report.note(
        lines.whole(trial.submits_itself),
        {fmt::format("if {} in line {} fails, the job starts again, without a limit",
                     shown_name(script.programs[trial.program]), script.programs[trial.program].span.line),
         why, instead, ""});
  }
  // A handler of a signal runs after hours of work.
  static const RE2 kRequeues(R"re((?:^|[;&|{]|\bthen|\bdo|\belse)\s*scontrol\s+requeue\b)re");
  static const RE2 kTrap(R"re((?m)^\s*trap\b)re");
  const bool is_told = std::ranges::any_of(
      script.trials, [](const Trial& one) { return !one.serves && one.exit_code.value_or(1) != 0; });
  if (RE2::PartialMatch(text, kTrap)) return;
  // Before the first program, no failure of one leads to it.
  const auto first = std::ranges::find_if(script.programs, &Program::works);
  const auto begin = first == script.programs.end() || first->span.file != script.file ? 0 : first->span.line;
  for (const auto number : lines_of_commands(lines))
    if ((!is_told || number < begin) && RE2::PartialMatch(lines.command(number), kRequeues) &&
        !is_limited(lines, text, number))
      return report.note(lines.whole(number),
                         {"nothing limits how often the job requeues itself", why, instead, ""});
}

const Registered<Rule> endless_requeue_rule{{
    .order = 496,
    .name = "endless-requeue",
    .title = "a job that starts again however often it fails",
    .explain = "SLURM_RESTART_COUNT tells how often the job was requeued. Not reported if the script counts.",
    .source = "sbatch(1), SLURM_RESTART_COUNT; scontrol(1), requeue",
    .check = check_endless_requeue,
}};

}  // namespace
}  // namespace nlaunch::lint

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "base/registry.h"
#include "base/text.h"
#include "lint/programs.h"
#include "lint/rule.h"
#include "lint/script_text.h"
#include "lint/shell_options.h"
#include "shell/traps.h"
#include "shell/words.h"

/// When a script exits, and with which code: failures that get lost, and failures that are none.
namespace nlaunch::lint {
namespace {

/// `code=$?`, `local code=$?` at the start of a line: bash traces only what it reaches.
bool takes_exit_code(const SourceSpan& span) {
  static const RE2 kTakes(
      R"re(^\s*(?:(?:local|declare)\s+(?:-\w+\s+)*)?[A-Za-z_]\w*=(?:"\$\?"|\$\?)\s*(?:;|\s|$))re");
  return RE2::PartialMatch(std::string(span.source_line()), kTakes);
}

bool is_indented(const SourceSpan& span) {
  return span.source_line().find_first_not_of(" \t") != 0;
}

void check_exit_code_lost(const LintInput& input, Report& report) {
  if (!input.script || has_exit_trap(*input.script)) return;
  std::map<int, bool> errexit;
  std::map<int, const ScriptCommand*> last;  // of each shell
  std::set<std::uint32_t> told;
  for (const auto& command : input.script->commands) {
    if (!errexit.contains(command.shell)) errexit[command.shell] = shebang_sets(*input.script, kErrexit);
    if (const auto now = sets_option(command, kErrexit)) errexit[command.shell] = *now;
    const auto* before = std::exchange(last[command.shell], &command);
    const bool tried = std::ranges::any_of(input.script->trials, [&](const Trial& one) {
      return one.skipped_line == command.span.line &&
             input.script->programs[one.program].span.file == command.span.file;
    });
    // A subshell begins with what the script has set.
    const bool inherits = tried && command.shell != input.script->shell && errexit[input.script->shell];
    if (before == nullptr || (!errexit[command.shell] && !inherits) ||
        before->span.file != command.span.file || before->span.line >= command.span.line ||
        !takes_exit_code(command.span) || follows_test(before->span, command.span))
      continue;
    // Inside a function or a loop, the caller may check the failure: a trial tells.
    const bool inside = is_indented(command.span) || is_indented(before->span);
    if (inside && (!tried || !told.insert(command.span.line).second)) continue;
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
  const auto name = shell::program_name(command.words[0]);
  constexpr std::uint64_t kShort = 30;  // seconds
  if (name == "sleep" && !shell::waits_forever(command.words) &&
      shell::seconds_of_sleep(command.words) < kShort)
    return false;
  return std::ranges::find(kNames, name) != kNames.end();
}

void check_not_waited_for(const LintInput& input, Report& report) {
  if (!input.script || !ran_to_its_end(*input.script)) return;
  const bool job = !input.batch.empty();
  // Meant to go on when the script has ended.
  static const RE2 kDetaches(R"re(\b(?:nohup|setsid|disown|daemonize|screen|tmux)\b)re");
  if (!job && RE2::PartialMatch(input.script->file->text, kDetaches)) return;
  // Steps from a login node go on; within a job they end with its script.
  if (!job && input.slurm && !input.script->file->text.contains("SLURM_JOB_ID")) return;
  const auto& commands = input.script->commands;
  const ScriptCommand* last = nullptr;
  for (const auto& command : commands) {
    if (command.works && command.span.file == input.script->file) last = &command;
  }
  if (last == nullptr || !last->background) return;
  // Background commands are traced when they get to run, so line numbers tell what follows them.
  const bool waits = std::ranges::any_of(commands, [&](const ScriptCommand& command) {
    const bool in_front = command.works && !command.background;
    if (command.span.file != input.script->file) return in_front && &command > last;  // `sh client.sh`
    return command.span.line >= last->span.line && (stays(command) || in_front);
  });
  if (waits) return;
  if (!job)
    return report.note(last->span,
                       {fmt::format("the script exits with 0 while {} still runs in the background",
                                    text::printable(shell::program_name(last->words[0]))),
                        "whatever starts the script considers the work done, and a failure is not seen",
                        "add `wait $PID` for each of them as the last lines", ""});
  report.error(last->span,
               {fmt::format("the script exits while {} still runs in the background", last->words[0]),
                "a Slurm job ends when its batch script exits, and everything it started is killed",
                "add `wait` as the last line", ""});
}

const Registered<Rule> not_waited_for_rule{{
    .order = 374,
    .name = "not-waited-for",
    .title = "a script that exits before its programs",
    .explain =
        "A command before an & runs in the background. When the batch script exits, Slurm ends the job "
        "and kills every program: wait keeps the script running until they finish. Outside of a job they go "
        "on, and the exit code says nothing of them.",
    .source = "sbatch(1); bash(1), wait",
    .check = check_not_waited_for,
}};

/// `if find . | grep -q x` under pipefail
void check_early_reader(const LintInput& input, Report& report) {
  if (!input.script) return;
  OptionByShell pipefail(*input.script, kPipefail);
  static const RE2 kReader(
      R"re((?:^\s*(?:if|while|until|elif)\s+!?\s*|^\s*!?\s*)((?:find|ls|cat|zcat|du|seq|journalctl|docker logs)\b[^|;&]*)\|\s*(grep\s+-\w*q\w*|head\b)[^|]*$)re");
  static const RE2 kAsks(R"re(^\s*(?:if|while|until|elif)\b|&&|\|\|)re");
  const SourceLines lines(input.script->file);
  std::set<std::uint32_t> on;
  for (const auto& command : input.script->commands)
    if (pipefail.after(command) && command.span.file == input.script->file) on.insert(command.span.line);
  for (const auto number : on) {
    std::string writer;
    std::string reader;
    const auto text = lines.command(number);
    if (!RE2::PartialMatch(text, kReader, &writer, &reader) || !RE2::PartialMatch(text, kAsks)) continue;
    return report.note(
        lines.whole(number),
        {fmt::format("under pipefail this test may fail although {} finds something",
                     reader.substr(0, reader.find(' '))),
         fmt::format(
             "{} ends at once, and {} then of SIGPIPE if it has more to write: the pipe returns 141, now and "
             "then",
             reader.substr(0, reader.find(' ')), writer.substr(0, writer.find(' '))),
         "[ -n \"$(COMMAND | head -n 1 || true)\" ], or find -print -quit", ""});
  }
}

const Registered<Rule> early_reader_rule{{
    .order = 514,
    .name = "early-reader",
    .title = "a test that a pipe may spoil",
    .explain =
        "grep -q and head exit before they have read everything. With set -o pipefail, the writer's death by "
        "SIGPIPE is the exit code of the pipe.",
    .source = "bash(1), Pipelines; pipe(7)",
    .check = check_early_reader,
}};

/// The EXIT trap in which the script sends a signal to itself: `trap 'kill 0' EXIT`; nullptr if it has none.
const ScriptCommand* kills_itself_at_its_end(const Script& script) {
  static const RE2 kSelf(
      R"re(\bkill\s+(?:-s\s+\w+\s+|-\w+\s+)*(?:--\s+)?["']?(?:-?\$\$|0|-\$\{?BASHPID\}?)["']?(?:\s|$|;))re");
  const auto found = std::ranges::find_if(script.commands, [&](const ScriptCommand& command) {
    const auto trap = shell::trap_of(command.words);
    return trap && trap->catches("EXIT") && command.shell == script.shell &&
           command.span.file == script.file && RE2::PartialMatch(*trap->handler, kSelf);
  });
  return found == script.commands.end() ? nullptr : &*found;
}

/// `$DRY_RUN && echo done` as the last line.
void check_fails_after_success(const LintInput& input, Report& report) {
  if (!input.script || input.script->exit_code == 0 || input.script->last_line == 0) return;
  const SourceLines lines(input.script->file);
  constexpr int kByTerm = 143;
  const auto* trap = kills_itself_at_its_end(*input.script);
  if (trap != nullptr && input.script->exit_code == kByTerm)
    return report.note(
        trap->span,
        {"the script always exits with 143, also after a success: this trap ends it, too",
         "a signal to the own process group reaches the script itself: its exit code says nothing",
         "trap 'code=$?; trap - TERM EXIT; kill $(jobs -p); exit $code' EXIT", ""});
  static const RE2 kTest(R"re(^\s*(?:\[\[?\s|test\s|\(\(|\$\{?\w+\}?\s*(?:&&|\|\|)|!?\s*grep\s).*|.*&&)re");
  const auto line = lines.line(input.script->last_line);
  if (!RE2::PartialMatch(line, kTest)) return;
  report.note(lines.whole(input.script->last_line),
              {fmt::format("the script exits with {} although all its programs have succeeded",
                           input.script->exit_code),
               "its exit code is that of its last command, a test that is false: the job counts as failed",
               "if …; then …; fi, or exit 0 below", ""});
}

const Registered<Rule> fails_after_success_rule{{
    .order = 512,
    .name = "fails-after-success",
    .title = "a script that fails after a success",
    .explain = "`TEST && COMMAND` returns the code of TEST if it is false. As the last command, it is the "
               "code of the "
               "script. Found by running the script.",
    .source = "bash(1), Lists, EXIT STATUS",
    .check = check_fails_after_success,
}};

/// Where a line's text goes to a program that only passes it on: "| tee log", "|& grep -v INFO".
struct Filter {
  std::size_t at = 0;  ///< of the pipe's sign, from 1; 0: nowhere
  std::string name{};
  std::string text{};  ///< "| tee "
};
Filter filter_of(std::string_view line, std::string_view command = {}) {
  static const RE2 kFilter(R"re((\|&?\s*(tee|grep|egrep|sed|awk|ts|tail|head|cut|tr)\s)[^|]*$)re");
  // The exit code of grep is what is asked for; the output of $(...) is a value.
  static const RE2 kAsks(R"re(\bgrep\s+-\w*q|^\s*(?:if|elif|while|until|!)\s|\$\(|`|\|\||&&)re");
  Filter filter;
  const re2::StringPiece all(line.data(), line.size());
  re2::StringPiece pipe;
  if (!RE2::PartialMatch(all, kFilter, &pipe, &filter.name)) return {};
  const auto whole = command.empty() ? all : re2::StringPiece(command.data(), command.size());
  if (filter.name != "tee" && RE2::PartialMatch(whole, kAsks)) return {};
  filter.at = static_cast<std::size_t>(pipe.data() - line.data()) + 1;
  filter.text = std::string(pipe);
  return filter;
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

/// The line where a command starting on a line, or a block around it, is piped to a filter; 0 if it is not.
std::uint32_t line_of_filter(const SourceLines& lines, std::uint32_t begin) {
  const auto end = lines.end_of_command(begin);
  if (filter_of(lines.line(end), lines.command(begin)).at > 0) return end;
  for (auto at = end + 1; at <= lines.count(); ++at) {
    const auto block = filter_of(lines.line(at)).at > 0 ? begin_of_block(lines, at) : 0;
    if (block > 0 && block <= begin) return at;
  }
  return 0;
}

/// The log that tee writes is searched below, and the script exits by what it finds.
bool is_judged_by_its_log(const SourceLines& lines, std::uint32_t number, const Filter& filter) {
  constexpr std::uint32_t kBelow = 20;
  static const RE2 kLog(R"re(\|&?\s*tee\s+(?:-\S+\s+)*"?([^\s"';|&>]+))re");
  std::string name;
  RE2::PartialMatch(std::string(lines.line(number)), kLog, &name);
  if (filter.name != "tee" || name.empty()) return false;
  static const RE2 kFails(R"re(\bexit\s+(?:[1-9]|\$))re");
  bool searched = false;
  for (auto at = number + 1; at <= std::min(number + kBelow, lines.count()); ++at) {
    const auto line = std::string(lines.line(at));
    searched = searched || (line.contains(name) && RE2::PartialMatch(line, R"re(\b(?:grep|awk|sed)\b)re"));
    if (searched && RE2::PartialMatch(line, kFails)) return true;
  }
  return false;
}

void check_exit_code_of_tee(const LintInput& input, Report& report) {
  if (!input.script) return;
  OptionByShell pipefail(*input.script, kPipefail);
  const SourceLines lines(input.script->file);
  if (without_comments(lines).find("PIPESTATUS") != std::string::npos) return;
  for (const auto& command : input.script->commands) {
    const bool is_on = pipefail.after(command);
    // srun bash -c "a | tee log": the pipe is one of the shell that gets the text.
    const bool is_in_text =
        std::ranges::any_of(command.words, [](const std::string& word) { return filter_of(word).at > 0; });
    if (is_on || is_in_text || !command.works || command.span.file != input.script->file ||
        tells_failure(*input.script, command.span))
      continue;
    const auto end = line_of_filter(lines, command.span.line);
    if (end == 0 || text::trim(lines.line(end)).ends_with('&')) continue;
    const auto filter = filter_of(lines.line(end), lines.command(command.span.line));
    if (filter.at == 0 || is_judged_by_its_log(lines, end, filter)) continue;
    const bool by_itself =
        command.shell != input.script->shell && !input.script->shells_above.contains(command.shell);
    report.warning(
        lines.find_text(filter.text, end, end),
        {fmt::format("after | {} the exit code of the program is lost", filter.name),
         "without pipefail, a pipe returns the exit code of its last command: a failed run counts as a "
         "success for Slurm, for set -e and for dependent jobs",
         by_itself ? "bash -c 'set -o pipefail; …': a new shell does not inherit the option"
                   : "add `set -o pipefail` above",
         ""});
    return;  // one finding covers all
  }
}

const Registered<Rule> exit_code_of_tee_rule{{
    .order = 372,
    .name = "exit-code-of-tee",
    .title = "a program whose exit code is hidden by tee or another filter",
    .explain = "The exit code of a pipe is that of its last command: tee succeeds, and grep fails if it "
               "finds nothing. With set -o pipefail it is "
               "that of the last command that failed.",
    .source = "bash(1), Pipelines",
    .check = check_exit_code_of_tee,
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
  const bool by_name = last != nullptr && std::ranges::any_of(last->words, [](const auto& word) {
                         return word == "-n" || word.starts_with("--name") || word == "--jobname";
                       });
  if (last == nullptr || !worked || last->words[0] != "scancel" || by_name ||
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
  const bool pipefail = without_comments(lines).find("pipefail") != std::string::npos;
  for (std::size_t i = 0; i + 1 < begins.size(); ++i) {
    const auto filter = filter_in_background(lines.command(begins[i]));
    const auto next = begins[i + 1];
    if (filter.empty()) continue;
    static const RE2 kKeeps(R"re(^\s*([A-Za-z_]\w*)=["']?\$!)re");
    std::string variable;
    if (!RE2::PartialMatch(lines.line(next), kKeeps, &variable)) continue;
    const bool kills = passes_to(script, "kill", variable);
    const bool waits = passes_to(script, "wait", variable) && !pipefail;
    // `echo $PID > server.pid`, for somebody who kills it.
    const RE2 writes(fmt::format(R"re((?m)^\s*(?:echo|printf)\b[^\n]*\$\{{?{}\b[^\n]*>)re", variable));
    const bool keeps = RE2::PartialMatch(script.file->text, writes);
    if (!kills && !waits && !keeps) continue;
    report.warning(
        lines.whole(next),
        {fmt::format("$! is the process id of {}, the last program of the pipe", filter),
         kills
             ? fmt::format("kill ${} stops {}, and the program that does the work runs on", variable, filter)
         : !waits ? fmt::format("the script writes it to a file: whoever kills it stops {} alone", filter)
                  : fmt::format("wait ${} returns the exit code of {}: a failure of the program is lost",
                                variable, filter),
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

void check_code_of_wait(const LintInput& input, Report& report) {
  if (!input.script) return;
  const SourceLines lines(input.script->file);
  const bool any = std::ranges::any_of(
      input.script->programs, [](const Program& program) { return program.works && program.background; });
  static const RE2 kReads(R"re(\$\?|\$\{\?\})re");
  for (const auto& command : input.script->commands) {
    if (!any || command.words.size() != 1 || command.words[0] != "wait" ||
        command.span.file != input.script->file || text::trim(lines.line(command.span.line)) != "wait")
      continue;
    auto next = command.span.line + 1;
    while (next <= lines.count() &&
           (text::trim(lines.line(next)).empty() || text::trim(lines.line(next)).starts_with('#')))
      ++next;
    if (!RE2::PartialMatch(lines.line(next), kReads)) continue;
    return report.warning(lines.whole(next),
                          {"this exit code is always 0: wait without process ids returns 0",
                           "whatever the programs in the background returned is lost",
                           "keep their ids (pids+=($!)), and for each: wait \"$pid\" || code=$?", ""});
  }
}

const Registered<Rule> code_of_wait_rule{{
    .order = 466,
    .name = "code-of-wait",
    .title = "the exit code of a wait for all",
    .explain = "wait returns the exit code of a process only if it is told which one.",
    .source = "bash(1), wait",
    .check = check_code_of_wait,
}};

void check_counter_ends_script(const LintInput& input, Report& report) {
  if (!input.script) return;
  const auto& script = *input.script;
  static const RE2 kCounts(R"re(^\s*\(\(\s*(\w+)\s*(?:\+\+|--)\s*\)\)\s*(?:;.*|#.*)?$)re");
  const SourceLines lines(script.file);
  // The line from which on failures end the script; never turned off again.
  std::optional<std::uint32_t> from;
  if (shebang_sets(script, kErrexit)) from = 0;
  for (const auto& command : script.commands) {
    const auto now = sets_option(command, kErrexit);
    if (now == false) return;
    if (now == true && !from && command.shell == script.shell && command.span.file == script.file)
      from = command.span.line;
  }
  if (!from || script.file->text.find("set +e") != std::string::npos) return;
  for (const auto number : lines_of_commands(lines)) {
    std::string name;
    if (number < *from || !RE2::PartialMatch(lines.line(number), kCounts, &name)) continue;
    // It begins at 0, and `((A++))` has the value before; nothing else changes it.
    const RE2 sets(fmt::format(R"re((?m)(?:^|[\s;(]){}\+?=([^\s;)]*))re", name));
    bool zero = false;
    bool other = false;
    std::string value;
    for (re2::StringPiece rest(script.file->text); RE2::FindAndConsume(&rest, sets, &value);)
      (value == "0" ? zero : other) = true;
    const bool in_function = lines.line(number).find_first_not_of(" \t") != 0 && tests_a_function(lines);
    if (!zero || other || in_function) continue;
    return report.error(lines.whole(number),
                        {fmt::format("under set -e the script exits here if {} is 0", name),
                         "(( )) returns 1 if its value is 0, and the value of a++ is the one before",
                         fmt::format("{0}=$(({0} + 1)), or ((++{0}))", name), ""});
  }
}

const Registered<Rule> counter_ends_script_rule{{
    .order = 467,
    .name = "counter-ends-script",
    .title = "a counter that ends the script",
    .explain = "((a++)) is a command: its exit code is 1 if its value, that of a before, is 0.",
    .source = "bash(1), Compound Commands",
    .check = check_counter_ends_script,
}};

/// `n=$(grep -c WORD FILE || echo 0)`: two lines if nothing is found.
void check_count_twice(const LintInput& input, Report& report) {
  if (!input.script) return;
  static const RE2 kCounts(
      R"re(\bgrep\s+(?:[^|&;()]*\s)?(?:-[a-zA-Z]*c[a-zA-Z]*|--count)\s(?:[^|&;"'>]|2>\S*|"[^"]*"|'[^']*')*\|\|\s*(?:echo|printf)\s+["']?0)re");
  const SourceLines lines(input.script->file);
  for (const auto number : lines_of_commands(lines)) {
    if (!RE2::PartialMatch(lines.command(number), kCounts)) continue;
    report.warning(
        lines.whole(number),
        {"if grep -c finds nothing, this prints 0 twice",
         "grep -c prints 0 and exits with 1 then: what gets the two lines takes them for no number "
         "(\"syntax error\", \"integer expression expected\")",
         "n=$(grep -c … || true), and ${n:-0} if the file may be missing", ""});
  }
}

const Registered<Rule> count_twice_rule{{
    .order = 501,
    .name = "count-twice",
    .title = "a count that is printed twice",
    .explain = "grep exits with 1 if it finds no line, also with -c, which prints the number all the same.",
    .source = "grep(1), --count, EXIT STATUS",
    .check = check_count_twice,
}};

/// `echo "no free port"; exit`: the exit code is that of echo.
void check_error_with_zero(const LintInput& input, Report& report) {
  if (!input.script) return;
  // The word is among the first of the message, or the message goes to standard error.
  static const RE2 kSays(
      R"re((?i)(?:^|[;&|{)]|\bthen|\belse|\bdo)\s*(?:echo|printf)\s+(?:-\w+\s+)*["']?(?:\W*\w+\W+){0,2}\W*(?:error|failed|failure|fatal|cannot|can't|could not|couldn't|unable|missing|invalid|no (?:free|such|available)|unsupported|unknown|not found)\b|(?i)\b(?:echo|printf)\s.*(?:not found|does not exist|doesn't exist)|(?i)\b(?:echo|printf)\s.*\b(?:error|fail)\w*.*>&2)re");
  static const RE2 kEndsItself(R"re(\bexit\s+["']?(?:[1-9$])|\breturn\b)re");
  static const RE2 kFine(
      R"re((?i)\b(?:no|without|0|zero|nothing)\s+(?:error|failure|failed|missing)|already|skip|success|done)re");
  static const RE2 kExits(R"re(^\s*exit(?:\s+0)?\s*;?\s*(?:fi|\})?\s*(?:#.*)?$)re");
  static const RE2 kBoth(R"re(;\s*exit(?:\s+0)?\s*(?:;;|;?\s*(?:\}|fi|$)))re");
  const SourceLines lines(input.script->file);
  const auto numbers = lines_of_commands(lines);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const auto line = lines.line(numbers[i]);
    if (!RE2::PartialMatch(line, kSays) || RE2::PartialMatch(line, kFine) ||
        RE2::PartialMatch(line, kEndsItself))
      continue;
    // Several lines of a message.
    auto at = i + 1;
    while (at < numbers.size() && at < i + 4 &&
           RE2::PartialMatch(std::string(lines.line(numbers[at])), R"re(^\s*(?:echo|printf)\s)re"))
      ++at;
    const bool same = RE2::PartialMatch(lines.line(numbers[i]), kBoth);
    const bool next = at < numbers.size() && RE2::PartialMatch(lines.line(numbers[at]), kExits);
    if (!same && !next) continue;
    return report.warning(lines.whole(same ? numbers[i] : numbers[at]),
                          {"the script reports an error and exits with 0",
                           input.slurm || !input.batch.empty()
                               ? "Slurm considers the job successful and starts dependent jobs (afterok)"
                               : "whatever starts the script takes the failure for a success",
                           "exit 1", ""});
  }
}

const Registered<Rule> error_with_zero_rule{{
    .order = 503,
    .name = "error-with-zero",
    .title = "an error that is printed before an exit with 0",
    .explain = "`exit` without a number exits with the code of the last command, here of echo: 0.",
    .source = "bash(1), SHELL BUILTIN COMMANDS, exit",
    .check = check_error_with_zero,
}};

}  // namespace
}  // namespace nlaunch::lint

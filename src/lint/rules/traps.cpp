#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "base/registry.h"
#include "base/text.h"
#include "lint/programs.h"
#include "lint/rule.h"
#include "lint/script_text.h"
#include "shell/traps.h"
#include "shell/words.h"

/// Signals and traps: what a trap does, and whether the warning before the time limit reaches the program.
namespace nlaunch::lint {
namespace {

void check_late_trap(const LintInput& input, Report& report) {
  if (!input.script || input.script->commands.empty()) return;
  const auto shell = input.script->shell;
  const ScriptCommand* trap = nullptr;
  bool worked = false;
  for (const auto& command : input.script->commands) {
    if (command.shell != shell) continue;
    const auto& name = command.words[0];
    if (command.works || name == "wait") {
      worked = worked || command.works;
      trap = nullptr;  // there is still something to catch
    } else if (const auto set = shell::trap_of(command.words);
               worked && set && set->handler && !set->handler->empty()) {
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

/// `trap '… scancel $SLURM_JOB_ID …' EXIT`, without a condition.
void check_trap_cancels(const LintInput& input, Report& report) {
  if (!input.script || !(input.slurm || !input.batch.empty())) return;
  static const RE2 kCancels(
      R"re((?:^|;|\n)\s*scancel\s+"?\$\{?SLURM_JOB_?ID\}?(\.\$\{?SLURM_STEP_?ID\}?)?)re");
  static const RE2 kTests(R"re(\bif\b|\bcase\b|&&|\|\||\[)re");
  for (const auto& command : input.script->commands) {
    const auto trap = shell::trap_of(command.words);
    std::string step;
    if (!trap || !trap->catches("EXIT") || RE2::PartialMatch(*trap->handler, kTests) ||
        !RE2::PartialMatch(*trap->handler, kCancels, &step))
      continue;
    if (step.empty())
      return report.warning(
          command.span,
          {"the EXIT trap cancels the job itself: Slurm considers it CANCELLED, whatever it did",
           "success and failure look the same in sacct, and dependent jobs (afterok) never start",
           "kill what still runs (kill $PID), and let the script end", ""});
    return report.warning(command.span, {"the EXIT trap cancels its own step, also after a success",
                                         "srun then fails, whatever the program did",
                                         "end the other tasks (ray stop), and let the step end", ""});
  }
}

const Registered<Rule> trap_cancels_rule{{
    .order = 385,
    .name = "trap-cancels",
    .title = "an EXIT trap that cancels its own job or step",
    .explain =
        "An EXIT trap runs at each end, also after a success. scancel makes the job or step CANCELLED, "
        "and srun fail.",
    .source = "bash(1), trap; scancel(1)",
    .check = check_trap_cancels,
}};

void check_not_a_child(const LintInput& input, Report& report) {
  if (!input.script) return;
  static const RE2 kSearch(
      R"re(\bp(?:grep|kill)\s+(?:-\S+\s+)*-P\s+"?\$(?:\$|BASHPID)"?\s+(?:-\S+\s+)*["']?([\w.-]+))re");
  const SourceLines lines(input.script->file);
  for (std::uint32_t number = 1; number <= lines.count(); ++number) {
    std::string name;
    if (text::trim(lines.line(number)).starts_with('#') ||
        !RE2::PartialMatch(lines.line(number), kSearch, &name))
      continue;
    std::size_t started = 0;
    bool by_srun = true;
    for (const auto& program : input.script->programs) {
      if (shell::program_name(program.words[0]).find(name) == std::string::npos) continue;
      ++started;
      by_srun = by_srun && program.step;
    }
    if (started == 0 || !by_srun) continue;
    return report.warning(
        lines.whole(number),
        {fmt::format("{} is no child of this shell: srun starts it", name),
         "-P searches only the shell's children: nothing is found, and nothing gets the signal",
         "srun … & pid=$!, then kill -USR1 $pid: srun forwards it to its tasks", ""});
  }
}

const Registered<Rule> not_a_child_rule{{
    .order = 388,
    .name = "not-a-child",
    .title = "a search among the shell's children for a program that srun starts",
    .explain = "slurmstepd starts the tasks of a step. The child of the batch script is srun.",
    .source = "pgrep(1), --parent; srun(1), SIGNALS AND ESCAPE SEQUENCES",
    .check = check_not_a_child,
}};

/// The signal of "B:USR1@60", "SIGUSR1@60", "10": "USR1".
std::string warning_signal(std::string_view option) {
  option = option.substr(option.rfind(':') + 1);
  return shell::signal_name(option.substr(0, option.find('@')));
}

/// True if the signal does not kill a shell with this trap at once: the shell handles or ignores it, or
/// handles any exit.
bool survives(const std::optional<shell::Trap>& trap, const std::string& signal) {
  return trap && trap->handler && (trap->names(signal) || trap->catches("EXIT"));
}

/// The words of a command up to the next one on its line: `trap stop USR1; date`.
shell::Words words_of_first(std::string_view command) {
  auto words = directive_words(command);
  // The handler may contain any character.
  for (std::size_t i = shell::has(words, "--") ? 3 : 2; i < words.size(); ++i) {
    const auto end = words[i].find_first_of(";&|)");
    if (end == std::string::npos) continue;
    words[i].resize(end);
    words.resize(end == 0 ? i : i + 1);
  }
  return words;
}

/// A line of the script sets such a trap, which the recording did not reach: in a branch, or behind an exit.
bool has_line_of_trap(const SourceLines& lines, const std::string& signal) {
  for (std::uint32_t number = 1; number <= lines.count(); ++number) {
    if (!text::trim(lines.line(number)).starts_with("trap")) continue;
    if (survives(shell::trap_of(words_of_first(lines.command(number))), signal)) return true;
  }
  return false;
}

/// A command of the batch shell sets a trap for this signal, or for any exit.
bool has_trap(const Script& script, const std::string& signal) {
  return std::ranges::any_of(script.commands, [&](const ScriptCommand& command) {
    return command.shell == script.shell && survives(shell::trap_of(command.words), signal);
  });
}

void check_usr1(const LintInput& input, Report& report) {
  for (const auto& option : input.batch) {
    const auto signal = value_of(option, "--signal");
    if (signal.starts_with("B:") || warning_signal(signal) != "USR1") continue;
    report.warning(option.span, {"--signal requests USR1",
                                 "NCCL and some frameworks handle this signal themselves or die from it: "
                                 "the job is killed when it "
                                 "should have been saved",
                                 "USR2, or TERM: --signal=USR2@…", ""});
  }
}

const Registered<Rule> usr1_rule{{
    .order = 410,
    .name = "usr1",
    .title = "a warning signal that libraries use",
    .explain = "By default USR1 kills a process, and libraries use it for their own purposes.",
    .source = "facebookincubator/submitit pull request 1708",
    .check = check_usr1,
}};

void check_untrapped(const LintInput& input, Report& report) {
  if (!input.script || input.script->commands.empty() || input.by_nlaunch || input.script->misses_source)
    return;
  // The shell executes the program, which then gets the signal itself.
  for (const auto& command : input.script->commands)
    if (command.words[0] == "exec" && command.words.size() > 1) return;
  const SourceLines lines(input.script->file);
  for (const auto& option : input.batch) {
    const auto value = value_of(option, "--signal");
    const auto signal = warning_signal(value);
    if (!value.starts_with("B:") || has_trap(*input.script, signal) || has_line_of_trap(lines, signal))
      continue;
    report.warning(
        option.span,
        {fmt::format("Slurm sends {} to the batch shell, which has no trap for it", signal),
         "B: means only the shell: the signal kills it immediately, and the job with it, before anything is "
         "saved",
         fmt::format("trap 'kill -{0} $pid; wait $pid' {0}, above srun … & pid=$!; wait $pid", signal), ""});
  }
}

const Registered<Rule> untrapped_rule{{
    .order = 411,
    .name = "untrapped",
    .title = "a warning signal to a batch shell that has no trap for it",
    .explain = "--signal=B:USR1@60 goes to the batch shell. The signal kills bash if it has no trap; a trap "
               "runs only "
               "after the foreground program has exited, or while bash is in `wait`.",
    .source = "sbatch(1), --signal; bash(1), SIGNALS",
    .check = check_untrapped,
}};

/// The trap that the batch shell sets for a signal; nullptr if it sets none.
const ScriptCommand* trap_for(const Script& script, const std::string& signal) {
  const auto found = std::ranges::find_if(script.commands, [&](const ScriptCommand& command) {
    return command.shell == script.shell && shell::sets_trap(command.words, signal);
  });
  return found == script.commands.end() ? nullptr : &*found;
}

/// What the script runs behind the trap for as long as it works, srun if there is one; nullptr if it may wait
/// for programs in the background, other than servers.
const ScriptCommand* runs_in_foreground(const Script& script, const ScriptCommand& trap) {
  const bool trains_behind = std::ranges::any_of(
      script.programs, [](const Program& one) { return one.works && one.background && !is_server(one); });
  if (trains_behind) return nullptr;
  const ScriptCommand* program = nullptr;
  for (const auto& command : script.commands) {
    const auto& words = command.words;
    if (words[0] == "wait" || (words[0] == "exec" && words.size() > 1)) return nullptr;
    const bool copies = words[0] == "cp" || words[0] == "mv";
    if (!command.works || command.background || copies || &command < &trap ||
        command.span.file != script.file)
      continue;
    if (program == nullptr || program->words[0] != "srun" || words[0] == "srun") program = &command;
  }
  return program;
}

/// Outside of a job: `kill SCRIPT`.
void tell_of_delayed_trap(const Script& script, Report& report) {
  const auto* trap = trap_for(script, "TERM");
  const auto* program = trap == nullptr ? nullptr : runs_in_foreground(script, *trap);
  if (program == nullptr) return;
  const auto name = shell::program_name(program->words[0]);
  report.note(program->span,
              {fmt::format("after SIGTERM, the trap runs only when {} has ended", name),
               "bash runs a trap when the command in the foreground has ended: until then nothing stops",
               fmt::format("{} … & pid=$!; wait $pid", name), ""});
}

void check_trap_waits(const LintInput& input, Report& report) {
  if (!input.script || !ran_to_its_end(*input.script)) return;
  const auto& script = *input.script;
  if (!input.slurm && input.batch.empty()) return tell_of_delayed_trap(script, report);
  for (const auto& option : input.batch) {
    const auto value = value_of(option, "--signal");
    const auto signal = warning_signal(value);
    const auto* trap = value.starts_with("B:") ? trap_for(script, signal) : nullptr;
    if (trap == nullptr) continue;
    const auto* program = runs_in_foreground(script, *trap);
    if (program == nullptr) continue;
    const auto name = std::filesystem::path(program->words[0]).filename().string();
    report.warning(
        program->span,
        {fmt::format("the trap for {} runs only after {} has ended", signal, name),
         "bash runs a trap when the command in the foreground has ended: what the trap is to save, or to "
         "tell the program, comes too late",
         fmt::format("{} … & pid=$!; wait $pid", name), ""});
    return;
  }
}

const Registered<Rule> trap_waits_rule{{
    .order = 413,
    .name = "trap-waits",
    .title = "a trap for the warning signal that waits for the program in the foreground",
    .explain =
        "--signal=B:USR1@300 goes to the batch shell alone. bash notes the signal, but runs its trap only "
        "after the foreground command has ended: at the time limit, Slurm kills both. In `wait`, bash "
        "runs it at once.",
    .source = "bash(1), SIGNALS; sbatch(1), --signal",
    .check = check_trap_waits,
}};

/// A trap for USR1 or USR2 that saves or requeues, in a job that nothing sends the signal to.
void check_no_signal(const LintInput& input, Report& report) {
  if (!input.script || input.batch.empty() || input.by_nlaunch || has_option(input.batch, {"--signal"}))
    return;
  const auto& text = input.script->file->text;
  for (const auto* signal : {"USR1", "USR2"}) {
    const auto* const trap = trap_for(*input.script, signal);
    const RE2 sends(
        fmt::format(R"re(--signal|kill\s.*{}|-(?:SIG)?{}\b|-s\s+(?:SIG)?{}\b)re", signal, signal, signal));
    if (trap == nullptr || trap->span.file != input.script->file || RE2::PartialMatch(text, sends)) continue;
    report.note(trap->span,
                {fmt::format("nothing sends {} to this script", signal),
                 "Slurm sends a signal before the time limit only if the job asks for it: what the trap "
                 "is to save, or to requeue, is lost",
                 fmt::format("#SBATCH --signal=B:{}@300", signal), ""});
  }
}

const Registered<Rule> no_signal_rule{{
    .order = 485,
    .name = "no-signal",
    .title = "a trap for a warning signal that the job does not ask for",
    .explain =
        "At the time limit, Slurm sends TERM and, after KillWait (30 s), KILL. USR1 or USR2 comes only with "
        "--signal. Not reported if the script names --signal anywhere, also in a comment.",
    .source = "sbatch(1), --signal; slurm.conf(5), KillWait",
    .check = check_no_signal,
}};

void check_signal_time(const LintInput& input, Report& report) {
  static const RE2 kMinutes(
      R"re(#.*?(?:^|[^\d.])(\d+)\s*-?\s*min(?:ute)?s?\s+(?:before|prior to|ahead of)\b)re");
  constexpr std::uint32_t kMinute = 60;
  for (const auto& option : input.batch) {
    const auto value = value_of(option, "--signal");
    const auto at = value.find('@');
    if (at == std::string::npos || !option.span.file) continue;
    const auto seconds = text::whole_number<std::uint32_t>(value.substr(at + 1));
    auto line = option.span.source_line();
    line = line.substr(std::min(line.find("SBATCH"), line.size()));
    std::uint32_t minutes = 0;
    const bool told = RE2::PartialMatch(line, kMinutes, &minutes);
    if (!seconds || !told || *seconds == minutes * kMinute) continue;
    report.warning(option.span, {fmt::format("the signal comes {} before the time limit, not {}",
                                             text::count(*seconds, "second"), text::count(minutes, "minute")),
                                 "--signal counts in seconds",
                                 fmt::format("--signal={}@{}", value.substr(0, at), minutes * kMinute), ""});
  }
}

const Registered<Rule> signal_time_rule{{
    .order = 414,
    .name = "signal-time",
    .title = "a warning signal at another time than its comment says",
    .explain = "The number after @ in --signal is in seconds.",
    .source = "sbatch(1), --signal",
    .check = check_signal_time,
}};

/// The text of a handler, and of the functions that it calls.
std::string text_of_handler(const SourceLines& lines, const std::string& handler) {
  constexpr int kDeepest = 2;
  static const RE2 kName(R"re(([A-Za-z_][\w-]*))re");
  std::string all = handler;
  std::string newest = handler;
  std::set<std::string> known;
  for (int depth = 0; depth < kDeepest; ++depth) {
    std::string called;
    std::string name;
    for (re2::StringPiece rest(newest); RE2::FindAndConsume(&rest, kName, &name);)
      if (known.insert(name).second)
        for (const auto number : body_of_function(lines, name))
          called.append("\n").append(lines.command(number));
    all += called;
    newest = called;
  }
  return all;
}

/// The last `wait` behind a trap, of the batch shell itself, with a program in the background that it is for;
/// nullptr if there is none, or if something behind it looks again.
const ScriptCommand* last_wait(const Script& script, const SourceLines& lines, const ScriptCommand& trap) {
  const ScriptCommand* wait = nullptr;
  for (const auto& command : script.commands) {
    if (&command < &trap || command.words[0] != "wait" || command.shell != script.shell ||
        command.span.file != script.file)
      continue;
    if (wait != nullptr && wait->words == command.words) return nullptr;
    wait = &command;
  }
  if (wait == nullptr) return nullptr;
  // `while kill -0 $PID; do wait $PID; done`, and a loop whose end is further down.
  static const RE2 kAgain(
      R"re(\bwait\b|(?:^|;)\s*done\b|\bkill\s+-(?:0|s\s*0)\b|\bpgrep\b|\btail\s.*--pid|\bjobs\b)re");
  static const RE2 kLoop(R"re((?:^|[;&|{(]|\bthen|\belse|\bdo)\s*(?:while|until)\b)re");
  const auto last = lines.end_of_command(wait->span.line);
  if (RE2::PartialMatch(lines.command(wait->span.line), kLoop)) return nullptr;
  for (auto at = last + 1; at <= lines.count(); ++at)
    if (!text::trim(lines.line(at)).starts_with('#') && RE2::PartialMatch(lines.line(at), kAgain))
      return nullptr;
  return wait;
}

/// `trap 'kill -USR1 $PID' USR1`, and one `wait $PID`.
void check_signal_ends_wait(const LintInput& input, Report& report) {
  if (!input.script || !ran_to_its_end(*input.script) || input.by_nlaunch) return;
  const auto& script = *input.script;
  const SourceLines lines(script.file);
  static const RE2 kEnds(
      R"re(\bexit\b|\bwait\b|\bexec\b|\bscontrol\s+requeue|\bscancel\b|\bsleep\b|\btail\b|\bwhile\b|\buntil\b|\bread\b|\bkill\s+(?:-0|-9|-KILL|-SIGKILL)\b)re");
  for (const auto& option : input.batch) {
    const auto value = value_of(option, "--signal");
    const auto signal = warning_signal(value);
    const auto* trap = value.starts_with("B:") ? trap_for(script, signal) : nullptr;
    if (trap == nullptr) continue;
    const auto set = shell::trap_of(trap->words);
    if (!set->catches(signal) || RE2::PartialMatch(text_of_handler(lines, *set->handler), kEnds)) continue;
    // A function of another file.
    static const RE2 kName(R"re(^\s*([A-Za-z_][\w-]*)\s*$)re");
    std::string name_of_handler;
    if (RE2::FullMatch(*set->handler, kName, &name_of_handler) &&
        body_of_function(lines, name_of_handler).empty())
      continue;
    const auto* wait = last_wait(script, lines, *trap);
    const auto program = std::ranges::find_if(
        script.programs, [](const Program& one) { return one.works && one.background && !is_server(one); });
    const bool works_behind =
        wait != nullptr && std::ranges::any_of(script.commands, [&](const auto& command) {
          return &command > wait && command.works && !command.background;
        });
    if (wait == nullptr || works_behind || program == script.programs.end()) continue;
    const auto name = shown_name(*program);
    return report.warning(
        wait->span,
        {fmt::format("{} ends this `wait`, not {}", signal, name),
         fmt::format(
             "when a trap runs, `wait` returns with a code above 128: the script goes on to its end, and "
             "Slurm then kills {} before it has saved anything",
             name),
         "while kill -0 $PID 2>/dev/null; do wait $PID; done", ""});
  }
}

const Registered<Rule> signal_ends_wait_rule{{
    .order = 504,
    .name = "signal-ends-wait",
    .title = "a wait that the warning signal ends",
    .explain =
        "A signal with a trap ends the builtin wait at once, and the trap runs. The program in the "
        "background runs on until the script ends, and the job with it. Not reported if the trap exits or "
        "waits itself, or if something behind the wait looks again.",
    .source = "bash(1), SIGNALS",
    .check = check_signal_ends_wait,
}};

/// The second of two programs that the script runs in the foreground behind a trap; nullptr if there is none.
const ScriptCommand* next_program(const Script& script, const ScriptCommand& trap) {
  const ScriptCommand* first = nullptr;
  for (const auto& command : script.commands) {
    if (&command < &trap || !command.works || command.background || command.span.file != script.file)
      continue;
    if (first != nullptr) return &command;
    first = &command;
  }
  return nullptr;
}

/// `trap cleanup INT TERM`, and a cleanup that does not exit.
void check_trap_goes_on(const LintInput& input, Report& report) {
  if (!input.script || input.by_nlaunch) return;
  static const RE2 kEnds(
      R"re(\bexit\b|\bkill\s+(?:-s\s+\w+\s+|-\S+\s+)*(?:--\s+)?["']?(?:\$\$|0|-\$\$|\$BASHPID)["']?(?:\s|$|;)|\bexec\b|\bscontrol\s+requeue|\bsbatch\b|\bscancel\b)re");
  const SourceLines lines(input.script->file);
  for (const auto& command : input.script->commands) {
    const auto trap = shell::trap_of(command.words);
    // A flag that the script looks at.
    static const RE2 kFlag(R"re(^\s*\w+=)re");
    const bool ends =
        trap && trap->names("TERM") && trap->handler && !RE2::PartialMatch(*trap->handler, kFlag);
    if (!ends || !trap->handler || trap->handler->empty() || command.shell != input.script->shell ||
        command.span.file != input.script->file ||
        RE2::PartialMatch(text_of_handler(lines, *trap->handler), kEnds))
      continue;
    const auto* next = next_program(*input.script, command);
    if (next == nullptr) continue;
    return report.note(
        command.span,
        {"after SIGTERM the script goes on: what this trap calls does not exit",
         fmt::format(
             "bash waits for the program in the foreground, runs the trap, and then the next command: "
             "{} in line {} starts all the same",
             shell::program_name(next->words[0]), next->span.line),
         "exit 143 at the end of what the trap calls", ""});
  }
}

const Registered<Rule> trap_goes_on_rule{{
    .order = 502,
    .name = "trap-goes-on",
    .title = "a trap after which the script goes on",
    .explain =
        "A trap replaces what the signal does, which is to end the shell. Only a handler that exits ends "
        "the script.",
    .source = "bash(1), SIGNALS",
    .check = check_trap_goes_on,
}};

/// `trap 'sbatch $0' TERM`
void check_trap_resubmits(const LintInput& input, Report& report) {
  if (!input.script || !(input.slurm || !input.batch.empty())) return;
  static const RE2 kAgain(R"re(\bsbatch\b|\bscontrol\s+requeue\b)re");
  const SourceLines lines(input.script->file);
  for (const auto& command : input.script->commands) {
    const auto trap = shell::trap_of(command.words);
    const bool with_argument = trap && trap->handler &&
                               RE2::FullMatch(*trap->handler, R"re(\s*\w+\s+\w+\s*)re") &&
                               !trap->handler->starts_with("sbatch");
    if (!trap || !trap->names("TERM") || !trap->handler || with_argument ||
        command.span.file != input.script->file ||
        !RE2::PartialMatch(text_of_handler(lines, *trap->handler), kAgain))
      continue;
    return report.note(command.span, {"scancel sends TERM, too: a job that somebody cancels starts again",
                                      "the trap cannot tell a time limit from scancel",
                                      "#SBATCH --signal=B:USR1@300, and a trap for USR1", ""});
  }
}

const Registered<Rule> trap_resubmits_rule{{
    .order = 509,
    .name = "trap-resubmits",
    .title = "a job that cannot be cancelled",
    .explain = "Slurm sends TERM before KILL, at the time limit and for scancel.",
    .source = "scancel(1), DESCRIPTION; sbatch(1), --signal",
    .check = check_trap_resubmits,
}};

}  // namespace
}  // namespace nlaunch::lint

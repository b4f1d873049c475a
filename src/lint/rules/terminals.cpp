#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <string>

#include "base/registry.h"
#include "base/text.h"
#include "lint/programs.h"
#include "lint/rule.h"
#include "lint/script_text.h"
#include "shell/words.h"

/// Programs in terminals of their own: tmux, screen.
namespace nlaunch::lint {
namespace {

/// The program that a command types into a terminal of tmux or screen; empty: none.
std::string typed(const shell::Words& words) {
  static const RE2 kProgram(
      R"re((?:^|[\s;&])(?:python3?|bash|sh|srun|torchrun|accelerate|deepspeed|vllm|ray|mpirun|uv|\./\S+)\s+\S)re");
  const auto name = shell::program_name(words[0]);
  const bool tmux =
      name == "tmux" &&
      (shell::has(words, "send-keys") || shell::has(words, "send") ||
       ((shell::has(words, "new-session") || shell::has(words, "new")) && shell::has(words, "-d")));
  const bool screen = name == "screen" &&
                      std::ranges::any_of(words, [](const auto& word) { return word.starts_with("-dm"); });
  if (!tmux && !screen) return "";
  const auto text = text::join({words.begin() + 1, words.end()}, " ");
  return RE2::PartialMatch(text, kProgram) ? name : "";
}

/// A session of tmux whose name is fixed.
void tell_of_second_start(const Script& script, bool starts_program, Report& report) {
  const auto& commands = script.commands;
  const auto is_tmux = [](const ScriptCommand& one) { return shell::program_name(one.words[0]) == "tmux"; };
  for (const auto& command : commands) {
    const auto& words = command.words;
    const auto target = std::ranges::find(words, "-t");
    if (!is_tmux(command) || !shell::has(words, "kill-session") || target == words.end() ||
        target + 1 == words.end())
      continue;
    const bool again = std::ranges::any_of(commands, [&](const ScriptCommand& one) {
      return is_tmux(one) && shell::has(one.words, "-s") && shell::has(one.words, *(target + 1));
    });
    if (!again) continue;
    return report.note(
        command.span,
        {fmt::format("a second start of this script ends the run of the first, in session {}",
                     text::printable(*(target + 1))),
         "what runs there is killed, however far it is", "tmux has-session -t NAME && exit 1", ""});
  }
  static const RE2 kLooks(R"re(\btmux\s+(?:has|kill|ls|list)|\bnew(?:-session)?\s[^\n]*-\w*A)re");
  if (!starts_program || RE2::PartialMatch(script.file->text, kLooks)) return;
  for (const auto& command : commands) {
    const auto name = std::ranges::find(command.words, "-s");
    if (!is_tmux(command) || command.span.file != script.file || name == command.words.end() ||
        name + 1 == command.words.end() || !script.file->text.contains(*(name + 1)))
      continue;
    return report.note(
        command.span,
        {fmt::format("a second start of this script finds session {} already there",
                     text::printable(*(name + 1))),
         "tmux fails with \"duplicate session\", and what follows goes to the first one's session",
         "tmux has-session -t NAME && exit 1", ""});
  }
}

void check_own_terminal(const LintInput& input, Report& report) {
  if (!input.script) return;
  const auto& commands = input.script->commands;
  bool starts = false;
  for (const auto& command : commands) {
    const auto name = typed(command.words);
    if (name.empty() || command.span.file != input.script->file) continue;
    starts = true;
    const bool job = input.slurm || !input.batch.empty();
    const bool attaches = std::ranges::any_of(commands, [](const ScriptCommand& one) {
      return shell::program_name(one.words[0]) == "tmux" && one.words.size() > 1 &&
             one.words[1].starts_with("a");
    });
    report.note(
        command.span,
        {fmt::format("{} starts this in a terminal of its own: the script does not know how it ends", name),
         job        ? "the job ends with the script, and tmux with it"
         : attaches ? "the script exits with 0 when somebody detaches, whatever becomes of it"
                    : "the script exits with 0 at once, whatever becomes of it",
         "program > LOG 2>&1 & PID=$!, and wait $PID", ""});
    break;
  }
  tell_of_second_start(*input.script, starts, report);
}

const Registered<Rule> own_terminal_rule{{
    .order = 497,
    .name = "own-terminal",
    .title = "a program in a terminal of tmux or screen",
    .explain =
        "tmux send-keys returns when the text is typed, and `screen -dm` when the program has started: "
        "nothing tells the script how the program ends.",
    .source = "tmux(1), send-keys, kill-session; screen(1), -d -m",
    .check = check_own_terminal,
}};

}  // namespace
}  // namespace nlaunch::lint

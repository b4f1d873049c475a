#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/registry.h"
#include "base/text.h"
#include "lint/assigned.h"
#include "lint/programs.h"
#include "lint/rule.h"
#include "lint/script_text.h"
#include "shell/words.h"

/// Kills by name, port or GPU, which reach more than the script has started.
namespace nlaunch::lint {
namespace {

using shell::program_name;

/// `sudo pkill -9 -f "train.py"` in the text, also where bash does not run it: in a trap or a function.
struct KillByName {
  bool sudo = false;
  std::string name;    ///< pkill, killall
  bool whole = false;  ///< -f: the pattern is searched in the whole command line
  std::string pattern;
};

/// `2>&1`, `> /dev/null`.
std::string without_redirections(std::string text) {
  static const RE2 kRedirects(R"re((?:^|\s)\d?&?>+\s*(?:&\d|[^\s;|&]+))re");
  RE2::GlobalReplace(&text, kRedirects, " ");
  return text;
}

std::optional<KillByName> kill_by_name(std::string_view command) {
  static const RE2 kKills(
      R"re((?:^|[;&|({]|\bthen|\bdo|\belse|trap\s+['"])\s*(sudo\s+)?(pkill|killall)((?:\s+(?:"[^"]*"|'[^']*'|[^\s;|&>"']+))+))re");
  static const shell::Options kValued{"-u", "-U", "-G", "--euid", "--uid", "--group", "--signal"};
  // Only children, only a session: these reach nobody else's.
  static const shell::Options kNarrow{"-P", "--parent",  "-g",         "--pgroup", "-s",
                                      "-t", "--session", "--terminal", "--older"};
  static const shell::Options kExact{"-x", "--exact"};
  std::string sudo;
  std::string rest;
  KillByName kill;
  if (!RE2::PartialMatch(without_redirections(std::string(command)), kKills, &sudo, &kill.name, &rest))
    return std::nullopt;
  kill.sudo = !sudo.empty();
  bool exact = false;
  const auto words = directive_words(rest);
  for (std::size_t i = 0; i < words.size(); ++i) {
    const auto& word = words[i];
    if (kNarrow.contains(word)) return std::nullopt;
    exact = exact || kExact.contains(word);
    if (kValued.contains(word)) {
      ++i;
    } else if (word.starts_with('-')) {
      const bool letters = !word.starts_with("--");
      kill.whole = kill.whole || word == "--full" || (letters && word.contains('f'));
    } else {
      kill.pattern = word.substr(0, word.find_last_not_of(')') + 1);  // `$(pkill -f vllm)`
    }
  }
  // Only a whole command line.
  return exact && kill.whole ? std::nullopt : std::optional(kill);
}

/// What the kill reaches: "kills every python of the user on this machine"; empty: only what is the job's
/// own.
std::string reach_of(const KillByName& kill) {
  const bool of_job = kill.pattern.empty() || kill.pattern.contains('$');
  if (kill.sudo) return "kills the processes of all users on this machine";
  if (of_job) return "";
  if (kill.pattern == "python" || kill.pattern == "python3")
    return "kills every Python process of the user on this machine";
  return kill.whole
             ? fmt::format("kills every process of the user on this machine that has {} in its command line",
                           text::printable(kill.pattern))
             : fmt::format("kills every {} of the user on this machine", text::printable(kill.pattern));
}

/// `ps aux | grep vllm | … xargs kill`, `kill $(nvidia-smi --query-compute-apps=pid …)`: which processes;
/// empty if the line does not kill in this way.
std::string killed_by_list(const std::string& line) {
  static const RE2 kListed(
      R"re(\b(ps\s+(?:aux|-?[a-zA-Z]*[efA])|pgrep|nvidia-smi|lsof|rocm-smi)\b.*(?:\|\s*xargs\s+(?:-\S+\s+)*(?:sudo\s+)?kill\b|\|\s*while\s+read\b.*\bkill\b))re");
  static const RE2 kInserted(
      R"re(\bkill\s+(?:-\S+\s+)*["']?(?:\$\(|`)\s*(ps\s+(?:aux|-?[a-zA-Z]*[efA])|pgrep|nvidia-smi|lsof|rocm-smi)\b)re");
  static const RE2 kOwn(R"re(-P\s|--ppid|--parent|\$\$)re");
  static const RE2 kRay(R"re((?:^|[;&|({]|\bthen|\bdo|\belse)\s*ray\s+stop\b)re");
  if (RE2::PartialMatch(line, kRay)) return "stops every Ray process of the user on this machine";
  // `pgrep -f "run_$SLURM_JOB_ID"`, `nvidia-smi -i $GPU`
  static const RE2 kOfJob(R"re(\$\{?[A-Za-z_]|\bnvidia-smi\s[^|)]*-i[\s=])re");
  if (RE2::PartialMatch(line, kOfJob)) return "";
  std::string lists;
  if ((!RE2::PartialMatch(line, kListed, &lists) && !RE2::PartialMatch(line, kInserted, &lists)) ||
      RE2::PartialMatch(line, kOwn))
    return "";
  if (lists.ends_with("-smi")) return "kills what runs on all GPUs of this machine";
  if (lists == "lsof") return "kills what uses that port on this machine";
  return "kills every process of the user on this machine that has that text in its command line";
}

void check_kills_others(const LintInput& input, Report& report) {
  const bool whole = !input.batch.empty() && input.gpus.value_or(0) >= kWholeNode;
  if (!input.script || whole || has_option(input.batch, {"--exclusive"})) return;
  const SourceLines lines(input.script->file);
  const std::string why = "also those of other jobs and sessions";
  const std::string instead = "kill the process ids that the script has started: PID=$!, kill $PID";
  bool starts_ray = false;
  std::uint32_t first = 0;
  std::string what;
  std::vector<std::string> others;
  for (const auto number : lines_of_commands(lines)) {
    const auto command = std::string(lines.command(number));
    auto kill = kill_by_name(command);
    // `pkill -f "--port $PORT"`, where PORT is the same each time.
    if (kill && kill->pattern.contains('$')) {
      const auto pattern = lasting_text(*input.script, kill->pattern);
      if (!pattern.empty() && !pattern.contains('$')) kill->pattern = pattern;
    }
    const auto reach = kill ? reach_of(*kill) : killed_by_list(command);
    // The end of the cluster that the script itself has started.
    static const RE2 kStartsRay(R"re(\bray\s+start\b)re");
    starts_ray = starts_ray || RE2::PartialMatch(command, kStartsRay);
    if (reach.empty() || (starts_ray && reach.starts_with("stops every Ray"))) continue;
    const auto called = kill ? fmt::format("{}{} {}{}", kill->sudo ? "sudo " : "", kill->name,
                                           kill->whole ? "-f " : "", text::printable(kill->pattern))
                             : "this";
    if (first == 0) {
      first = number;
      what = fmt::format("{} {}", called, reach);
    } else if (kill ? !what.contains(called) : !what.contains(reach)) {
      others.push_back(kill ? fmt::format("{} in line {}", called, number)
                            : fmt::format("line {}, which {}", number, reach));
    }
  }
  if (first == 0) return;
  constexpr std::size_t kShown = 3;
  if (others.size() > kShown) others.resize(kShown);
  const auto more =
      others.empty() ? ""
                     : fmt::format("; so {} {}", others.size() > 1 ? "do" : "does", text::join(others, ", "));
  report.note(lines.whole(first), {what + more, why, instead, ""});
}

/// The text of a shell that the command starts, also by srun or ssh. Empty: none.
std::string text_of_inner_shell(const ScriptCommand& command) {
  const auto& words = command.words;
  if (words[0] == "ssh" && words.size() > 2) return words.back();
  const auto inner = std::ranges::find_if(words, shell::is_shell);
  return inner == words.end() ? "" : shell::text_of_shell({inner, words.end()}).value_or("");
}

/// `bash -c 'pkill -f vllm || true; ...'`: the shell's own command line has the pattern in it.
void check_kills_itself(const LintInput& input, Report& report) {
  if (!input.script) return;
  for (const auto& command : input.script->commands) {
    const auto text = text_of_inner_shell(command);
    static const RE2 kKill(R"re((?:^|[;&|\n])\s*(?:sudo\s+)?(pkill\s[^;&|\n]*))re");
    const auto cleaned = without_redirections(text);
    std::string kills;
    for (re2::StringPiece rest(cleaned); RE2::FindAndConsume(&rest, kKill, &kills);) {
      const auto kill = kill_by_name(kills);
      // A shell replaces itself by its last command, unless it has to redirect for it.
      const bool is_last = std::string(rest).find_first_not_of(" \t\n;") == std::string::npos;
      if (!kill || !kill->whole || kill->pattern.empty() || is_last) continue;
      const RE2 pattern(kill->pattern, RE2::Quiet);
      if (!pattern.ok() || !RE2::PartialMatch(text, pattern)) continue;
      return report.warning(
          command.span,
          {fmt::format("pkill -f {} kills the shell that runs it: its command line has {} in it",
                       text::printable(kill->pattern), text::printable(kill->pattern)),
           "what comes after it in this text does not run, and the step, or ssh, fails",
           fmt::format("pkill -f '[{}]{}', which does not match itself", kill->pattern.substr(0, 1),
                       text::printable(kill->pattern.substr(1))),
           ""});
    }
  }
}

/// The command line of a program as pkill -f may see it: a script in `bin` runs as an argument of Python.
std::vector<std::string> command_lines_of(const Program& program) {
  const auto words = text::join(program.words, " ");
  std::vector<std::string> lines{words, "/usr/bin/python3 /usr/bin/" + words};
  // A launcher starts `python -u train.py …`, and ends with it.
  const auto file =
      std::ranges::find_if(program.words, [](const auto& word) { return word.ends_with(".py"); });
  if (launcher_of(program) && file != program.words.end())
    lines.push_back("/usr/bin/python -u " +
                    text::join(std::vector<std::string>(file, program.words.end()), " "));
  return lines;
}

/// The words of at least four letters in a text: "vllm", "entrypoints".
std::set<std::string> long_words(std::string_view text) {
  constexpr std::size_t kLong = 4;
  std::set<std::string> found;
  std::string word;
  for (const char letter : std::string(text) + " ") {
    if (std::isalnum(static_cast<unsigned char>(letter)) != 0) {
      word += letter;
      continue;
    }
    if (word.size() >= kLong && word != "python" && word != "python3") found.insert(word);
    word.clear();
  }
  return found;
}

/// What a kill by name does not reach although it appears to be meant: a program in the background.
struct MissedKill {
  const Program* meant;
  bool by_name;  ///< -f would reach it
};

/// nullopt: it reaches one, or is meant for something else.
std::optional<MissedKill> missed_by(const KillByName& kill, const Script& script, std::uint32_t line) {
  // The processes that a program starts itself have names of their own.
  static const RE2 kOfOthers(R"re(::|EngineCore|VLLM|raylet|gcs_server|multiprocessing|spawn|torch|wandb)re");
  const RE2 pattern(kill.pattern, RE2::Quiet);
  if (kill.pattern.empty() || kill.pattern.contains('$') || !pattern.ok() ||
      RE2::PartialMatch(kill.pattern, kOfOthers))
    return std::nullopt;
  const Program* meant = nullptr;
  bool by_name = false;
  const auto wanted = long_words(kill.pattern);
  for (const auto& program : script.programs) {
    if (!program.works) continue;
    const auto name = program_name(program.words[0]);
    // What these start is not known.
    static const shell::Options kStarters{"ssh", "docker", "podman", "make", "nohup", "uv", "npx", "conda"};
    if (shell::is_shell(program.words[0]) || kStarters.contains(name) || program.step) return std::nullopt;
    const bool matches = std::ranges::any_of(
        command_lines_of(program), [&](const auto& one) { return RE2::PartialMatch(one, pattern); });
    const bool is_named = kill.name == "killall" ? name == kill.pattern : RE2::PartialMatch(name, pattern);
    if (kill.whole ? matches : is_named) return std::nullopt;
    if (!program.background || program.called.file != script.file || program.called.line >= line) continue;
    const auto has = long_words(text::join(program.words, " "));
    if (std::ranges::none_of(wanted, [&](const auto& word) { return has.contains(word); })) continue;
    if (meant == nullptr) by_name = matches;
    if (meant == nullptr) meant = &program;
  }
  if (meant == nullptr) return std::nullopt;
  return MissedKill{meant, by_name};
}

void check_kill_misses(const LintInput& input, Report& report) {
  if (!input.script || !ran_to_its_end(*input.script)) return;
  const auto& script = *input.script;
  const SourceLines lines(script.file);
  for (const auto number : lines_of_commands(lines)) {
    const auto kill = kill_by_name(lines.command(number));
    const auto missed = kill ? missed_by(*kill, script, number) : std::nullopt;
    if (!missed) continue;
    const auto shown =
        fmt::format("{} {}{}", kill->name, kill->whole ? "-f " : "", text::printable(kill->pattern));
    const auto what =
        missed->by_name
            ? fmt::format("{} searches the names of programs, and that of {} is {}", shown,
                          shown_name(*missed->meant), text::printable(program_name(missed->meant->words[0])))
            : fmt::format("{} does not reach {} of line {}: it is not in its command line", shown,
                          shown_name(*missed->meant), missed->meant->span.line);
    return report.note(lines.whole(number),
                       {what, "it runs on when the script has ended, and keeps its GPUs and its port",
                        "keep its process id when it starts: PID=$!, and kill $PID here", ""});
  }
}

const Registered<Rule> kill_misses_rule{{
    .order = 518,
    .name = "kill-misses",
    .title = "pkill with a pattern that its program does not have",
    .explain = "pkill searches the names of programs, and with -f their command lines. Reported for a "
               "pattern that shares a word with a program in the background and reaches no program of the "
               "script.",
    .source = "pkill(1), --full; killall(1)",
    .check = check_kill_misses,
}};

const Registered<Rule> kills_itself_rule{{
    .order = 486,
    .name = "kills-itself",
    .title = "pkill -f with a pattern that its own shell matches",
    .explain = "pkill -f searches whole command lines and spares only itself. A pkill that is the last "
               "command of the text is not reported: the shell has become it. `bash -c TEXT`, and the shell "
               "that ssh "
               "starts for TEXT, have the pattern in theirs.",
    .source = "pkill(1), --full, NOTES",
    .check = check_kills_itself,
}};

const Registered<Rule> kills_others_rule{{
    .order = 458,
    .name = "kills-others",
    .title = "a cleanup that kills the processes of other jobs",
    .explain = "pkill, killall, `ray stop` and lists of processes choose by name, port or GPU, not by job. "
               "Not reported if the job has whole nodes "
               "(--exclusive), or if the pattern has a variable.",
    .source = "pkill(1)",
    .check = check_kills_others,
}};

/// The patterns of `pkill`: it takes one.
std::size_t patterns_of(const shell::Words& words) {
  static const shell::Options kValued{
      "-P",    "-g",        "-G",         "-u",        "-U",          "-s",       "-t",      "-F",
      "-r",    "-O",        "-d",         "--signal",  "--parent",    "--pgroup", "--group", "--euid",
      "--uid", "--session", "--terminal", "--pidfile", "--runstates", "--older"};
  std::size_t patterns = 0;
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (kValued.contains(words[i]))
      ++i;
    else if (!words[i].starts_with('-'))
      ++patterns;
  }
  return patterns;
}

void check_pkill_patterns(const LintInput& input, Report& report) {
  if (!input.script) return;
  std::set<std::uint32_t> told;
  for (const auto& command : input.script->commands) {
    if (program_name(command.words[0]) != "pkill" || patterns_of(command.words) < 2 ||
        !told.insert(command.span.line).second)
      continue;
    const auto& last = command.words.back();
    report.error(
        command.span,
        {fmt::format("pkill takes one pattern: with {} it kills nothing", patterns_of(command.words)),
         "it prints an error and exits with 2; what should have ended runs on",
         fmt::format("pkill once for each, or pkill -f 'A|{}'", text::printable(last)), ""});
  }
}

const Registered<Rule> pkill_patterns_rule{{
    .order = 549,
    .name = "pkill-patterns",
    .title = "pkill with more than one pattern",
    .explain = "pkill -9 ray python prints \"only one pattern can be provided\".",
    .source = "procps, src/pgrep.c@4.0.2",
    .check = check_pkill_patterns,
}};

void check_kill_ignored(const LintInput& input, Report& report) {
  if (!input.script) return;
  static const RE2 kInt(
      R"re((?:^|[;&|{(]|\bthen|\bdo)\s*kill\s+(?:-s\s+)?-?(?:SIG)?(?:INT|2)\s+(?:--\s+)?"?\$\{?(!|\w+))re");
  static const RE2 kJobControl(R"re((?m)^\s*set\s+-\w*m)re");
  const auto& text = input.script->file->text;
  if (RE2::PartialMatch(text, kJobControl)) return;
  const SourceLines lines(input.script->file);
  for (const auto number : lines_of_commands(lines)) {
    std::string whom;
    if (!RE2::PartialMatch(lines.command(number), kInt, &whom)) continue;
    const bool of_background = whom == "!" || text.contains(whom + "=$!") || text.contains(whom + "=\"$!\"");
    if (!of_background) continue;
    return report.note(
        lines.whole(number),
        {"what a script starts in the background ignores this signal",
         "bash starts it with SIGINT ignored: a program that does not set a handler itself runs "
         "on, and a wait for it does not end",
         "kill -TERM", ""});
  }
}

const Registered<Rule> kill_ignored_rule{{
    .order = 569,
    .name = "kill-ignored",
    .title = "kill -INT of a program in the background",
    .explain = "Without job control, commands behind & ignore SIGINT and SIGQUIT.",
    .source = "bash(1), SIGNALS",
    .check = check_kill_ignored,
}};

}  // namespace
}  // namespace nlaunch::lint

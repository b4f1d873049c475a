#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/registry.h"
#include "base/text.h"
#include "lint/loops.h"
#include "lint/programs.h"
#include "lint/rule.h"
#include "lint/script_text.h"
#include "shell/words.h"

/// Loops of a script that wait: forever, or until they run out.
namespace nlaunch::lint {
namespace {

using shell::program_name;

/// Asks whether something answers.
const RE2& question() {
  static const RE2 kAsks(
      R"re(\b(curl|wget|nc|ncat)\s|/dev/tcp/|\bray\s+(status|health-check|start\s+--address))re");
  return kAsks;
}

void check_endless_wait(const LintInput& input, Report& report) {
  if (!input.script) return;
  const SourceLines lines(input.script->file);
  static const RE2 kBegins(R"re(^\s*(until\s|while\s+(!|true|:|\[)))re");
  static const RE2 kForEver(R"re(^\s*while\s+(true|:))re");
  static const RE2 kForFile(
      R"re(^\s*(until\s+(\[\[?|test)\s+-[efs]\s|while\s+(!\s+(\[\[?|test)\s+-[efs]|(\[\[?|test)\s+!\s+-[efs])\s|)re"
      R"re((until|while\s+!)\s+grep\s+-\S*q))re");
  static const RE2 kEnds(
      R"re(kill\s+-0|\btimeout\s|\bSECONDS\b|-g[te]\s|-l[te]\s|\(\(|\bexit\b|\breturn\b|--retry|jobs\s|\bps\s)re");
  for (const auto& loop : short_loops(lines)) {
    if (!RE2::PartialMatch(loop.head, kBegins) || RE2::PartialMatch(loop.text, kEnds)) continue;
    // `until ! curl`, `while curl`: waits for its end.
    static const RE2 kForEnd(R"re(^\s*(?:until\s+!|while\s+(?:curl|wget|nc|pgrep)\b))re");
    if (RE2::PartialMatch(loop.head, kForEnd)) continue;
    const bool for_ever = RE2::PartialMatch(loop.head, kForEver);
    const bool for_file = RE2::PartialMatch(loop.head, kForFile);
    const bool asking = RE2::PartialMatch(for_ever ? loop.text : loop.head, question());
    // An endless loop with an exit is also a wait; one that checks files is something else.
    const bool is_wait = !for_ever || (loop.text.find("break") != std::string::npos &&
                                       loop.text.find("-f ") == std::string::npos);
    const bool sleeps = loop.text.find("sleep") != std::string::npos;
    if (!(asking && is_wait) && !(for_file && sleeps)) continue;
    report.note(lines.whole(loop.begin), {asking ? "this waits forever if the server has died"
                                                 : "this waits forever if what writes the file has died",
                                          "the job holds its nodes until the time limit, without any message",
                                          "add a limit, and kill -0 $PID in the loop", ""});
  }
}

const Registered<Rule> endless_wait_rule{{
    .order = 451,
    .name = "endless-wait",
    .title = "a wait for a server that may have died",
    .explain =
        "A server that dies at startup never answers, and a program that dies never writes the file that "
        "another one waits for. A polling loop needs a check that the other side is alive, or a limit.",
    .source = "bash(1), until",
    .check = check_endless_wait,
}};

/// How long a loop with a number of turns waits: `for i in {1..200}; do ... sleep 5`. Nothing if that is not
/// known.
std::optional<std::uint64_t> seconds_of(const Loop& loop) {
  static const RE2 kTurns(R"re(^\s*for\s+\w+\s+in\s+(?:\{[01]\.\.(\d+)\}|\$\(seq\s+(?:[01]\s+)?(\d+)\)))re");
  static const RE2 kCounts(
      R"re(^\s*for\s*\(\(\s*\w+\s*=\s*[01]\s*;[^;]*<=?\s*(\d+)\s*;\s*(?:\w+\+\+|\+\+\w+)\s*\)\))re");
  static const RE2 kSleep(R"re(\bsleep\s+(\d+))re");
  std::string braces;
  std::string sequence;
  if (!RE2::PartialMatch(loop.head, kTurns, &braces, &sequence) &&
      !RE2::PartialMatch(loop.head, kCounts, &braces))
    return std::nullopt;
  const auto turns = text::whole_number<std::uint32_t>(braces.empty() ? sequence : braces);
  std::uint32_t seconds = 0;
  if (!turns || !RE2::PartialMatch(loop.text, kSleep, &seconds)) return std::nullopt;
  return std::uint64_t{*turns} * seconds;
}

void check_blind_wait(const LintInput& input, Report& report) {
  if (!input.script) return;
  static const RE2 kLooks(
      R"re(\bkill\s+-(?:0|s\s*0)|\bjobs\b|\bps\s|\bpgrep\b|/proc/|\bwait\s|docker\s+(?:ps|inspect)|\bsqueue\b|\bgrep\b[^\n]*&&\s*(?:exit|return)|\w*alive\w*)re");
  constexpr std::uint64_t kLong = 120;
  const SourceLines lines(input.script->file);
  const auto server = std::ranges::find_if(input.script->programs, [](const Program& one) {
    return one.works && one.background && is_server(one);
  });
  if (server == input.script->programs.end()) return;
  for (const auto& loop : short_loops(lines)) {
    const auto seconds = seconds_of(loop);
    if (loop.begin < server->span.line || !seconds || *seconds < kLong ||
        !RE2::PartialMatch(loop.text, question()) || RE2::PartialMatch(loop.text, kLooks))
      continue;
    return report.note(
        lines.whole(loop.begin),
        {fmt::format("if the server of line {} ends while it loads, this waits up to {} more",
                     server->span.line, text::count(*seconds, "second")),
         "a server that fails while it loads (memory, a wrong option) ends at once, and the job "
         "holds its GPUs until the loop is over",
         "in the loop: kill -0 $PID || exit 1", ""});
  }
}

const Registered<Rule> blind_wait_rule{{
    .order = 487,
    .name = "blind-wait",
    .title = "a wait for a server that does not notice its end",
    .explain = "The loop asks only whether the server answers. Not reported for less than two minutes.",
    .source = "bash(1), kill",
    .check = check_blind_wait,
}};

/// `[ "$code" != 000 ]`: any status but none at all ends the loop. 0: the line is not there.
std::uint32_t line_of_any_status(const SourceLines& lines, const Loop& loop) {
  static const RE2 kAsks(R"re(\bcurl\s[^|;]*http_code)re");
  static const RE2 kNone(R"re((?:!=|-ne)\s*["']?0+["']?\s)re");
  static const RE2 kStatus(
      R"re((?:=|==|-eq|=~)\s*["']?\^?\(?[2-5](?:\d\d|\*|\?\?|$|\s)|\b[2-5](?:\d\d|\*|\?\?)\s*[|)]|\bgrep\s[^|;]*[2-5]\d\d)re");
  if (!RE2::PartialMatch(loop.text, kAsks) || RE2::PartialMatch(loop.text, kStatus)) return 0;
  for (auto at = loop.begin; at <= loop.end; ++at)
    if (RE2::PartialMatch(lines.line(at), kNone) && !lines.line(at).contains("$?")) return at;
  return 0;
}

/// `until curl -s URL; do`, without -f and without a look at the code of the answer.
void check_any_answer(const LintInput& input, Report& report) {
  if (!input.script) return;
  const SourceLines lines(input.script->file);
  static const RE2 kAsks(R"re(^\s*(?:until|while\s+!|if)\s+(curl\s[^|;&]*)(?:\s*(?:&?>|2>)[^|;]*)?;)re");
  static const RE2 kFails(R"re(\s(?:-[a-zA-Z]*f[a-zA-Z]*|--fail(?:-with-body)?)(?:\s|$))re");
  static const RE2 kCode(R"re(http_code|\s-w\s)re");
  static const RE2 kThrown(R"re(\s[1&]?>\s*/dev/null)re");
  static const RE2 kOfServer(R"re(localhost|127\.0\.0\.1|0\.0\.0\.0|://["']?\$|:\d{4,5}\b|:\$)re");
  const auto tell = [&](std::uint32_t line) {
    report.note(lines.whole(line),
                {"any answer ends this wait, also an error",
                 "curl succeeds if the server answers at all: SGLang answers 503 while it loads, and "
                 "what else listens on the port answers 404",
                 "curl -sf: it fails if the answer is an error", ""});
  };
  for (const auto& loop : short_loops(lines)) {
    if (!polls(loop)) continue;
    if (const auto line = line_of_any_status(lines, loop); line != 0) tell(line);
    for (auto at = loop.begin; at <= loop.end; ++at) {
      std::string asks;
      const auto command = loop.begin == loop.end ? loop.head : lines.command(at);
      if (!RE2::PartialMatch(command, kAsks, &asks) || RE2::PartialMatch(asks, kFails) ||
          !RE2::PartialMatch(asks, kOfServer) ||
          (RE2::PartialMatch(asks, kCode) && !RE2::PartialMatch(command, kThrown)))
        continue;
      tell(at);
    }
  }
}

const Registered<Rule> any_answer_rule{{
    .order = 480,
    .name = "any-answer",
    .title = "a wait for a server that an error ends",
    .explain = "Without --fail, curl exits with 0 whatever the status of the answer is.",
    .source = "curl(1), --fail; SGLang python/sglang/srt/entrypoints/http_server.py, health",
    .check = check_any_answer,
}};

/// The names that a loop sets or counts with, and that may tell afterwards how it ended.
std::set<std::string> names_of(const Loop& loop) {
  static const RE2 kNames(
      R"re(\bfor\s+\(*\s*([A-Za-z_]\w*)|\b([A-Za-z_]\w*)(?:\+=|=|\+\+)|\(\(\s*([A-Za-z_]\w*)|-l[te]\s+"?\$\{?(\w+)|\$\{?(\w+)\}?"?\s+-l[te])re");
  std::set<std::string> names;
  std::array<std::string, 5> found;
  for (re2::StringPiece rest(loop.text);
       RE2::FindAndConsume(&rest, kNames, &found[0], &found[1], &found[2], &found[3], &found[4]);)
    for (const auto& name : found)
      if (!name.empty()) names.insert(name);
  return names;
}

/// True if a few lines below a loop tell whether it succeeded.
bool is_checked_behind(const SourceLines& lines, const Loop& loop) {
  const auto last = lines.line(loop.end);
  if (last.find("||") != std::string_view::npos || last.find("&&") != std::string_view::npos) return true;
  const auto names = names_of(loop);
  static const RE2 kChecks(R"re(\bexit\b|\breturn\b|kill\s+-0|\$\?|\bif\s+!)re");
  constexpr std::uint32_t kNear = 15;
  for (auto at = loop.end + 1; at <= lines.count() && at <= loop.end + kNear; ++at) {
    const auto line = lines.line(at);
    static const RE2 kWhatever(R"re(\|\|\s*(true|:)\s*$)re");
    if (text::trim(line).starts_with('#') || RE2::PartialMatch(line, kWhatever)) continue;
    if (RE2::PartialMatch(line, kChecks) || RE2::PartialMatch(line, question())) return true;
    if (std::ranges::any_of(names,
                            [&](const auto& name) { return static_cast<bool>(lines.find(name, at, at)); }))
      return true;
  }
  return false;
}

constexpr auto kReadyInstead = "after done: [ $ready = 1 ] || exit 1, with ready=1 before the break";

/// Of the first server that runs, but does not answer as long as the script asks: what starts all the same.
void tell_of_slow_server(const Script& script, Report& report) {
  for (const auto& trial : script.trials) {
    const bool repeats = trial.hung && trial.hung->questions > 1;
    const bool ray = program_name(script.programs[trial.program].words[0]) == "ray";
    if (!repeats || ray || !trial.hung->exit_code || trial.hung->waited == 0) continue;
    const auto& later = trial.hung->later;
    const auto client = std::ranges::find_if(later, [&](std::size_t i) {
      return !script.programs[i].background && !is_server(script.programs[i]);
    });
    if (client == later.end()) continue;
    const auto& program = script.programs[*client];
    return report.warning(
        program.span,
        {fmt::format("{} starts all the same if {} in line {} has not answered after {}", shown_name(program),
                     shown_name(script.programs[trial.program]), script.programs[trial.program].span.line,
                     shown_duration(trial.hung->waited)),
         "a large model, or a first download, takes longer: what follows runs without the server, and fails "
         "later or hangs",
         kReadyInstead, ""});
  }
}

void check_wait_runs_out(const LintInput& input, Report& report) {
  if (!input.script) return;
  const auto& script = *input.script;
  const SourceLines lines(script.file);
  bool told = false;
  static const RE2 kLimited(
      R"re(^\s*(for\s+\w+\s+in\s+(\\?\$\(\s*seq\s|`\s*seq\s|\{\d+\.\.\S+\})|for\s+\(\(|while\s+(\[\[?\s+\S+\s+-l[te]\s|\(\()))re");
  static const RE2 kEnds(R"re(\bexit\b|\breturn\b|kill\s+-0|\bexec\b)re");
  for (const auto& loop : short_loops(lines)) {
    const bool waits = RE2::PartialMatch(loop.head, kLimited) && RE2::PartialMatch(loop.text, question()) &&
                       loop.text.find("break") != std::string::npos &&
                       loop.text.find("sleep") != std::string::npos;
    const bool used = std::ranges::any_of(script.commands, [&](const ScriptCommand& command) {
      return command.works && command.span.file == script.file && command.span.line > loop.end;
    });
    if (!waits || !used || RE2::PartialMatch(loop.text, kEnds) || is_checked_behind(lines, loop)) continue;
    told = true;
    report.warning(
        lines.whole(loop.begin),
        {"the script goes on if nothing has answered when this loop runs out",
         "it counts its turns, but nothing below tells whether the last one succeeded: what follows runs "
         "without the server, and fails later or hangs",
         kReadyInstead, ""});
  }
  if (!told) tell_of_slow_server(script, report);
}

const Registered<Rule> wait_runs_out_rule{{
    .order = 453,
    .name = "wait-runs-out",
    .title = "a wait for a server that goes on without it",
    .explain =
        "A loop with a fixed number of turns ends either because the server answered (break) or because it "
        "ran out. Its exit code does not tell which. Not reported if the lines below the loop check. bash "
        "also runs the script with a server that never answers.",
    .source = "bash(1), Compound Commands",
    .check = check_wait_runs_out,
}};

/// `tail -f LOG &`, `nvidia-smi -l 5 &`, `watch …`: only a signal ends it.
bool goes_on(const shell::Words& words) {
  const auto name = program_name(words[0]);
  const bool monitors = name == "nvidia-smi" && std::ranges::any_of(words, [](const std::string& word) {
                          return word == "dmon" || word == "pmon" || word == "-l" ||
                                 word.starts_with("--loop") || word.starts_with("-lms");
                        });
  return monitors || shell::is_any_of(name, {"watch", "nvtop", "nvitop"}) || shell::waits_forever(words);
}

void check_endless_follow(const LintInput& input, Report& report) {
  if (!input.script) return;
  const auto& commands = input.script->commands;
  for (const auto& program : input.script->programs) {
    if (!program.background || program.step || !goes_on(program.words)) continue;
    const auto behind = [&](const ScriptCommand& one) {
      return one.span.file == program.span.file && one.span.line >= program.span.line;
    };
    const auto waits = std::ranges::find_if(commands, [&](const ScriptCommand& one) {
      return behind(one) && one.words == shell::Words{"wait"} && one.span.line > program.span.line;
    });
    const bool is_killed = std::any_of(commands.begin(), waits, [&](const ScriptCommand& one) {
      return behind(one) && (shell::kills(one.words) || one.words[0] == "disown");
    });
    if (waits == commands.end() || is_killed) continue;
    return report.warning(program.span,
                          {fmt::format("the wait in line {} waits for {}, too, which never ends",
                                       waits->span.line, program_name(program.words[0])),
                           "the script goes on for ever after its programs have ended",
                           "keep the process ids of the programs, and wait for these: wait $PID", ""});
  }
}

const Registered<Rule> endless_follow_rule{{
    .order = 422,
    .name = "endless-follow",
    .title = "a wait that also waits for tail -f",
    .explain = "wait without arguments waits for everything in the background: also for tail -f, watch or "
               "nvidia-smi -l.",
    .source = "bash(1), wait",
    .check = check_endless_follow,
}};

}  // namespace
}  // namespace nlaunch::lint

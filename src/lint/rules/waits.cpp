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
#include "base/units.h"
#include "lint/programs.h"
#include "lint/rule.h"
#include "lint/script_text.h"
#include "shell/words.h"

/// Waits of a script: for a fixed time, forever, or until they run out.
namespace nlaunch::lint {
namespace {

using shell::program_name;

bool is_head(const Program& program) {
  return shell::has(program.words, "--head") || shell::has(program.words, "--head=true");
}

/// A loop of a script's text, from its first line to its `done`.
struct Loop {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  std::string head;  ///< its first line
  std::string text;  ///< all of it, without comments
};

/// The loops that start at these lines; longer ones do more than wait.
std::vector<Loop> short_loops(const SourceLines& lines) {
  static const RE2 kBegins(R"re(^\s*(for|until|while)\s)re");
  static const RE2 kEnds(R"re((^|;)\s*done\b)re");
  constexpr std::uint32_t kLongest = 30;
  std::vector<Loop> loops;
  // `timeout 300 bash -c "until curl …; do sleep 2; done"`
  static const RE2 kInText(R"re(\bbash\s+-l?c\s+["']\s*((?:until|while)\s[^\n]*?\bdone)\b)re");
  for (std::uint32_t begin = 1; begin <= lines.count(); ++begin) {  // also in the text of bash -c
    std::string text;
    if (RE2::PartialMatch(lines.line(begin), kInText, &text) &&
        !text::trim(lines.line(begin)).starts_with('#'))
      loops.push_back({.begin = begin, .end = begin, .head = text, .text = std::string(lines.line(begin))});
    if (!RE2::PartialMatch(lines.line(begin), kBegins)) continue;
    Loop loop{.begin = begin, .end = begin, .head = std::string(lines.line(begin)), .text = {}};
    const auto indentation = lines.line(begin).find_first_not_of(" \t");
    for (; loop.end <= lines.count() && loop.end < begin + kLongest; ++loop.end) {
      const auto line = lines.line(loop.end);
      if (!text::trim(line).starts_with('#')) loop.text += std::string(line) + "\n";
      const bool outer = loop.end == begin || line.find_first_not_of(" \t") == indentation;
      if (outer && RE2::PartialMatch(line, kEnds)) {
        loops.push_back(std::move(loop));
        break;
      }
    }
  }
  return loops;
}

/// A loop that goes on until something is ready, or until a program succeeds.
bool polls(const Loop& loop) {
  static const RE2 kUntil(R"re(^\s*(until\s|while\s+!|while\s+(\[\[?|test)\s.*(\$\(|\s-[efs]\s)))re");
  static const RE2 kBreak(R"re(\bbreak\b)re");
  return loop.text.find("sleep") != std::string::npos &&
         (RE2::PartialMatch(loop.head, kUntil) || RE2::PartialMatch(loop.text, kBreak));
}

/// What is between the start of a server and what uses it: a delay, a question, or nothing.
class ServerWaits {
 public:
  explicit ServerWaits(const Script& script) : script_(script), lines_(script.file) {
    for (auto& loop : short_loops(lines_))
      if (polls(loop)) polls_.push_back(std::move(loop));
    for (const auto& program : script.programs) asks_.push_back(asks(program));
  }

  /// The first program that is told the port of a server, with nothing between the two.
  void check_at_once(Report& report) const {
    for (std::size_t i = 0; i < script_.programs.size(); ++i) {
      const auto& program = script_.programs[i];
      const auto* server = program.works && !asks_[i] && !is_server(program) ? server_at_once(i) : nullptr;
      if (server == nullptr) continue;
      return report.warning(
          program.span,
          {fmt::format("{} starts at once after the server of line {}, and nothing waits for it",
                       program_name(program.words[0]), server->span.line),
           "a model takes minutes to load: unless the program itself tries again, it fails with \"Connection "
           "refused\"",
           "until curl -sf http://HOST:PORT/health; do sleep 5; done", ""});
    }
  }

  /// The first delay in which a server that was killed should have ended, before the next one at its port.
  void check_for_end(Report& report) const {
    for (std::size_t i = 1; i < script_.programs.size(); ++i) {
      const auto& next = script_.programs[i];
      if (!is_here(next) || !is_server(next)) continue;
      const auto port = port_of_server(next).port;
      const auto before =
          std::find_if(script_.programs.begin(), script_.programs.begin() + static_cast<std::ptrdiff_t>(i),
                       [&](const Program& one) {
                         return is_here(one) && is_server(one) && port_of_server(one).port == port;
                       });
      if (before == script_.programs.begin() + static_cast<std::ptrdiff_t>(i)) continue;
      const auto sleep = delay_behind_kill(before->span.line, next.span.line);
      if (sleep == 0) continue;
      return report.note(
          lines_.whole(sleep),
          {fmt::format("the script assumes that {} has ended after a fixed time", shown_name(*before)),
           fmt::format("the next one cannot start while port {} or the GPUs' memory is still taken", port),
           "kill $PID; wait $PID", ""});
    }
  }

  /// The first delay behind which nothing asks whether the server is ready.
  void check(Report& report) const {
    for (std::size_t i = 0; i < script_.programs.size(); ++i) {
      const auto& program = script_.programs[i];
      if (!program.works || asks_[i]) continue;
      const bool joins = starts_ray(program) && !is_head(program);
      if (starts_server(program) && !joins) continue;
      const auto wait = wait_before(i);
      if (!wait && joins && tell_of_other_machine(i, report)) return;
      if (!wait || (joins && !is_head(wait->server)) || asks_between(wait->sleep, program)) continue;
      if (joins)
        return report.note(wait->sleep.span,
                           {"the script assumes that the head of Ray is ready after a fixed time",
                            "if it starts more slowly, the other nodes do not find it",
                            "until ray status --address HOST:PORT; do sleep 2; done", ""});
      const auto what = program_name(wait->server.words[0]);
      return report.note(
          wait->sleep.span,
          {fmt::format("the script assumes that {} is ready after a fixed time", what),
           "if a model loads more slowly or a node joins later, what follows fails or gets fewer GPUs",
           what == "ray" ? "wait until `ray status` lists all nodes"
                         : "until curl -sf http://HOST:PORT/health; do sleep 5; done",
           ""});
    }
  }

 private:
  struct Wait {
    const Program& server;
    const Program& sleep;
  };

  /// The line of the `sleep` behind the first kill after a server, if nothing asks for its end before the
  /// next one, which may be on the same line of a loop; 0 if there is none.
  [[nodiscard]] std::uint32_t delay_behind_kill(std::uint32_t server, std::uint32_t next) const {
    static const RE2 kKill(R"re(^\s*(?:kill|pkill|killall)\b)re");
    static const RE2 kAsks(R"re(^\s*(?:wait|until|while|timeout)\b|\btail\s.*--pid)re");
    auto kill = server + 1;
    while (kill <= lines_.count() && !RE2::PartialMatch(lines_.line(kill), kKill)) ++kill;
    constexpr std::uint32_t kNear = 3;
    const auto end = next > kill ? next : std::min(kill + kNear, lines_.count() + 1);
    std::uint32_t sleep = 0;
    for (auto line = kill + 1; line < end; ++line) {
      if (RE2::PartialMatch(lines_.line(line), kAsks)) return 0;
      if (sleep == 0 && text::trim(lines_.line(line)).starts_with("sleep ")) sleep = line;
    }
    return sleep;
  }

  /// `sleep 10`, `ray start --address HEAD`, where the head runs in another start of this script.
  bool tell_of_other_machine(std::size_t index, Report& report) const {
    const auto& program = script_.programs[index];
    const bool starts_head = std::ranges::any_of(
        script_.programs, [](const Program& one) { return one.works && starts_ray(one) && is_head(one); });
    const Program* sleep = nullptr;
    for (std::size_t at = 0; at < index; ++at) {
      if (asks_[at]) return false;
      if (program_name(script_.programs[at].words[0]) == "sleep") sleep = &script_.programs[at];
    }
    if (starts_head || sleep == nullptr || program.step || sleep->span.file != script_.file ||
        asks_between(*sleep, program))
      return false;
    report.note(sleep->span, {"the script assumes that the head of Ray is ready after a fixed time",
                              "if it starts more slowly, this node does not find it",
                              "until ray status --address HOST:PORT; do sleep 2; done", ""});
    return true;
  }

  [[nodiscard]] bool is_here(const Program& program) const {
    return program.works && program.background && program.span.file == script_.file;
  }

  /// `pkill vllm`, `sleep 60`: waits for an end.
  [[nodiscard]] bool is_behind_kill(const Program& sleep) const {
    static const RE2 kKills(R"re(^\s*(?:kill|pkill|killall|ray\s+stop|docker\s+(?:stop|rm|kill))\b)re");
    for (auto at = sleep.span.line - 1; at > 0 && at + 3 > sleep.span.line; --at) {
      if (RE2::PartialMatch(lines_.line(at), kKills)) return true;
      if (!text::trim(lines_.line(at)).empty()) return false;
    }
    return false;
  }

  static bool starts_ray(const Program& program) {
    return program_name(program.words[0]) == "ray" && program.words.size() > 1 && program.words[1] == "start";
  }
  static bool starts_server(const Program& program) {
    return program.works && (starts_ray(program) || (program.background && is_server(program)));
  }

  /// The last delay between a program and the server that was started last before it; nullopt if there is
  /// none, or if something asks there.
  [[nodiscard]] std::optional<Wait> wait_before(std::size_t index) const {
    const auto& program = script_.programs[index];
    const Program* sleep = nullptr;
    for (auto at = index; at-- > 0;) {
      const auto& one = script_.programs[at];
      if (starts_server(one)) return sleep == nullptr ? std::nullopt : std::optional<Wait>({one, *sleep});
      // The other tasks of a step run at the same time.
      if (one.step && one.step == program.step && one.rank != program.rank) continue;
      if (asks_[at]) return std::nullopt;
      if (program_name(one.words[0]) != "sleep" || one.background) continue;
      if (is_behind_kill(one)) return std::nullopt;
      // One that is repeated is in a loop that asks in another way.
      if (sleep != nullptr && sleep == &one + 1 && sleep->words == one.words) return std::nullopt;
      if (sleep == nullptr) sleep = &one;
    }
    return std::nullopt;
  }

  /// The server that was started before a program which is told its port, if nothing is in between but other
  /// starts; nullptr if none.
  [[nodiscard]] const Program* server_at_once(std::size_t index) const {
    const auto& program = script_.programs[index];
    for (auto at = index; at-- > 0;) {
      const auto& one = script_.programs[at];
      if (one.step && one.step == program.step) return nullptr;
      if (asks_[at] || program_name(one.words[0]) == "sleep") return nullptr;
      if (!one.works || !one.background || !is_server(one)) continue;
      return is_told(program, port_of_server(one).port) || asks_ollama(one, program) ? &one : nullptr;
    }
    return nullptr;
  }

  /// Ollama's own clients know its port.
  static bool asks_ollama(const Program& server, const Program& program) {
    const auto name = program_name(program.words[0]);
    return program_name(server.words[0]) == "ollama" && (name == "ollama" || name.starts_with("python"));
  }

  /// "--port 8000", "http://localhost:8000/v1", OPENAI_BASE_URL=...:8000. TRL waits for its server itself.
  static bool is_told(const Program& program, const std::string& port) {
    bool told = false;
    for (std::size_t i = 1; i < program.words.size(); ++i) {
      const auto& word = program.words[i];
      if (word.find("vllm_server") != std::string::npos || word.find("/health") != std::string::npos ||
          word.find("/v1/models") != std::string::npos)
        return false;
      const bool as_value = word == port && program.words[i - 1].ends_with("port");
      told = told || as_value || word.find(":" + port) != std::string::npos || word.ends_with("port=" + port);
    }
    return told || std::ranges::any_of(program.environment, [&](const auto& one) {
             return (one.first.ends_with("_URL") || one.first.ends_with("_BASE") ||
                     one.first.ends_with("_ENDPOINT")) &&
                    one.second.find(":" + port) != std::string::npos;
           });
  }

  /// True for a program that asks whether something is ready, or that is started until it succeeds.
  [[nodiscard]] bool asks(const Program& program) const {
    const auto name = program_name(program.words[0]);
    const bool queries = name == "curl" || name == "nc" || name == "wget" || name == "ray" ||
                         program.words[0].starts_with("/dev/tcp/");
    if (queries && !program.works) return true;
    if (!program.background && (is_called_wait(name) || is_called_wait(name_of_file(program)))) return true;
    if (std::ranges::any_of(program.words, counts_nodes)) return true;
    if (program.span.file != script_.file) return false;
    const auto line = program.span.line;
    if (std::ranges::any_of(polls_, [&](const Loop& loop) { return loop.begin <= line && line <= loop.end; }))
      return true;
    if (name == "sleep") return false;
    return is_condition(program, lines_.command(line)) || counts_nodes(text_behind(line));
  }

  /// "wait_for_nodes.py", "check_ready", but not `wait`.
  static bool is_called_wait(const std::string& name) {
    static const RE2 kWaits(R"re((?i)(?:^|[-_.])(?:wait(?:[-_.]\w|for|until)|)re"
                            R"re((?:is|check|probe|ping|until)[-_.]?(?:healthy?|ready|alive)|)re"
                            R"re((?:healthy?|ready|alive)(?:[-_.]?check|\.(?:sh|py)$|$)))re");
    return RE2::PartialMatch(name, kWaits);
  }

  /// What python or a shell runs: "wait_for_nodes.py" for `python -u tools/wait_for_nodes.py 2`.
  static std::string name_of_file(const Program& program) {
    const auto& words = program.words;
    if (!shell::is_shell(words[0]) && !program_name(words[0]).starts_with("python")) return {};
    const auto file = std::find_if(words.begin() + 1, words.end(),
                                   [](const std::string& word) { return !word.starts_with('-'); });
    const bool is_text = file != words.end() && (file - 1)->ends_with('c');  // -c TEXT
    return file == words.end() || is_text ? std::string() : program_name(*file);
  }

  /// It asks Ray for its nodes, in a command or in a text for Python.
  static bool counts_nodes(const std::string& text) {
    static const RE2 kCounts(
        R"re(ray\.nodes\(|cluster_resources\(|\bray\s+(status|health-check|list\s+nodes))re");
    return RE2::PartialMatch(text, kCounts);
  }

  /// `until python ping.py; do`, also in the text of bash -c.
  static bool is_condition(const Program& program, const std::string& text) {
    auto called = RE2::QuoteMeta(program_name(program.words[0]));
    if (starts_ray(program)) called += "\\s+start";
    const RE2 loop(R"re(\b(?:until|while\s+!)\s+[^;\n]*)re" + called + R"re(\b)re", RE2::Latin1);
    return RE2::PartialMatch(text, loop);
  }

  /// The here-document of the command on a line.
  [[nodiscard]] std::string text_behind(std::uint32_t line) const {
    const auto next = std::ranges::upper_bound(begins_, line);
    const auto end = next == begins_.end() ? lines_.count() + 1 : *next;
    std::string text;
    for (auto at = lines_.end_of_command(line) + 1; at < end; ++at)
      if (!text::trim(lines_.line(at)).starts_with('#')) text.append(lines_.line(at)).push_back('\n');
    return text;
  }

  /// True if lines between a delay and a program wait for something, whether or not the recording shows it.
  [[nodiscard]] bool asks_between(const Program& sleep, const Program& program) const {
    if (sleep.span.file != script_.file || program.span.file != script_.file) return false;
    auto first = sleep.span.line;
    auto end = program.span.line;
    if (first == end) {  // in the text of a step
      end = lines_.end_of_command(first) + 1;
      first = lines_.find_text(text::join(sleep.words, " "), first, end - 1).line;
    }
    if (std::ranges::any_of(polls_, [&](const Loop& loop) { return first < loop.begin && loop.begin < end; }))
      return true;
    for (auto at = first + 1; at < end; ++at) {
      const auto text = text::trim(lines_.line(at));
      const auto name = program_name(std::string(text.substr(0, text.find_first_of(" \t;"))));
      const bool assigns = name.find('=') != std::string::npos;
      if (text.starts_with('#')) continue;
      if ((!assigns && is_called_wait(name)) || counts_nodes(std::string(text))) return true;
    }
    return false;
  }

  const Script& script_;
  SourceLines lines_;
  std::vector<std::uint32_t> begins_ = lines_of_commands(lines_);
  std::vector<Loop> polls_;
  std::vector<bool> asks_;  ///< by program
};

void check_fixed_wait(const LintInput& input, Report& report) {
  if (!input.script) return;
  const ServerWaits waits(*input.script);
  waits.check(report);
  waits.check_for_end(report);
}

const Registered<Rule> fixed_wait_rule{{
    .order = 450,
    .name = "fixed-wait",
    .title = "a fixed delay instead of a readiness check",
    .explain = "How long an engine takes to load depends on the model, the file system and the caches. It "
               "tells when it is ready. Not reported if a loop or a program waits after the delay.",
    .source = "vLLM, /health; docs.ray.io, ray status",
    .check = check_fixed_wait,
}};

void check_no_wait(const LintInput& input, Report& report) {
  if (input.script) ServerWaits(*input.script).check_at_once(report);
}

const Registered<Rule> no_wait_rule{{
    .order = 469,
    .name = "no-wait",
    .title = "a client that starts at once after its server",
    .explain =
        "Only a program that is told the port of the server is reported. TRL waits for its server itself.",
    .source = "vLLM, /health",
    .check = check_no_wait,
}};

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

/// `sleep 3000  # 5 minutes`
void check_sleep_time(const LintInput& input, Report& report) {
  if (!input.script) return;
  static const RE2 kSleep(
      R"re(\bsleep\s+(\d+)([smhd]?)\b[^#]*#[^\d]*(\d+)\s*(s|sec|second|m|min|minute|h|hour)s?\b)re");
  const SourceLines lines(input.script->file);
  for (const auto number : lines_of_commands(lines)) {
    std::uint64_t slept = 0;
    std::uint64_t said = 0;
    std::string unit;
    std::string said_unit;
    static const RE2 kOther(
        R"re((?i)#.*\b(?:max\w*|min|least|most|total|up to|about|every|poll\w*|timeout|until|or)\b)re");
    if (!RE2::PartialMatch(lines.line(number), kSleep, &slept, &unit, &said, &said_unit) ||
        RE2::PartialMatch(lines.line(number), kOther))
      continue;
    const auto in_seconds = [](std::string_view of) -> std::uint64_t {
      constexpr std::uint64_t kMinute = 60;
      return of.starts_with('m') ? kMinute : of.starts_with('h') ? kMinute * kMinute : of == "d" ? 86'400 : 1;
    };
    const auto really = slept * in_seconds(unit);
    if (really == said * in_seconds(said_unit) || slept == 0) continue;
    report.note(lines.whole(number), {fmt::format("this sleeps for {}, not {}", shown_duration(really),
                                                  shown_duration(said * in_seconds(said_unit))),
                                      "sleep counts in seconds, unless the number has a letter behind it",
                                      fmt::format("sleep {}", said * in_seconds(said_unit)), ""});
  }
}

const Registered<Rule> sleep_time_rule{{
    .order = 513,
    .name = "sleep-time",
    .title = "a sleep of another length than its comment says",
    .explain = "The number after sleep is in seconds, or has s, m, h or d behind it.",
    .source = "sleep(1)",
    .check = check_sleep_time,
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

void check_longer_than_job(const LintInput& input, Report& report) {
  const auto* option = find_option(input.batch, "--time");
  const auto limit = option == nullptr ? std::nullopt : parse_time_limit(value_of(*option, "--time"));
  if (!input.script || !limit) return;
  for (const auto& program : input.script->programs) {
    if (program_name(program.words[0]) != "sleep" || program.background || program.words.size() != 2 ||
        shell::seconds_of_sleep(program.words) < static_cast<std::uint64_t>(limit->count()))
      continue;
    // It may keep servers running until the job's end.
    const bool keeps = std::ranges::any_of(input.script->programs, [&](const Program& one) {
      return &one < &program && one.works && one.background;
    });
    if (keeps && &program == &input.script->programs.back()) return;
    return report.warning(program.span,
                          {fmt::format("sleep {} does not end before the job's time limit", program.words[1]),
                           "the job is cancelled here with state TIMEOUT, and what comes after it never runs",
                           "a shorter time, or wait for what the job waits for", ""});
  }
}

const Registered<Rule> longer_than_job_rule{{
    .order = 439,
    .name = "longer-than-job",
    .title = "a sleep that outlasts the job",
    .explain = "Slurm cancels the job at --time, whatever its script waits for.",
    .source = "sbatch(1), --time",
    .check = check_longer_than_job,
}};

}  // namespace
}  // namespace nlaunch::lint

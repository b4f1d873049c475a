#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/registry.h"
#include "base/text.h"
#include "lint/loops.h"
#include "lint/programs.h"
#include "lint/rule.h"
#include "lint/script_text.h"
#include "shell/words.h"

/// Fixed delays of a script, and what starts without one.
namespace nlaunch::lint {
namespace {

using shell::program_name;

bool is_head(const Program& program) {
  return shell::has(program.words, "--head") || shell::has(program.words, "--head=true");
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
                       shown_name(program), server->span.line),
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
      const auto what = starts_ray(wait->server) ? std::string("ray") : shown_name(wait->server);
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

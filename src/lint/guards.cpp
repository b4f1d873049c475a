#include "lint/guards.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "lint/programs.h"
#include "lint/script_text.h"
#include "shell/allocation.h"
#include "shell/trace.h"
#include "shell/words.h"
#include "sys/files.h"

namespace nlaunch::lint {
namespace {

using shell::is_any_of;

namespace fs = std::filesystem;
using shell::TracedCommand;
using shell::Words;

/// What a file that is not here contains: a comment for a shell, and known to be made up.
constexpr std::string_view kContentOfGuard = "# /rec/content\n";

/// `[ -f PATH ]`, where PATH is not here.
std::optional<Guard> asks_for_path(const shell::Recording& recording, const Words& words) {
  if (!is_any_of(words[0], {"[", "[[", "test"})) return std::nullopt;
  for (std::size_t i = 1; i + 1 < words.size(); ++i) {
    if (!is_any_of(words[i], {"-f", "-d", "-s", "-x", "-e", "-r"})) continue;
    auto path = words[i + 1];
    while (path.size() > 1 && path.ends_with('/')) path.pop_back();
    if (!path.starts_with('/')) {
      const auto asked = std::ranges::find_if(recording.asked_for, [&](const shell::Absent& one) {
        return one.name.ends_with("/" + shell::program_name(path));
      });
      if (asked == recording.asked_for.end()) return std::nullopt;
      path = asked->name;
    }
    std::error_code error;
    if (fs::exists(path, error)) return std::nullopt;
    const bool folder = words[i] == "-d";
    Guard guard{.what = text::printable(path) + " exists"};
    guard.files.push_back({.path = folder ? path + "/" : path,
                           .text = folder ? std::string() : std::string(kContentOfGuard),
                           .executable = true});
    return guard;
  }
  return std::nullopt;
}

/// Where the script was submitted; empty: unknown, or it changes its directory.
std::string folder_of_job(const shell::Recording& recording) {
  constexpr std::string_view kFolder = "SLURM_SUBMIT_DIR=";
  const bool moves = std::ranges::any_of(recording.traced, [](const TracedCommand& one) {
    return one.text.starts_with("cd ") || one.text.starts_with("pushd ");
  });
  const auto found = std::ranges::find_if(recording.environment,
                                          [&](const auto& entry) { return entry.starts_with(kFolder); });
  return moves || found == recording.environment.end() ? "" : found->substr(kFolder.size());
}

/// `chmod +x FILE`, where FILE is not here.
std::optional<Guard> changes_file(const shell::Recording& recording, const Words& words) {
  if (shell::program_name(words[0]) != "chmod" || words.size() < 3) return std::nullopt;
  Guard guard;
  const auto folder = folder_of_job(recording);
  for (std::size_t i = 2; i < words.size(); ++i) {
    if (words[i].starts_with('-') || (folder.empty() && !words[i].starts_with('/'))) return std::nullopt;
    const auto path = (fs::path(folder) / words[i]).lexically_normal().native();
    std::error_code error;
    if (fs::exists(path, error)) continue;
    if (guard.what.empty()) guard.what = text::printable(path) + " exists, and did not examine it";
    guard.files.push_back({.path = path, .text = std::string(kContentOfGuard), .executable = true});
  }
  return guard.files.empty() ? std::nullopt : std::optional(std::move(guard));
}

/// `ls -A FOLDER`, where FOLDER is not here: whether there is anything in it.
std::optional<Guard> asks_for_content(const Words& words) {
  const auto& path = words.back();
  std::error_code error;
  const bool all = words.size() == 3 && words[1].starts_with('-') && words[1].find('A') != std::string::npos;
  if (shell::program_name(words[0]) != "ls" || !all || !path.starts_with('/') || fs::exists(path, error))
    return std::nullopt;
  Guard guard{.what = text::printable(path) + " is not empty"};
  guard.files.push_back({.path = (fs::path(path) / "rec-content").lexically_normal().native(),
                         .text = std::string(kContentOfGuard)});
  return guard;
}

/// `read -r A B < <(python plan.py)`: a program that did not run printed nothing, and read fails.
std::optional<Guard> reads_output(const shell::Recording& recording, const TracedCommand& one,
                                  const Words& words) {
  if (words[0] != "read" || std::ranges::find(words, "-a") != words.end()) return std::nullopt;
  const auto program = std::ranges::find_if(recording.commands, [&](const shell::RecordedCommand& command) {
    constexpr std::uint32_t kNear = 3;
    return command.fate == shell::Fate::recorded && command.output_is_read && command.line >= one.line &&
           command.line <= one.line + kNear && (command.script.empty() || command.script == one.script);
  });
  if (program == recording.commands.end()) return std::nullopt;
  std::string values;
  for (std::size_t i = words.size(); i > 1 && !words[i - 1].starts_with('-'); --i) values += "/rec/value ";
  Guard guard{.what = fmt::format("{} prints what read takes",
                                  text::printable(shell::program_name(program->argv[0])))};
  guard.prints.emplace_back(text::join(program->argv, " "), values);
  return guard;
}

/// `[ -z "" ]` behind `CKPT=$(python latest.py)`: a program that did not run printed nothing.
std::optional<Guard> asks_for_text(const shell::Recording& recording, const Words& words) {
  constexpr std::size_t kTest = 3;  // [ -z ''
  const bool tests = is_any_of(words[0], {"[", "[[", "test"}) && words.size() >= kTest && words[2].empty() &&
                     is_any_of(words[1], {"-z", "-n"});
  if (!tests) return std::nullopt;
  const auto program = std::find_if(
      recording.commands.rbegin(), recording.commands.rend(), [](const shell::RecordedCommand& command) {
        return command.fate == shell::Fate::recorded && command.output_is_read && !command.task;
      });
  if (program == recording.commands.rend()) return std::nullopt;
  Guard guard{.what =
                  fmt::format("{} prints something", text::printable(shown_name({.words = program->argv})))};
  guard.prints.emplace_back(text::join(program->argv, " "), "/rec/value");
  return guard;
}

/// `command -v NAME`, `which NAME`.
std::optional<Guard> asks_for_program(const Words& words) {
  const auto name = shell::program_name(words[0]);
  const bool asks = (name == "command" && words.size() > 2 && words[1] == "-v") ||
                    is_any_of(name, {"which", "type", "hash"});
  const auto& program = words.back();
  if (!asks || words.size() < 2 || program.starts_with('-')) return std::nullopt;
  Guard guard{.what = text::printable(program) + " is installed"};
  const auto path = program.find('/') == std::string::npos ? "/usr/local/bin/" + program : program;
  std::error_code error;
  if (!path.starts_with('/') || fs::exists(path, error)) return std::nullopt;
  guard.files.push_back({.path = path, .text = "", .executable = true});
  return guard;
}

/// A text that a pattern of grep matches: "web" for "^web$", "401" for "^4[0-9]{2}$"; empty if unknown.
std::string matching(std::string pattern) {
  auto literal = pattern;
  if (literal.starts_with('^')) literal.erase(0, 1);
  if (literal.ends_with('$')) literal.pop_back();
  if (!literal.empty() && literal.find_first_of(R"(\[](){}*+?|^$)") == std::string::npos) return literal;
  constexpr std::array<std::string_view, 8> kSaid{"200",     "401", "404", "405", "HTTP/1.1 200 OK",
                                                  "healthy", "ok",  "true"};
  RE2::Options options;
  options.set_log_errors(false);
  const RE2 matches(pattern, options);
  if (!matches.ok()) return {};
  const auto* said =
      std::ranges::find_if(kSaid, [&](std::string_view one) { return RE2::PartialMatch(one, matches); });
  return said == kSaid.end() ? std::string() : std::string(*said);
}

/// The pattern of `grep -q PATTERN`, without a file; empty for any other command.
std::string pattern_of(const Words& words) {
  if (!is_any_of(shell::program_name(words[0]), {"grep", "egrep", "fgrep"})) return {};
  static const shell::Options kValued{"-e", "-m", "-A", "-B", "-C"};
  const auto by_option = std::ranges::find(words, "-e");
  if (by_option != words.end() && by_option + 1 != words.end()) return *(by_option + 1);
  const auto at = shell::program_at(words, 1, kValued);
  return at + 1 == words.size() ? words[at] : std::string();
}

/// `docker ps | grep NAME`, `curl URL | grep PATTERN`: the programs of a pipe are traced in any order.
std::optional<Guard> asks_for_output(const std::vector<TracedCommand>& traced, std::size_t at) {
  const auto words = shell::words_of(traced[at].text);
  const auto pattern = words.empty() ? std::string() : pattern_of(words);
  const auto said = pattern.empty() ? std::string() : matching(pattern);
  if (said.empty()) return std::nullopt;
  constexpr std::size_t kNear = 3;
  const auto first = at - std::min(at, kNear);
  for (auto i = first; i < std::min(traced.size(), at + kNear); ++i) {
    const auto other = shell::words_of(traced[i].text);
    if (other.size() < 2 || traced[i].line != traced[at].line) continue;
    const auto name = shell::program_name(other[0]);
    const bool lists = is_any_of(name, {"docker", "podman"}) && is_any_of(other[1], {"ps", "container"});
    if (!lists && !is_any_of(name, {"curl", "wget"})) continue;
    Guard guard{.what =
                    fmt::format("{} prints {}", lists ? name + " " + other[1] : name, text::printable(said))};
    guard.prints.emplace_back(text::join(other, " "), said);
    return guard;
  }
  return std::nullopt;
}

/// The last line of what a script printed.
std::string_view last_said(const shell::Recording& recording) {
  const auto said = text::trim(recording.output);
  return said.substr(said.rfind('\n') + 1);
}

/// A line of a script, as it is written; empty if it cannot be read.
std::string line_of(const std::string& script, std::uint32_t line) {
  constexpr std::size_t kLargest = 1U << 20U;
  const auto lines = text::split(sys::read_regular_file(script, kLargest).value_or(""), '\n');
  return line > 0 && line <= lines.size() ? lines[line - 1] : std::string();
}

/// "NAME=VALUE" for a variable of which only its name and a line that uses it are known: a number where one
/// has to be.
std::string made_up_setting(const std::string& name, const std::string& line) {
  static const RE2 kRank(R"re((?i)(?:^|_)(?:rank|procid|nodeid|index|idx)$)re");
  static const RE2 kPort(R"re((?i)port$)re");
  static const RE2 kNumber(
      R"re((?i)(?:^|_)(?:n|num|nnodes|nodes?|ngpus?|gpus?|nproc|nprocs|size|count|workers?|tp|pp|dp|ep|cp|len|length|batch|bs|bsz|conc|concurrency|isl|osl|seed|epochs?|steps?|ratio|timeout)(?:_|$)|size$)re");
  const RE2 reckoned(fmt::format(R"re(\(\([^()]*\b{0}\b|{0}\}}?"?\s+-(?:eq|ne|lt|le|gt|ge)\s)re", name));
  // Scripts look at how it begins.
  if (name.starts_with("HF_") && name.ends_with("TOKEN")) return name + "=hf_/rec/token";
  if (RE2::PartialMatch(name, kRank)) return name + "=0";
  if (RE2::PartialMatch(name, kPort)) return fmt::format("{}={}", name, shell::Allocation::kFirstPort);
  if (RE2::PartialMatch(name, kNumber) || RE2::PartialMatch(line, reckoned)) return name + "=1";
  return fmt::format("{0}=/rec/{0}", name);
}

/// "job.sh: line 7: 8888 +  : syntax error: operand expected": a variable of $(( )) is empty.
std::optional<Guard> reckons_with_variable(const shell::Recording& recording) {
  static const RE2 kSays(
      R"re((.*): line (\d+): .*: syntax error: (?:operand expected|invalid arithmetic).*)re");
  Guard guard;
  if (!RE2::FullMatch(last_said(recording), kSays, &guard.script, &guard.line)) return std::nullopt;
  for (const auto& one : expansions_in(line_of(guard.script, guard.line))) {
    const bool is_set = std::ranges::any_of(recording.assignments, [&](const shell::Assignment& assigned) {
      return assigned.name == one.name && !assigned.value.empty();
    });
    if (is_set) continue;
    guard.what = one.name + " is set";
    guard.variables.push_back(one.name + "=1");
    return guard;
  }
  return std::nullopt;
}

/// A file that the script sources and that is not here; empty if there is none.
std::string sourced_and_not_here(const shell::Recording& recording) {
  const auto known = std::ranges::find_if(recording.unread, &shell::Absent::is_sourced);
  if (known != recording.unread.end()) return known->name;
  if (!recording.sourced.empty()) return recording.sourced.front().name;
  for (const auto& one : recording.traced) {
    const auto words = shell::words_of(one.text);
    std::error_code error;
    if (words.size() > 1 && is_any_of(words[0], {"source", "."}) && words[1].starts_with('/') &&
        !fs::exists(words[1], error))
      return words[1];
  }
  return {};
}

/// "job.sh: line 7: DATA: unbound variable", "job.sh: line 7: DATA: parameter null or not set", "job.sh: line
/// 7: $1: unbound variable".
std::optional<Guard> asks_for_variable(const shell::Recording& recording) {
  static const RE2 kSays(R"re((.*): line (\d+): (\$?)(\w+): (.*))re");
  static const RE2 kGiven(R"re(\$\{(\w+):?\?)re");
  Guard guard;
  std::string dollar;
  std::string name;
  std::string said;
  if (!RE2::FullMatch(last_said(recording), kSays, &guard.script, &guard.line, &dollar, &name, &said))
    return std::nullopt;
  const auto line = line_of(guard.script, guard.line);
  guard.unbound = said == "unbound variable";
  std::string asked;
  if (!guard.unbound && (!RE2::PartialMatch(line, kGiven, &asked) || asked != name)) return std::nullopt;
  if (const auto place = text::whole_number<std::size_t>(name)) {
    guard.unbound = false;
    guard.arguments = *place;
    guard.what = fmt::format("it gets {}", text::count(*place, "argument"));
    return *place == 0 ? std::nullopt : std::optional(std::move(guard));
  }
  if (!dollar.empty() || !is_variable_name(name)) return std::nullopt;
  // torchrun sets these for what it starts.
  static const shell::Options kOfLauncher{"RANK",        "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE",
                                          "MASTER_ADDR", "MASTER_PORT"};
  const auto file = sourced_and_not_here(recording);
  guard.unbound = guard.unbound && file.empty() && !kOfLauncher.contains(name);
  guard.what = file.empty() ? name + " is set"
                            : fmt::format("{} sets {}", text::printable(shell::program_name(file)), name);
  guard.variables.push_back(made_up_setting(name, line));
  return guard;
}

/// `[ -z "$MODEL" ]`, `[ "$#" -lt 2 ]`: a variable or arguments that the user gives.
std::optional<Guard> asks_for_given(const shell::Recording& recording, const TracedCommand& one,
                                    const Words& words) {
  if (!is_any_of(words[0], {"[", "[[", "test", "(("})) return std::nullopt;
  const auto line = line_of(one.script, one.line);
  static const RE2 kCount(R"re(\$(?:#|\{#\}))re");
  static const RE2 kPlace(R"re(\$(?:([1-9])|\{([1-9])(?::?-)?\}))re");
  constexpr std::size_t kMost = 12;
  Guard guard;
  std::string bare;
  std::string braced;
  if (RE2::PartialMatch(line, kCount)) {
    guard.arguments = 1;
    for (const auto& word : words)
      if (const auto number = text::whole_number<std::size_t>(word))
        guard.arguments = std::max(guard.arguments, *number);
  } else if (RE2::PartialMatch(line, kPlace, &bare, &braced)) {
    guard.arguments = text::whole_number<std::size_t>(bare.empty() ? braced : bare).value_or(0);
  }
  if (guard.arguments > 0) {
    guard.what = fmt::format("it gets {}", text::count(guard.arguments, "argument"));
    return guard.arguments > kMost ? std::nullopt : std::optional(std::move(guard));
  }
  if (std::ranges::find(words, "") == words.end()) return std::nullopt;
  for (const auto& expanded : expansions_in(line)) {
    const auto is_it = [&](const std::string& entry) { return entry.starts_with(expanded.name + "="); };
    // One that the script sets itself gets no other value by being given.
    const bool is_set = std::ranges::any_of(recording.environment, is_it) ||
                        std::ranges::any_of(recording.assignments, [&](const shell::Assignment& assigned) {
                          return assigned.name == expanded.name;
                        });
    if (is_set || !is_variable_name(expanded.name)) continue;
    guard.what = expanded.name + " is set";
    guard.variables.push_back(made_up_setting(expanded.name, line));
    return guard;
  }
  return std::nullopt;
}

/// A tool that failed under set -e: for what is not here.
std::optional<Guard> needs_success(const shell::Recording& recording) {
  if (recording.traced.empty() || !recording.stopped.empty()) return std::nullopt;
  const auto* last = shell::last_of_script(recording.traced, recording.traced.front().shell);
  const auto words = last == nullptr ? Words() : shell::words_of(last->text);
  static const shell::Options kNone{"exit", "return", "[", "[[", "test", "((", "cd", "set"};
  if (words.empty() || kNone.contains(words[0]) || last->line == 0) return std::nullopt;
  Guard guard;
  guard.script = last->script;
  guard.line = last->line;
  const auto equals = words[0].find('=');
  guard.what = equals == std::string::npos
                   ? text::printable(shell::program_name(words[0])) + " succeeds"
                   : fmt::format("the program that sets {} succeeds", words[0].substr(0, equals));
  guard.succeeding.push_back({last->script, last->line});
  return guard;
}

/// How far a script got: its last line, and how much it ran.
std::pair<std::uint32_t, std::size_t> reached(const shell::Recording& recording, const std::string& script) {
  std::uint32_t last = 0;
  for (const auto& one : recording.traced)
    if (one.script == script) last = std::max(last, one.line);
  return {last, recording.traced.size()};
}

/// True if a test may have stopped it.
bool may_pass(const shell::Recording& recording) {
  return !recording.whole() && (recording.stopped.empty() || recording.waits);
}

/// The request with what makes the guard succeed.
shell::RecordRequest with_answer_to(shell::RecordRequest request, const Guard& guard) {
  request.files.insert(request.files.end(), guard.files.begin(), guard.files.end());
  request.variables.insert(request.variables.end(), guard.variables.begin(), guard.variables.end());
  request.prints.insert(request.prints.end(), guard.prints.begin(), guard.prints.end());
  request.succeeding.insert(request.succeeding.end(), guard.succeeding.begin(), guard.succeeding.end());
  while (request.arguments.size() < guard.arguments)
    request.arguments.push_back(fmt::format("/rec/argument-{}", request.arguments.size() + 1));
  return request;
}

}  // namespace

std::vector<Guard> last_guards(const shell::Recording& recording) {
  std::vector<Guard> guards;
  for (auto guard : {asks_for_variable(recording), reckons_with_variable(recording)})
    if (guard) guards.push_back(std::move(*guard));
  const auto& traced = recording.traced;
  constexpr std::size_t kLast = 40;
  for (auto at = traced.size(); at > traced.size() - std::min(traced.size(), kLast); --at) {
    const auto& one = traced[at - 1];
    // `which` is a script of this machine.
    if (one.script.starts_with("/usr/bin/") || one.script.starts_with("/bin/")) continue;
    const auto words = shell::words_of(one.text);
    if (words.empty()) continue;
    auto guard = asks_for_path(recording, words);
    if (!guard) guard = asks_for_program(words);
    if (!guard) guard = asks_for_output(traced, at - 1);
    if (!guard) guard = asks_for_content(words);
    if (!guard) guard = changes_file(recording, words);
    if (!guard) guard = reads_output(recording, one, words);
    if (!guard) guard = asks_for_text(recording, words);
    if (!guard) guard = asks_for_given(recording, one, words);
    if (!guard || std::ranges::find(guards, guard->what, &Guard::what) != guards.end()) continue;
    guard->script = one.script;
    guard->line = one.line;
    guards.push_back(std::move(*guard));
  }
  if (auto guard = needs_success(recording)) guards.push_back(std::move(*guard));
  return guards;
}

PassedGuards pass_guards(shell::RecordRequest request, shell::Recording recording) {
  PassedGuards passed{std::move(recording), request};
  const std::size_t most = passed.recording.waits ? 4 : 20;  // of an endless wait, each takes long
  std::error_code error;
  const auto script = fs::absolute(request.script, error).native();
  std::size_t recordings = 0;
  for (bool further = true; further && may_pass(passed.recording);) {
    further = false;
    for (auto& guard : last_guards(passed.recording)) {
      if (++recordings > most) return passed;
      auto with = with_answer_to(request, guard);
      auto again = shell::record(with);
      // A command with several unbound variables fails for the first one.
      const bool next = again && (!guard.variables.empty() || guard.arguments > 0) &&
                        last_said(*again) != last_said(passed.recording);
      further =
          again && (next || again->whole() || reached(*again, script) > reached(passed.recording, script));
      if (!further) continue;
      request = std::move(with);
      passed.request = request;
      passed.recording = std::move(*again);
      passed.guards.push_back(std::move(guard));
      break;
    }
  }
  return passed;
}

}  // namespace nlaunch::lint

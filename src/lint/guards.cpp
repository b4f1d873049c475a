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
#include "shell/words.h"

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

/// "job.sh: line 7: DATA: unbound variable", where a sourced file that is not here may set it.
std::optional<Guard> asks_for_variable(const shell::Recording& recording) {
  static const RE2 kUnbound(R"re((.*): line (\d+): (\w+): unbound variable)re");
  Guard guard;
  std::string name;
  const auto sourced = std::ranges::find_if(recording.unread, &shell::Absent::is_sourced);
  if (sourced == recording.unread.end() ||
      !RE2::FullMatch(last_said(recording), kUnbound, &guard.script, &guard.line, &name))
    return std::nullopt;
  guard.what = fmt::format("{} sets {}", text::printable(shell::program_name(sourced->name)), name);
  guard.variables.push_back(fmt::format("{0}=/rec/{0}", name));
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

}  // namespace

std::vector<Guard> last_guards(const shell::Recording& recording) {
  std::vector<Guard> guards;
  if (auto guard = asks_for_variable(recording)) guards.push_back(std::move(*guard));
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
    if (!guard || std::ranges::find(guards, guard->what, &Guard::what) != guards.end()) continue;
    guard->script = one.script;
    guard->line = one.line;
    guards.push_back(std::move(*guard));
  }
  return guards;
}

PassedGuards pass_guards(shell::RecordRequest request, shell::Recording recording) {
  PassedGuards passed{std::move(recording), request};
  const std::size_t most = passed.recording.waits ? 4 : 12;  // of an endless wait, each takes long
  std::error_code error;
  const auto script = fs::absolute(request.script, error).native();
  std::size_t recordings = 0;
  for (bool further = true; further && may_pass(passed.recording);) {
    further = false;
    for (auto& guard : last_guards(passed.recording)) {
      if (++recordings > most) return passed;
      auto with = request;
      with.files.insert(with.files.end(), guard.files.begin(), guard.files.end());
      with.variables.insert(with.variables.end(), guard.variables.begin(), guard.variables.end());
      with.prints.insert(with.prints.end(), guard.prints.begin(), guard.prints.end());
      auto again = shell::record(with);
      // A command with several unbound variables fails for the first one.
      const bool next = again && !guard.variables.empty() && last_said(*again) != last_said(passed.recording);
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

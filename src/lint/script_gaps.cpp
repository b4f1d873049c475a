#include "lint/script_gaps.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "lint/programs.h"
#include "lint/shell_options.h"
#include "shell/allocation.h"
#include "shell/trace.h"
#include "shell/words.h"

namespace nlaunch::lint {
namespace {

namespace fs = std::filesystem;
using shell::program_name;

class Gaps {
 public:
  Gaps(const shell::Recording& recording, const std::vector<std::string>& names, ScriptSources& sources,
       LintInput& input)
      : recording_(recording), names_(names), sources_(sources), input_(input) {}

  void add() {
    add_failed_tests();
    add_not_started();
    add_not_here();
    add_unset();
    add_unread();
  }

 private:
  /// "job.sh: line 7: [: -le: unary operator expected", caused by an unset variable.
  void add_failed_tests() {
    const auto& main = sources_.main();
    for (const auto& said : text::split(recording_.output, '\n')) {
      const auto before = sources_.path() + ": line ";
      if (!said.starts_with(before) || said.find(": unary operator expected") == std::string::npos) continue;
      const auto rest = std::string_view(said).substr(before.size());
      const auto line = text::whole_number<std::uint32_t>(rest.substr(0, rest.find(':')));
      if (!line) continue;
      const auto text = std::string(main.line(*line));
      for (const auto& absent : recording_.unset) {
        if (text.find("$" + absent.name) == std::string::npos &&
            text.find("${" + absent.name + "}") == std::string::npos)
          continue;
        const auto span = main.find_text(absent.name, *line, *line);
        const bool told = std::ranges::any_of(input_.script->failed_tests,
                                              [&](const Unread& one) { return one.span.line == span.line; });
        if (told) break;
        input_.script->failed_tests.push_back(
            {.span = span,
             .message = fmt::format("this test is invalid: nothing sets {}", absent.name),
             .why = "bash reports an operator error and treats the test as false",
             .instead = fmt::format("pass --env {}=… if the job gets it from outside; otherwise give a "
                                    "default, as in ${{{}:-1}}",
                                    absent.name, absent.name)});
        break;
      }
    }
  }

  /// `python train.py > log/x.txt` without log/. An absolute path may exist on the cluster.
  void add_not_started() {
    const auto changes_to_unknown = [&](const ScriptCommand& command) {
      return command.words.size() > 1 && (command.words[0] == "cd" || command.words[0] == "pushd") &&
             std::ranges::any_of(recording_.not_here, [&](const std::string& path) {
               return path.ends_with(program_name(command.words[1]));
             });
    };
    if (std::ranges::any_of(input_.script->commands, changes_to_unknown)) return;
    std::set<std::string> told;
    for (const auto& one : recording_.no_folder) {
      const auto folder = one.name.substr(0, one.name.rfind('/') + 1);
      if (folder.empty() || folder.starts_with('/') || is_made_up(folder) || !told.insert(folder).second)
        continue;
      input_.script->not_started.push_back(
          {.span = sources_.place_of_text(folder, one.script, one.line),
           .message = fmt::format("bash cannot write to {}, which does not exist", text::printable(folder)),
           .why =
               "bash then prints an error, does not start the program, and continues with the next command",
           .instead = fmt::format("run `mkdir -p {}` first", text::shell_quote(folder))});
    }
  }

  static bool is_script(std::string_view path) {
    return path.ends_with(".sh") || path.ends_with(".bash") || path.ends_with(".slurm") ||
           path.ends_with(".sbatch");
  }

  /// Folders that the script changes to and that are not on this machine, also those that it creates.
  std::vector<std::string> folders_not_here() const {
    std::vector<std::string> folders;
    std::error_code error;
    for (const auto& command : input_.script->commands) {
      const auto& words = command.words;
      if (words.size() < 2 || (words[0] != "cd" && words[0] != "pushd")) continue;
      auto folder = fs::path(words.back()).lexically_normal().native();
      if (folder.size() > 1 && folder.ends_with('/')) folder.pop_back();
      if (!folder.starts_with('/')) {
        const auto absent = std::ranges::find_if(
            recording_.not_here, [&](const std::string& path) { return path.ends_with("/" + folder); });
        if (absent == recording_.not_here.end()) continue;
        folder = *absent;
      }
      if (!is_made_up(folder) && !fs::exists(folder, error)) folders.push_back(std::move(folder));
    }
    return folders;
  }

  /// True for a file that the script itself writes before it starts it.
  bool is_written(const std::string& path) const {
    return std::ranges::find(recording_.written, path) != recording_.written.end() ||
           std::ranges::any_of(recording_.commands, [&](const shell::RecordedCommand& command) {
             return std::ranges::find(command.given, path, &shell::WrittenFile::path) != command.given.end();
           });
  }

  /// False for files that only set variables and paths: of a virtual environment, of conda, of variables.
  static bool may_trap(const std::string& path) {
    const auto name = program_name(path);
    return name != "activate" && name != "conda.sh" && !name.ends_with("rc") && !name.ends_with("profile") &&
           !name.ends_with(".env") && !path.starts_with("/etc/") && !path.starts_with("/usr/") &&
           !path.starts_with("/opt/");
  }

  /// Scripts of the job that are not on this machine: what they set and start is unknown.
  void add_not_here() {
    const auto add = [&](const std::string& name, const SourceSpan& span, std::string_view does,
                         const std::string& folder) {
      if (does == "sets" && may_trap(name)) input_.script->misses_source = true;
      const bool told = std::ranges::any_of(input_.script->unread,
                                            [&](const Unread& one) { return one.span.line == span.line; });
      if (told) return;
      Unread one{
          .span = span,
          .severity = Severity::note,
          .message = fmt::format("{} is not here: what it {} was not examined", text::printable(name), does),
          .why = "a path is looked up in the directory where lint is called, then next to the script",
          .instead = "run lint in the directory where the job is submitted"};
      if (!folder.empty()) {
        one.why =
            fmt::format("the script changes to {}, which is not on this machine", text::printable(folder));
        one.instead = "run lint on a machine that has this directory";
      }
      input_.script->unread.push_back(std::move(one));
    };
    const auto say = [&](const std::string& path, const std::string& script, std::uint32_t line,
                         std::string_view does) {
      if (is_made_up(path)) return;
      const auto name = fs::path(path).lexically_proximate(sources_.folder()).native();
      add(name, sources_.place_of_text(program_name(name), script, line), does, "");
    };
    for (const auto& one : recording_.sourced)
      if (may_trap(one.name)) input_.script->misses_source = true;
    for (const auto& one : recording_.unread)
      if (one.is_sourced) say(one.name, one.script, one.line, "sets");
    const auto folders = folders_not_here();
    const auto folder_of = [&](const std::string& path) {
      const auto found = std::ranges::find_if(
          folders, [&](const std::string& folder) { return path.starts_with(folder + "/"); });
      return found == folders.end() ? std::string() : *found;
    };
    for (const auto& path : recording_.not_here) {
      if (!is_script(path)) continue;
      if (!sources_.folder().empty() && path.starts_with(sources_.folder() + "/"))
        say(path, "", 0, "starts");
      else if (const auto folder = folder_of(path); !folder.empty())
        say_of_folder(path, folder, add);
    }
    std::error_code error;
    for (const auto& command : recording_.commands) {
      const auto& program = command.argv[0];
      const auto path = (fs::path(command.folder) / program).lexically_normal().native();
      if (!is_script(program) || program.find('/') == std::string::npos || fs::exists(path, error) ||
          is_written(path))
        continue;
      const auto folder = folder_of(path);
      if (path.starts_with(sources_.folder() + "/"))
        say(path, command.script, command.line, "starts");
      else if (!folder.empty() && !is_made_up(path))
        add(fs::path(path).lexically_proximate(folder).native(),
            sources_.place_of_text(program_name(path), command.script, command.line), "starts", folder);
    }
  }

  /// A file below a folder that is not here, where a traced command sources or starts it.
  template <class Add>
  void say_of_folder(const std::string& path, const std::string& folder, const Add& add) const {
    if (is_made_up(path)) return;
    const auto name = fs::path(path).lexically_proximate(folder).native();
    for (const auto& command : input_.script->commands) {
      const bool names = std::ranges::any_of(command.words, [&](const std::string& word) {
        return path.ends_with(word) && program_name(word) == program_name(path);
      });
      if (!names) continue;
      const bool sources = command.words[0] == "source" || command.words[0] == ".";
      return add(name, command.span, sources ? "sets" : "starts", folder);
    }
  }

  /// Unset variables that are used in arithmetic or at the start of a path.
  void add_unset() {
    for (const auto& one : recording_.unset) {
      const auto& lines = one.script.empty() ? sources_.main() : sources_.of(one.script);
      const auto last = lines.end_of_command(one.line);
      for (auto number = one.line; number <= last; ++number) {
        const auto line = lines.line(number);
        auto name = unset_that_matters(line, one.name);
        if (name == std::string_view::npos && is_argument(one, number))
          name = line.find("$" + one.name) != std::string_view::npos ? line.find("$" + one.name) + 1
                                                                     : line.find("${" + one.name + "}") + 2;
        if (name == std::string_view::npos || name >= line.size()) continue;
        auto near = text::nearest(one.name, names_);
        const bool long_enough = one.name.size() > 3;
        if (const auto meant = meant_instead(one.name); !meant.empty()) near = meant;
        // A module, a site or the submitting user may set uppercase names.
        const bool of_others = text::lower(one.name) != one.name;
        const bool reckoned = line.find("$((") < name;
        // A program that is asked has an address, whoever sets it.
        static const RE2 kAsked(R"re(\b(?:curl|wget|nc)\s)re");
        static const RE2 kAddress(R"re((?:URL|HOST|ADDR|ADDRESS|ENDPOINT)$)re");
        const bool asked = RE2::PartialMatch(line, kAsked) && RE2::PartialMatch(one.name, kAddress);
        if (of_others && !reckoned && !asked && !(near && long_enough)) break;
        input_.script->unset.push_back({one.name,
                                        {lines.file(), number, static_cast<std::uint32_t>(name + 1),
                                         static_cast<std::uint32_t>(one.name.size())},
                                        near && long_enough ? *near : std::string()});
        break;
      }
    }
  }

  /// One that the script sets and does not use, or whose name differs in a letter; empty if there is none.
  [[nodiscard]] std::string meant_instead(const std::string& name) const {
    const auto& text = input_.script->file->text;
    const auto found = std::ranges::find_if(names_, [&](const std::string& other) {
      constexpr std::size_t kShortest = 4;
      if (other == name || other.size() < kShortest) return false;
      if (other.size() == name.size()) {
        std::size_t different = 0;
        for (std::size_t i = 0; i < name.size(); ++i) different += name[i] != other[i] ? 1 : 0;
        if (different == 1) return true;
      }
      const RE2 named(fmt::format(R"re(\b{}\b)re", RE2::QuoteMeta(other)));
      std::size_t times = 0;
      for (re2::StringPiece rest(text); RE2::FindAndConsume(&rest, named);) ++times;
      const auto begin = std::ranges::mismatch(name, other).in1 - name.begin();
      return times == 1 && begin > 0 && !text.contains("export " + other);
    });
    return found == names_.end() ? std::string() : *found;
  }

  /// True for a variable on a line that a command runs: its argument is empty. A lowercase name is one of the
  /// script's own; another one has to be meant for one that it sets.
  [[nodiscard]] bool is_argument(const shell::Absent& one, std::uint32_t number) const {
    constexpr std::size_t kShortest = 4;
    const bool own = text::lower(one.name) == one.name;
    if (one.name.size() < kShortest || !one.script.empty() || (!own && meant_instead(one.name).empty()))
      return false;
    const auto line = sources_.main().line(number);
    const bool uses = line.contains("$" + one.name) || line.contains("${" + one.name + "}");
    const auto& script = *input_.script;
    const auto covers = [&](const SourceSpan& span) {
      return span.file == script.file && span.line <= number &&
             sources_.main().end_of_command(span.line) >= number;
    };
    return uses &&
           (std::ranges::any_of(
                script.programs,
                [&](const Program& one_of) { return (one_of.works || !own) && covers(one_of.span); }) ||
            std::ranges::any_of(script.commands, [&](const ScriptCommand& command) {
              return command.words.size() == 1 && command.words[0].contains('=') && covers(command.span);
            }));
  }

  /// The position of a name in `$((NAME * 2))`, `=$NAME/x` or ` $NAME/x`: if empty, it is 0, or makes the
  /// path start at the root.
  static std::size_t unset_that_matters(std::string_view line, const std::string& name) {
    for (const auto& use : {"$" + name, "${" + name + "}", name}) {
      for (auto at = line.find(use); at != std::string_view::npos; at = line.find(use, at + 1)) {
        const auto end = at + use.size();
        const char before = at == 0 ? ' ' : line[at - 1];
        const char behind = end < line.size() ? line[end] : ' ';
        const auto is_of_name = [](char c) {
          return c == '_' || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
        };
        const bool whole = use.ends_with('}') || !is_of_name(behind);
        if (!whole || (use == name && (is_of_name(before) || before == '$' || before == '{'))) continue;
        const auto open = line.rfind("$((", at);
        const bool reckons = open != std::string_view::npos && line.find("))", open) >= end &&
                             line.find("))", open) != std::string_view::npos;
        const bool heads = use != name && behind == '/' &&
                           (before == '=' || before == ' ' || before == '"' || before == '\'');
        const bool quoted = line.substr(0, at).find('#') != std::string_view::npos;
        if ((reckons || heads) && !quoted) return at + (use == name ? 0 : use.find(name));
      }
    }
    return std::string_view::npos;
  }

  /// bash's own message about the command that made the script exit, and its line; empty if it printed none.
  std::string_view last_message(SourceSpan& span) const {
    const auto& main = sources_.main();
    const auto before = sources_.path() + ": line ";
    std::string_view said = recording_.output;
    said = text::trim(said);
    said = said.substr(said.rfind('\n') + 1);
    if (!said.starts_with(before)) return {};
    said.remove_prefix(before.size());
    const auto colon = std::min(said.find(": "), said.size());
    if (const auto line = text::whole_number<std::uint32_t>(said.substr(0, colon))) span = main.whole(*line);
    said.remove_prefix(std::min(colon + 2, said.size()));
    return said;
  }

  /// For a command that failed under set -e: no argument or variable makes a file.
  std::string remedy() const {
    return last_printed().find("No such file or directory") != std::string_view::npos
               ? "run lint in the directory where the job is submitted, and where these files are"
               : "pass what it needs with --env NAME=VALUE; or add || true, if the job can go on without it";
  }

  std::string_view last_printed() const {
    const auto printed = text::trim(recording_.output);
    return printed.substr(printed.rfind('\n') + 1);
  }

  /// The command at which set -e ended the script; nullptr if it was not set, or if the script exited itself.
  const ScriptCommand* failed_command() const {
    const auto& script = *input_.script;
    bool errexit = shebang_sets(script, kErrexit);
    const ScriptCommand* last = nullptr;
    for (const auto& command : script.commands) {
      if (command.shell == script.shell) errexit = sets_option(command, kErrexit).value_or(errexit);
      if (command.span.file == script.file) last = &command;
    }
    // After set +x nothing is traced, and an EXIT trap runs in line 1.
    const bool sure = last != nullptr && last->words[0] != "exit" && !sets_option(*last, kXtrace) &&
                      last->span.line >= recording_.last_line;
    return errexit && sure ? last : nullptr;
  }

  /// Where the script ended, if that is in a file that it sources; without a file otherwise.
  SourceSpan end_in_source() const {
    if (recording_.traced.empty() || !recording_.stopped.empty() || line_of_source() == 0) return {};
    const auto* last = shell::last_of_script(recording_.traced, recording_.traced.front().shell);
    if (last == nullptr || last->script.empty()) return {};
    const auto& lines = sources_.of(last->script);
    const bool other = lines.file() && lines.file() != input_.script->file && last->line <= lines.count();
    return other ? lines.whole(last->line) : SourceSpan();
  }

  /// The last line of the script itself that ran, if it sources a file; else 0.
  std::uint32_t line_of_source() const {
    const auto& script = *input_.script;
    const ScriptCommand* last = nullptr;
    for (const auto& command : script.commands)
      if (command.shell == script.shell && command.span.file == script.file) last = &command;
    const bool sources = last != nullptr && (last->words[0] == "source" || last->words[0] == ".");
    return sources ? last->span.line : 0;
  }

  void add_unread() {
    if (recording_.whole()) return;
    const auto& main = sources_.main();
    const auto& ran = input_.script->commands;
    Unread one{.span = recording_.last_line > 0 || ran.empty() ? main.whole(recording_.last_line)
                                                               : ran.back().span};
    // A script that this one becomes (`exec ./inner.sh`), or calls at its end.
    const auto& inner = recording_.ended_early;
    const bool is_inner = recording_.stopped.empty() && !inner.empty() &&
                          inner.back().name == std::to_string(recording_.exit_code) &&
                          sources_.of(inner.back().script).count() > 0;
    if (is_inner) one.span = sources_.of(inner.back().script).whole(inner.back().line);
    if (const auto end = end_in_source(); end.file) {
      one.span = end;
      const auto said = last_printed();
      one.message = fmt::format(
          "the script ends in this file, with code {}, without what the cluster would "
          "provide{}{}",
          recording_.exit_code, said.empty() ? "" : ": ", text::printable(said));
      one.instead = remedy();
      one.why = fmt::format("lint saw {} only up to line {}, which sources it", main.file()->name,
                            line_of_source());
      input_.script->unread.push_back(std::move(one));
      return;
    }
    if (!recording_.stopped.empty()) {
      one.message = fmt::format("bash was stopped here: it reached its {} limit", recording_.stopped);
      if (const auto* again = started_again_and_again()) {
        one.message =
            fmt::format("{} is started again each time it ends, without a limit: bash was stopped here",
                        shown_name({.words = again->argv}));
        one.instead = "count the restarts, and end the loop when the program succeeds";
        if (const auto& lines = sources_.of(again->script); lines.count() > 0)
          one.span = lines.whole(again->line);
      }
    } else if (const auto said = last_message(one.span); !said.empty()) {
      one.message =
          fmt::format("the script exits here with code {}, without what the cluster would provide: {}",
                      recording_.exit_code, text::printable(said));
      one.instead = "pass its arguments after --, its variables as --env NAME=VALUE";
    } else if (const auto* failed = failed_command()) {
      one.span = failed->span;
      one.message = fmt::format("set -e exits the script here: this line fails with code {} on this machine",
                                recording_.exit_code);
      one.instead = remedy();
    } else {
      // What an EXIT trap prints is no reason.
      const auto last = has_exit_trap(*input_.script) ? std::string_view() : last_printed();
      one.message =
          fmt::format("the script exits here with code {}, without what the cluster would provide{}{}",
                      recording_.exit_code, last.empty() ? "" : ": ", text::printable(last));
      one.instead = "pass its arguments after --, its variables as --env NAME=VALUE";
    }
    one.why = fmt::format("lint saw the script only up to line {}", one.span.line);
    input_.script->unread.push_back(std::move(one));
  }

  /// The program of an endless loop; nullptr if it is none.
  [[nodiscard]] const shell::RecordedCommand* started_again_and_again() const {
    std::map<std::pair<std::string, std::uint32_t>, std::size_t> starts;
    for (const auto& one : recording_.commands)
      if (one.fate == shell::Fate::recorded) ++starts[{one.script, one.line}];
    const auto most = std::ranges::max_element(starts, {}, [](const auto& one) { return one.second; });
    if (recording_.stopped != "starts" || most == starts.end() ||
        most->second < recording_.commands.size() / 4)
      return nullptr;
    return &*std::ranges::find_if(recording_.commands, [&](const auto& one) {
      return one.fate == shell::Fate::recorded && std::pair(one.script, one.line) == most->first;
    });
  }

  const shell::Recording& recording_;
  const std::vector<std::string>& names_;
  ScriptSources& sources_;
  LintInput& input_;
};

}  // namespace

bool is_made_up(std::string_view value) {
  constexpr std::array<std::string_view, 13> kMarkers{"rec-node-",
                                                      "10.77.",
                                                      "424242",
                                                      "4277",
                                                      "4278",
                                                      "4279",
                                                      "/rec/",
                                                      shell::Allocation::kUser,
                                                      shell::Allocation::kLoginHost,
                                                      shell::Allocation::kCluster,
                                                      shell::Allocation::kInterface,
                                                      "rec-partition",
                                                      "GPU-0000"};
  return std::ranges::any_of(
      kMarkers, [&](std::string_view marker) { return value.find(marker) != std::string_view::npos; });
}

void add_gaps(const shell::Recording& recording, const std::vector<std::string>& names,
              ScriptSources& sources, LintInput& input) {
  Gaps(recording, names, sources, input).add();
}

}  // namespace nlaunch::lint

#include "lint/script_gaps.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <utility>

#include "base/text.h"
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
  /// "job.sh: line 7: [: -le: unary operator expected", of a variable that nothing sets.
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
             .message = fmt::format("this test has no answer: nothing sets {}", absent.name),
             .why = "bash complains of an operator, and takes it for a no",
             .instead = fmt::format("--env {}=… here, if it is given to the job; else what it should be, as "
                                    "${{{}:-1}}",
                                    absent.name, absent.name)});
        break;
      }
    }
  }

  /// `python train.py > log/x.txt` without log/. One that begins with a slash may be on the cluster.
  void add_not_started() {
    const auto changes_to_unknown = [&](const ScriptCommand& command) {
      return command.words.size() > 1 && (command.words[0] == "cd" || command.words[0] == "pushd") &&
             std::ranges::any_of(recording_.not_here, [&](const std::string& path) {
               return path.ends_with(program_name(command.words[1]));
             });
    };
    if (std::ranges::any_of(input_.script->commands, changes_to_unknown)) return;
    for (const auto& one : recording_.no_folder) {
      const auto folder = one.name.substr(0, one.name.rfind('/') + 1);
      if (folder.empty() || folder.starts_with('/') || is_made_up(one.name)) continue;
      input_.script->not_started.push_back(
          {.span = sources_.place_of_text(folder, one.script, one.line),
           .message = fmt::format("bash cannot write into {}, which is not there", text::printable(folder)),
           .why = "bash then does not start the program, says so in a line, and goes on to the next command",
           .instead = fmt::format("mkdir -p {} before it", text::shell_quote(folder))});
    }
  }

  /// Scripts of the job that are not on this machine: of what they set and start nothing is known.
  void add_not_here() {
    const auto say = [&](const std::string& path, const std::string& script, std::uint32_t line,
                         std::string_view does) {
      const auto name = fs::path(path).lexically_proximate(sources_.folder()).native();
      const auto span = sources_.place_of_text(program_name(name), script, line);
      const bool told = std::ranges::any_of(input_.script->unread,
                                            [&](const Unread& one) { return one.span.line == span.line; });
      if (!told && !is_made_up(path))
        input_.script->unread.push_back(
            {.span = span,
             .severity = Severity::note,
             .message =
                 fmt::format("{} is not here: what it {} was not looked at", text::printable(name), does),
             .why = "a path is looked for where lint is called, or else beside the script",
             .instead = "lint in the folder where the job is submitted"});
    };
    for (const auto& one : recording_.unread)
      if (one.is_sourced) say(one.name, one.script, one.line, "sets");
    const auto is_script = [](std::string_view path) {
      return path.ends_with(".sh") || path.ends_with(".bash") || path.ends_with(".slurm") ||
             path.ends_with(".sbatch");
    };
    for (const auto& path : recording_.not_here)
      if (is_script(path) && !sources_.folder().empty() && path.starts_with(sources_.folder() + "/"))
        say(path, "", 0, "starts");
    std::error_code error;
    for (const auto& command : recording_.commands) {
      const auto& program = command.argv[0];
      const auto path = (fs::path(command.folder) / program).lexically_normal().native();
      if (is_script(program) && program.find('/') != std::string::npos &&
          path.starts_with(sources_.folder() + "/") && !fs::exists(path, error))
        say(path, command.script, command.line, "starts");
    }
  }

  /// Variables that nothing sets, where a number is reckoned with them or a path begins with them.
  void add_unset() {
    for (const auto& one : recording_.unset) {
      const auto& lines = one.script.empty() ? sources_.main() : sources_.of(one.script);
      const auto last = lines.end_of_command(one.line);
      for (auto number = one.line; number <= last; ++number) {
        const auto line = lines.line(number);
        const auto name = unset_that_matters(line, one.name);
        if (name == std::string_view::npos) continue;
        const auto near = text::nearest(one.name, names_);
        const bool long_enough = one.name.size() > 3;
        // A module, a site or whoever submits the job sets names in capitals.
        const bool of_others = text::lower(one.name) != one.name;
        const bool reckoned = line.find("$((") < name;
        if (of_others && !reckoned && !(near && long_enough)) break;
        input_.script->unset.push_back({one.name,
                                        {lines.file(), number, static_cast<std::uint32_t>(name + 1),
                                         static_cast<std::uint32_t>(one.name.size())},
                                        near && long_enough ? *near : std::string()});
        break;
      }
    }
  }

  /// Where a name stands in `$((NAME * 2))`, or as `=$NAME/x` or ` $NAME/x`: an empty one is a 0, or makes
  /// the path one from the root.
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

  void add_unread() {
    if (recording_.whole()) return;
    const auto& main = sources_.main();
    const auto& ran = input_.script->commands;
    Unread one{.span = recording_.last_line > 0 || ran.empty() ? main.whole(recording_.last_line)
                                                               : ran.back().span};
    one.why = "what comes later was not looked at";
    if (!recording_.stopped.empty()) {
      one.message = fmt::format("bash was stopped here: it has reached the limit of {}", recording_.stopped);
    } else {
      auto lines = text::split(recording_.output, '\n');
      while (!lines.empty() && text::trim(lines.back()).empty()) lines.pop_back();
      auto said = lines.empty() ? std::string_view() : text::trim(lines.back());
      // What bash itself says names the line that it did not come through.
      if (const auto before = sources_.path() + ": line "; said.starts_with(before)) {
        said.remove_prefix(before.size());
        const auto colon = std::min(said.find(": "), said.size());
        if (const auto line = text::whole_number<std::uint32_t>(said.substr(0, colon)))
          one.span = main.whole(*line);
        said.remove_prefix(std::min(colon + 2, said.size()));
      }
      one.message = fmt::format("the script ends here with {}, without what the cluster would give it{}{}",
                                recording_.exit_code, said.empty() ? "" : ": ", text::printable(said));
      one.instead = "its arguments behind --, its variables as --env NAME=VALUE";
    }
    input_.script->unread.push_back(std::move(one));
  }

  const shell::Recording& recording_;
  const std::vector<std::string>& names_;
  ScriptSources& sources_;
  LintInput& input_;
};

}  // namespace

bool is_made_up(std::string_view value) {
  constexpr std::array<std::string_view, 10> kMarkers{"rec-node-",     "10.77.",   "424242",    "42777",
                                                      "/rec/",         "rec-user", "rec-login", "rec-cluster",
                                                      "rec-partition", "GPU-0000"};
  return std::ranges::any_of(
      kMarkers, [&](std::string_view marker) { return value.find(marker) != std::string_view::npos; });
}

void add_gaps(const shell::Recording& recording, const std::vector<std::string>& names,
              ScriptSources& sources, LintInput& input) {
  Gaps(recording, names, sources, input).add();
}

}  // namespace nlaunch::lint

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <map>
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

/// Slips of writing that bash accepts: a `$`, a backslash or a letter that is missing.
namespace nlaunch::lint {
namespace {

/// True if the line has `word` as a text of its own, not as a variable.
bool has_bare(std::string_view line, const std::string& word) {
  const RE2 bare(fmt::format(R"re((?:^|[\s"'=/]){}(?:[\s"'/;&|)]|$))re", RE2::QuoteMeta(word)));
  return RE2::PartialMatch(line, bare);
}

/// The variable whose name is a word of a command, and which has a path; empty if there is none.
std::string path_without_dollar(const LintInput& input, const shell::Words& words, std::string_view line) {
  constexpr std::size_t kShortest = 4;
  static const RE2 kName(R"re([A-Z][A-Z0-9_]*)re");
  for (std::size_t i = 1; i < words.size(); ++i) {
    const auto word = words[i].substr(0, words[i].find('/'));
    if (word.size() < kShortest || !RE2::FullMatch(word, kName) || !has_bare(line, word)) continue;
    // `mpirun -x NAME`, `docker run -e NAME`
    if (words[i - 1].starts_with('-') && words[i - 1] != "-p" && words[i - 1] != "-r" &&
        !words[i - 1].starts_with("-rf"))
      continue;
    for (const auto& environment : input.environments)
      for (const auto& setting : environment.settings)
        if (setting.name == word && setting.value && setting.value->contains('/')) return word;
  }
  return {};
}

void check_missing_dollar(const LintInput& input, Report& report) {
  if (!input.script) return;
  static const shell::Options kOfFiles{"mkdir", "rm",    "cp",  "mv",  "cd",    "pushd", "ls", "touch",
                                       "rsync", "rmdir", "tar", "cat", "chmod", "ln",    "tee"};
  std::set<std::uint32_t> told;
  for (const auto& command : input.script->commands) {
    if (command.span.file != input.script->file || !kOfFiles.contains(shell::program_name(command.words[0])))
      continue;
    const auto name = path_without_dollar(input, command.words, command.span.source_line());
    if (name.empty() || !told.insert(command.span.line).second) continue;
    report.error(command.span, {fmt::format("this is the name {0}, not the path in ${0}", name),
                                fmt::format("{} gets the word {}", command.words[0], name),
                                fmt::format("\"${}\"", name), ""});
  }
}

const Registered<Rule> missing_dollar_rule{{
    .order = 531,
    .name = "missing-dollar",
    .title = "the name of a variable where its path is meant",
    .explain =
        "Reported for commands on files (mkdir, rm, cp, cd) that get the bare name of a variable which "
        "the script sets to a path.",
    .source = "bash(1), Parameter Expansion",
    .check = check_missing_dollar,
}};

/// `echo "online" || echo "online"`: what is chosen between two equal ones; empty if they differ.
std::string equal_branches_in(const std::string& command) {
  static const RE2 kBranches(
      R"re(&&\s*((?:echo|printf)\s+(?:"[^"]*"|'[^']*'|[^\s;&|)"']+))\s*\|\|\s*((?:echo|printf)\s+(?:"[^"]*"|'[^']*'|[^\s;&|)"']+)))re");
  std::string first;
  std::string second;
  return RE2::PartialMatch(command, kBranches, &first, &second) && first == second ? first : std::string();
}

/// The line of an `else` whose lines are those of its `then`; 0 if there is none between two lines.
bool is_equal_else(const SourceLines& lines, std::uint32_t number) {
  if (text::trim(lines.line(number)) != "else") return false;
  static const RE2 kNests(R"re(^\s*(?:if|elif|for|while|until|case|else|fi|then)\b)re");
  std::vector<std::string> before;
  std::vector<std::string> behind;
  auto at = number - 1;
  for (; at > 0 && !RE2::PartialMatch(lines.line(at), kNests); --at)
    before.insert(before.begin(), std::string(text::trim(lines.line(at))));
  const auto opens = text::trim(lines.line(at));
  if (at == 0 || !(opens.starts_with("if ") || opens == "then")) return false;
  for (at = number + 1; at <= lines.count() && !RE2::PartialMatch(lines.line(at), kNests); ++at)
    behind.emplace_back(text::trim(lines.line(at)));
  const auto is_comment = [](const std::string& line) { return line.empty() || line.starts_with('#'); };
  std::erase_if(before, is_comment);
  std::erase_if(behind, is_comment);
  return text::trim(lines.line(at)) == "fi" && !before.empty() && before == behind;
}

void check_same_branches(const LintInput& input, Report& report) {
  if (!input.script) return;
  const SourceLines lines(input.script->file);
  for (const auto number : lines_of_commands(lines)) {
    const auto chosen = equal_branches_in(lines.command(number));
    if (chosen.empty() && !is_equal_else(lines, number)) continue;
    report.warning(lines.whole(number),
                   {chosen.empty() ? "this else does the same as its if"
                                   : fmt::format("both branches are `{}`", text::printable(chosen)),
                    "the test decides nothing: one of the two was probably meant to differ",
                    "write what the other case needs; or leave out the test", ""});
  }
}

const Registered<Rule> same_branches_rule{{
    .order = 532,
    .name = "same-branches",
    .title = "a test whose two branches are equal",
    .explain = "Reported for `A && echo x || echo x`, and for an if and an else with the same lines.",
    .check = check_same_branches,
}};

void check_broken_continuation(const LintInput& input, Report& report) {
  if (!input.script) return;
  const SourceLines lines(input.script->file);
  static const RE2 kBlank(R"re((?:^|[^\\])\\[ \t]+(?:#.*)?$)re");
  for (const auto number : lines_of_commands(lines)) {
    const auto last = lines.end_of_command(number);
    const auto line = lines.line(last);
    if (!RE2::PartialMatch(line, kBlank) || text::trim(lines.line(last + 1)).empty()) continue;
    const bool comment = line.substr(line.rfind('\\')).contains('#');
    report.error(
        lines.whole(last),
        {fmt::format("this backslash does not continue the command: {} follows it",
                     comment ? "a comment" : "a blank"),
         fmt::format("the command ends here, and line {} is another one", last + 1),
         comment ? "put the comment above the command" : "make the backslash the last character", ""});
  }
}

const Registered<Rule> broken_continuation_rule{{
    .order = 533,
    .name = "broken-continuation",
    .title = "a blank or a comment behind the backslash at the end of a line",
    .explain = "A backslash continues a command only as the last character of a line.",
    .source = "bash(1), Quoting",
    .check = check_broken_continuation,
}};

/// The first line of a chain of lines that backslashes join.
std::uint32_t begin_of_chain(const SourceLines& lines, std::uint32_t number) {
  while (number > 1 && lines.line(number - 1).ends_with('\\')) --number;
  return number;
}

/// True if the text has a quote that is still open, or an array.
bool leaves_open(const SourceLines& lines, std::uint32_t first, std::uint32_t last) {
  std::size_t doubles = 0;
  std::size_t singles = 0;
  std::string text;
  for (auto at = first; at <= last; ++at) text += std::string(lines.line(at)) + "\n";
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"' && (i == 0 || text[i - 1] != '\\')) ++doubles;
    if (text[i] == '\'') ++singles;
  }
  return doubles % 2 != 0 || singles % 2 != 0 || text.contains("=(");
}

/// True if an array or a text in quotes begins in the lines above, and has not ended.
bool is_within_list(const SourceLines& lines, std::uint32_t first) {
  constexpr std::uint32_t kFar = 60;
  static const RE2 kBegins(R"re(=\(\s*(?:#.*)?$|=["'](?:\s*\\?\s*|[^"']*)$)re");
  static const RE2 kEnds(R"re(^\s*\)|["']\s*$)re");
  for (auto at = first; at > 0 && at + kFar > first; --at) {
    if (at < first && RE2::PartialMatch(lines.line(at), kEnds)) return false;
    if (RE2::PartialMatch(lines.line(at), kBegins)) return true;
  }
  return false;
}

/// Lines of options in a row, of which one lacks its backslash: also within a here-document, which bash
/// passes on as it is.
void check_missing_backslash(const LintInput& input, Report& report) {
  constexpr std::array<std::string_view, 1> kSame{"option-as-program"};
  if (!input.script || report.has_any_of(kSame)) return;
  const SourceLines lines(input.script->file);
  static const RE2 kOption(R"re(^\s+--?[A-Za-z])re");
  for (std::uint32_t number = 3; number <= lines.count(); ++number) {
    const auto before = lines.line(number - 1);
    const bool comment = text::trim(before).starts_with('#');
    if (!RE2::PartialMatch(lines.line(number), kOption) || (before.ends_with('\\') && !comment) ||
        !lines.line(number - 2).ends_with('\\') || (!comment && !RE2::PartialMatch(before, kOption)))
      continue;
    const auto first = begin_of_chain(lines, number - 1);
    if (text::trim(lines.line(first)).starts_with('#') || leaves_open(lines, first, number - 1) ||
        is_within_list(lines, first))
      continue;
    const auto option = std::string(text::trim(lines.line(number)));
    return report.error(
        lines.whole(number - 1),
        {fmt::format("the command ends with this line: the next one starts with {}",
                     text::printable(option.substr(0, option.find_first_of(" =\\")))),
         "the program does not get the options below, which a shell then takes for a command",
         comment ? "move the comment above the command" : "end the line with a backslash", ""});
  }
}

const Registered<Rule> missing_backslash_rule{{
    .order = 534,
    .name = "missing-backslash",
    .title = "options behind the end of their command",
    .explain = "Reported for options in a row, one to a line, of which one lacks its backslash or is a "
               "comment; also in here-documents, whose text another shell runs.",
    .source = "bash(1), Quoting",
    .check = check_missing_backslash,
}};

void check_brace_default(const LintInput& input, Report& report) {
  if (!input.script) return;
  const SourceLines lines(input.script->file);
  static const RE2 kDefault(R"re((?:^|[^\\])\$\{(\w+):?[-=]\{[^}\\]*(?:\\[^}][^}\\]*)*\})re");
  static const RE2 kSingle(R"re('[^']*')re");
  std::string name;
  for (const auto number : lines_of_commands(lines)) {
    auto text = lines.command(number);
    RE2::GlobalReplace(&text, kSingle, "''");
    // `${N:-{gpus}}` of a template, which a program fills in.
    static const RE2 kFilledIn(R"re(:?[-=]\{\w+\}\})re");
    if (!RE2::PartialMatch(text, kDefault, &name) || RE2::PartialMatch(text, kFilledIn)) continue;
    report.warning(
        lines.whole(number),
        {fmt::format("the default of {} ends at the first }}", name),
         fmt::format("if {} is set, its value gets the rest of the default behind it: one more }}", name),
         fmt::format("a default in a variable of its own: \"${{{}:-$DEFAULT}}\"", name), ""});
  }
}

const Registered<Rule> brace_default_rule{{
    .order = 535,
    .name = "brace-default",
    .title = "a default value with braces",
    .explain = "${NAME:-{...}} ends at the first }, which belongs to the default. Only if NAME is not set is "
               "the result what was meant.",
    .source = "bash(1), Parameter Expansion",
    .check = check_brace_default,
}};

/// The variable that a line sets to itself and more: `OUT=$OUT/$name`.
std::optional<std::string> extended_path(std::string_view line) {
  static const RE2 kExtends(R"re(^\s*(?:export\s+)?(\w+)="?\$(?:(\w+)|\{(\w+)\})"?/)re");
  std::string name;
  std::string bare;
  std::string braced;
  if (!RE2::PartialMatch(line, kExtends, &name, &bare, &braced) || name != (bare.empty() ? braced : bare))
    return std::nullopt;
  return name;
}

void check_grows_in_loop(const LintInput& input, Report& report) {
  if (!input.script) return;
  const SourceLines lines(input.script->file);
  static const RE2 kLoop(R"re(^\s*(?:for|while|until)\s)re");
  static const RE2 kFunction(R"re(^\s*(?:function\s|\w+\s*\(\)))re");
  std::vector<std::uint32_t> loops;  // in which a line is
  for (const auto number : lines_of_commands(lines)) {
    const auto line = lines.line(number);
    const auto trimmed = text::trim(line);
    if (RE2::PartialMatch(line, kFunction)) loops.clear();
    if (RE2::PartialMatch(line, kLoop) && !trimmed.contains("done")) loops.push_back(number);
    if (trimmed.starts_with("done") && !loops.empty()) loops.pop_back();
    const auto name = loops.empty() ? std::nullopt : extended_path(line);
    if (!name) continue;
    const RE2 sets(fmt::format(R"re((?:^|[\s;]){}=|\bread\b.*\s{}\b)re", *name, *name));
    bool is_set_again = false;
    for (auto at = loops.back(); at < number; ++at)
      is_set_again = is_set_again || RE2::PartialMatch(lines.line(at), sets);
    // A break or a `cd` behind it: it happens once.
    const auto behind = text::trim(lines.line(number + 1));
    if (is_set_again || behind.starts_with("break")) continue;
    report.warning(lines.whole(number),
                   {fmt::format("each turn of the loop extends {} by another directory", *name),
                    "the second turn writes below the directory of the first one",
                    "another variable for the path of a turn", ""});
  }
}

const Registered<Rule> grows_in_loop_rule{{
    .order = 536,
    .name = "grows-in-loop",
    .title = "a path that a loop extends again and again",
    .explain = "NAME=$NAME/$x within a loop, in which nothing sets NAME before.",
    .check = check_grows_in_loop,
}};

/// True if one name is the other with a letter more, or with two neighbouring letters exchanged: not a plural
/// or a number.
bool is_misspelling(std::string_view name, std::string_view other) {
  if (name.size() == other.size()) {
    const auto at = static_cast<std::size_t>(std::ranges::mismatch(name, other).in1 - name.begin());
    return at + 1 < name.size() && name[at] == other[at + 1] && name[at + 1] == other[at] &&
           name.substr(at + 2) == other.substr(at + 2) && std::isalpha(static_cast<unsigned char>(name[at]));
  }
  if (name.size() > other.size()) std::swap(name, other);
  if (other.size() - name.size() != 1) return false;
  const auto at = static_cast<std::size_t>(std::ranges::mismatch(name, other).in1 - name.begin());
  const char more = other[at];
  return at > 0 && at + 1 < other.size() && other[at + 1] != '_' &&
         std::isalpha(static_cast<unsigned char>(more)) && name.substr(at) == other.substr(at + 1);
}

void check_misspelt_name(const LintInput& input, Report& report) {
  if (!input.script) return;
  constexpr std::size_t kShortest = 8;
  const SourceLines lines(input.script->file);
  static const RE2 kName(R"re((?:^|[^A-Za-z0-9_])([A-Za-z_][A-Za-z0-9_]*))re");
  static const RE2 kSets(R"re(^\s*(?:export\s+|local\s+|readonly\s+)?([A-Za-z_]\w*)=)re");
  std::map<std::string, std::size_t> names;
  std::string name;
  for (re2::StringPiece rest(input.script->file->text); RE2::FindAndConsume(&rest, kName, &name);)
    if (name.size() >= kShortest) ++names[name];
  for (const auto number : lines_of_commands(lines)) {
    if (!RE2::PartialMatch(lines.line(number), kSets, &name) || names[name] != 1) continue;
    const auto other = std::ranges::find_if(
        names, [&](const auto& one) { return one.second > 1 && is_misspelling(name, one.first); });
    if (other == names.end()) continue;
    report.warning(lines.whole(number),
                   {fmt::format("nothing reads {}, but the script has {}", name, other->first),
                    fmt::format("{} keeps the value that it has", other->first),
                    fmt::format("{}, if that is what you meant", other->first), ""});
  }
}

const Registered<Rule> misspelt_name_rule{{
    .order = 537,
    .name = "misspelt-name",
    .title = "a variable that is almost another one of the script",
    .explain = "Reported for a variable that the script sets and does not name again, if it has another one "
               "with a letter less, a letter more, or two letters exchanged.",
    .check = check_misspelt_name,
}};

/// The end of a loop `while [ $# -gt 0 ]` that shifts all arguments away; 0 if there is none.
std::uint32_t end_of_shifting(const SourceLines& lines) {
  static const RE2 kLoop(R"re(^\s*while\s+(?:\[+\s+|\(\(\s*)"?\$(?:#|\{#\})"?\s*(?:-gt|-ne|>|!=)\s*0)re");
  for (std::uint32_t begin = 1; begin <= lines.count(); ++begin) {
    if (!RE2::PartialMatch(lines.line(begin), kLoop)) continue;
    const auto indent = lines.line(begin).find_first_not_of(" \t");
    bool leaves = false;
    for (auto at = begin + 1; at <= lines.count(); ++at) {
      const auto trimmed = text::trim(lines.line(at));
      leaves = leaves || trimmed.contains("break");
      if (trimmed.starts_with("done") && lines.line(at).find_first_not_of(" \t") == indent)
        return leaves ? 0 : at;
    }
  }
  return 0;
}

void check_shifted_away(const LintInput& input, Report& report) {
  if (!input.script) return;
  const SourceLines lines(input.script->file);
  const auto end = end_of_shifting(lines);
  if (end == 0) return;
  static const RE2 kAll(R"re((?:^|[^\\])"?\$(?:@|\*|\{@\}|\{\*\}))re");
  static const RE2 kSets(R"re(^\s*set\s+--|\(\)\s*\{|^\s*function\s)re");
  for (const auto number : lines_of_commands(lines)) {
    if (number <= end) continue;
    if (RE2::PartialMatch(lines.line(number), kSets)) return;
    if (!RE2::PartialMatch(lines.command(number), kAll)) continue;
    return report.error(lines.whole(number),
                        {fmt::format("\"$@\" is empty here: the loop that ends in line {} has shifted all "
                                     "arguments away",
                                     end),
                         "the program does not get what the user gives",
                         "keep them in the loop: REST+=(\"$1\"), and \"${REST[@]}\" here", ""});
  }
}

const Registered<Rule> shifted_away_rule{{
    .order = 574,
    .name = "shifted-away",
    .title = "\"$@\" behind a loop that has shifted all arguments away",
    .explain = "while [ $# -gt 0 ] ends when there are none left.",
    .source = "bash(1), shift",
    .check = check_shifted_away,
}};

void check_getopts(const LintInput& input, Report& report) {
  if (!input.script) return;
  const SourceLines lines(input.script->file);
  static const RE2 kLoop(R"re(^\s*while\s+getopts\s+["']?([A-Za-z0-9:]+)["']?\s+(\w+))re");
  static const RE2 kCase(R"re(^\s*["']?([A-Za-z])["']?\s*\))re");
  for (std::uint32_t begin = 1; begin <= lines.count(); ++begin) {
    std::string options;
    std::string variable;
    if (!RE2::PartialMatch(lines.line(begin), kLoop, &options, &variable)) continue;
    for (auto at = begin + 1; at <= lines.count() && !text::trim(lines.line(at)).starts_with("done"); ++at) {
      std::string letter;
      if (!RE2::PartialMatch(lines.line(at), kCase, &letter) || options.contains(letter)) continue;
      report.error(lines.whole(at),
                   {fmt::format("getopts in line {} does not know -{}", begin, letter),
                    "it reports an illegal option, and this case is never reached",
                    fmt::format("{} in the list of getopts, with a : if it has a value", letter), ""});
    }
  }
}

const Registered<Rule> getopts_rule{{
    .order = 580,
    .name = "getopts",
    .title = "an option that getopts does not list",
    .explain = "Reported for a case of `while getopts` whose letter is not in its list.",
    .source = "bash(1), getopts",
    .check = check_getopts,
}};

}  // namespace
}  // namespace nlaunch::lint

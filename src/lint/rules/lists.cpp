#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/registry.h"
#include "base/text.h"
#include "lint/assigned.h"
#include "lint/programs.h"
#include "lint/rule.h"
#include "lint/script_text.h"
#include "shell/words.h"

/// Lists and arrays of a script, and the loops over them.
namespace nlaunch::lint {
namespace {

/// The arrays of a script with more than one element: `ARGS=(--lr 1e-5)`. Not those whose name is also that
/// of a plain variable.
std::set<std::string> arrays_of(const Script& script) {
  const auto text = without_comments(SourceLines(script.file));
  static const RE2 kArray(
      R"re((?m)(?:^|[;&|]|\b(?:declare|local|export|readonly)\s+(?:-\w+\s+)?)\s*(\w+)\+?=\(([^()]*)\))re");
  std::map<std::string, std::size_t> sizes;
  std::string name;
  std::string elements;
  for (re2::StringPiece rest(text); RE2::FindAndConsume(&rest, kArray, &name, &elements);) {
    std::ranges::replace(elements, '\n', ' ');
    sizes[name] += directive_words(elements).size();
  }
  std::set<std::string> arrays;
  for (const auto& [array, size] : sizes) {
    const RE2 plain(
        fmt::format(R"re((?m)(?:^|[\s;&|(]){0}\+?=(?:[^(]|$)|\bfor\s+{0}\s|\bread\b[^\n]*\s{0}\b)re", array));
    if (size > 1 && !RE2::PartialMatch(text, plain)) arrays.insert(array);
  }
  return arrays;
}

void check_first_of_array(const LintInput& input, Report& report) {
  if (!input.script) return;
  const auto arrays = arrays_of(*input.script);
  const SourceLines lines(input.script->file);
  if (arrays.empty()) return;
  static const RE2 kLoop(R"re(^\s*for\s+\w+\s+in\s+"?\$\{?(\w+)\}?"?\s*(?:;|$))re");
  for (const auto number : lines_of_commands(lines)) {
    std::string name;
    if (!RE2::PartialMatch(lines.line(number), kLoop, &name) || !arrays.contains(name)) continue;
    return report.error(
        lines.whole(number),
        {fmt::format("this loop has one turn, for the first element of {}", name),
         fmt::format("${0} of an array is ${{{0}[0]}}", name), fmt::format("\"${{{}[@]}}\"", name), ""});
  }
  for (const auto& program : input.script->programs) {
    if (!program.works || program.span.file != input.script->file) continue;
    const auto expanded = expansions_in(lines.command(program.span.line));
    const auto found = std::ranges::find_if(
        expanded, [&](const Expansion& one) { return one.rest.empty() && arrays.contains(one.name); });
    if (found == expanded.end()) continue;
    return report.warning(
        program.span, {fmt::format("{} gets only the first element of {}", shown_name(program), found->name),
                       fmt::format("${0} of an array is ${{{0}[0]}}", found->name),
                       fmt::format("\"${{{}[@]}}\"", found->name), ""});
  }
}

const Registered<Rule> first_of_array_rule{{
    .order = 519,
    .name = "first-of-array",
    .title = "an array of which a program or a loop gets only the first element",
    .explain = "$NAME of an array is its first element. Reported for arrays of several elements.",
    .source = "bash(1), Arrays",
    .check = check_first_of_array,
}};

/// "--model=llama," for a comma at the end of a word; empty if there is none.
std::string word_with_comma(const Program& program) {
  const auto& words = program.words;
  const auto found = std::find_if(words.begin() + 1, words.end(), [](const std::string& word) {
    return word.size() > 1 && word.ends_with(',') && word.find_first_of(" \n\t[{(") == std::string::npos;
  });
  return found == words.end() ? std::string() : *found;
}

void check_comma_in_list(const LintInput& input, Report& report) {
  if (!input.script) return;
  // `for m in a, b, c`, `MODELS=(a, b)`
  static const RE2 kList(
      R"re(\bfor\s+\w+\s+in\s[^;\n]*[^\s,],\s+[^\s#]|(?m)^\s*(?:\w+\s+)?\w+=\([^)]*[^\s,],\s+[^\s#)])re");
  if (!RE2::PartialMatch(without_comments(SourceLines(input.script->file)), kList)) return;
  for (const auto& program : input.script->programs) {
    const auto word = program.works ? word_with_comma(program) : std::string();
    if (word.empty()) continue;
    const auto value = word.substr(word.find('=') + 1, word.size() - word.find('=') - 2);
    const RE2 element(R"re([\s(]["']?)re" + RE2::QuoteMeta(value) + R"re(["']?,\s)re");
    if (!RE2::PartialMatch(input.script->file->text, element)) continue;
    return report.warning(
        program.span,
        {fmt::format("{} gets {}, with the comma", shown_name(program), text::printable(word)),
         "spaces alone separate the words of a list in bash", "leave out the commas of the list", ""});
  }
}

const Registered<Rule> comma_in_list_rule{{
    .order = 520,
    .name = "comma-in-list",
    .title = "commas between the words of a list",
    .explain =
        "Reported if a program gets a word that ends with a comma, and the script has a list with commas.",
    .source = "bash(1), Arrays; for",
    .check = check_comma_in_list,
}};

void check_brace_range(const LintInput& input, Report& report) {
  if (!input.script) return;
  const SourceLines lines(input.script->file);
  static const RE2 kRange(
      R"re((?:^|[\s(])(\{[^{}\s,]*\$[^{}\s,]*\.\.[^{}\s,]*\}|\{[^{}\s,]*\.\.\$[^{}\s,]*\}|\{[^{}\s,]*\.\.\$\{\w+\}\}))re");
  static const RE2 kList(R"re(\b(?:for\s+\w+\s+in\s|\w+=\())re");
  std::string range;
  for (const auto number : lines_of_commands(lines)) {
    const auto text = lines.command(number);
    if (!RE2::PartialMatch(text, kList) || text.contains("eval") || !RE2::PartialMatch(text, kRange, &range))
      continue;
    return report.error(lines.whole(number),
                        {fmt::format("{} is one word", text::printable(range)),
                         "bash expands braces before variables: the list has this text in it, and no numbers",
                         "$(seq FIRST LAST), or for ((i = FIRST; i <= LAST; i++))", ""});
  }
}

const Registered<Rule> brace_range_rule{{
    .order = 521,
    .name = "brace-range",
    .title = "a range in braces with a variable",
    .explain = "{1..$N} is not a range: braces are expanded first.",
    .source = "bash(1), Brace Expansion",
    .check = check_brace_range,
}};

void check_sorted_as_text(const LintInput& input, Report& report) {
  if (!input.script) return;
  const SourceLines lines(input.script->file);
  // Names whose numbers are not padded with zeros: transformers, verl, DeepSpeed.
  static const RE2 kNumbered(
      R"re(\b((?:checkpoint|ckpt|global_step|global-step|step|epoch)[-_]?)\*[^|]*\|\s*(?:sort(?:\s+-[ru]+)*\s*\|\s*)?(?:tail|head)\s+(?:-n\s*)?-?1\b[^|]*$)re");
  static const RE2 kByNumber(
      R"re(\bls\s+(?:-\w+\s+)*-\w*[tv]|\bsort\b[^|]*\s(?:-\w*[Vngh]|--version-sort|--numeric)|--sort=(?:version|time)|-printf|\bstat\b)re");
  for (const auto number : lines_of_commands(lines)) {
    const auto text = lines.command(number);
    std::string name;
    const bool is_value = text.contains("$(") || text.contains('`');
    if (!is_value || !RE2::PartialMatch(text, kNumbered, &name) || RE2::PartialMatch(text, kByNumber))
      continue;
    return report.warning(
        lines.whole(number),
        {fmt::format("this sorts by letters: {0}1000 comes before {0}200", name),
         "it takes another checkpoint than the last or the first one", "… | sort -V | tail -n 1", ""});
  }
}

const Registered<Rule> sorted_as_text_rule{{
    .order = 522,
    .name = "sorted-as-text",
    .title = "the last checkpoint, by the letters of its name",
    .explain = "ls and sort compare letter by letter. Not reported for ls -t, ls -v, sort -V and sort -n.",
    .source = "sort(1), --version-sort; ls(1)",
    .check = check_sorted_as_text,
}};

void check_no_device_left(const LintInput& input, Report& report) {
  if (!input.script) return;
  struct Runs {
    const Program* first_without = nullptr;
    std::size_t all = 0, without = 0;
  };
  for (const auto* name : {"CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"}) {
    std::map<std::pair<const SourceFile*, std::uint32_t>, Runs> lines;
    for (const auto& program : input.script->programs) {
      const auto found = program.environment.find(name);
      if (!program.works || found == program.environment.end()) continue;
      auto& runs = lines[{program.span.file.get(), program.span.line}];
      ++runs.all;
      if (!found->second.empty()) continue;
      if (runs.first_without == nullptr) runs.first_without = &program;
      ++runs.without;
    }
    for (const auto& [_, runs] : lines) {
      if (runs.without == 0 || runs.without == runs.all) continue;
      report.warning(runs.first_without->span,
                     {fmt::format("{} is empty for {} of the {} runs of {}", name, runs.without, runs.all,
                                  shown_name(*runs.first_without)),
                      "these see no GPU: the list has fewer elements than the loop has turns",
                      "${GPUS[i % ${#GPUS[@]}]}, and wait before a GPU is used again", ""});
    }
  }
}

const Registered<Rule> no_device_left_rule{{
    .order = 523,
    .name = "no-device-left",
    .title = "runs of a loop that get no GPU, for the list of GPUs is shorter",
    .explain = "An element behind the end of an array is empty, and an empty list of devices hides all GPUs.",
    .source = "bash(1), Arrays; CUDA C++ programming guide, CUDA_VISIBLE_DEVICES",
    .check = check_no_device_left,
}};

/// Options of which a program takes one value, and keys of a configuration: "trainer.n_gpus_per_node".
bool takes_one_value(std::string_view option) {
  static const RE2 kOne(
      R"re(--(?:lr|learning[-_]rate|seed|epochs?|num[-_](?:train[-_])?epochs|max[-_]steps|port|master[-_]port|nnodes|nproc[-_]per[-_]node|num[-_]processes|(?:per[-_]device[-_]train[-_])?batch[-_]size|gradient[-_]accumulation[-_]steps|output[-_]dir|model|model[-_](?:name|path|name[-_]or[-_]path)|tensor[-_]parallel[-_]size|tp|gpu[-_]memory[-_]utilization|max[-_]model[-_]len|save[-_]steps|logging[-_]steps|eval[-_]steps|warmup[-_]\w+|max[-_](?:new[-_])?tokens|temperature|top[-_]p|dtype|run[-_]name|num[-_]generations|rollout[-_]batch[-_]size|train[-_]batch[-_]size|micro[-_]\w+|zero[-_]stage|n[-_]samples[-_]per[-_]prompt)|\+{0,2}[a-z_]+(?:\.[a-z_0-9]+)+)re");
  return RE2::FullMatch(option, kOne);
}

/// The options of a program with their values: {"--lr", "1e-5"}, {"trainer.nnodes", "2"}.
std::vector<std::pair<std::string, std::string>> valued_options_of(const Program& program) {
  std::vector<std::pair<std::string, std::string>> options;
  // What is before the script of a launcher is the launcher's.
  const auto script =
      launcher_of(program)
          ? std::ranges::find_if(program.words, [](const auto& word) { return word.ends_with(".py"); })
          : program.words.begin();
  const auto first = script == program.words.end() ? 1 : script - program.words.begin() + 1;
  for (auto i = static_cast<std::size_t>(first); i < program.words.size(); ++i) {
    const auto& word = program.words[i];
    const auto equals = word.find('=');
    if (equals != std::string::npos)
      options.emplace_back(word.substr(0, equals), word.substr(equals + 1));
    else if (word.starts_with("--") && i + 1 < program.words.size() &&
             !program.words[i + 1].starts_with("--"))
      options.emplace_back(word, program.words[i + 1]);
  }
  return options;
}

/// True if the text names the option at least twice itself, and not through a variable with defaults.
bool names_twice(const std::string& text, const std::string& option) {
  const RE2 names(R"re((?:^|\s|["'])re" + std::string(")") + RE2::QuoteMeta(option) + R"re([\s=])re");
  int found = 0;
  for (re2::StringPiece rest(text); RE2::FindAndConsume(&rest, names);) ++found;
  return found > 1;
}

void check_option_twice(const LintInput& input, Report& report) {
  if (!input.script) return;
  const SourceLines lines(input.script->file);
  std::set<std::pair<std::uint32_t, std::string>> told;
  for (const auto& program : input.script->programs) {
    if (!program.works || program.span.file != input.script->file) continue;
    std::map<std::string, std::string> values;
    for (const auto& [option, value] : valued_options_of(program)) {
      const auto [first, is_new] = values.emplace(option, value);
      if (is_new || first->second == value || !takes_one_value(option) || option.ends_with("logger") ||
          !names_twice(lines.command(program.span.line), option) ||
          !told.insert({program.span.line, option}).second)
        continue;
      report.note(program.span, {fmt::format("{} gets {} twice: {} and {}", shown_name(program), option,
                                             text::printable(first->second), text::printable(value)),
                                 "the first one has no effect", "leave one out", ""});
    }
  }
}

const Registered<Rule> option_twice_rule{{
    .order = 524,
    .name = "option-twice",
    .title = "an option with two values in one command",
    .explain = "argparse, click and Hydra take the last value. Reported for options of which a program takes "
               "one value, and keys of Hydra, if the command itself names them twice.",
    .source = "docs.python.org, argparse, action='store'; hydra.cc, Basic Override syntax",
    .check = check_option_twice,
}};

/// The file that an option names for the results: {"--output", "results.json"}; empty: none.
std::pair<std::string, std::string> results_of(const Program& program) {
  static const RE2 kOption(R"re(--?\w*(?:out|save|result|pred|dest|log)[\w-]*)re");
  static const RE2 kFile(R"re(.+\.(?:jsonl?|csv|tsv|txt|log|pt|pth|npz?|parquet|pkl|md|html|png))re");
  for (auto& [option, value] : valued_options_of(program))
    if (RE2::FullMatch(option, kOption) && RE2::FullMatch(value, kFile)) return {option, value};
  return {};
}

void check_same_results(const LintInput& input, Report& report) {
  if (!input.script) return;
  const auto& script = *input.script;
  each_line(script, [&](const Program& program, const std::vector<const Program*>& tasks) {
    const auto [option, file] = results_of(program);
    if (file.empty() || program.span.file != script.file || (program.step && tasks.size() > 1)) return;
    std::size_t runs = 0;
    for (const auto& one : script.programs)
      runs += one.works && one.span.file == program.span.file && one.span.line == program.span.line &&
                      results_of(one).second == file && one.words[0] == program.words[0]
                  ? 1
                  : 0;
    const bool appends = shell::has(program.words, "--append") || shell::has(program.words, "--resume");
    if (appends || moves_by_variable(script)) return;
    const auto reads = [&](const auto& words, const SourceSpan& span) {
      const bool moves = shell::is_any_of(shell::program_name(words[0]), {"mv", "cp"});
      return (moves || span.line != program.span.line) &&
             std::ranges::any_of(words, [&](const auto& word) { return word.contains(file); });
    };
    const bool is_kept =
        std::ranges::any_of(script.programs,
                            [&](const Program& one) { return reads(one.words, one.span); }) ||
        std::ranges::any_of(script.commands,
                            [&](const ScriptCommand& one) { return reads(one.words, one.span); });
    if (runs < 2 || is_kept) return;
    report.note(program.span,
                {fmt::format("each run of {} writes {}", shown_name(program), text::printable(file)),
                 "each one overwrites the results of the one before, unless the program appends",
                 fmt::format("{} with what differs from run to run in its name", option), ""});
  });
}

const Registered<Rule> same_results_rule{{
    .order = 525,
    .name = "same-results",
    .title = "runs of a loop that write the same file",
    .explain =
        "Reported if an option for results names the same file in each turn, and nothing else in the script "
        "reads or moves it.",
    .source = "open(2), O_TRUNC",
    .check = check_same_results,
}};

}  // namespace
}  // namespace nlaunch::lint

#include "lint/script_text.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/text.h"
#include "lint/script_input.h"
#include "plan/slurm.h"
#include "shell/allocation.h"
#include "shell/srun.h"

namespace nlaunch::lint {
namespace {

bool is_part_of_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

constexpr std::string_view kDirective = "#SBATCH";
/// Longer lines are not written by people: no positions inside them.
constexpr std::size_t kLongestLine = 64U << 10U;

/// "#SBATCH --nodes=2", not "#SBATCHES".
bool is_directive(std::string_view line) {
  return line.starts_with(kDirective) && (line.size() == kDirective.size() ||
                                          line[kDirective.size()] == ' ' || line[kDirective.size()] == '\t');
}

/// The word that ends the here-document that a line starts; empty if it starts none.
std::string heredoc_of(std::string_view line) {
  const auto at = line.find("<<");
  const bool number = line.find("((") != std::string_view::npos;  // a shift
  if (at == std::string_view::npos || number || line.substr(at).starts_with("<<<")) return {};
  auto word = line.substr(at + 2);
  if (word.starts_with('-')) word.remove_prefix(1);
  word = text::trim(word);
  word.remove_prefix(std::min(word.find_first_not_of("\\'\""), word.size()));
  const auto end = std::ranges::find_if_not(word, is_part_of_name);
  return {word.begin(), end};
}

/// How a line of a command ends.
struct LineEnd {
  std::size_t comment = 0;  ///< where its comment begins; its size if it has none
  bool continues = false;   ///< with a backslash
};
/// `quote`: the one that is open where the line begins, then the one that is open at its end; 0: none.
LineEnd end_of_line(std::string_view text, char& quote) {
  LineEnd end{.comment = text.size()};
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\\' && quote != '\'') {
      end.continues = ++i >= text.size();
    } else if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '\'' || c == '"') {
      quote = c;
    } else if (c == '#' && (i == 0 || text[i - 1] == ' ' || text[i - 1] == '\t')) {
      end.comment = i;
      break;
    }
  }
  return end;
}

std::string value_of(const std::vector<StepOption>& options, std::string_view name) {
  std::string value;
  for (const auto& option : options) {
    const std::string_view text = option.text;
    if (text.starts_with(name) && text.substr(name.size()).starts_with('='))
      value = text.substr(name.size() + 1);
  }
  return value;
}

/// APPTAINERENV_NAME sets NAME within the container; nothing for other names.
std::optional<std::string> name_in_container(std::string_view name) {
  for (const std::string_view prefix : {"APPTAINERENV_", "SINGULARITYENV_"}) {
    if (name.starts_with(prefix) && is_variable_name(name.substr(prefix.size())))
      return std::string(name.substr(prefix.size()));
  }
  return std::nullopt;
}

}  // namespace

bool is_variable_name(std::string_view text) {
  if (text.empty() || (text[0] >= '0' && text[0] <= '9')) return false;
  return std::ranges::all_of(text, is_part_of_name);
}

void rename_in_container(Setting& setting) {
  const auto inside = name_in_container(setting.name);
  if (!inside || *inside == "HOME") return;  // the tools refuse to replace HOME
  setting.name = *inside;
  setting.one_command = true;  // values that the script itself sets are not affected
}

SourceLines::SourceLines(std::shared_ptr<const SourceFile> file) : file_(std::move(file)) {
  const std::string_view text = file_->text;
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find('\n', at), text.size());
    lines_.push_back(text.substr(at, end - at));
    at = end + 1;
  }
}

std::string_view SourceLines::line(std::uint32_t number) const {
  return number == 0 || number > count() ? std::string_view() : lines_[number - 1];
}

std::uint32_t SourceLines::end_of_command(std::uint32_t number) const {
  constexpr std::uint32_t kMost = 200;
  char quote = 0;
  if (line(number).size() > kLongestLine) return number;
  for (auto at = number; at < number + kMost && at <= count(); ++at) {
    const bool continues = end_of_line(line(at), quote).continues;
    if (quote == 0 && !continues) return at;
  }
  return number;  // an unclosed quote does not continue the line
}

std::string SourceLines::command(std::uint32_t number) const {
  std::string text(line(number));
  const auto last = end_of_command(number);
  for (auto at = number + 1; at <= last; ++at) {
    text += '\n';
    text += line(at);
  }
  return text;
}

SourceSpan SourceLines::find(std::string_view name, std::uint32_t first, std::uint32_t last) const {
  SourceSpan found;
  for (auto number = first; number <= last && number <= count(); ++number) {
    const auto text = line(number);
    if (text.size() > kLongestLine) continue;
    for (auto at = text.find(name); at != std::string_view::npos; at = text.find(name, at + 1)) {
      const auto end = at + name.size();
      if (at > 0 && is_part_of_name(text[at - 1])) continue;
      if (end < text.size() && is_part_of_name(text[end])) continue;
      const bool assigns = end < text.size() && (text[end] == '=' || text.substr(end).starts_with("+="));
      if (!assigns && found) continue;
      found = {file_, number, static_cast<std::uint32_t>(text::characters(text.substr(0, at)).size()) + 1,
               static_cast<std::uint32_t>(text::characters(name).size())};
      if (assigns) return found;
    }
  }
  return found;
}

SourceSpan SourceLines::find_text(std::string_view text, std::uint32_t first, std::uint32_t last) const {
  for (auto number = first; number <= last && number <= count(); ++number) {
    const auto at = line(number).find(text);
    if (at == std::string_view::npos) continue;
    return {file_, number,
            static_cast<std::uint32_t>(text::characters(line(number).substr(0, at)).size()) + 1,
            static_cast<std::uint32_t>(text::characters(text).size())};
  }
  return whole(first);
}

SourceSpan SourceLines::whole(std::uint32_t number) const {
  const auto text = line(number);
  const auto trimmed = text::trim(text);
  if (trimmed.empty()) return {file_, number, number == 0 ? 0U : 1U, 1};
  const auto before = static_cast<std::size_t>(trimmed.data() - text.data());
  return {file_, number, static_cast<std::uint32_t>(text::characters(text.substr(0, before)).size()) + 1,
          static_cast<std::uint32_t>(text::characters(trimmed).size())};
}

std::vector<std::uint32_t> lines_of_commands(const SourceLines& lines) {
  std::vector<std::uint32_t> numbers;
  for (std::uint32_t number = 1; number <= lines.count(); ++number) {
    const auto trimmed = text::trim(lines.line(number));
    if (trimmed.empty() || trimmed.starts_with('#')) continue;
    numbers.push_back(number);
    std::string heredoc;  // the word that ends it
    for (const auto last = lines.end_of_command(number);; ++number) {
      if (auto word = heredoc_of(lines.line(number)); !word.empty()) heredoc = std::move(word);
      if (number >= last) break;
    }
    while (!heredoc.empty() && number < lines.count() && text::trim(lines.line(++number)) != heredoc) {
    }
  }
  return numbers;
}

std::string without_comments(const SourceLines& lines) {
  std::vector<std::string_view> kept;
  for (std::uint32_t number = 1; number <= lines.count(); ++number) {
    const auto line = lines.line(number);
    kept.push_back(text::trim(line).starts_with('#') ? std::string_view() : line);
  }
  for (const auto begin : lines_of_commands(lines)) {
    char quote = 0;
    const auto last = lines.end_of_command(begin);
    for (auto number = begin; number <= last; ++number) {
      const auto line = lines.line(number);
      auto& one = kept[number - 1];
      one = one.substr(0, std::min(one.size(), end_of_line(line, quote).comment));
    }
  }
  std::string text;
  for (const auto line : kept) text.append(line).push_back('\n');
  return text;
}

bool tests_a_function(const SourceLines& lines) {
  static const RE2 kBegins(R"re(^\s*(?:function\s+([A-Za-z_][\w-]*)|([A-Za-z_][\w-]*)\s*\(\)))re");
  static const RE2 kTests(R"re(^\s*(?:(?:if|elif|while|until)\s+)?(?:!\s+)?([A-Za-z_][\w-]*)\b(.*)$)re");
  static const RE2 kWord(R"re(^\s*(?:(?:if|elif|while|until)\s|!))re");
  std::set<std::string> functions;
  const auto begins = lines_of_commands(lines);
  std::string name;
  std::string other;
  for (const auto number : begins)
    if (RE2::PartialMatch(lines.line(number), kBegins, &name, &other))
      functions.insert(name.empty() ? other : name);
  return std::ranges::any_of(begins, [&](std::uint32_t number) {
    const auto command = lines.command(number);
    std::string rest;
    if (!RE2::FullMatch(command, kTests, &name, &rest) || !functions.contains(name)) return false;
    return RE2::PartialMatch(command, kWord) || rest.find("||") != std::string::npos ||
           rest.find("&&") != std::string::npos;
  });
}

std::optional<std::string> keeps_exit_code(std::string_view line) {
  static const RE2 kKeeps(
      R"re(\s*([A-Za-z_]\w*)=["']?\$(?:\?|\{\?\}|\{PIPESTATUS\[\d+\]\})["']?\s*(?:#.*)?)re");
  std::string name;
  return RE2::FullMatch(line, kKeeps, &name) ? std::optional(std::move(name)) : std::nullopt;
}

std::vector<std::uint32_t> body_of_function(const SourceLines& lines, const std::string& name) {
  const auto called = RE2::QuoteMeta(name);
  const RE2 begins(R"re(^\s*(?:function\s+)?)re" + called + R"re(\s*(?:\(\s*\))?\s*\{\s*(?:#.*)?$)re");
  const RE2 on_one_line(R"re(^\s*(?:function\s+)?)re" + called + R"re(\s*(?:\(\s*\))?\s*\{.*\}\s*$)re");
  std::vector<std::uint32_t> body;
  const RE2 before(R"re(^\s*(?:function\s+)?)re" + called + R"re(\s*(?:\(\s*\))?\s*$)re");
  std::optional<std::size_t> indentation;  // of its first line
  bool named = false;                      // on the line before its {
  for (const auto number : lines_of_commands(lines)) {
    const auto line = lines.line(number);
    if (std::exchange(named, RE2::FullMatch(line, before)) && text::trim(line) == "{" && !indentation) {
      indentation = line.find_first_not_of(" \t");
      continue;
    }
    if (indentation && line.find_first_not_of(" \t") == *indentation && text::trim(line).starts_with('}'))
      return body;
    if (indentation) body.push_back(number);
    if (RE2::FullMatch(line, begins)) indentation = line.find_first_not_of(" \t");
    if (!indentation && RE2::FullMatch(line, on_one_line)) return {number};
  }
  return {};
}

std::vector<Expansion> expansions_in(std::string_view text) {
  std::vector<Expansion> found;
  bool single = false;
  bool twice = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '\\' && !single) {
      ++at;
    } else if (c == '\'' && !twice) {
      single = !single;
    } else if (c == '"' && !single) {
      twice = !twice;
    } else if (c == '$' && !single) {
      const bool braces = text.substr(at + 1).starts_with('{');
      const auto begin = at + (braces ? 2 : 1);
      auto end = begin;
      while (end < text.size() && is_part_of_name(text[end])) ++end;
      const auto name = text.substr(begin, end - begin);
      if (!is_variable_name(name)) continue;
      const auto close = braces ? std::min(text.find('}', end), text.size()) : end;
      found.push_back({std::string(name), std::string(text.substr(end, close - end))});
      at = end - 1;
    }
  }
  return found;
}

std::vector<std::string> directive_words(std::string_view text) {
  std::vector<std::string> words;
  bool within = false;
  char quote = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    const bool blank = c == ' ' || c == '\t' || c == '\r';
    if (quote == 0 && c == '#') break;
    if (quote == 0 && blank) {
      within = false;
      continue;
    }
    if (!within) words.emplace_back();
    within = true;
    if (c == '\\' && at + 1 < text.size()) {
      words.back() += text[++at];
    } else if (c == quote) {
      quote = 0;
    } else if (quote == 0 && (c == '"' || c == '\'')) {
      quote = c;
    } else {
      words.back() += c;
    }
  }
  return words;
}

std::string long_option(std::string_view option) {
  constexpr std::pair<char, std::string_view> kShort[] = {
      {'A', "account"},    {'a', "array"},         {'b', "begin"},         {'B', "extra-node-info"},
      {'C', "constraint"}, {'c', "cpus-per-task"}, {'D', "chdir"},         {'d', "dependency"},
      {'e', "error"},      {'F', "nodefile"},      {'G', "gpus"},          {'H', "hold"},
      {'i', "input"},      {'J', "job-name"},      {'k', "no-kill"},       {'L', "licenses"},
      {'M', "clusters"},   {'m', "distribution"},  {'N', "nodes"},         {'n', "ntasks"},
      {'O', "overcommit"}, {'o', "output"},        {'p', "partition"},     {'Q', "quiet"},
      {'q', "qos"},        {'S', "core-spec"},     {'s', "oversubscribe"}, {'t', "time"},
      {'v', "verbose"},    {'w', "nodelist"},      {'x', "exclude"}};
  constexpr std::string_view kDashes = "--";
  if (option.starts_with(kDashes)) {
    const auto name = option.substr(kDashes.size(), option.find('=') - kDashes.size());
    return fmt::format("--{}{}", plan::sbatch_option(name), option.substr(kDashes.size() + name.size()));
  }
  if (option.size() < 2) return std::string(option);
  for (const auto& [letter, word] : kShort) {
    if (option[1] != letter) continue;
    auto value = option.substr(2);
    if (value.starts_with('=')) value.remove_prefix(1);
    return value.empty() ? fmt::format("--{}", word) : fmt::format("--{}={}", word, value);
  }
  return std::string(option);
}

std::size_t read_options(const std::vector<std::string>& words, const SourceSpan& span,
                         std::vector<StepOption>& options, std::vector<StepOption>* stray) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!words[i].starts_with('-') || words[i].size() < 2) {
      if (stray == nullptr) return i;
      stray->push_back({words[i], span});
      continue;
    }
    StepOption option{long_option(words[i]), span};
    const bool open = option.text.find('=') == std::string::npos;
    const bool valued = shell::takes_value_of_srun(option.text) ||
                        shell::takes_value_of_sbatch(option.text) ||
                        plan::sbatch_needs_value(option.text.substr(2));
    if (open && valued && i + 1 < words.size() && !words[i + 1].starts_with("--"))
      option.text += "=" + words[++i];
    options.push_back(std::move(option));
  }
  return words.size();
}

std::vector<std::string> variables_of_job(const std::vector<StepOption>& options,
                                          const std::vector<std::string>& given) {
  constexpr std::string_view kExport = "--export=";
  std::vector<std::string> variables;
  const auto last = std::find_if(options.rbegin(), options.rend(),
                                 [&](const StepOption& option) { return option.text.starts_with(kExport); });
  if (last != options.rend()) {
    for (auto& one : text::split(std::string_view(last->text).substr(kExport.size()), ',')) {
      const auto equals = one.find('=');
      const bool is_given = std::ranges::any_of(
          given, [&](const auto& other) { return other.starts_with(one.substr(0, equals) + "="); });
      if (equals != std::string::npos && !is_given) variables.push_back(std::move(one));
    }
  }
  variables.insert(variables.end(), given.begin(), given.end());
  return variables;
}

std::string names_read(const SourceLines& lines) {
  std::string names;
  for (std::uint32_t number = 1; number <= lines.count(); ++number) {
    const auto text = lines.line(number);
    if (text::trim(text).starts_with('#')) continue;
    for (std::size_t at = 0; at < text.size();) {
      if (!is_part_of_name(text[at])) {
        ++at;
        continue;
      }
      const auto begin = at;
      while (at < text.size() && is_part_of_name(text[at])) ++at;
      const auto name = text.substr(begin, at - begin);
      const auto before = text.substr(0, begin);
      const bool expanded = before.ends_with('$') || before.ends_with("${") || before.ends_with("${!");
      const bool quoted = before.ends_with('"') || before.ends_with('\'');
      // NAME=${NAME:-1} does not pass the name on, and {"NAME": "1"} sets it.
      const auto own = std::string(name) + "=";
      const auto of_own = before.substr(0, before.find_last_not_of("${\"'") + 1);
      const auto behind = text::trim(text.substr(std::min(text.find_first_not_of("\\\"'", at), text.size())));
      const bool sets = at < text.size() && (text[at] == '=' || behind.starts_with(':'));
      const bool upper = std::ranges::none_of(name, [](char c) { return c >= 'a' && c <= 'z'; });
      if (expanded ? !of_own.ends_with(own) : quoted && upper && !sets) names.append(name).push_back('\n');
    }
  }
  return names;
}

namespace {

/// Without the directives that the command line overrides.
void put_first(const SbatchOptions& options, std::vector<StepOption>& batch) {
  std::vector<StepOption> all;
  read_options(options.words, options.span, all, nullptr);
  const auto name_of = [](const StepOption& one) { return one.text.substr(0, one.text.find('=')); };
  std::erase_if(batch, [&](const StepOption& one) {
    return std::ranges::find(all, name_of(one), name_of) != all.end();
  });
  batch.insert(batch.begin(), all.begin(), all.end());
}

}  // namespace

LintInput script_input(const std::shared_ptr<const SourceFile>& file, const SbatchOptions& options) {
  LintInput input;
  input.files = {file};
  input.environments.emplace_back();
  auto& script = input.script.emplace();
  script.file = file;
  const SourceLines lines(file);
  std::string heredoc;  // the word that ends the one that the line is in
  for (std::uint32_t number = 1; number <= lines.count(); ++number) {
    const auto line = lines.line(number);
    const auto trimmed = text::trim(line);
    if (!heredoc.empty()) {
      if (trimmed == heredoc) heredoc.clear();
      continue;
    }
    if (trimmed.empty()) continue;
    if (!trimmed.starts_with('#')) heredoc = heredoc_of(line);
    if (!trimmed.starts_with('#')) {
      if (script.first_command == 0) script.first_command = number;
      continue;
    }
    script.comments.push_back({std::string(trimmed), lines.whole(number)});
    if (script.first_command != 0 || !is_directive(line)) continue;
    const auto words = directive_words(line.substr(kDirective.size()));
    // `packjob` before Slurm 20.02.
    if (!words.empty() && (words[0] == "hetjob" || words[0] == "packjob")) {
      if (input.components.empty()) input.components.push_back(input.batch);
      input.components.emplace_back();
      continue;
    }
    const auto known = input.batch.size();
    read_options(words, lines.whole(number), input.batch, &input.stray);
    if (!input.components.empty())
      input.components.back().insert(input.components.back().end(),
                                     input.batch.begin() + static_cast<std::ptrdiff_t>(known),
                                     input.batch.end());
  }
  put_first(options, input.batch);
  input.slurm = !input.batch.empty() || !input.components.empty();
  if (const auto nodes = text::whole_number<std::uint32_t>(value_of(input.batch, "--nodes")))
    input.nodes = *nodes;
  if (const auto gpus = allocation_of(input).gpus_per_node; gpus > 0) input.gpus = gpus;
  return input;
}

shell::Allocation allocation_of(const LintInput& input) {
  const auto value = [&](std::string_view name) { return value_of(input.batch, fmt::format("--{}", name)); };
  const auto asked = shell::asked_for(value);
  shell::Allocation job;
  if (const auto name = value("job-name"); !name.empty()) job.job_name = name;
  job.nodes = asked.nodes;
  job.tasks_per_node = std::max(1U, asked.tasks);
  job.cpus_per_task = shell::leading_number(value("cpus-per-task"));
  job.cpus_per_gpu = asked.cpus_per_gpu;
  job.variables = asked.variables;
  job.array = shell::array_tasks(value("array"));
  job.counts_tasks = !value("ntasks-per-node").empty() || !value("tasks-per-node").empty();
  job.gpus_per_node = asked.gpus;
  if (input.components.empty()) return job;
  const auto add = [&](const shell::AskedFor& size) {
    const auto first = job.components.empty() ? 0 : job.components.back().first + job.components.back().nodes;
    job.components.push_back({first, size.nodes, std::max(1U, size.tasks), size.gpus});
  };
  job.nodes = job.gpus_per_node = 0;
  for (const auto& options : input.components) {
    add(shell::asked_for(
        [&](std::string_view name) { return value_of(options, fmt::format("--{}", name)); }));
    job.nodes += job.components.back().nodes;
    job.gpus_per_node = std::max(job.gpus_per_node, job.components.back().gpus_per_node);
  }
  job.tasks_per_node = job.components.front().tasks_per_node;
  return job;
}

}  // namespace nlaunch::lint

#include "lint/script_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "lint/script_arguments.h"

namespace nlaunch::lint {
namespace {

bool only_looks(std::string_view program) {
  constexpr std::array<std::string_view, 25> kHelpers{
      "hostname", "echo", "nvidia-smi", "rm",   "mkdir", "true",  "cp",   "mv",  "ls",
      "date",     "env",  "printenv",   "cat",  "sleep", "rsync", "ip",   "scp", "pkill",
      "tar",      "df",   "killall",    "grep", "awk",   "head",  "uname"};
  return std::ranges::find(kHelpers, program) != kHelpers.end();
}

/// The words of a command behind its name, as srun gets them: one that begins with what is known is an
/// option, whatever its end is.
std::vector<Argument> arguments(const Command& command,
                                const std::function<std::optional<std::string>(const Word&)>& value_of) {
  std::vector<Argument> out;
  for (std::size_t i = 1; i < command.words.size(); ++i) {
    const auto& word = command.words[i];
    const auto value = value_of(word);
    const auto begin = std::ranges::find_if(
        word.parts, [](const Part& part) { return part.kind != Part::Kind::text || !part.text.empty(); });
    const bool begins_known = begin == word.parts.end() || begin->kind == Part::Kind::text;
    if (!value) {
      out.push_back({word.shown(), begins_known, word.span});
    } else if (word.quoted || begins_known) {
      out.push_back({*value, true, word.span});
    } else {
      for (auto& one : split_words(*value)) out.push_back({std::move(one), true, word.span});
    }
  }
  return out;
}

std::string long_option(std::string_view text) {
  constexpr std::pair<char, std::string_view> kShort[] = {
      {'N', "nodes"},     {'n', "ntasks"},  {'c', "cpus-per-task"}, {'t', "time"},
      {'p', "partition"}, {'A', "account"}, {'o', "output"},        {'e', "error"},
      {'J', "job-name"},  {'G', "gpus"},    {'x', "exclude"},       {'C', "constraint"}};
  if (text.starts_with("--") || text.size() < 2) return std::string(text);
  for (const auto& [letter, word] : kShort) {
    if (text[1] != letter) continue;
    auto value = text.substr(2);
    if (value.starts_with('=')) value.remove_prefix(1);
    return value.empty() ? fmt::format("--{}", word) : fmt::format("--{}={}", word, value);
  }
  return std::string(text);
}

}  // namespace

bool srun_takes_value(std::string_view option) {
  if (option.find('=') != std::string_view::npos) return false;
  if (option.starts_with("--")) {
    constexpr std::array<std::string_view, 17> kFlags{"--exclusive",
                                                      "--overlap",
                                                      "--label",
                                                      "--unbuffered",
                                                      "--verbose",
                                                      "--quiet",
                                                      "--pty",
                                                      "--exact",
                                                      "--overcommit",
                                                      "--oversubscribe",
                                                      "--immediate",
                                                      "--kill-on-bad-exit",
                                                      "--contiguous",
                                                      "--multi-prog",
                                                      "--spread-job",
                                                      "--container-writable",
                                                      "--container-remap-root"};
    return !option.starts_with("--no-") && std::ranges::find(kFlags, option) == kFlags.end();
  }
  constexpr std::string_view kWithValue = "nNcpwxtoeiAJmdDkCG";
  return option.size() == 2 && kWithValue.find(option[1]) != std::string_view::npos;
}

Step read_step(const Command& command,
               const std::function<std::optional<std::string>(const Word&)>& value_of) {
  Step step;
  step.span = command.span;
  const auto words = arguments(command, value_of);
  for (std::size_t i = 0; i < words.size(); ++i) {
    const auto& word = words[i];
    if (!word.known) {
      step.open_ended = true;  // options, or the program
    } else if (word.text.starts_with('-')) {
      StepOption option{word.text, word.span};
      if (srun_takes_value(word.text) && i + 1 < words.size()) option.text += "=" + words[++i].text;
      step.options.push_back(std::move(option));
    } else {
      step.program = word.text.substr(word.text.rfind('/') + 1);
      const bool script = i + 2 < words.size() && words[i + 1].text.ends_with('c');  // bash -c, bash -lc
      if ((step.program == "bash" || step.program == "sh") && script) step.script = words[i + 2].text;
      break;
    }
  }
  return step;
}

bool is_helper(const Step& step) {
  if (step.script.empty()) return only_looks(step.program);
  const auto inner = read_shell(std::make_shared<const SourceFile>(SourceFile{"", step.script}));
  return std::ranges::all_of(inner.commands,
                             [](const Command& command) { return only_looks(command.name()); });
}

std::vector<StepOption> batch_options(const Script& script) {
  constexpr std::string_view kMark = "#SBATCH";
  std::vector<StepOption> options;
  for (const auto& comment : script.comments) {
    if (!comment.text.starts_with(kMark)) continue;
    if (!script.commands.empty() && comment.span.line >= script.commands.front().span.line) continue;
    auto rest = std::string_view(comment.text).substr(kMark.size());
    rest = rest.substr(0, rest.find(" #"));
    for (const auto& word : text::split(rest, ' ')) {
      const auto text = std::string(text::trim(word));
      if (text.empty()) continue;
      if (text.starts_with('-')) {
        options.push_back({long_option(text), comment.span});
      } else if (!options.empty() && options.back().span.line == comment.span.line &&
                 options.back().text.find('=') == std::string::npos) {
        options.back().text += "=" + text;
      }
    }
  }
  return options;
}

}  // namespace nlaunch::lint

#include "lint/script_arguments.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/text.h"

namespace nlaunch::lint {
namespace {

constexpr std::size_t kLongestScript = 64U << 10U;

bool holds_variable(const Word& word) {
  return std::ranges::any_of(word.parts, [](const Part& part) { return part.kind != Part::Kind::text; });
}

bool is_shell(std::string_view program) {
  constexpr std::array<std::string_view, 5> kShells{"bash", "sh", "dash", "zsh", "ksh"};
  return std::ranges::find(kShells, program.substr(program.rfind('/') + 1)) != kShells.end();
}

bool is_part_of_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/// The name as a whole word of a line, at `wanted` if it is there; npos where it is not in the line.
std::size_t find_name(std::string_view line, std::string_view name, std::size_t wanted) {
  auto found = std::string_view::npos;
  for (auto at = line.find(name); at != std::string_view::npos; at = line.find(name, at + 1)) {
    const bool begins = at == 0 || !is_part_of_name(line[at - 1]);
    const bool ends = at + name.size() == line.size() || !is_part_of_name(line[at + name.size()]);
    if (!begins || !ends) continue;
    if (at >= wanted) return at;
    found = at;
  }
  return found;
}

}  // namespace

bool is_variable_name(std::string_view text) {
  if (text.empty() || (text[0] >= '0' && text[0] <= '9')) return false;
  return std::ranges::all_of(text, is_part_of_name);
}

std::vector<std::string> split_words(std::string value) {
  std::ranges::replace_if(
      value, [](char c) { return c == '\t' || c == '\n'; }, ' ');
  auto words = text::split(value, ' ');
  std::erase(words, "");
  return words;
}

std::vector<Argument> arguments_of(const Command& command,
                                   const std::function<std::optional<std::string>(const Word&)>& value_of) {
  std::vector<Argument> out;
  for (std::size_t i = 1; i < command.words.size(); ++i) {
    const auto& word = command.words[i];
    const auto value = value_of(word);
    if (!value) {
      out.push_back({word.shown(), false, word.span});
    } else if (word.quoted || !holds_variable(word)) {
      out.push_back({*value, true, word.span});
    } else {
      for (auto& one : split_words(*value)) out.push_back({std::move(one), true, word.span});
    }
  }
  return out;
}

const Word* script_word(const Command& command) {
  const auto text_of = [&](std::size_t i) { return command.words[i].constant().value_or(""); };
  for (std::size_t i = 0; i < command.words.size(); ++i) {
    if (!is_shell(text_of(i))) continue;
    for (auto at = i + 1; at + 1 < command.words.size(); ++at) {
      const auto option = text_of(at);
      if (option.size() < 2 || option[0] != '-') break;
      if (option[1] == '-') continue;
      if (option.find('c') != std::string::npos) return &command.words[at + 1];
      if (option.ends_with('o')) ++at;  // -o pipefail
    }
  }
  return nullptr;
}

std::string script_text(const Word& word,
                        const std::function<std::optional<std::string>(std::string_view)>& value_of) {
  std::string out;
  for (const auto& part : word.parts) {
    if (part.kind == Part::Kind::text) {
      out += part.text;
      continue;
    }
    const auto value = part.kind == Part::Kind::variable ? value_of(part.text) : std::nullopt;
    out += value && out.size() + value->size() < kLongestScript ? *value : std::string(kOnlyAtRunTime);
  }
  return out;
}

std::vector<std::pair<std::string, std::optional<std::string>>> runtime_variables(const std::string& json) {
  std::vector<std::pair<std::string, std::optional<std::string>>> out;
  const auto environment = parse_ordered_json(json);
  if (!environment.is_object()) return out;
  const auto variables = environment.find("env_vars");
  if (variables == environment.end() || !variables->is_object()) return out;
  for (const auto& [name, value] : variables->items()) {
    std::optional<std::string> text;
    if (value.is_string()) text = value.get<std::string>();
    if (text && text->find('$') != std::string::npos) text.reset();
    if (is_variable_name(name)) out.emplace_back(name, std::move(text));
  }
  return out;
}

std::optional<std::string> name_in_container(std::string_view name) {
  for (const std::string_view prefix : {"APPTAINERENV_", "SINGULARITYENV_"}) {
    if (name.starts_with(prefix) && is_variable_name(name.substr(prefix.size())))
      return std::string(name.substr(prefix.size()));
  }
  return std::nullopt;
}

SourceSpan place_of(std::string_view name, std::uint32_t line, std::uint32_t column,
                    const SourceSpan& otherwise) {
  // A line that a backslash continues is one line of the word and several of the file.
  constexpr std::uint32_t kBehind = 64;
  for (auto at = line; at < line + kBehind; ++at) {
    SourceSpan span{otherwise.file, at, 1, 1};
    const auto text = span.source_line();
    const auto found = find_name(text, name, at == line && column > 0 ? column - 1 : 0);
    if (found == std::string::npos) continue;
    span.column =
        static_cast<std::uint32_t>(text::characters(std::string_view(text).substr(0, found)).size()) + 1;
    span.length = static_cast<std::uint32_t>(name.size());
    return span;
  }
  return otherwise;
}

}  // namespace nlaunch::lint
